"""consoles: many readers of one run, in a process of their own, so that the caller's clock is not theirs.

    with Consoles(port, run, 100, stalled=1) as consoles:
        ...                             # the run goes on
        for events in consoles.heard(): # what each of them got, once the run is over
            ...

A console reads as the page does: GET /weir/v1/runs/ID/events on a connection of its own. A stalled one
asks, and then reads nothing; its window is as small as the system allows.
"""
import json
import multiprocessing
import selectors
import socket

LAST = b"\r\n0\r\n\r\n"  # of a chunked body


def dial(port, run, stalled):
    one = socket.socket()
    if stalled:
        one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1)
    one.connect(("127.0.0.1", port))
    one.sendall(f"GET /weir/v1/runs/{run}/events HTTP/1.1\r\nhost: localhost\r\naccept: text/event-stream\r\n\r\n".encode())
    return one


def read_all(pipe, port, run, count, stalled):
    held = [dial(port, run, True) for _ in range(stalled)]
    wait = selectors.DefaultSelector()
    bodies = {}
    for _ in range(count):
        one = dial(port, run, False)
        bodies[one] = bytearray()
        wait.register(one, selectors.EVENT_READ)
    begun = set()
    told = False
    open_ = set(bodies)
    while open_:
        for key, _ in wait.select():
            one = key.fileobj
            piece = one.recv(1 << 18)
            bodies[one] += piece
            begun.add(one)
            if not piece or bodies[one].endswith(LAST):
                wait.unregister(one)
                one.close()
                open_.discard(one)
        if not told and len(begun) == count:
            told = True
            pipe.send("all read")
    pipe.send([bytes(body) for body in bodies.values()])
    pipe.recv()  # the stalled ones stay until nobody needs them
    for one in held:
        one.close()


def body_of(answer):
    head, _, rest = answer.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200"), answer[:500]
    body = bytearray()
    while rest:
        size, _, rest = rest.partition(b"\r\n")
        body += rest[:int(size, 16)]
        rest = rest[int(size, 16) + 2:]
    return body.decode()


def events_in(answer):
    return [json.loads(line[6:]) for line in body_of(answer).split("\n") if line.startswith("data: ")]


class Consoles:
    """Returned once each of them has got something."""

    def __init__(self, port, run, count, stalled=0):
        self._pipe, far = multiprocessing.Pipe()
        context = multiprocessing.get_context("spawn")
        self._process = context.Process(target=read_all, args=(far, port, run, count, stalled), daemon=True)
        self._process.start()
        if count:
            assert self._pipe.recv() == "all read"

    def __enter__(self):
        return self

    def heard(self):
        return [events_in(answer) for answer in self._pipe.recv()]

    def __exit__(self, *_):
        self._pipe.send("enough")
        self._process.join()
