"""storage: S3-compatible storage for tests: moto's server, and a bent road to it.

Each request is checked on its way: its signature is computed again by botocore, of what really
came. Then it goes on to moto, unless the test has something else in store for it:

    storage.spoil(status(503, "SlowDown", {"retry-after": "0"}))     the next request
    storage.spoil(cut(after=100), when="GET")                         the next GET
"""
import contextlib
import hashlib
import http.client
import http.server
import threading
import time
import urllib.parse

import boto3
import botocore.auth
import botocore.awsrequest
import botocore.credentials
from moto.server import ThreadedMotoServer

ACCESS, SECRET, REGION, BUCKET = "AKIATEST", "canary5ecre7/With+Slash", "us-east-1", "weir-files"


# --- what may befall an answer -------------------------------------------------------------


def status(code, name="", headers=None, message="no"):
    """Answer with this instead, and do nothing."""

    def befall(handler, forward):
        body = f"<Error><Code>{name}</Code><Message>{message}</Message></Error>".encode() if name else b""
        handler.reply(code, {"content-type": "application/xml", **(headers or {})}, body)

    return befall


def lost(handler, forward):
    """It is carried out, and nobody hears of it."""
    forward()
    handler.drop()


def cut(after):
    def befall(handler, forward):
        code, headers, body = forward()
        handler.reply(code, headers, body, send=after)
        handler.drop()

    return befall


def change(**new):
    """Other headers than were sent: etag="x", content_range="..."; None leaves one out."""

    def befall(handler, forward):
        code, headers, body = forward()
        for name, value in new.items():
            headers.pop(name.replace("_", "-"), None)
            if value is not None:
                headers[name.replace("_", "-")] = value
        handler.reply(code, headers, body)

    return befall


def instead(body, code=200):
    def befall(handler, forward):
        forward()
        handler.reply(code, {"content-type": "application/xml"}, body.encode())

    return befall


def held(event):
    """Nothing comes until the event."""

    def befall(handler, forward):
        event.wait(30)
        handler.reply(*forward())

    return befall


# --- the road ------------------------------------------------------------------------------


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def reply(self, code, headers, body, send=None):
        self.send_response_only(code)
        for name, value in headers.items():
            self.send_header(name, value)
        if "content-length" not in headers:
            self.send_header("content-length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body if send is None else body[:send])

    def drop(self):
        self.close_connection = True
        with contextlib.suppress(OSError):
            self.wfile.flush()
            self.connection.shutdown(2)

    def handle_one_request(self):
        with contextlib.suppress(ConnectionError, BrokenPipeError):
            super().handle_one_request()

    def do_any(self):
        storage = self.server.storage
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        storage.check(self.command, self.path, self.headers, body)

        def forward():
            connection = http.client.HTTPConnection("127.0.0.1", storage.moto_port)
            headers = {k: v for k, v in self.headers.items() if k.lower() != "connection"}
            connection.request(self.command, self.path, body=body, headers=headers)
            answer = connection.getresponse()
            got = answer.read()
            kept = {k.lower(): v for k, v in answer.getheaders()}
            for name in ("connection", "transfer-encoding", "server", "content-length"):
                kept.pop(name, None)
            if self.command == "HEAD" and answer.getheader("content-length"):
                kept["content-length"] = answer.getheader("content-length")
            connection.close()
            return answer.status, kept, got

        befall = storage.next(self.command, self.path)
        if befall:
            befall(self, forward)
        else:
            self.reply(*forward())

    do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = do_any


class Road(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def handle_error(self, *_):
        pass


class Storage:
    def __init__(self):
        self._moto = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
        self._moto.start()
        _, self.moto_port = self._moto.get_host_and_port()
        self._road = Road(("127.0.0.1", 0), Handler)
        self._road.storage = self
        self._thread = threading.Thread(target=self._road.serve_forever, args=(0.01,), daemon=True)
        self._thread.start()
        self.port = self._road.server_address[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self.asked, self.wrong, self._spoils = [], [], []
        self._lock = threading.Lock()
        self.client = boto3.client(
            "s3",
            endpoint_url=f"http://127.0.0.1:{self.moto_port}",
            region_name=REGION,
            aws_access_key_id=ACCESS,
            aws_secret_access_key=SECRET,
        )
        self.client.create_bucket(Bucket=BUCKET)

    def close(self):
        self._road.shutdown()
        self._road.server_close()
        with contextlib.suppress(Exception):
            for key in self.keys():
                self.client.delete_object(Bucket=BUCKET, Key=key)
            for upload in self.uploads():
                self.client.abort_multipart_upload(Bucket=BUCKET, Key=upload["Key"], UploadId=upload["UploadId"])
            self.client.delete_bucket(Bucket=BUCKET)
        self._moto.stop()

    # --- the test's -----------------------------------------------------------------------

    def spoil(self, befall, when="", times=1):
        with self._lock:
            self._spoils += [(when, befall)] * times

    def next(self, method, path):
        with self._lock:
            self.asked.append((method, path))
            for i, (when, befall) in enumerate(self._spoils):
                if when in f"{method} {path}":
                    del self._spoils[i]
                    return befall
        return None

    def keys(self):
        return [o["Key"] for o in self.client.list_objects_v2(Bucket=BUCKET).get("Contents", [])]

    def uploads(self):
        return self.client.list_multipart_uploads(Bucket=BUCKET).get("Uploads", [])

    def body(self, key):
        return self.client.get_object(Bucket=BUCKET, Key=key)["Body"].read()

    def environment(self, **more):
        return {
            "CRAWBL_SPACES_ENDPOINT": self.url,
            "CRAWBL_SPACES_REGION": REGION,
            "CRAWBL_SPACES_BUCKET": BUCKET,
            "CRAWBL_SPACES_ACCESS_KEY": ACCESS,
            "CRAWBL_SPACES_SECRET_KEY": SECRET,
            **more,
        }

    # --- the signature ---------------------------------------------------------------------

    def check(self, method, path, headers, body):
        """Sign again what came, with botocore."""
        sent = headers["authorization"]
        names = sent.split("SignedHeaders=")[1].split(",")[0].split(";")
        request = botocore.awsrequest.AWSRequest(
            method=method,
            url=f"http://{headers['host']}{path}",
            headers={name: headers[name] for name in names},
            data=body,
        )
        request.context.update(timestamp=headers["x-amz-date"], payload_signing_enabled=True)
        signer = botocore.auth.S3SigV4Auth(botocore.credentials.Credentials(ACCESS, SECRET), "s3", REGION)
        # Only what was signed: botocore would add headers of its own.
        signer.headers_to_sign = lambda r: r.headers
        query = "&".join(sorted(urllib.parse.urlsplit(path).query.split("&"))) if "?" in path else ""
        canonical = "\n".join(
            [method, urllib.parse.urlsplit(path).path, query]
            + [f"{n}:{' '.join(headers[n].split())}" for n in sorted(names)]
            + ["", ";".join(sorted(names)), headers["x-amz-content-sha256"]]
        )
        signature = signer.signature(signer.string_to_sign(request, canonical), request)
        right = sent.endswith(f"Signature={signature}") and "host" in names
        right = right and hashlib.sha256(body).hexdigest() == headers["x-amz-content-sha256"]
        if not right:
            self.wrong.append((method, path, dict(headers)))


def wait_for(condition, what, seconds=30):
    give_up = time.monotonic() + seconds
    while time.monotonic() < give_up:
        found = condition()
        if found:
            return found
        time.sleep(0.02)
    raise AssertionError(f"{what}, after {seconds} s")
