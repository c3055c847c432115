"""The operator's listener: probes, and metrics as a Prometheus server reads them."""
import re
import shutil
import subprocess
import time

import crawbl
import httpx
import pytest
import vendors
from vendors import call

CONFIG = "listen: {admin: '127.0.0.1:0'}\n"
SAMPLE = re.compile(r'^([a-z_]+)(?:\{((?:[a-z_]+="(?:[^"\\\n]|\\["\\n])*",?)*)\})? ([0-9.e+-]+|\+Inf)$')
SUFFIX = re.compile(r"_(bucket|sum|count)$")


def admin(weir):
    return weir.http(base_url=f"http://127.0.0.1:{weir.ports['admin']}")


def eventually(look):
    give_up = time.monotonic() + 60
    while not (found := look()):
        assert time.monotonic() < give_up
        time.sleep(0.02)
    return found


def scrape(weir, check=True):
    """{name: {labels as written: value}}; every line must be one that the format has."""
    answer = admin(weir).get("/metrics")
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    assert answer.text.endswith("\n")
    types, values = {}, {}
    for line in answer.text.splitlines():
        if line.startswith("# TYPE "):
            _, _, name, kind = line.split(" ")
            assert name not in types, f"{name} comes twice"
            types[name] = kind
        elif not line.startswith("# HELP "):
            found = SAMPLE.match(line)
            assert found, line
            name, labels, value = found.groups()
            family = name if name in types else SUFFIX.sub("", name)
            assert family == list(types)[-1], line  # the samples of a family stand together
            assert labels not in values.setdefault(name, {}), line
            values[name][labels or ""] = float(value)
    if check and shutil.which("promtool"):
        linted = subprocess.run(["promtool", "check", "metrics"], input=answer.text, text=True,
                                capture_output=True)
        assert linted.returncode == 0, linted.stderr
    return values


def only(series, **labels):
    """The value of the one series that has these labels."""
    wanted = [f'{name}="{value}"' for name, value in labels.items()]
    found = [value for has, value in series.items() if all(one in has.split(",") for one in wanted)]
    assert len(found) == 1, (series, wanted)
    return found[0]


@pytest.fixture
def kind():
    return "openai"


def test_a_turn_with_a_tool_is_counted_and_timed(house, models):
    weir = house([{"tools": ["calculator"]}], listen={"admin": "127.0.0.1:0"})
    models.say("gpt-5-mini", [call("calculator", {"expression": "2+3"}, id="c1")], "It is 5.")
    assert vendors.invoke(weir, "what is 2+3?").json()["output"] == "It is 5."
    seen = scrape(weir)
    agent = next(iter(seen["weir_turns_started_total"])).split('"')[1]
    assert only(seen["weir_turns_started_total"], gen_ai_agent_name=agent) == 1
    assert only(seen["weir_turns_ended_total"], gen_ai_agent_name=agent, state="done") == 1
    assert only(seen["gen_ai_invoke_agent_inference_calls_sum"], gen_ai_agent_name=agent) == 2
    assert only(seen["gen_ai_invoke_agent_tool_calls_sum"], gen_ai_agent_name=agent) == 1
    assert only(seen["gen_ai_execute_tool_duration_seconds_count"], gen_ai_tool_name="calculator") == 1
    asked = dict(gen_ai_operation_name="chat", gen_ai_provider_name="house",
                 gen_ai_request_model="gpt-5-mini")
    assert only(seen["gen_ai_client_operation_duration_seconds_count"], **asked) == 2
    assert only(seen["gen_ai_client_operation_time_to_first_chunk_seconds_count"], **asked) == 2
    for kind in ("input", "output"):
        assert only(seen["gen_ai_client_token_usage_count"], **asked, gen_ai_token_type=kind) == 2
    spent = sum(seen["gen_ai_client_token_usage_sum"].values())
    (total,) = re.findall(r"manager, model gpt-5-mini, (\d+) tokens in, (\d+) tokens out", weir.log())
    assert spent == sum(map(int, total)) > 0
    for name in ("process_resident_memory_bytes", "process_cpu_seconds_total", "process_open_fds",
                 "process_start_time_seconds", "weir_build_info", "weir_requests_total"):
        assert seen[name], name


def test_a_failure_has_its_reason_and_no_caller_is_named(house, models):
    weir = house([{}], listen={"admin": "127.0.0.1:0"})
    models.say("gpt-5-mini", "never read")
    models.relay.spoil(lambda answer: answer.whole(401, '{"error": {"message": "no such key"}}', {}))
    assert vendors.invoke(weir, "hello", session_id="secret-session").status_code >= 500
    seen = scrape(weir)
    assert sum(value for has, value in seen["weir_turns_ended_total"].items() if 'state="failed"' in has) == 1
    assert any("error_type=" in has for has in seen["gen_ai_client_operation_duration_seconds_count"])
    assert "gen_ai_client_token_usage_sum" not in seen  # nothing was reported
    assert "secret-session" not in admin(weir).get("/metrics").text


@pytest.mark.weir(script="test/e2e/scripts/contract.yaml", config=CONFIG)
def test_a_cancelled_turn_and_a_hundred_callers_at_once(weir):
    with crawbl.open_stream(weir) as stream:
        stream.send("long while", session_id="c1")
        stream.next()
    turns = [crawbl.in_background(crawbl.one_turn_of, weir, "hello", f"s{n}") for n in range(100)]
    texts = [turn().text for turn in turns]
    assert len(set(texts)) == 1
    seen = eventually(lambda: (v := scrape(weir, check=False)) and
                             sum(v["weir_turns_ended_total"].values()) == 101 and v)
    assert sum(seen["weir_turns_started_total"].values()) == 101
    assert sum(seen["gen_ai_invoke_agent_duration_seconds_count"].values()) == 101


@pytest.mark.weir(config=CONFIG)
def test_probes_answer_and_nothing_else_is_there(weir):
    with admin(weir) as http:
        for path in ("/livez", "/readyz", "/healthz"):
            assert http.get(path).json()["ok"] is True
            assert http.head(path).status_code == 200
        assert http.post("/metrics").status_code == 405
        for path in ("/health", "/invoke", "/weir/v1/runs"):
            assert http.get(path).status_code == 404
    with weir.http() as http:
        assert http.get("/metrics").status_code == 404


def ready(http):
    """The answer, or nothing where the daemon closed the idle connection as it began to stop."""
    try:
        return http.get("/readyz")
    except httpx.RemoteProtocolError:
        return None


@pytest.mark.weir(script="test/e2e/scripts/contract.yaml", config=CONFIG)
def test_a_stopping_daemon_is_not_ready_and_still_tells_its_numbers(weir):
    with admin(weir) as http:
        with crawbl.open_stream(weir) as stream:
            stream.send("long while", session_id="c1")
            stream.next()
            assert http.get("/readyz").json() == {"ok": True, "status": "READY"}
            weir.signal(15)
            answer = eventually(lambda: (a := ready(http)) and a.status_code == 503 and a)
            assert answer.json() == {"ok": False, "status": "STOPPING"}
            assert sum(scrape(weir, check=False)["weir_turns_started_total"].values()) == 1
    assert weir.wait() == 0


def test_it_is_off_unless_it_is_asked_for(weir):
    assert "admin" not in weir.ports
