"""Socket.IO as its own clients and hostile ones see it, on the server of test/socketio/."""
import asyncio
import concurrent.futures
import contextlib
import json
import os
import pathlib
import shutil
import socket as sockets
import subprocess
import time

import httpx
import pytest
import socketio
import socketio_client
import websockets
from socketio_server import BINARY, RECORD, Poller, Server, ask

pytestmark = pytest.mark.skipif(not BINARY.exists(), reason="socketio_server is not built")


@pytest.fixture(scope="module")
def server():
    with Server() as running:
        yield running


def eventually(holds, seconds=60):
    until = time.monotonic() + seconds
    while not (found := holds()) and time.monotonic() < until:
        time.sleep(0.02)
    assert found


def close_code(socket):
    """The code with which the server closes; what comes before it is passed over."""
    with pytest.raises(websockets.ConnectionClosed) as closed:
        while True:
            socket.recv(timeout=10)
    return closed.value.rcvd.code if closed.value.rcvd else None


# --- the opening ---------------------------------------------------------------------------


def test_the_opening_says_what_the_sheet_says(server):
    opening = Poller(server).open
    assert opening["pingInterval"] == 25000 and opening["pingTimeout"] == 20000
    assert opening["maxPayload"] == 1000000 and opening["upgrades"] == ["websocket"]
    with server.websocket() as socket:
        assert json.loads(socket.recv(timeout=10)[1:])["upgrades"] == []


@pytest.mark.parametrize("params, code", [
    ({}, 0),
    ({"EIO": 4}, 0),
    ({"EIO": 4, "transport": "pigeon"}, 0),
    ({"EIO": 4, "transport": "polling", "sid": "unknown"}, 1),
    ({"EIO": 3, "transport": "polling"}, 5),
    ({"transport": "polling"}, 5),
])
def test_a_request_that_makes_no_sense_is_refused_with_its_code(server, params, code):
    answer = httpx.get(server.url + "/socket.io/", params=params)
    assert answer.status_code == 400 and answer.json()["code"] == code


def test_a_post_without_a_session_is_refused(server):
    answer = httpx.post(server.url + "/socket.io/?EIO=4&transport=polling", content="40")
    assert answer.status_code == 400 and answer.json()["code"] == 2


def test_other_methods_are_refused(server):
    for method in ("PUT", "DELETE", "HEAD"):
        answer = httpx.request(method, server.url + "/socket.io/?EIO=4&transport=polling")
        assert answer.status_code == 405 and "GET" in answer.headers["allow"]


def test_a_websocket_without_an_upgrade_is_refused(server):
    answer = httpx.get(server.url + "/socket.io/?EIO=4&transport=websocket")
    assert answer.status_code == 426 and answer.headers["upgrade"] == "websocket"


@pytest.mark.parametrize("origin, status", [
    ("http://localhost", 200),
    ("http://localhost:8100", 200),
    ("https://app.crawbl.com", 200),
    ("https://a.b.crawbl.com", 200),
    ("crawbl://app", 200),
    ("https://crawbl.com", 403),
    ("https://evilcrawbl.com", 403),
    ("https://crawbl.com.evil.example", 403),
    ("https://evil.example/.crawbl.com", 403),
    ("http://app.crawbl.com", 403),
    ("http://localhost.evil.example", 403),
    ("https://localhost:x", 403),
    ("crawbl://application", 403),
    ("null", 403),
])
def test_pages_of_the_listed_origins_may_connect_and_no_others(server, origin, status):
    answer = httpx.get(server.url + "/socket.io/?EIO=4&transport=polling",
                       headers={"origin": origin})
    assert answer.status_code == status
    allowed = answer.headers.get("access-control-allow-origin")
    assert allowed == (origin if status == 200 else None)
    if status == 200:
        assert answer.headers["access-control-allow-credentials"] == "true"
        with server.websocket(origin=origin) as socket:
            assert socket.recv(timeout=10).startswith("0{")
    else:
        with pytest.raises(websockets.InvalidStatus) as refused:
            server.websocket(origin=origin)
        assert refused.value.response.status_code == 403


# --- namespaces and authentication ---------------------------------------------------------


def test_without_authentication_the_namespace_is_refused(server):
    with server.opened() as socket:
        socket.send("40/v1,")
        text = socket.recv(timeout=10)
        assert text.startswith("44/v1,")
        assert json.loads(text[6:]) == {"message": "unauthorized",
                                        "data": "missing authentication"}
        socket.send('40/v1,{"token":"good"}')  # the session goes on
        assert socket.recv(timeout=10).startswith('40/v1,{"sid":"')


def test_a_header_of_the_gateway_is_enough(server):
    headers = {"X-Firebase-UID": "anna"}
    with server.joined(auth="", additional_headers=headers) as socket:
        who = ask(socket, 1, "whoami")
        assert who["user"] == "anna" and who["header"] == "anna"
        assert who["peer"].startswith("127.0.0.1:")


def test_an_unknown_namespace_is_refused(server):
    with server.opened() as socket:
        socket.send("40/nowhere,")
        assert json.loads(socket.recv(timeout=10).removeprefix("44/nowhere,")) == {
            "message": "Invalid namespace"}


def test_one_session_may_join_several_namespaces(server):
    with server.joined() as socket:
        socket.send("40")
        assert socket.recv(timeout=10).startswith('40{"sid":"')
        socket.send('42["echo",1]')
        assert socket.recv(timeout=10) == '42["echo",1]'
        socket.send("41")
        assert ask(socket, 3, "echo", 2) == 2


def test_a_decision_may_come_later(server):
    with server.opened() as socket:
        socket.send("40/later,")
        assert socket.recv(timeout=10).startswith('40/later,{"sid":"')
    leaving = server.opened()  # and its client may be gone by then
    leaving.send("40/later,")
    leaving.close()
    with server.joined() as socket:
        assert ask(socket, 1, "echo", 1) == 1


def test_a_session_without_a_namespace_ends():
    with Server(join_ms=100) as server, server.opened() as socket:
        assert close_code(socket) == 1000


# --- events --------------------------------------------------------------------------------


def test_events_and_acks_carry_any_json(server):
    values = [None, True, -1.5, "text \u00e4\U0001f600 \x00\x1e\n", [], {}, {"a": [{"b": None}]}]
    with server.joined() as socket:
        for i, value in enumerate(values):
            assert ask(socket, i, "echo", value) == value


def test_an_unknown_event_is_ignored(server):
    with server.joined() as socket:
        socket.send('42/v1,1["unheard of"]')
        assert ask(socket, 2, "echo", 2) == 2


def test_only_the_members_of_a_room_hear_it(server):
    with server.joined() as a, server.joined() as b, server.joined() as c:
        assert ask(a, 1, "join", "workspace:1") and ask(b, 1, "join", "workspace:1")
        ask(c, 1, "say", {"room": "workspace:1", "data": {"n": [1]}})
        for socket in (a, b):
            assert json.loads(socket.recv(timeout=10).removeprefix("42/v1,")) == [
                "said", {"n": [1]}]
        ask(b, 2, "leave", "workspace:1")
        ask(c, 2, "say", {"room": "workspace:1", "data": 2})
        assert a.recv(timeout=10) == '42/v1,["said",2]'
        assert ask(b, 3, "echo", 3) == 3 and ask(c, 3, "echo", 3) == 3


def test_a_socket_joins_no_more_rooms_than_allowed(server):
    with server.joined() as socket:
        joined = [ask(socket, i, "join", f"room {i}") for i in range(258)]
        assert joined == [True] * 256 + [False] * 2


def test_two_hundred_clients_of_one_room_all_hear_every_event_in_order(server):
    async def client(ready, go, index):
        uri = server.url.replace("http", "ws") + "/socket.io/?EIO=4&transport=websocket"
        async with websockets.connect(uri, compression=None, ping_interval=None) as socket:
            await socket.recv()
            await socket.send('40/v1,{"token":"good"}')
            await socket.recv()
            await socket.send('42/v1,1["join","crowd"]')
            await socket.recv()
            ready.release()
            await go.wait()
            if index == 0:
                for i in range(50):
                    await socket.send("42/v1," + json.dumps(["say", {"room": "crowd", "data": i}]))
            heard = [json.loads((await socket.recv())[6:])[1] for _ in range(50)]
            assert heard == list(range(50))

    async def crowd():
        ready, go = asyncio.Semaphore(0), asyncio.Event()
        clients = [asyncio.ensure_future(client(ready, go, i)) for i in range(200)]
        for _ in clients:
            await ready.acquire()
        go.set()
        await asyncio.gather(*clients)

    asyncio.run(asyncio.wait_for(crowd(), 60))


def test_the_server_may_disconnect_a_client(server):
    with server.joined() as socket:
        socket.send('42/v1,["bye"]')
        assert socket.recv(timeout=10) == "41/v1,"
        socket.send('42/v1,["echo",1]')  # it may have been sent before the disconnect came
        socket.send('40/v1,{"token":"good"}')
        assert socket.recv(timeout=10).startswith("40/v1,")
        assert ask(socket, 2, "echo", 2) == 2


# --- long polling --------------------------------------------------------------------------


def test_a_session_by_polling_alone(server):
    poller = Poller(server)
    assert poller.post('40/v1,{"token":"good"}').text == "ok"
    assert poller.packets()[0].startswith('40/v1,{"sid":"')
    body = RECORD.join(f'42/v1,{i}["echo",{i}]' for i in range(3))
    assert poller.post(body).text == "ok"
    assert poller.packets() == [text for i in range(3)
                                for text in (f'42/v1,["echo",{i}]', f"43/v1,{i}[{i}]")]


def test_a_get_brings_no_more_than_clients_of_python_take(server):
    """engineio.payload.Payload.max_decode_packets: with 17 they give the session up."""
    poller = Poller(server)
    poller.post('40/v1,{"token":"good"}')
    poller.packets()
    count = 100
    body = RECORD.join(f'42/v1,["echo",{i}]' for i in range(count))
    assert poller.post(body).text == "ok"
    bodies = [poller.packets() for _ in range(7)]
    assert [len(packets) for packets in bodies] == [16] * 6 + [4]
    assert [p for packets in bodies for p in packets] == [f'42/v1,["echo",{i}]' for i in range(count)]


def test_posts_and_gets_at_once_lose_nothing():
    """As python-engineio does it: a GET that always waits, POSTs beside it on a connection of their own,
    pings answered from what the GETs bring, and never an upgrade."""
    with Server(ping_ms=100, timeout_ms=120000) as server, server.joined() as other:
        poller, heard, pings = Poller(server), [], []
        poster = httpx.Client(base_url=server.url, timeout=20)

        def post(body):
            assert poster.post("/socket.io/", params=poller.params, content=body).text == "ok"

        def read():
            while len(heard) < 400 or len(pings) < 5:
                packets = poller.packets()
                assert len(packets) <= 16
                for packet in packets:
                    if packet == "2":
                        pings.append(packet)
                        post("3")
                    elif packet.startswith('42/v1,["said",'):
                        heard.append(json.loads(packet.removeprefix("42/v1,"))[1])

        post('40/v1,{"token":"good"}' + RECORD + '42/v1,["join","both"]')
        ask(other, 1, "join", "both")
        with concurrent.futures.ThreadPoolExecutor() as pool:
            reading = pool.submit(read)
            for i in range(200):
                ask(other, i + 2, "say", {"room": "both", "data": ["other", i]})
                post(f'42/v1,["say",{{"room":"both","data":["own",{i}]}}]')
            reading.result(30)
        for name in ("other", "own"):
            assert [i for who, i in heard if who == name] == list(range(200))


def test_a_get_waits_for_an_event(server):
    poller = Poller(server)
    poller.post('40/v1,{"token":"good"}')
    poller.packets()
    poller.post('42/v1,1["join","waiting"]')
    poller.packets()
    with concurrent.futures.ThreadPoolExecutor() as pool, server.joined() as other:
        waiting = pool.submit(poller.packets)
        ask(other, 1, "say", {"room": "waiting", "data": "now"})
        assert waiting.result(20) == ['42/v1,["said","now"]']


def test_headers_of_the_opening_request_hold_for_the_session(server):
    poller = Poller(server, **{"X-Firebase-UID": "berta"})
    del poller.http.headers["X-Firebase-UID"]
    poller.post("40/v1,")
    assert poller.packets()[0].startswith('40/v1,{"sid"')
    poller.post('42/v1,1["whoami"]')
    assert json.loads(poller.packets()[0][7:])[0]["user"] == "berta"


def test_two_gets_at_once_end_the_session(server):
    poller = Poller(server)
    with concurrent.futures.ThreadPoolExecutor() as pool:
        both = [pool.submit(poller.get) for _ in range(2)]
        answers = sorted((f.result(20) for f in both), key=lambda a: a.status_code)
    assert [a.status_code for a in answers] == [200, 400]
    assert answers[0].text == "1"
    assert poller.get().json()["code"] == 1


def test_a_client_may_close_by_polling(server):
    poller = Poller(server)
    with concurrent.futures.ThreadPoolExecutor() as pool:
        waiting = pool.submit(poller.get)
        time.sleep(0.1)
        assert poller.post("1").text == "ok"
        assert waiting.result(20).text == "6"
    assert poller.get().json()["code"] == 1


@pytest.mark.parametrize("body", ["", "x", "4", "9", "b4AAAA", "2" + RECORD + "nonsense", "47",
                                  "42/v1,[1]", '451-["x",{"_placeholder":true,"num":0}]',
                                  "40[1]", "4" + "2" * 40 + "[]"])
def test_garbage_by_polling_is_refused_and_ends_the_session(server, body):
    poller = Poller(server)
    answer = poller.post(body)
    assert answer.status_code == 400 and answer.json()["code"] == 3
    assert answer.json()["message"]
    assert poller.get().json()["code"] == 1


def test_a_body_beyond_the_limit_is_refused():
    with Server(payload=1000) as server:
        poller = Poller(server)
        assert poller.post("40" + " " * 1000).status_code == 413
        assert poller.post("40").text == "ok"


# --- the upgrade ---------------------------------------------------------------------------


def upgraded(server, poller):
    socket = server.websocket(f"EIO=4&transport=websocket&sid={poller.sid}")
    socket.send("2probe")
    assert socket.recv(timeout=10) == "3probe"
    return socket


def test_a_session_moves_to_a_websocket_without_losing_anything(server):
    poller = Poller(server)
    poller.post('40/v1,{"token":"good"}')
    poller.packets()
    with concurrent.futures.ThreadPoolExecutor() as pool:
        waiting = pool.submit(poller.get)
        time.sleep(0.1)
        with upgraded(server, poller) as socket:
            assert waiting.result(20).text == "6"
            poller.post('42/v1,["echo","between"]')
            socket.send("5")
            assert socket.recv(timeout=10) == '42/v1,["echo","between"]'
            assert ask(socket, 1, "echo", "after") == "after"
            assert poller.get().status_code == 400
            assert poller.post("3").status_code == 400
            with server.websocket(f"EIO=4&transport=websocket&sid={poller.sid}") as second:
                assert close_code(second) == 1008
            assert ask(socket, 2, "echo", "still") == "still"


def test_a_session_id_of_any_length_begins_no_session(server):
    with server.joined() as socket:
        before = ask(socket, 1, "counts")["opened"]
        for length in (1, 63, 64, 65, 500):
            answer = httpx.get(server.url + "/socket.io/", params={
                "EIO": 4, "transport": "polling", "sid": "x" * length})
            assert answer.status_code == 400 and answer.json()["code"] == 1
        assert ask(socket, 2, "counts")["opened"] == before


def test_a_probe_that_is_lost_leaves_polling_as_it_was(server):
    poller = Poller(server)
    poller.post('40/v1,{"token":"good"}')
    poller.packets()
    upgraded(server, poller).close()
    with server.websocket(f"EIO=4&transport=websocket&sid={poller.sid}") as wrong:
        wrong.send("hello")
        assert close_code(wrong) == 1002
    poller.post('42/v1,["echo",1]')
    eventually(lambda: '42/v1,["echo",1]' in poller.packets())


# --- time ----------------------------------------------------------------------------------


def test_a_client_that_answers_pings_stays():
    with Server(ping_ms=50, timeout_ms=1000) as server, server.joined() as socket:
        for _ in range(5):
            assert socket.recv(timeout=10) == "2"
            socket.send("3")
        assert ask(socket, 1, "echo", 1) == 1


def test_a_client_that_answers_no_ping_is_ended():
    with Server(ping_ms=50, timeout_ms=100) as server:
        with server.joined() as socket:
            assert close_code(socket) == 1000
        poller = Poller(server)
        poller.post('40/v1,{"token":"good"}')
        eventually(lambda: server.gone.count("timeout") == 2)
        assert poller.get().json()["code"] == 1


def test_a_lost_connection_ends_its_sockets():
    with Server() as server:
        server.joined().close()
        eventually(lambda: server.gone == ["client left"])
        counts = server.counts()
        assert counts["sessions"] == 1 and counts["sockets"] == 1


# --- faults --------------------------------------------------------------------------------


@pytest.mark.parametrize("packet", ["", "x", "4", "49", "47[]", "42/v1,", "42/v1,{}", "42/v1,[]",
                                    "42/v1,[1]", '42/v1,["a"', "43/v1,[]", '44/v1,{"a":1}',
                                    "40/v1,[]", "42" + "[" * 100, "0{}", "5", "2probe",
                                    '42/nowhere,["a"]', "40/" + "n" * 300 + ","])
def test_garbage_closes_the_websocket_and_nothing_else(server, packet):
    with server.joined() as socket, server.joined() as other:
        socket.send(packet)
        assert close_code(socket) == 1002
        assert ask(other, 1, "echo", 1) == 1


def test_binary_is_refused_clearly(server):
    with server.joined() as socket:
        socket.send(b"\x04")
        with pytest.raises(websockets.ConnectionClosed) as closed:
            socket.recv(timeout=10)
        assert closed.value.rcvd.code == 1003 and "binary" in closed.value.rcvd.reason
    with server.joined() as socket:
        socket.send('451-/v1,["x",{"_placeholder":true,"num":0}]')
        assert close_code(socket) == 1002


def test_a_message_beyond_the_limit_closes():
    with Server(payload=1000) as server, server.joined() as socket:
        socket.send("42/v1," + json.dumps(["echo", "x" * 1000]))
        assert close_code(socket) == 1009


def test_more_sessions_than_allowed_are_refused():
    with Server(sessions=2) as server, server.opened(), server.opened():
        answer = httpx.get(server.url + "/socket.io/?EIO=4&transport=polling")
        assert answer.status_code == 503


def test_a_client_that_reads_nothing_loses_its_session_and_the_others_none():
    with Server(queue=262144) as server, server.joined() as other:
        slow = sockets.create_connection(("127.0.0.1", server.port))
        slow.setsockopt(sockets.SOL_SOCKET, sockets.SO_RCVBUF, 4096)
        slow.sendall(b"GET /socket.io/?EIO=4&transport=websocket HTTP/1.1\r\nHost: localhost\r\n"
                     b"Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
                     b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n")

        def say(text):
            data = text.encode()
            head = bytes([0x81, 0x80 | len(data)]) if len(data) < 126 else None
            slow.sendall(head + bytes(4) + data)

        say('40/v1,{"token":"good"}')
        with contextlib.suppress(ConnectionError):  # it may be cut before the last of them
            for _ in range(20):
                say('42/v1,["flood",1000]')
        eventually(lambda: "lagged" in server.gone)
        assert ask(other, 1, "echo", 1) == 1
        assert ask(other, 2, "counts")["lagged"] == 1
        slow.close()


def test_a_poller_that_never_comes_back_loses_its_session():
    with Server(queue=65536) as server:
        poller = Poller(server)
        poller.post('40/v1,{"token":"good"}')
        poller.post('42/v1,["flood",1000]')
        eventually(lambda: "lagged" in server.gone)
        assert poller.get().json()["code"] == 1


def test_a_stop_says_goodbye_to_everyone():
    with Server() as server:
        poller = Poller(server)
        poller.post('40/v1,{"token":"good"}')
        poller.packets()
        with concurrent.futures.ThreadPoolExecutor() as pool, server.joined() as socket:
            waiting = pool.submit(poller.get)
            time.sleep(0.2)
            server.stop()
            assert close_code(socket) == 1001
            assert waiting.result(20).text == "1"
    assert sorted(server.gone) == ["the server stops"] * 2


# --- python-socketio -----------------------------------------------------------------------


@pytest.mark.parametrize("transports", [["websocket"], ["polling"], ["polling", "websocket"]])
def test_the_python_client_agrees(server, transports):
    async def talk():
        client = socketio.AsyncClient(reconnection=False)
        said = asyncio.get_running_loop().create_future()
        client.on("said", lambda data: said.set_result(data), namespace="/v1")
        await client.connect(server.url, namespaces=["/v1"], auth={"token": "good"},
                             transports=transports)
        assert await client.call("echo", {"a": 1}, namespace="/v1") == {"a": 1}
        room = "python " + " ".join(transports)
        assert await client.call("join", room, namespace="/v1") is True
        await client.emit("say", {"room": room, "data": [1]}, namespace="/v1")
        assert await said == [1]
        assert client.transport() == transports[-1]
        await client.disconnect()

    asyncio.run(asyncio.wait_for(talk(), 30))


def test_the_python_client_hears_a_burst_by_polling_alone(server):
    client = socketio_client.Client(reconnection=False)
    heard = []
    client.on("said", heard.append, namespace="/v1")
    client.connect(server.url, namespaces=["/v1"], auth={"token": "good"}, transports=["polling"])
    assert client.call("join", "burst", namespace="/v1") is True
    with server.joined() as other:
        for i in range(300):
            other.send(f'42/v1,["say",{{"room":"burst","data":{i}}}]')
        eventually(lambda: len(heard) == 300, seconds=30)
    assert heard == list(range(300))
    client.disconnect()


def test_the_python_client_hears_why_it_is_refused(server):
    async def talk():
        client = socketio.AsyncClient(reconnection=False)
        heard = asyncio.get_running_loop().create_future()
        client.on("connect_error", lambda data: heard.set_result(data), namespace="/v1")
        with pytest.raises(socketio.exceptions.ConnectionError):
            await client.connect(server.url, namespaces=["/v1"], transports=["websocket"])
        assert await heard == {"message": "unauthorized", "data": "missing authentication"}
        await client.disconnect()

    asyncio.run(asyncio.wait_for(talk(), 30))


# --- socket.io-client ----------------------------------------------------------------------


def test_the_javascript_client_agrees(server):
    script = pathlib.Path(__file__).parent / "node" / "socketio.js"
    node = subprocess.run([shutil.which("node"), str(script)], capture_output=True, text=True,
                          timeout=100, env={**os.environ, "SOCKETIO_URL": server.url})
    assert node.returncode == 0, node.stdout + node.stderr
