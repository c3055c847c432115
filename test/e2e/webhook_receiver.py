"""A server that is told of tasks: it keeps what it gets, and answers as the test says."""
import contextlib
import http.server
import json
import queue
import threading


class Notification:
    def __init__(self, handler, body):
        self.path = handler.path
        self.headers = dict((k.lower(), v) for k, v in handler.headers.items())
        self.body = json.loads(body)
        # 1.0 sends what a stream says, 0.3 the task itself.
        self.task = self.body["task"] if "task" in self.body else self.body
        self.state = self.task["status"]["state"].removeprefix("TASK_STATE_").lower()

    @property
    def answer(self):
        parts = [part for made in self.task.get("artifacts", []) for part in made["parts"]]
        return "".join(part.get("text", "") for part in parts)


class Receiver:
    """In a `with`. `statuses`: what the next posts are answered with; then 200."""

    def __init__(self, statuses=(), port=0):
        self.statuses = list(statuses)
        self.arrived = queue.Queue()
        self.held = threading.Event()
        self.held.set()
        receiver = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers["content-length"]))
                receiver.arrived.put(Notification(self, body))
                receiver.held.wait(60)
                status = receiver.statuses.pop(0) if receiver.statuses else 200
                with contextlib.suppress(OSError):
                    self.send_response(status)
                    self.send_header("content-length", "0")
                    self.end_headers()

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", port), Handler)
        self.server.daemon_threads = True

    def __enter__(self):
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.01,))
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.held.set()
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server.server_port}/told"

    def next(self, patience=60):
        return self.arrived.get(timeout=patience)

    def until(self, state):
        """What arrives up to this state; what comes after it stays."""
        seen = [self.next()]
        while seen[-1].state != state:
            seen.append(self.next())
        return seen

    def empty(self):
        return self.arrived.empty()
