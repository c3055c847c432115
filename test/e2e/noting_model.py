"""A model over OpenAI's API that answers with what it was asked, and notes all that it was shown."""
import contextlib
import http.server
import json
import threading


class NotingModel:
    def __init__(self):
        self.shown = []  # of each request: [(role, text)] without the instructions
        self.refuses = ""  # one request that ends with a text like this is answered with 400
        self.answers = threading.Event()  # cleared: requests wait
        self.answers.set()
        model = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def log_message(self, *args):
                pass

            def do_POST(self):
                model.answer(self)

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def answer(self, handler):
        asked = json.loads(handler.rfile.read(int(handler.headers["content-length"])))
        messages = [(m["role"], m["content"]) for m in asked["messages"] if m["role"] not in ("system", "developer")]
        self.shown.append(messages)
        last = messages[-1][1]
        self.answers.wait(60)
        if self.refuses and self.refuses in last:
            self.refuses = ""
            return self.send(handler, 400, "application/json", json.dumps({"error": {"message": "no", "type": "invalid_request_error"}}))
        chunk = {"id": "x", "object": "chat.completion.chunk", "created": 1, "model": "m"}
        pieces = [{"index": 0, "delta": {"role": "assistant", "content": "re: " + last}}, {"index": 0, "delta": {}, "finish_reason": "stop"}]
        text = "".join(f"data: {json.dumps({**chunk, 'choices': [piece]})}\n\n" for piece in pieces)
        return self.send(handler, 200, "text/event-stream", text + "data: [DONE]\n\n")

    @staticmethod
    def send(handler, status, kind, text):
        handler.send_response(status)
        handler.send_header("content-type", kind)
        handler.send_header("content-length", str(len(text.encode())))
        handler.end_headers()
        handler.wfile.write(text.encode())

    def config(self):
        """Settings with which all agents ask it; set KEY in the environment."""
        url = f"http://127.0.0.1:{self.server.server_address[1]}/v1"
        return (f"providers: [{{name: noting, kind: openai, base_url: '{url}', key_env: NOTING_KEY}}]\n"
                "agents: [{slug: manager, model: noting/m}, {slug: writer, model: noting/m}]\n")

    def close(self):
        self.server.shutdown()
        self.server.server_close()


ENV = {"NOTING_KEY": "k"}


def said(*texts):
    """A conversation in which each text was answered, as `shown` has it."""
    return [one for text in texts for one in (("user", text), ("assistant", "re: " + text))]


@contextlib.contextmanager
def noting_model():
    model = NotingModel()
    try:
        yield model
    finally:
        model.close()
