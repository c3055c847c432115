"""A server with OpenAI's /v1/embeddings, for tests: words of one meaning point in one direction."""
import http.server
import json
import threading

MEANINGS = [{"car", "automobile", "wagon"}, {"sea", "ocean"}, {"bread", "loaf"}, {"weir", "dam"}]


def vector_of(text, dimension):
    """What it says, as numbers; the last one is the same for every text, so none is zero."""
    words = set(text.lower().split())
    return [
        float(len(words & MEANINGS[i])) if i < len(MEANINGS) and i < dimension - 1 else 0.25
        for i in range(dimension)
    ]


class Embeddings(http.server.ThreadingHTTPServer):
    """`status`, `refused` (a part of a text) and `dimension` say how it behaves."""

    daemon_threads = True

    def __init__(self, dimension=6, vector=vector_of):
        super().__init__(("127.0.0.1", 0), Answers)
        self.dimension, self.vector = dimension, vector
        self.status, self.refused, self.asked = 200, None, []
        self.goes_on = threading.Event()
        self.goes_on.set()
        threading.Thread(target=self.serve_forever, args=(0.01,), daemon=True).start()

    def end(self):
        self.goes_on.set()
        self.shutdown()
        self.server_close()

    def texts(self):
        return [text for inputs in list(self.asked) for text in inputs]

    @property
    def config(self):
        return (
            "providers:\n  - {name: maker, kind: openai, key_env: HOUSE_KEY, retries: 0, "
            f"base_url: 'http://127.0.0.1:{self.server_port}/v1'}}\n"
            "nimi: {allow_loopback_provider_endpoint: true, probe_interval: 0}\n"
            "connectors:\n  - {id: maker, provider: maker}\n"
            "  - {id: builtin, provider: builtin, local: true}\n"
        )


class Answers(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        server = self.server
        asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
        inputs = asked["input"] if isinstance(asked["input"], list) else [asked["input"]]
        assert self.path == "/v1/embeddings", self.path
        server.asked.append(inputs)
        server.goes_on.wait(60)
        status = server.status
        if server.refused and any(server.refused in text for text in inputs):
            status = 400
        if status == 200:
            data = [
                {"object": "embedding", "index": i, "embedding": server.vector(t, server.dimension)}
                for i, t in enumerate(inputs)
            ]
            usage = {"prompt_tokens": len(inputs), "total_tokens": len(inputs)}
            body = {"object": "list", "data": data, "model": asked["model"], "usage": usage}
        else:
            body = {"error": {"message": f"no, {status}", "type": "invalid_request_error"}}
        body = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args):
        pass
