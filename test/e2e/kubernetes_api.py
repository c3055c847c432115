"""kubernetes_api: the API server of Kubernetes, as far as a driver of runtimes asks it.

It keeps Deployments and Services, checks each against the published schemas, counts versions, lists
by label and page, and watches from a version. What really runs is the test's business:

    api.ready(name)                         its Deployment has a ready replica
    api.refuse(403, "exceeded quota: q")    the next POST
    api.compact()                           old versions are gone: 410
"""
import contextlib
import copy
import http.server
import json
import ssl
import threading
import time
import urllib.parse

import kubernetes_validate

KINDS = {"deployments": ("apps/v1", "Deployment"), "services": ("v1", "Service")}


class Gate:
    """A request that has come and is not carried out before it is opened."""

    def __init__(self):
        self.reached, self.open = threading.Event(), threading.Event()


def merge(item, patch):
    """RFC 7386."""
    for key, value in patch.items():
        if value is None:
            item.pop(key, None)
        elif isinstance(value, dict):
            merge(item.setdefault(key, {}), value)
        else:
            item[key] = value


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def handle_one_request(self):
        with contextlib.suppress(ConnectionError):
            super().handle_one_request()

    def reply(self, status, body, headers=()):
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        for name, value in headers:
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(data)

    def status(self, code, reason, message, headers=()):
        self.reply(code, {"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code,
                          "reason": reason, "message": message}, headers)

    def do_any(self):
        api = self.server.api
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        url = urllib.parse.urlsplit(self.path)
        query = dict(urllib.parse.parse_qsl(url.query))
        parts = url.path.strip("/").split("/")
        with api.lock:
            api.asked.append((self.command, self.path))
            refused = api.take_refusal(self.command, self.path)
            gate = api.take_gate(self.command, self.path)
        if gate:
            gate.reached.set()
            assert gate.open.wait(60)
        if self.headers.get("authorization") != f"Bearer {api.token}":
            return self.status(401, "Unauthorized", "Unauthorized")
        if refused:
            return self.status(*refused)
        at = parts.index("namespaces")
        namespace, kind, name = parts[at + 1], parts[at + 2], (parts[at + 3:] or [None])[0]
        if namespace != api.namespace:
            return self.status(404, "NotFound", f'namespaces "{namespace}" not found')
        if self.command == "POST":
            return self.create(api, kind, json.loads(body))
        if self.command == "DELETE":
            return self.delete(api, kind, name, json.loads(body or b"{}"))
        if self.command == "PATCH":
            return self.patch(api, kind, name, json.loads(body))
        if "watch" in query:
            return self.watch(api, kind, query)
        return self.list(api, kind, query)

    do_GET = do_POST = do_PATCH = do_DELETE = do_any

    def create(self, api, kind, item):
        version, what = KINDS[kind]
        assert (item["apiVersion"], item["kind"]) == (version, what)
        try:
            kubernetes_validate.validate(item, "1.30", strict=True)
        except Exception as wrong:
            api.wrong.append(str(wrong))
            return self.status(422, "Invalid", str(wrong))
        with api.lock:
            key = (kind, item["metadata"]["name"])
            if key in api.items:
                return self.status(409, "AlreadyExists", f'{kind} "{key[1]}" already exists')
            created = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() - api.age))
            item["metadata"] |= {"namespace": api.namespace, "uid": str(api.version), "generation": 1,
                                 "creationTimestamp": created}
            item["status"] = {}
            api.items[key] = item
            api.change("ADDED", kind, item)
            if kind == "deployments" and api.starts:
                item["status"] = {"readyReplicas": 1, "observedGeneration": 1}
                api.change("MODIFIED", kind, item)
            answer = copy.deepcopy(item)
        return self.reply(201, answer)

    def patch(self, api, kind, name, patch):
        if self.headers["content-type"] != "application/merge-patch+json":
            return self.status(415, "UnsupportedMediaType", "not a merge patch")
        with api.lock:
            item = api.items.get((kind, name))
            if not item:
                return self.status(404, "NotFound", f'{kind} "{name}" not found')
            before = copy.deepcopy(item)
            merge(item, patch)
            if item != before:  # a patch that changes nothing makes no version
                api.change("MODIFIED", kind, item)
            answer = copy.deepcopy(item)
        return self.reply(200, answer)

    def delete(self, api, kind, name, options):
        assert options.get("kind") == "DeleteOptions" and options["propagationPolicy"] == "Background"
        with api.lock:
            item = api.items.get((kind, name))
            if not item:
                return self.status(404, "NotFound", f'{kind} "{name}" not found')
            for key, value in options.get("preconditions", {}).items():
                if item["metadata"].get(key) != value:
                    return self.status(409, "Conflict", f"the {key} in the precondition ({value}) does not "
                                       f"match the {key} in record ({item['metadata'].get(key)})")
            del api.items[(kind, name)]
            api.change("DELETED", kind, item)
        return self.reply(200, {"kind": "Status", "status": "Success"})

    def list(self, api, kind, query):
        label, _, value = query["labelSelector"].partition("=")
        with api.lock:
            found = [copy.deepcopy(i) for (k, _), i in sorted(api.items.items())
                     if k == kind and i["metadata"]["labels"].get(label) == value]
            meta = {"resourceVersion": str(api.version)}
        size = min(int(query.get("limit", 500)), api.page)
        left = [i for i in found if i["metadata"]["name"] > query.get("continue", "")]
        if size < len(left):
            meta["continue"] = left[size - 1]["metadata"]["name"]  # what goes meanwhile shifts nothing
        return self.reply(200, {"kind": KINDS[kind][1] + "List", "metadata": meta, "items": left[:size]})

    def watch(self, api, kind, query):
        since = int(query["resourceVersion"])
        label, _, value = query["labelSelector"].partition("=")
        if since < api.oldest and api.early_gone:
            return self.status(410, "Expired", "too old resource version")
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        api.watching += 1
        epoch = api.epoch
        with contextlib.suppress(OSError):
            while not api.closed and epoch == api.epoch:
                with api.lock:
                    gone = since < api.oldest
                    new = [e for e in api.events if e[0] > since and e[2] == kind
                           and e[3]["metadata"]["labels"].get(label) == value]
                if gone:
                    self.chunk({"type": "ERROR", "object": {"kind": "Status", "code": 410}})
                    break
                for version, what, _, item in new:
                    self.chunk({"type": what, "object": item})
                    since = version
                time.sleep(0.01)
        with contextlib.suppress(OSError):
            self.wfile.write(b"0\r\n\r\n")

    def chunk(self, event):
        """An event in two pieces, as networks cut them."""
        data = json.dumps(event).encode() + b"\n"
        for piece in (data[:37], data[37:]):
            self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))
            self.wfile.flush()


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *_):
        pass


class Api:
    """secure: a certificate and its key, files."""

    def __init__(self, token_file, namespace="agents", secure=None):
        self.namespace, self.token_file = namespace, token_file
        self.lock = threading.RLock()
        self.items, self.events, self.asked, self.wrong, self._refusals = {}, [], [], [], []
        self._gates = []
        self.version, self.oldest, self.watching, self.epoch = 100, 0, 0, 0
        self.starts, self.closed, self.early_gone, self.page = True, False, True, 500
        self.age = 0  # of what is created, in seconds
        self.rotate("token-1")
        self._server = Server(("127.0.0.1", 0), Handler)
        self._server.api = self
        if secure:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(*secure)
            self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()
        self.url = f"http{'s' if secure else ''}://127.0.0.1:{self._server.server_address[1]}"

    def close(self):
        self.closed = True
        self._server.shutdown()
        self._server.server_close()
        assert not self.wrong, self.wrong[0]

    def rotate(self, token):
        self.token = token
        self.token_file.write_text(token + "\n")

    def change(self, what, kind, item):
        self.version += 1
        item["metadata"]["resourceVersion"] = str(self.version)
        self.events.append((self.version, what, kind, copy.deepcopy(item)))

    def names(self, kind="deployments"):
        with self.lock:
            return sorted(name for k, name in self.items if k == kind)

    def ready(self, name, replicas=1):
        with self.lock:
            item = self.items[("deployments", name)]
            item["status"] = {"observedGeneration": 1, **({"readyReplicas": replicas} if replicas else {})}
            self.change("MODIFIED", "deployments", item)

    def remove(self, name):
        with self.lock:
            self.change("DELETED", "deployments", self.items.pop(("deployments", name)))

    def refuse(self, code, reason, message, when="POST", times=1, headers=()):
        self._refusals += [(when, (code, reason, message, headers))] * times

    def take_refusal(self, method, path):
        for i, (when, refusal) in enumerate(self._refusals):
            if when in f"{method} {path}":
                del self._refusals[i]
                return refusal
        return None

    def hold(self, when):
        """The next such request waits at the gate."""
        gate = Gate()
        self._gates.append((when, gate))
        return gate

    def take_gate(self, method, path):
        for i, (when, gate) in enumerate(self._gates):
            if when in f"{method} {path}":
                del self._gates[i]
                return gate
        return None

    def compact(self):
        """Forget the past; watches that stand in it end."""
        with self.lock:
            self.version += 1
            self.oldest = self.version
            self.events = []

    def cut(self):
        """Every watch ends, as it does after some minutes."""
        self.epoch += 1
