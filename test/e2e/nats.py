"""nats: a nats-server with JetStream, and what its stream holds.

    with nats.Server(folder) as server:
        weir = ... server.url ...
        server.heard(1) == [(subject, message id, payload)]

stop() and start() keep its port and its folder.
"""
import json
import socket
import subprocess
import threading
import time

import far_runtime
import httpx
from ports import free_port

PATIENCE = 90


class Server:
    def __init__(self, folder, start=True):
        self.folder, self.process = folder, None
        self.port, self.monitor = free_port(), free_port()
        self._heard = []
        if start:
            self.start()

    @property
    def url(self):
        return f"nats://127.0.0.1:{self.port}"

    def start(self):
        command = ["nats-server", "-a", "127.0.0.1", "-p", str(self.port), "-js", "-sd",
                   str(self.folder / "nats"), "-m", str(self.monitor)]
        with open(self.folder / "nats.log", "ab") as log:
            self.process = subprocess.Popen(command, stdout=log, stderr=log)
        far_runtime.wait_for(self.port)
        far_runtime.wait_for(self.monitor)
        listener = socket.create_connection(("127.0.0.1", self.port))
        listener.sendall(b'CONNECT {"verbose":false,"headers":true,"no_responders":true}\r\n'
                         b"SUB crawbl.usage.v1.> 1\r\nPING\r\n")
        threading.Thread(target=self._listen, args=(listener,), daemon=True).start()

    def _listen(self, listener):
        """The lines of the protocol: HMSG <subject> <sid> [reply] <headers> <all>."""
        stream = listener.makefile("rb")
        for line in stream:
            words = line.split()
            if words[:1] == [b"PING"]:
                listener.sendall(b"PONG\r\n")
            if words[:1] == [b"HMSG"]:
                head, whole = int(words[-2]), int(words[-1])
                data = stream.read(whole + 2)
                ids = [h.split(b": ", 1)[1] for h in data[:head].split(b"\r\n")
                       if h.lower().startswith(b"nats-msg-id")]
                self._heard.append((words[1].decode(), ids[0].decode(),
                                    json.loads(data[head:whole])))

    def heard(self, count):
        """All events that were published, at least so many."""
        give_up = time.monotonic() + PATIENCE
        while len(self._heard) < count:
            assert time.monotonic() < give_up, self._heard
            time.sleep(0.05)
        return list(self._heard)

    def stored(self):
        """How many messages the stream has."""
        answer = httpx.get(f"http://127.0.0.1:{self.monitor}/jsz?streams=true").json()
        return sum(stream["state"]["messages"] for account in answer.get("account_details", [])
                   for stream in account.get("stream_detail", []))

    def stop(self):
        if self.process:
            self.process.terminate()
            self.process.wait(PATIENCE)
        self.process = None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()
