"""A shop's server for the example: python3 shop.py PORT"""
import json
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, unquote, urlsplit

ORDERS = {"A 7": {"state": "ready", "cents": 1250, "items": ["tea"]}}


class Shop(BaseHTTPRequestHandler):
    def answer(self, status, value):
        body = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        url = urlsplit(self.path)
        order = ORDERS.get(unquote(url.path.removeprefix("/orders/")))
        fields = parse_qs(url.query).get("fields", order or ())
        if order is None:
            self.answer(404, {"error": "there is no such order"})
        else:
            self.answer(200, {name: order[name] for name in fields if name in order})

    def do_POST(self):
        asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
        refund = {**asked, "key": self.headers["idempotency-key"], "done": True}
        self.answer(200, {"refund": refund})

    def log_message(self, *_):
        pass


ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Shop).serve_forever()
