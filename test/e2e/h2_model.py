"""A model over OpenAI's API that speaks HTTP/2 alone, and does what its callers' last word asks for.

    hello NAME    three pieces: "hello ", "to ", NAME
    take ...      how many characters the caller sent
    flood N       N pieces of 1,000 bytes, as fast as flow control lets it
    wait NAME     nothing, until let_go() is called; then as hello
    half NAME     one piece, and then as wait
    reset         one piece, then RST_STREAM
    refuse        RST_STREAM(REFUSED_STREAM), the first time; then as hello
    goaway NAME   one piece, GOAWAY, then the rest
    drop          one piece, and the connection is gone
    vanish        the connection is gone, without a byte of an answer
    status N      an answer of this status, with retry-after: 0
    hints         103, then as hello, with trailers
    unended       one piece, then the end without [DONE]
    empty         a head that ends the stream
"""
import contextlib
import json
import socket
import ssl
import threading
import time

import h2.config
import h2.connection
import h2.events
import h2.settings


class Peer:
    """One connection. Everything that touches `h2` holds its lock; a thread writes each answer."""

    def __init__(self, model, sock):
        self.model = model
        self.sock = sock
        self.lock = threading.Condition()
        self.bodies = {}
        self.heads = {}
        self.reset = {}
        self.gone = False
        self.h2 = h2.connection.H2Connection(h2.config.H2Configuration(client_side=False))
        self.h2.local_settings = h2.settings.Settings(client=False, initial_values={
            h2.settings.SettingCodes.MAX_CONCURRENT_STREAMS: model.streams,
            h2.settings.SettingCodes.INITIAL_WINDOW_SIZE: 65535})
        self.h2.initiate_connection()

    def flush(self):
        with contextlib.suppress(OSError):
            self.sock.sendall(self.h2.data_to_send())

    def read(self):
        """Bytes, without the lock: TLS is read and written by one thread at a time."""
        while not self.gone:
            self.sock.settimeout(0.01)
            try:
                with self.lock:
                    return self.sock.recv(65536)
            except (TimeoutError, ssl.SSLWantReadError):
                time.sleep(0.001)
            except OSError:
                return b""
        return b""

    def serve(self):
        with self.lock:
            self.flush()
        while data := self.read():
            with self.lock:
                for event in self.h2.receive_data(data):
                    self.take(event)
                self.flush()
                self.lock.notify_all()
        self.close()

    def take(self, event):
        if isinstance(event, h2.events.RequestReceived):
            self.bodies[event.stream_id] = b""
            self.heads[event.stream_id] = dict(event.headers)
        elif isinstance(event, h2.events.DataReceived):
            self.bodies[event.stream_id] += event.data
            if not self.model.reads_nothing:
                self.h2.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
        elif isinstance(event, h2.events.StreamReset):
            self.reset[event.stream_id] = event.error_code
            self.model.resets.append(event.error_code)
        elif isinstance(event, h2.events.StreamEnded):
            threading.Thread(target=self.answer, args=[event.stream_id], daemon=True).start()

    def close(self):
        with self.lock:
            self.gone = True
            self.lock.notify_all()
            with contextlib.suppress(OSError):
                self.sock.shutdown(socket.SHUT_RDWR)
            self.sock.close()

    # --- an answer ---------------------------------------------------------------------------

    def head(self, stream, status=200, kind="text/event-stream", end=False, **more):
        with self.lock:
            fields = [(":status", str(status)), ("content-type", kind)]
            fields += [(name.replace("_", "-"), value) for name, value in more.items()]
            self.h2.send_headers(stream, fields, end_stream=end)
            self.flush()

    def write(self, stream, data):
        while data:
            with self.lock:
                while not self.gone and stream not in self.reset and not self.h2.local_flow_control_window(stream):
                    self.lock.wait(0.05)
                if self.gone or stream in self.reset:
                    raise BrokenPipeError
                size = min(len(data), self.h2.local_flow_control_window(stream), self.h2.max_outbound_frame_size)
                self.h2.send_data(stream, data[:size])
                self.flush()
                data = data[size:]

    def say(self, stream, text):
        self.write(stream, chunk({"content": text}))

    def end(self, stream):
        self.write(stream, chunk({}, finish_reason="stop") + b"data: [DONE]\n\n")
        with self.lock:
            self.h2.end_stream(stream)
            self.flush()

    def hello(self, stream, name, head=True):
        if head:
            self.head(stream)
        for piece in ("hello ", "to ", name):
            self.say(stream, piece)
        self.end(stream)

    def answer(self, stream):
        asked = json.loads(self.bodies[stream])
        said = asked["messages"][-1]["content"]
        word, _, rest = said.partition(" ")
        with self.model.lock:
            self.model.asked.append((id(self), stream, said))
            self.model.keys.append(self.heads[stream].get(b"authorization", b"").decode())
        with contextlib.suppress(BrokenPipeError, h2.exceptions.ProtocolError, OSError):
            getattr(self, "on_" + word, self.hello)(stream, rest)

    on_hello = hello

    def on_take(self, stream, rest):
        self.head(stream)
        self.say(stream, str(len(rest)))
        self.end(stream)

    def on_flood(self, stream, rest):
        self.head(stream)
        for _ in range(int(rest)):
            self.say(stream, "x" * 1000)
        self.end(stream)

    def wait(self, stream):
        while not self.model.go.is_set() and not self.gone and stream not in self.reset:
            time.sleep(0.005)

    def on_wait(self, stream, rest):
        self.wait(stream)
        self.hello(stream, rest)

    def on_half(self, stream, rest):
        self.head(stream)
        self.say(stream, "half ")
        self.wait(stream)
        self.say(stream, rest)
        self.end(stream)

    def on_reset(self, stream, rest):
        self.head(stream)
        self.say(stream, "one ")
        with self.lock:
            self.h2.reset_stream(stream, 2)
            self.flush()

    def on_refuse(self, stream, rest):
        if self.model.refused:
            return self.hello(stream, rest)
        self.model.refused = True
        with self.lock:
            self.h2.reset_stream(stream, 7)
            self.flush()
        return None

    def on_goaway(self, stream, rest):
        self.head(stream)
        self.say(stream, "one ")
        with self.lock:
            # not close_connection(): h2 would send nothing after it
            self.sock.sendall(b"\0\0\x08\x07\0\0\0\0\0" + stream.to_bytes(4, "big") + b"\0\0\0\0")
        self.wait(stream)
        self.say(stream, rest)
        self.end(stream)

    def on_drop(self, stream, rest):
        self.head(stream)
        self.say(stream, "one ")
        time.sleep(0.05)
        self.close()

    def on_vanish(self, stream, rest):
        self.close()

    def on_status(self, stream, rest):
        self.head(stream, int(rest), "application/json", retry_after="0")
        self.write(stream, b'{"error":{"message":"no","type":"x"}}')
        with self.lock:
            self.h2.end_stream(stream)
            self.flush()

    def on_hints(self, stream, rest):
        with self.lock:
            self.h2.send_headers(stream, [(":status", "103"), ("link", "</a>")])
            self.flush()
        self.head(stream)
        for piece in ("hello ", "to ", rest):
            self.say(stream, piece)
        self.write(stream, chunk({}, finish_reason="stop") + b"data: [DONE]\n\n")
        with self.lock:
            self.h2.send_headers(stream, [("x-trailer", "1")], end_stream=True)
            self.flush()

    def on_unended(self, stream, rest):
        self.head(stream)
        self.say(stream, "one ")
        with self.lock:
            self.h2.end_stream(stream)
            self.flush()

    def on_empty(self, stream, rest):
        self.head(stream, end=True)


def chunk(delta, **more):
    choice = {"index": 0, "delta": delta, **more}
    whole = {"id": "x", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice]}
    return f"data: {json.dumps(whole)}\n\n".encode()


class H2Model:
    def __init__(self, cert, key, streams=100):
        self.streams = streams
        self.reads_nothing = False  # gives no window back for bodies
        self.asked = []  # (connection, stream, words) of each request
        self.keys, self.resets, self.peers = [], [], []
        self.refused = False
        self.go = threading.Event()
        self.lock = threading.Lock()
        self.tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.tls.load_cert_chain(cert, key)
        self.tls.set_alpn_protocols(["h2"])
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=100)
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        with contextlib.suppress(OSError):
            while True:
                sock, _ = self.listener.accept()
                threading.Thread(target=self.begin, args=[sock], daemon=True).start()

    def begin(self, sock):
        with contextlib.suppress(OSError):
            peer = Peer(self, self.tls.wrap_socket(sock, server_side=True))
            self.peers.append(peer)
            peer.serve()

    def let_go(self):
        self.go.set()

    def said(self, words):
        """How often it was asked this."""
        with self.lock:
            return sum(1 for _, _, said in self.asked if said == words)

    @property
    def url(self):
        return f"https://localhost:{self.listener.getsockname()[1]}/v1"

    def close(self):
        self.go.set()
        self.listener.close()
        for peer in self.peers:
            peer.close()
