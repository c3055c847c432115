"""collector: an OpenTelemetry collector, as far as spans go: it reads OTLP/HTTP in binary protobuf with
the messages of opentelemetry-proto, and refuses what they do not know.

    with Collector() as collector:
        collector.wait(3)         # spans, as protobuf messages
        collector.resources       # of each request
        collector.first = [Refusal(503, retry_after="2")]   # how it answers the first requests; then it takes them
        collector.body_max_bytes = 4096                     # larger ones get 413
"""
import dataclasses
import http.server
import threading
import time

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)

PATIENCE = 60


@dataclasses.dataclass
class Refusal:
    status: int
    retry_after: str = ""
    body: bytes = b""


class Collector:
    def __init__(self, status=200):
        self.status, self.asked, self.resources, self.spans = status, [], [], []
        self.first, self.refused, self.bodies, self.body_max_bytes = [], [], [], None
        self.partial = ExportTraceServiceResponse()
        self.holds = None  # an event: the first request gets no answer, and is cut once it is set
        self.changed = threading.Condition()
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                body = self.rfile.read(int(self.headers["content-length"]))
                if outer._hold():
                    self.close_connection = True
                    return
                refusal = outer._refusal(body)
                if not refusal:
                    outer._take(self.path, dict(self.headers), body)
                self._answer(refusal or Refusal(outer.status, body=outer.partial.SerializeToString()))

            def _answer(self, answer):
                self.send_response(answer.status)
                self.send_header("content-type", "application/x-protobuf")
                self.send_header("content-length", str(len(answer.body)))
                if answer.retry_after:
                    self.send_header("retry-after", answer.retry_after)
                self.end_headers()
                self.wfile.write(answer.body)

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.01,))
        self.thread.start()

    def _hold(self):
        with self.changed:
            holds, self.holds = self.holds, None
            self.changed.notify_all()
        return holds and holds.wait(PATIENCE)

    def _refusal(self, body):
        """What this request gets instead of being taken. `refused` says when, what and how many bytes."""
        with self.changed:
            refusal = self.first.pop(0) if self.first else None
            if not refusal and self.body_max_bytes and len(body) > self.body_max_bytes:
                refusal = Refusal(413)
            if refusal:
                self.refused.append((time.monotonic(), refusal.status, body))
                self.changed.notify_all()
            return refusal

    def wait_refused(self, count):
        with self.changed:
            assert self.changed.wait_for(lambda: len(self.refused) >= count, PATIENCE), self.refused
            return list(self.refused)

    def wait_held(self):
        """Until the request that is held has come."""
        with self.changed:
            assert self.changed.wait_for(lambda: self.holds is None, PATIENCE)

    def _take(self, path, headers, body):
        read = ExportTraceServiceRequest.FromString(body)
        with self.changed:
            self.bodies.append(body)
            self.asked.append((path, {name.lower(): value for name, value in headers.items()}))
            for resource in read.resource_spans:
                self.resources.append(attributes(resource.resource))
                self.spans += [span for scope in resource.scope_spans for span in scope.spans]
            self.changed.notify_all()

    def wait(self, count):
        with self.changed:
            assert self.changed.wait_for(lambda: len(self.spans) >= count, PATIENCE), self.spans
            return list(self.spans)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()


def attributes(holder):
    found = {}
    for attribute in holder.attributes:
        kind = attribute.value.WhichOneof("value")
        found[attribute.key] = getattr(attribute.value, kind)
    return found
