"""python-socketio, whose handlers hear events in the order in which they came."""
import engineio
import socketio


class Engine(engineio.Client):
    """Upstream's gives each message to a thread of its own, and these may overtake each other."""

    def _trigger_event(self, event, *args, **options):
        return super()._trigger_event(event, *args, **{**options, "run_async": False})


class Client(socketio.Client):
    def _engineio_client_class(self):
        return Engine
