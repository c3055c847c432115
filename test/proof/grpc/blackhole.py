"""blackhole: a peer that vanishes without a word, in the middle of a turn (row G18).

The client lives in a network namespace of its own. Once its turn is running, its cable is
pulled: no packet comes back, not even a reset. The server's keepalive has to find that out,
abort the turn and free the session, which the next client then gets.

Needs root (or CAP_NET_ADMIN); says so and ends well where that is missing.
"""
import os
import pathlib
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path[:0] = [str(ROOT / "test" / "e2e")]
import conftest  # noqa: E402

conftest.generate_stubs()
import crawbl  # noqa: E402
import harness  # noqa: E402

NAME = f"weir{os.getpid()}"
NEAR, FAR = "10.213.77.1", "10.213.77.2"
KEEPALIVE_S, ANSWER_S, SLACK_S = 2, 1, 2
SESSION = "session-blackhole"

# One turn writes all the time, the other says nothing at all.
KINDS = {"writing": "a long story", "silent": "wait for it"}
SCRIPT = """script: 1
pace: {every: 200ms, chunk: 40}
agents:
  - slug: manager
tools:
  - name: wait_for_ever
    stall: true
scenes:
  - match: a long story
    replies:
      - - text: %s
  - match: wait for it
    replies:
      - - tool_call: {tool: wait_for_ever}
      - - text: never said
  - replies:
      - - text: "heard: {topic}"
""" % ("word " * 2000)

CLIENT = """
import sys, harness, grpc, crawbl
channel = grpc.insecure_channel(sys.argv[1])
call = crawbl.runtime_pb2_grpc.AgentRuntimeStub(channel).Converse(
    iter([crawbl.first(sys.argv[3], session_id=sys.argv[2])]),
    metadata=harness.Daemon.metadata())
print("begun", flush=True)
for event in call:
    print(event.WhichOneof("event"), flush=True)
"""


def run(*command):
    subprocess.run(command, check=True, capture_output=True, text=True)


def may_make_namespaces():
    try:
        run("ip", "netns", "add", NAME)
        return True
    except (subprocess.CalledProcessError, FileNotFoundError):
        return False


def lay_cable():
    run("ip", "link", "add", f"{NAME}a", "type", "veth", "peer", "name", f"{NAME}b")
    run("ip", "link", "set", f"{NAME}b", "netns", NAME)
    run("ip", "addr", "add", f"{NEAR}/30", "dev", f"{NAME}a")
    run("ip", "link", "set", f"{NAME}a", "up")
    inside = ("ip", "netns", "exec", NAME, "ip")
    run(*inside, "addr", "add", f"{FAR}/30", "dev", f"{NAME}b")
    run(*inside, "link", "set", f"{NAME}b", "up")


def remove_all():
    subprocess.run(["ip", "link", "del", f"{NAME}a"], capture_output=True)
    subprocess.run(["ip", "netns", "del", NAME], capture_output=True)


def connections(port):
    """Established ones of this port, as the kernel sees them."""
    lines = pathlib.Path("/proc/net/tcp").read_text().splitlines()[1:]
    wanted = f":{port:04X}"
    return sum(1 for line in lines if line.split()[1].endswith(wanted) and line.split()[3] == "01")


def start_client(daemon, message):
    command = ["ip", "netns", "exec", NAME, sys.executable, "-c", CLIENT]
    path = os.pathsep.join([str(ROOT / "test" / "e2e"), str(conftest.STUBS)])
    client = subprocess.Popen(
        [*command, f"{NEAR}:{daemon.port('grpc')}", SESSION, message],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": path},
    )
    assert client.stdout.readline() == "begun\n"
    return client


def try_one(kind, folder):
    script = folder / "script.yaml"
    script.write_text(SCRIPT)
    arguments = ["--grpc", "0.0.0.0:0", "--limit-keepalive", f"{KEEPALIVE_S}s"]
    arguments += ["--limit-keepalive-answer", f"{ANSWER_S}s"]
    daemon = harness.Daemon(folder, script=str(script), args=arguments).start()
    lay_cable()
    client = start_client(daemon, KINDS[kind])
    try:
        while connections(daemon.port("grpc")) == 0:
            time.sleep(0.05)
        time.sleep(1)  # the turn is under way
        run("ip", "netns", "exec", NAME, "ip", "link", "set", f"{NAME}b", "down")
        began = time.monotonic()
        while connections(daemon.port("grpc")):
            time.sleep(0.05)
            assert time.monotonic() - began < KEEPALIVE_S + ANSWER_S + SLACK_S, "not noticed"
        noticed = time.monotonic() - began
        with crawbl.open_stream(daemon) as stream:
            turn = stream.ask("hello", session_id=SESSION)
        assert turn.error is None, turn.error
        print(f"{kind}: gone after {noticed:.1f} s; the session went on", flush=True)
    finally:
        client.kill()
        client.wait()
        subprocess.run(["ip", "link", "del", f"{NAME}a"], capture_output=True)
        daemon.stop()
    assert not daemon.sanitizer_log(), daemon.sanitizer_log()


if not may_make_namespaces():
    print("blackhole: skipped, no network namespace may be made here")
    sys.exit(0)
try:
    for each in KINDS:
        with tempfile.TemporaryDirectory() as place:
            try_one(each, pathlib.Path(place))
finally:
    remove_all()
