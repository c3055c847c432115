"""The newest texts of a run leave at once, past the queue: each front still says all of it, in order.

Over HTTP/1.1 texts that nothing follows yet go to the socket at once; over HTTP/2 all waits for the end of the
loop's turn. So the two are read side by side, and the first of them also by a client that pauses until its
socket is full.
"""
import concurrent.futures
import json
import re
import socket
import threading

import harness
import httpx
import pytest

PIECES, PIECE = 700, "a river of words, " * 150  # 1.9 MB, more than a socket holds
SCRIPT = f"""\
script: 1
model: script
agents:
  - slug: manager
    description: Says, looks, and says.
tools:
  - name: look
    description: Looks.
    result: {{found: it}}
scenes:
  - match: short
    reply: [{{text: One., pace: {{every: 0ms, chunk: 0}}}}]
  - replies:
      - - repeat: {{times: {PIECES}, text: "{PIECE}"}}
          pace: {{every: 2ms}}
        - tool_call: {{tool: look}}
      - - repeat: {{times: 20, text: "and "}}
          pace: {{every: 2ms}}
        - the sea.
"""
SAID = PIECE * PIECES, "and " * 20 + "the sea."
PATIENCE = 120

CHAT = {"model": "manager", "stream": True}
# Path, body, and how its words are found in an event.
FRONTS = {
    "stream": ("/stream", lambda name, text: {"input": text, "session_id": name}, lambda e: e.get("delta")),
    "chat": (
        "/v1/chat/completions",
        lambda name, text: CHAT | {"messages": [{"role": "user", "content": text}]},
        lambda e: e["choices"][0]["delta"].get("content") if e.get("choices") else None,
    ),
    "responses": (
        "/v1/responses",
        lambda name, text: CHAT | {"input": text},
        lambda e: e["delta"] if e["type"] == "response.output_text.delta" else None,
    ),
    "messages": (
        "/v1/messages",
        lambda name, text: CHAT | {"max_tokens": 1000000, "messages": [{"role": "user", "content": text}]},
        lambda e: e["delta"].get("text") if e["type"] == "content_block_delta" else None,
    ),
    "agui": (
        "/agui",
        lambda name, text: {"threadId": name, "runId": "1", "tools": [], "context": [], "state": {},
                            "forwardedProps": {}, "messages": [{"id": "1", "role": "user", "content": text}]},
        lambda e: e["delta"] if e["type"] == "TEXT_MESSAGE_CONTENT" else None,
    ),
    "a2a": (
        "/message:stream",
        lambda name, text: {"message": {"messageId": name, "contextId": name, "role": "ROLE_USER",
                                        "parts": [{"text": text}]}},
        lambda e: e["artifactUpdate"]["artifact"]["parts"][0]["text"] if "artifactUpdate" in e else None,
    ),
}


@pytest.fixture
def weir(start_weir, tmp_path):
    script = tmp_path / "script.yaml"
    script.write_text(SCRIPT)
    # A client that pauses is not given up on a busy machine, either.
    return start_weir(script=script, config="limits: {write_stall: 10m}\n")


def request(front, name, text="go"):
    path, body, _ = FRONTS[front]
    return path, harness.bearer(user=name) | {"x-session-id": name}, body(name, text)


def over_http2(weir, front):
    path, headers, body = request(front, f"{front}-h2")
    with httpx.Client(http1=False, http2=True, base_url=weir.url, timeout=PATIENCE) as http:
        answer = http.post(path, headers=headers, json=body)
    assert answer.status_code == 200, answer.text
    return answer.text


class Reader:
    """HTTP/1.1 by hand, with a small window."""

    def __init__(self, weir, front, name, text="go"):
        path, headers, body = request(front, name, text)
        content = json.dumps(body).encode()
        self.socket = socket.socket()
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        self.socket.settimeout(PATIENCE)
        self.socket.connect(("127.0.0.1", weir.port("http")))
        lines = [f"POST {path} HTTP/1.1", "host: 127.0.0.1", "content-type: application/json",
                 f"content-length: {len(content)}", *(f"{k}: {v}" for k, v in headers.items())]
        self.socket.sendall("\r\n".join(lines).encode() + b"\r\n\r\n" + content)

    def rest(self):
        """The whole body: each chunk as it says, and one end, with nothing after it."""
        file = self.socket.makefile("rb", buffering=1 << 16)
        assert file.readline().startswith(b"HTTP/1.1 200")
        while file.readline() != b"\r\n":
            pass
        body = b""
        while size := int(file.readline(), 16):
            body += file.read(size)
            assert file.readline() == b"\r\n"
        assert file.readline() == b"\r\n"
        self.socket.shutdown(socket.SHUT_WR)
        assert file.read() == b""
        return body.decode()


def over_http1(weir, front, paused=None):
    """A client that reads on when `paused` is set, if it is given."""
    reader = Reader(weir, front, f"{front}-{'paused' if paused else 'h1'}")
    if paused:
        assert paused.wait(PATIENCE)
    return reader.rest()


def parts(front, body):
    """What it said, with the words that follow each other as one part, and without its own ids and times.
    The long words of a last event are looked through for numbers as one letter each, which is quick."""
    words, seen = FRONTS[front][2], []
    for block in body.split("\n\n"):
        data = [line[6:] for line in block.splitlines() if line.startswith("data: ")]
        event = json.loads(data[0]) if data and data[0] != "[DONE]" else None
        text = words(event) if event else None
        if text is None:
            seen.append(re.sub(r"\d+", "N", re.sub(rf"{front}-\w+", "NAME", block.replace(PIECE, "~"))))
        elif seen and isinstance(seen[-1], list):
            seen[-1].append(text)
        else:
            seen.append([text])
    return ["".join(part) if isinstance(part, list) else part for part in seen if part != ": keep-alive"]


@pytest.mark.parametrize("front", FRONTS)
def test_all_of_it_comes_in_order_whether_it_leaves_at_once_or_later(weir, front):
    go_on = threading.Event()
    with concurrent.futures.ThreadPoolExecutor() as pool:
        paused = pool.submit(over_http1, weir, front, go_on)
        at_once = pool.submit(over_http1, weir, front)
        bodies = [over_http2(weir, front), at_once.result()]
        go_on.set()  # before they are looked at: a client that reads nothing for 30 s is cut off
        bodies.append(paused.result())
    later, now, after_pause = (parts(front, body) for body in bodies)
    said = "".join(part for part in later if PIECE in part or "the sea." in part)
    assert SAID[0] in said and said.index(SAID[0]) < said.index(SAID[1])
    assert now == later
    assert after_pause == later


@pytest.mark.parametrize("front", FRONTS)
def test_an_end_right_after_a_text(weir, front):
    whole = parts(front, Reader(weir, front, f"{front}-1", "short").rest())
    again = parts(front, Reader(weir, front, f"{front}-2", "short").rest())
    assert whole == again
    assert "One." in whole
    assert whole.index("One.") < len(whole) - 1


@pytest.mark.parametrize("front", FRONTS)
def test_a_client_that_leaves_amid_the_texts_takes_nothing_with_it(weir, front):
    stays = Reader(weir, front, f"{front}-stays")
    for _ in range(3):
        leaves = Reader(weir, front, f"{front}-leaves")
        begun = b""
        while b"a river of words" not in begun:
            piece = leaves.socket.recv(4096)
            assert piece, begun
            begun += piece
        leaves.socket.close()
    said = "".join(parts(front, stays.rest()))
    assert SAID[0] in said and said.index(SAID[0]) < said.index(SAID[1])
