"""Ports for servers whose address must be known before they start."""
import contextlib
import random
import socket

RANDOM = random.SystemRandom()  # not the one that tests seed


def free_port():
    """A port that nobody has, and that no server which asks the kernel for any port gets meanwhile:
    those are given from 32768 on (net.ipv4.ip_local_port_range)."""
    while True:
        port = RANDOM.randrange(10000, 32000)
        with contextlib.suppress(OSError), socket.socket() as probe:
            probe.bind(("127.0.0.1", port))
            return port
