"""subscriptions: mode D of nimi.runtime.v1, as a subscriber sees it.

    events = Events(client.audit.SubscribeRuntimeHealthEvents(request, metadata=...))
    events.next()           # waits for one
    events.rest()           # all that came until the stream ended
    events.code, events.text
"""
import queue
import threading

import grpc
import nimi_client as nimi

STOPPED = "runtime shutting down"  # plain text: the protocol's own SDK looks at it


class Events:
    """One subscription, read by a thread of its own."""

    def __init__(self, call):
        self.call, self.queue, self.all = call, queue.Queue(), []
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()

    def _read(self):
        try:
            for event in self.call:
                self.queue.put(event)
        except grpc.RpcError:
            pass
        self.queue.put(None)

    def next(self, timeout=nimi.PATIENCE):
        event = self.queue.get(timeout=timeout)
        assert event is not None, f"the stream ended: {self.call.code()} {self.call.details()}"
        self.all.append(event)
        return event

    def until(self, wanted):
        while not wanted(event := self.next()):
            pass
        return event

    def rest(self):
        while (event := self.queue.get(timeout=nimi.PATIENCE)) is not None:
            self.all.append(event)
        return self.all

    def cancel(self):
        self.call.cancel()
        return self.rest()

    @property
    def code(self):
        return self.call.code()

    @property
    def text(self):
        return self.call.details()

    @property
    def sequences(self):
        return [event.sequence for event in self.all]


def assert_stopped(events):
    """CANCELLED in plain words, as the stop of a daemon ends a subscription."""
    events.rest()
    assert events.code == grpc.StatusCode.CANCELLED, (events.code, events.text)
    assert events.text == STOPPED


def assert_in_order(events):
    assert events.sequences == sorted(set(events.sequences)), events.sequences
