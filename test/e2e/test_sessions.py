"""The conversations of a daemon: listed, exported, and deleted for good."""
import concurrent.futures
import json
import socket
import subprocess

import crawbl
import h2.config
import h2.connection
import h2.events
import harness
import pytest

TOKEN = {"authorization": "Bearer s3cret"}
OPTIONS = {
    "script": "test/e2e/scripts/approvals.yaml",
    "config": "agents: [{slug: manager, tools: {pay: ask}}]\n",
    "env": {"AGENT_AUTH_TOKEN": "s3cret"},
}

pytestmark = pytest.mark.weir(**OPTIONS)


def client(weir, headers=TOKEN):
    return weir.http(headers=headers)


def say(http, session, text="hello"):
    answer = http.post("/invoke", json={"input": text, "session_id": session})
    assert answer.status_code == 200, answer.text
    return answer.json()


def page(http, **params):
    answer = http.get("/weir/v1/sessions", params=params)
    assert answer.status_code == 200, answer.text
    return answer.json()


def export(http, session):
    answer = http.get(f"/weir/v1/sessions/{session}/export")
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"] == "application/x-ndjson"
    return [json.loads(line) for line in answer.text.splitlines()]


def files_say(weir, word):
    return [p.name for p in weir.data.iterdir() if word.encode() in p.read_bytes()]


# --- list -----------------------------------------------------------------------------


def test_sessions_are_listed_the_newest_first_page_by_page(weir):
    with client(weir) as http:
        assert page(http) == {"sessions": [], "more": False}
        for i in range(7):
            say(http, f"s{i}")
        say(http, "s0")
        seen, params = [], {"limit": 3}
        while True:
            found = page(http, **params)
            seen += [s["session_id"] for s in found["sessions"]]
            assert found["more"] == ("next" in found)
            if not found["more"]:
                break
            params["after"] = found["next"]
        assert seen == [f"s{i}" for i in reversed(range(7))]
        first = page(http, limit=1)["sessions"][0]
        assert first["workspace"] == "default" and first["user"] == "anonymous"
        assert first["state"] == "done" and first["ended_unix_ms"] >= first["started_unix_ms"]


def test_a_cursor_that_is_forged_or_of_another_filter_is_refused(weir):
    with client(weir) as http:
        for i in range(3):
            say(http, f"s{i}")
        cursor = page(http, limit=1)["next"]
        for wrong in ("1", "1-0", "-1-0", "x", cursor + "0", cursor[:-1], "9" + cursor):
            answer = http.get("/weir/v1/sessions", params={"after": wrong})
            assert answer.status_code == 400, wrong
        other = {"after": cursor, "user": "bob"}
        assert http.get("/weir/v1/sessions", params=other).status_code == 400
        assert page(http, after=cursor)["sessions"][0]["session_id"] == "s1"
        for params, status in (({"limit": -1}, 422), ({"limit": "x"}, 400), ({"lim": 1}, 400)):
            assert http.get("/weir/v1/sessions", params=params).status_code == status
        assert len(page(http, limit=2**31 - 1)["sessions"]) == 3


def test_each_caller_sees_and_deletes_only_what_is_his(weir):
    headers = {"authorization": "Bearer " + harness.token()}
    with crawbl.open_stream(weir) as stream:
        stream.ask("hello", session_id="c")
    with client(weir) as http, client(weir, headers) as other:
        say(http, "t")
        assert [s["session_id"] for s in page(http)["sessions"]] == ["t"]
        assert [s["session_id"] for s in page(other)["sessions"]] == ["c"]
        for own, params in ((http, {"workspace": "ws-1"}), (other, {"user": "anonymous"})):
            assert own.get("/weir/v1/sessions", params=params).status_code == 403
            for name in ("t", "c"):
                url = f"/weir/v1/sessions/{name}"
                assert own.get(url + "/export", params=params).status_code == 403
                assert own.delete(url, params=params).status_code == 403
        assert other.delete("/weir/v1/sessions/t").status_code == 404
        assert http.delete("/weir/v1/sessions/c").status_code == 404
        assert len(export(other, "c")) > 2 and len(export(http, "t")) > 2
    with client(weir, {}) as nobody:
        assert nobody.get("/weir/v1/sessions").status_code == 401
        assert nobody.delete("/weir/v1/sessions/t").status_code == 401


# --- export ---------------------------------------------------------------------------


def test_an_export_is_every_event_of_every_run_in_order(weir):
    with client(weir) as http:
        for i in range(5):
            say(http, "t", f"word {i}")
        lines = export(http, "t")
        runs = list(dict.fromkeys(line["run_id"] for line in lines))
        assert len(runs) == 5
        for i, run in enumerate(runs):
            events = [line["event"] for line in lines if line["run_id"] == run]
            assert [e["seq"] for e in events] == list(range(1, len(events) + 1))
            assert events[0]["type"] == "started" and events[0]["text"] == f"word {i}"
            assert events[-1]["type"] == "done"
            told = http.get(f"/weir/v1/runs/{run}/events").text.split("\n")
            assert events == [json.loads(t[6:]) for t in told if t.startswith("data: ")]
        assert http.get("/weir/v1/sessions/u/export").status_code == 404


def test_a_large_export_comes_whole_to_a_slow_reader(weir):
    text = "x" * 300_000
    with client(weir) as http:
        for _ in range(12):
            say(http, "t", text)
        with http.stream("GET", "/weir/v1/sessions/t/export") as answer:
            body = b"".join(answer.iter_bytes(1000))
        lines = [json.loads(line) for line in body.splitlines()]
        started = [line["event"] for line in lines if line["event"]["type"] == "started"]
        assert [len(e["text"]) for e in started] == 12 * [len(text)]


def test_a_session_may_have_any_name(weir):
    with client(weir) as http:
        for name in ("a/b", "a b?c#d", "\u00e9\u4e2d", "%41", "'; DROP TABLE log; --"):
            say(http, name)
            path = "".join(f"%{b:02X}" for b in name.encode())
            assert export(http, path)[0]["event"]["session"] == name
            assert http.delete(f"/weir/v1/sessions/{path}").status_code == 200
            assert http.get(f"/weir/v1/sessions/{path}/export").status_code == 404
        assert page(http)["sessions"] == []


# --- delete ---------------------------------------------------------------------------


@pytest.mark.parametrize("end", ["kill", "stop"])
def test_a_deleted_session_is_gone_from_answers_memory_and_files(weir, end):
    with client(weir) as http:
        say(http, "stays", "a kept word")
        for i in range(3):
            say(http, "doomed-session", f"my s3cret-word {i}")
        run = page(http)["sessions"][0]["newest_run"]
        assert files_say(weir, "s3cret-word")
        answer = http.delete("/weir/v1/sessions/doomed-session")
        assert (answer.status_code, answer.json()) == (200, {"deleted_runs": 3})
        assert files_say(weir, "s3cret-word") == [] and files_say(weir, "doomed-session") == []
        assert http.get(f"/weir/v1/runs/{run}").status_code == 404
        assert http.get(f"/weir/v1/runs/{run}/events").status_code == 404
        listed = http.get("/weir/v1/runs", params={"session_id": "doomed-session"}).json()
        assert listed["runs"] == []
        assert http.delete("/weir/v1/sessions/doomed-session").status_code == 404
        say(http, "doomed-session", "anew")
        lines = export(http, "doomed-session")
        assert {line["run_id"] for line in lines} != {run}
        assert lines[0]["event"]["text"] == "anew"
    getattr(weir, end)()
    weir.start()
    with client(weir) as http:
        assert [s["session_id"] for s in page(http)["sessions"]] == ["doomed-session", "stays"]
        assert export(http, "stays")[0]["event"]["text"] == "a kept word"
        assert files_say(weir, "s3cret-word") == []


def connect_slowly(weir):
    peer = socket.socket()
    peer.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    peer.settimeout(60)
    peer.connect(("127.0.0.1", weir.port("http")))
    return peer


def a_large_run(http, session):
    """Its events are more than all buffers on the way."""
    for _ in range(3):
        say(http, session, "x" * 3_000_000)
    return page(http)["sessions"][0]["newest_run"]


def read_to_the_end(peer):
    body = b""
    try:
        while data := peer.recv(65536):
            body += data
    except ConnectionResetError:
        pass
    return body


@pytest.mark.parametrize("what", ["events", "export"])
def test_who_reads_over_http_1_what_is_deleted_meanwhile_sees_that_it_broke_off(weir, what):
    with client(weir) as http:
        run = a_large_run(http, "doomed")
        path = {"events": f"runs/{run}/events", "export": "sessions/doomed/export"}[what]
        whole = len(http.get(f"/weir/v1/{path}").content)
        with connect_slowly(weir) as peer:
            peer.sendall(f"GET /weir/v1/{path} HTTP/1.1\r\nhost: localhost\r\nauthorization: {TOKEN['authorization']}\r\n\r\n".encode())
            begin = peer.recv(4096)
            assert b" 200 " in begin and b"chunked" in begin.lower()
            assert http.delete("/weir/v1/sessions/doomed").status_code == 200
            body = begin + read_to_the_end(peer)
        assert len(body) < whole and not body.endswith(b"0\r\n\r\n")
        say(http, "doomed", "anew")


def test_who_reads_over_http_2_what_is_deleted_meanwhile_gets_a_reset(weir):
    with client(weir) as http, connect_slowly(weir) as peer:
        run = a_large_run(http, "doomed")
        h2c = h2.connection.H2Connection(h2.config.H2Configuration(client_side=True))
        h2c.initiate_connection()
        h2c.send_headers(1, [(":method", "GET"), (":scheme", "http"), (":path", f"/weir/v1/runs/{run}/events"),
                             (":authority", "localhost"), ("authorization", TOKEN["authorization"])], end_stream=True)
        peer.sendall(h2c.data_to_send())
        seen, got, deleted = [], 0, False
        while not any(isinstance(e, (h2.events.StreamReset, h2.events.StreamEnded)) for e in seen):
            data = peer.recv(65536)
            assert data, "the connection was closed, not the stream"
            seen = h2c.receive_data(data)
            for event in seen:
                if isinstance(event, h2.events.DataReceived):
                    got += len(event.data)
            if got and not deleted:
                assert http.delete("/weir/v1/sessions/doomed").status_code == 200
                deleted = True
                h2c.increment_flow_control_window(2**30)
                h2c.increment_flow_control_window(2**30, 1)
            peer.sendall(h2c.data_to_send())
        assert deleted and got < 3_000_000
        assert isinstance(seen[-1], h2.events.StreamReset)


def test_a_session_with_a_turn_that_waits_is_not_deleted(weir):
    with client(weir) as http:
        say(http, "t", "ask")
        answer = http.delete("/weir/v1/sessions/t")
        assert answer.status_code == 409 and answer.json()["error"]["code"] == "SESSION_BUSY"
    weir.kill()
    weir.start()
    with client(weir) as http:
        assert http.delete("/weir/v1/sessions/t").status_code == 409
        http.post("/resume", json={"thread_id": "t", "human_input": "yes"})
        assert http.delete("/weir/v1/sessions/t").status_code == 200


def test_deletions_and_turns_at_once_leave_whole_sessions(weir):
    with client(weir) as http:

        def churn(i):
            with client(weir) as own:
                for n in range(15):
                    say(own, f"s{(i + n) % 4}", "hello")
                    status = own.delete(f"/weir/v1/sessions/s{n % 4}").status_code
                    assert status in (200, 404, 409)

        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            list(pool.map(churn, range(4)))
        for session in page(http)["sessions"]:
            events = [line["event"]["type"] for line in export(http, session["session_id"])]
            assert events.count("started") == events.count("done") > 0
    weir.restart()


# --- the command line -----------------------------------------------------------------


def weir_sessions(weir, *args):
    env = {"WEIR_HTTP": f"127.0.0.1:{weir.port('http')}", "AGENT_AUTH_TOKEN": "s3cret"}
    return subprocess.run(
        [harness.BINARY, "sessions", *args],
        capture_output=True,
        text=True,
        env=harness.clean_environment(env),
        cwd=weir.folder,
        timeout=20,
    )


def test_the_command_lists_exports_and_deletes(weir):
    with client(weir) as http:
        say(http, "a b")
        say(http, "c")
    listed = weir_sessions(weir)
    assert listed.returncode == 0, listed.stderr
    assert [line.split("  ")[0] for line in listed.stdout.splitlines()] == ["c", "a b"]
    lines = weir_sessions(weir, "list", "--json").stdout.splitlines()
    assert [json.loads(line)["session_id"] for line in lines] == ["c", "a b"]
    exported = weir_sessions(weir, "export", "a b")
    assert exported.returncode == 0, exported.stderr
    assert json.loads(exported.stdout.splitlines()[0])["event"]["session"] == "a b"
    done = weir_sessions(weir, "delete", "a b", "--user", "anonymous")
    assert (done.returncode, done.stdout) == (0, "deleted\n"), done.stderr
    again = weir_sessions(weir, "delete", "a b")
    assert again.returncode == 1 and "404" in again.stderr
    for wrong in (["export"], ["lst"], ["list", "x"], ["delete", "a", "b"], ["list", "--user"]):
        assert weir_sessions(weir, *wrong).returncode == 2, wrong
