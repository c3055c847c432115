"""A stream of an agent runtime from Python, by the shared library alone: no build, no package.

    weir serve -c examples/weir.yaml --nimi-grpc 127.0.0.1:46371
    python examples/client/watch.py 127.0.0.1:46371 SubscribeRuntimeHealthEvents '{}' 3

Prints each frame as JSON and then how the stream ended. The last argument cancels it after so
many frames. WEIR_CLIENT_LIBRARY names the library where the system does not find it.
"""
import ctypes
import json
import os
import sys
from ctypes import c_char_p, c_int, c_size_t, c_uint, c_uint64, c_void_p


class ClientOptions(ctypes.Structure):
    _fields_ = [("size", c_size_t)] + [
        (name, c_char_p) for name in ("address", "token", "authorities", "app_id")
    ]


class StreamOptions(ctypes.Structure):  # its beginning: what is left out has its default
    _fields_ = [("size", c_size_t), ("method", c_char_p), ("json", c_char_p)]


class Outcome(ctypes.Structure):
    _fields_ = [("size", c_size_t), ("code", c_int), ("name", c_char_p), ("meaning", c_char_p)]
    _fields_ += [("repeat", c_int), ("wait", c_int), ("snapshot", c_char_p), ("status", c_int)]
    _fields_ += [("status_name", c_char_p), ("reason_code", c_int), ("reason", c_char_p)]
    _fields_ += [("message", c_char_p), ("event", c_char_p), ("faults", c_uint)]
    _fields_ += [("frames", c_uint64), ("missing", c_uint64)]


weir = ctypes.CDLL(os.environ.get("WEIR_CLIENT_LIBRARY", "libweir-client.so.1"))
weir.weir_client_new.restype = weir.weir_stream_open.restype = c_void_p
weir.weir_stream_open.argtypes = [c_void_p, c_void_p, c_char_p, c_size_t]
weir.weir_stream_next.argtypes = [c_void_p, c_void_p, c_int]
weir.weir_stream_json.argtypes, weir.weir_stream_json.restype = [c_void_p], c_char_p
weir.weir_stream_outcome.argtypes = [c_void_p, c_void_p]
for name in ("weir_stream_cancel", "weir_stream_free", "weir_client_free"):
    getattr(weir, name).argtypes = [c_void_p]


def sized(kind, **values):
    return kind(size=ctypes.sizeof(kind), **values)


def checked(handle, why):
    return handle or sys.exit(why.value.decode())


def main(address, method, request, most=0):
    why = ctypes.create_string_buffer(256)
    to = sized(ClientOptions, address=address.encode(), app_id=b"demo.app")
    client = checked(weir.weir_client_new(ctypes.byref(to), why, 256), why)
    ask = sized(StreamOptions, method=method.encode(), json=request.encode())
    stream = checked(weir.weir_stream_open(client, ctypes.byref(ask), why, 256), why)
    frame, count = c_size_t(ctypes.sizeof(c_size_t)), 0  # a weir_frame of which only `size` is there
    while weir.weir_stream_next(stream, ctypes.byref(frame), -1):
        print(json.loads(weir.weir_stream_json(stream)))
        count += 1
        if count == int(most):
            weir.weir_stream_cancel(stream)
    outcome = sized(Outcome)
    weir.weir_stream_outcome(stream, ctypes.byref(outcome))
    print(f"-- {outcome.name.decode()}: {outcome.meaning.decode()}; {outcome.frames} frames")
    weir.weir_stream_free(stream)
    weir.weir_client_free(client)


if __name__ == "__main__":
    main(*sys.argv[1:])
