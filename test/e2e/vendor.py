"""vendor: a model and a search engine on loopback, as one small server.

The model speaks enough of the Chat Completions API: asked for something "with a search", it
first calls web_search_tool; then it answers, in pieces. The search counts who asks what: each
GET is an effect outside of the daemon.

    with Vendor() as vendor:
        weir = start_weir(config=vendor.config())
"""
import http.server
import json
import threading
import urllib.parse
import urllib.request

KEY = "house-key-4711-sings"
HEADER = "header-value-0815-sings"


class Vendor:
    def __init__(self):
        self.asked = []  # bodies of requests to the model, in order
        self.searches = []  # questions to the search, in order
        self.search_gate = None  # called with each question, before it is answered
        self._lock = threading.Lock()
        self._calls = 0
        vendor = self

        class Handler(_Handler):
            owner = vendor

        self._server = _Server(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True)
        self._thread.start()
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()

    def stop(self):
        if self._thread.is_alive():
            self._server.shutdown()
            self._server.server_close()
            self._thread.join()

    def drain(self):
        """Have everything answered that was sent before: connections are taken in their order."""
        direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with direct.open(self.url + "/drain") as answer:
            answer.read()
        with self._server.idle:
            assert self._server.idle.wait_for(lambda: self._server.open == 0, 20)

    def config(self, instructions="You help."):
        return (
            f"providers:\n  - name: house\n    kind: openai\n    base_url: {self.url}/v1\n"
            f"    key_env: HOUSE_KEY\n    headers: {{x-team: {HEADER}}}\n"
            f"tools:\n  web_search: {{backend: searxng, url: {self.url}}}\n"
            f"agents:\n  - slug: manager\n    instructions: {instructions}\n"
            "    model: house/big\n    tools: [web_search_tool]\n"
        )

    # --- the model --------------------------------------------------------------------

    def chunks(self, body):
        with self._lock:
            self.asked.append(body)
            self._calls += 1
            number = self._calls
        messages = body["messages"]
        said = next(i for i in range(len(messages) - 1, -1, -1) if messages[i]["role"] == "user")
        text = text_of(messages[said])
        found = [m for m in messages[said:] if m["role"] == "tool"]
        if "with a search" in text and not found:
            deltas = [{"content": "Let me look. "}, search_call(number, text)]
        else:
            deltas = [{"content": piece} for piece in ["You ", "said: ", text, f" ({len(messages)})."]]
        for delta in deltas:
            yield {"model": "big-1", "choices": [{"index": 0, "delta": delta}]}
        reason = "tool_calls" if "tool_calls" in deltas[-1] else "stop"
        yield {"model": "big-1", "choices": [{"index": 0, "delta": {}, "finish_reason": reason}]}
        yield {"choices": [], "usage": {"prompt_tokens": 5 + len(messages), "completion_tokens": 7}}

    # --- the search -------------------------------------------------------------------

    def search(self, question):
        with self._lock:
            self.searches.append(question)
        if self.search_gate:
            self.search_gate(question)
        return {"results": [{"title": "T", "url": "https://a.example/", "content": question}]}


def text_of(message):
    content = message["content"]
    return content if isinstance(content, str) else "".join(part["text"] for part in content)


def search_call(number, text):
    function = {"name": "web_search_tool", "arguments": json.dumps({"query": text})}
    call = {"index": 0, "id": f"call_{number}", "type": "function", "function": function}
    return {"tool_calls": [call]}


class _Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 512

    def __init__(self, *args):
        self.idle, self.open = threading.Condition(), 0
        super().__init__(*args)

    def process_request(self, request, client_address):
        with self.idle:
            self.open += 1
        super().process_request(request, client_address)

    def process_request_thread(self, request, client_address):
        super().process_request_thread(request, client_address)
        with self.idle:
            self.open -= 1
            self.idle.notify_all()

    def handle_error(self, request, client_address):
        pass  # who asked was killed


class _Handler(http.server.BaseHTTPRequestHandler):
    owner = None

    def do_GET(self):
        if self.path == "/drain":
            self.answer("text/plain", "")
            return
        query = urllib.parse.parse_qs(urllib.parse.urlsplit(self.path).query)
        self.answer("application/json", json.dumps(self.owner.search(query["q"][0])))

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        lines = [f"data: {json.dumps(chunk)}\n\n" for chunk in self.owner.chunks(body)]
        self.answer("text/event-stream", "".join(lines) + "data: [DONE]\n\n")

    def answer(self, kind, text):
        self.send_response(200)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(text.encode())))
        self.end_headers()
        try:
            self.wfile.write(text.encode())
        except OSError:
            pass  # who asked is gone

    def log_message(self, *args):
        pass
