"""collector: an OpenTelemetry collector, as far as spans go: it reads OTLP/HTTP in JSON with the
messages of opentelemetry-proto, and refuses what they do not know.

    with Collector() as collector:
        collector.wait(3)         # spans, as protobuf messages
        collector.resources       # of each request
"""
import base64
import http.server
import json
import threading

from google.protobuf import json_format
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

PATIENCE = 60
IDS = ("traceId", "spanId", "parentSpanId")


def _with_bytes(value):
    """OTLP's JSON has ids in hexadecimal, where protobuf's has base64."""
    if isinstance(value, list):
        return [_with_bytes(item) for item in value]
    if not isinstance(value, dict):
        return value
    return {k: base64.b64encode(bytes.fromhex(v)).decode() if k in IDS else _with_bytes(v) for k, v in value.items()}


class Collector:
    def __init__(self, status=200):
        self.status, self.asked, self.resources, self.spans = status, [], [], []
        self.changed = threading.Condition()
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                body = self.rfile.read(int(self.headers["content-length"]))
                outer._take(self.path, dict(self.headers), body)
                self.send_response(outer.status)
                self.send_header("content-length", "2")
                self.end_headers()
                self.wfile.write(b"{}")

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.01,))
        self.thread.start()

    def _take(self, path, headers, body):
        read = json_format.ParseDict(_with_bytes(json.loads(body)), ExportTraceServiceRequest())
        with self.changed:
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
