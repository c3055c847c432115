"""The runtime of nimi.runtime.v1 while its providers come and go."""
import contextlib
import http.server
import threading
import time

import httpx
import nimi_client as nimi
from grpc_health.v1 import health_pb2, health_pb2_grpc
from nimi.runtime.v1 import audit_pb2, audit_pb2_grpc


class Vendor(http.server.ThreadingHTTPServer):
    """A provider that only answers probes: 404 for /healthz, then `status`."""

    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Probed)
        self.status, self.headers = 401, []
        threading.Thread(target=self.serve_forever, args=(0.01,), daemon=True).start()

    def close(self):
        self.shutdown()
        self.server_close()


class Probed(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.server.headers.append(dict(self.headers.items()))
        self.send_response(404 if self.path == "/healthz" else self.server.status)
        self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, *args):
        pass


def wait_for(look, wanted, within=20):
    until = time.monotonic() + within
    while look() != wanted:
        assert time.monotonic() < until, f"{look()} is not {wanted}"
        time.sleep(0.05)


def test_without_any_provider_the_runtime_is_degraded(start_weir):
    with contextlib.closing(Vendor()) as vendor:
        config = f"""
nimi: {{probe_interval: 100ms, allow_loopback_provider_endpoint: true}}
providers:
  - {{name: house, kind: openai, base_url: "http://127.0.0.1:{vendor.server_port}/v1", key_env: HOUSE_KEY}}
connectors:
  - {{id: first, provider: house}}
  - {{id: second, provider: house}}
"""
        weir = start_weir(config=config, env={"HOUSE_KEY": "secret-of-the-house"})
        client = nimi.Client(weir)
        headers = list(nimi.HEADERS.items())
        audit = audit_pb2_grpc.RuntimeAuditServiceStub(client.channel)
        health = health_pb2_grpc.HealthStub(client.channel)
        web = httpx.Client(base_url=f"http://127.0.0.1:{weir.ports['nimi_http']}")

        def providers():
            request = audit_pb2.ListAIProviderHealthRequest()
            return audit.ListAIProviderHealth(request, metadata=headers).providers

        def told():
            body = web.get("/v1/runtime/health").json()
            [row] = body["ai_providers"]
            return body["status"], row["state"], row["reason"]

        def serving():
            return health.Check(health_pb2.HealthCheckRequest()).status

        wait_for(told, ("READY", "healthy", ""))
        assert serving() == health_pb2.HealthCheckResponse.SERVING
        vendor.status = 503
        wait_for(told, ("DEGRADED", "unhealthy", "it answers 503"))
        answer = web.get("/readyz")
        assert (answer.status_code, answer.json()["reason"]) == (
            503,
            "ai-provider:house unavailable",
        )
        wait_for(serving, health_pb2.HealthCheckResponse.NOT_SERVING)
        [row] = providers()
        assert (row.provider_name, row.state) == ("house", "unhealthy")
        assert row.consecutive_failures >= 1 and row.last_checked_at.seconds > 0
        vendor.status = 200
        wait_for(told, ("READY", "healthy", ""))
        wait_for(serving, health_pb2.HealthCheckResponse.SERVING)
        assert providers()[0].consecutive_failures == 0
        assert all("Authorization" not in headers for headers in vendor.headers)
        vendor.close()
        wait_for(lambda: told()[:2], ("DEGRADED", "unhealthy"))
