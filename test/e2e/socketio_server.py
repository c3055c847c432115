"""The Socket.IO server of test/socketio/server.c, and the bytes of its two protocols."""
import json
import pathlib
import subprocess
import threading

import harness
import httpx
from websockets.sync.client import connect

BINARY = pathlib.Path(harness.BINARY).parent / "test" / "socketio" / "socketio_server"
RECORD = "\x1e"


class Server:
    """One process with these settings (see server.c), ended with the block."""

    def __init__(self, **settings):
        self.command = [str(BINARY), *(f"{name}={value}" for name, value in settings.items())]

    def __enter__(self):
        self.process = subprocess.Popen(self.command, stdout=subprocess.PIPE, text=True)
        self.port = int(self.process.stdout.readline().split()[1])
        self.gone = []
        self.stopped = False
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()
        return self

    def read(self):
        for line in self.process.stdout:
            self.gone.append(line.removeprefix("gone ").strip())

    def stop(self):
        """Ask it to end, once: a second signal may find it without its handlers."""
        if not self.stopped:
            self.process.terminate()
        self.stopped = True

    def __exit__(self, *_):
        self.stop()
        code = self.process.wait(20)
        self.reader.join()
        assert code == 0, f"the server ended with {code}"

    @property
    def url(self):
        return f"http://127.0.0.1:{self.port}"

    def websocket(self, query="EIO=4&transport=websocket", **options):
        return connect(f"ws://127.0.0.1:{self.port}/socket.io/?{query}", compression=None,
                       ping_interval=None, max_size=None, legacy=True, **options)

    def opened(self, **options):
        """A WebSocket after its opening packet."""
        socket = self.websocket(**options)
        assert socket.recv(timeout=10).startswith("0{")
        return socket

    def joined(self, name="/v1", auth='{"token":"good"}', **options):
        """A WebSocket that is connected to a namespace."""
        socket = self.opened(**options)
        socket.send(f"40{name},{auth}")
        assert next_packet(socket).startswith(f"40{name},"), "not connected"
        return socket

    def counts(self):
        with self.joined() as socket:
            return ask(socket, 1, "counts")


def next_packet(socket):
    """The next packet that is no ping; pings are answered, as every client does."""
    while (text := socket.recv(timeout=10)) == "2":
        socket.send("3")
    return text


def ask(socket, number, event, *arguments):
    """Send an event and return what its ack says; other packets are passed over."""
    socket.send(f"42/v1,{number}" + json.dumps([event, *arguments]))
    while not (text := next_packet(socket)).startswith(f"43/v1,{number}["):
        pass
    said = json.loads(text.removeprefix(f"43/v1,{number}"))
    return said[0] if said else None


class Poller:
    """A session by long polling."""

    def __init__(self, server, **headers):
        self.http = httpx.Client(base_url=server.url, headers=headers, timeout=20)
        opening = self.http.get("/socket.io/", params={"EIO": 4, "transport": "polling"})
        assert opening.status_code == 200, opening.text
        self.open = json.loads(opening.text[1:])
        self.sid = self.open["sid"]

    @property
    def params(self):
        return {"EIO": 4, "transport": "polling", "sid": self.sid}

    def get(self):
        return self.http.get("/socket.io/", params=self.params)

    def post(self, body):
        return self.http.post("/socket.io/", params=self.params, content=body,
                              headers={"content-type": "text/plain;charset=UTF-8"})

    def packets(self):
        answer = self.get()
        assert answer.status_code == 200, answer.text
        return answer.text.split(RECORD)
