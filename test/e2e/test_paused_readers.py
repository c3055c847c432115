"""A client that holds many streams on one connection stops reading for a while: none of them is lost."""
import json
import socket
import time

import crawbl
import h2.config
import h2.connection
import h2.events
import pytest

STREAMS = 300
PIECES, PIECE = 120, "a river of words that goes on and on to the sea, "
TEXT = PIECE * PIECES
SCRIPT = f"""\
script: 1
model: script
agents:
  - slug: manager
    description: Says much to everyone.
scenes:
  - replies:
      - - text: "{TEXT}"
          pace: {{every: 30ms, chunk: {len(PIECE)}}}
"""
PAUSE_S = 2.5  # of 3.6 that a reply takes: each stream has some 15 KB for its reader then


class Reader:
    """HTTP/2 by hand: it reads and grants windows when it is told to."""

    def __init__(self, weir):
        self.socket = socket.create_connection(("127.0.0.1", weir.port("http")))
        self.h2 = h2.connection.H2Connection(h2.config.H2Configuration(client_side=True))
        self.h2.initiate_connection()
        self.authority = f"127.0.0.1:{weir.port('http')}"
        self.bodies, self.ended, self.resets = {}, set(), {}

    def ask(self, session):
        stream = self.h2.get_next_available_stream_id()
        body = json.dumps({"input": "go on", "session_id": session}).encode()
        self.h2.send_headers(stream, [(":method", "POST"), (":scheme", "http"), (":path", "/stream"),
                                      (":authority", self.authority), ("content-type", "application/json"),
                                      ("content-length", str(len(body)))])
        self.h2.send_data(stream, body, end_stream=True)
        self.bodies[stream] = b""

    def send(self):
        self.socket.sendall(self.h2.data_to_send())

    def read(self, until):
        """Read, and let the other side go on, until `until()`."""
        self.socket.settimeout(60)
        while not until():
            self.take(self.socket.recv(1 << 16))

    def take(self, data):
        assert data, "the connection is closed"
        for event in self.h2.receive_data(data):
            if isinstance(event, h2.events.DataReceived):
                self.bodies[event.stream_id] += event.data
                self.h2.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
            elif isinstance(event, h2.events.StreamEnded):
                self.ended.add(event.stream_id)
            elif isinstance(event, h2.events.StreamReset):
                self.resets[event.stream_id] = event.error_code
            assert not isinstance(event, h2.events.ConnectionTerminated), event
        self.send()

    def text_of(self, stream):
        events = [json.loads(line[6:]) for line in self.bodies[stream].decode().splitlines()
                  if line.startswith("data: {")]
        return "".join(event.get("delta", "") for event in events)


@pytest.fixture
def reader(start_weir, tmp_path):
    script = tmp_path / "script.yaml"
    script.write_text(SCRIPT)
    return Reader(start_weir(script=script))


def test_streams_of_a_connection_that_pauses_go_on_where_they_were(reader):
    reader.send()
    reader.read(lambda: reader.h2.remote_settings.max_concurrent_streams < 2**31)
    for number in range(STREAMS):
        reader.ask(f"s{number}")
    reader.send()
    reader.read(lambda: all(reader.bodies.values()))
    time.sleep(PAUSE_S)
    reader.read(lambda: len(reader.ended) + len(reader.resets) == STREAMS)
    assert reader.resets == {}
    for stream in reader.bodies:
        assert reader.text_of(stream) == TEXT
