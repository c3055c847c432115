"""W3C trace context: it comes in at every door, is kept with the run, and goes on to all that the run
asks."""
import json
import sys

import crawbl
import far_runtime
import harness
import httpx
import nimi_client as nimi
import pytest
import vendors
from test_mcp import SERVER
from test_process import COMMANDS
from vendors import call

PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
STATES = ("rojo=00f067aa0ba902b7", "congo=t61rcWkgMzE")
STATE = ",".join(STATES)
HEADERS = [("traceparent", PARENT), *(("tracestate", state) for state in STATES)]
MODEL = "gpt-5-mini"
KEY = {"FAR_KEY": harness.SIGNING_KEY}


@pytest.fixture
def kind():
    return "openai"


def tools(tmp_path, **more):
    return {"name": "faults", "command": [sys.executable, str(SERVER), str(tmp_path)], **more}


def metas(tmp_path):
    """`_meta` of the calls that the MCP server got, without what is not ours here."""
    heard = [json.loads(line) for line in (tmp_path / "heard").read_text().splitlines()]
    called = [message["params"].get("_meta", {}) for message in heard if message["method"] == "tools/call"]
    return [{key: meta[key] for key in ("traceparent", "tracestate") if key in meta} for meta in called]


def seen(asked):
    return (asked.headers.get("traceparent"), asked.headers.get("tracestate"))


def invoke(weir, text, headers=(), path="/invoke", **body):
    with weir.http(headers=list(headers)) as http:
        return http.post(path, json={"input": text, **body})


def converse(weir, text, agent):
    metadata = [*weir.metadata(crawbl.USER, crawbl.WORKSPACE), *HEADERS]
    with crawbl.open_stream(weir, metadata=metadata) as stream:
        told = stream.ask(text, agent_id=agent)
    assert told.error is None, told.error
    return told.text


def test_a_trace_reaches_models_tools_and_agents_whatever_the_door(house, models, start_weir, tmp_path):
    inner = house(
        [{"tools": ["say"]}],
        mcp=[tools(tmp_path)],
        connectors=[{"id": "own", "provider": "house"}],
        nimi={"probe_interval": "0s", "allow_loopback_provider_endpoint": True},
    )
    worker = json.dumps(COMMANDS["python"])
    outer = start_weir(
        config="agents:\n"
        f"  - {{slug: far, kind: converse, address: '{inner.target}', key_env: FAR_KEY}}\n"
        f"  - {{slug: web, kind: http, url: '{inner.url}'}}\n"
        f"  - {{slug: worker, kind: process, command: {worker}}}\n",
        env=KEY,
    )
    ways = [
        lambda: invoke(outer, "go", HEADERS).json()["output"],
        lambda: converse(outer, "go", "web"),
        lambda: httpx.post(
            f"{inner.url}/mcp",
            json={
                "jsonrpc": "2.0", "id": 1, "method": "tools/call",
                "params": {
                    "name": "manager", "arguments": {"message": "go"},
                    "_meta": {"traceparent": PARENT, "tracestate": STATE},
                },
            },
            headers={"authorization": "Bearer " + harness.token(), "accept": "application/json, text/event-stream"},
            timeout=vendors.PATIENCE, trust_env=False, verify=harness.NO_TLS,
        ).text,
    ]  # fmt: skip
    for number, way in enumerate(ways, 1):
        models.say(MODEL, [call("say", {"text": "hi"}, id="c1")], "Done.")
        assert "Done." in way()
        assert [seen(asked) for asked in models.asked[-2:]] == [(PARENT, STATE)] * 2
        assert metas(tmp_path) == [{"traceparent": PARENT, "tracestate": STATE}] * number
    models.say(MODEL, "Done.")
    client = nimi.Client(inner)
    cloud = {"route_policy": nimi.common.ROUTE_POLICY_CLOUD, "connector_id": "own", "subject_user_id": "u", "model_id": MODEL}
    told = client.stream("go", metadata=[*client.metadata(), *HEADERS], **cloud)
    assert told.text == "Done.", told.error
    assert seen(models.asked[-1]) == (PARENT, STATE)
    assert json.loads(converse(outer, "trace", "worker")) == [PARENT, STATE]


WRONG = [
    [],
    [("traceparent", PARENT.upper())],
    [("traceparent", PARENT), ("traceparent", PARENT)],
    [("tracestate", STATE)],
    [("traceparent", "x" * 4000)],
]


def test_without_a_trace_that_is_valid_none_goes_on(house, models, tmp_path):
    weir = house([{"tools": ["say"]}], mcp=[tools(tmp_path)])
    for headers in WRONG:
        models.say(MODEL, [call("say", {"text": "hi"}, id="c1")], "Done.")
        answer = invoke(weir, "go", headers)
        assert answer.status_code == 200, answer.text
        assert {seen(asked) for asked in models.asked} == {(None, None)}
    assert metas(tmp_path) == [{}] * len(WRONG)
    models.say(MODEL, "Done.")
    assert invoke(weir, "go", [("traceparent", PARENT), ("tracestate", "A=1")]).status_code == 200
    assert seen(models.asked[-1]) == (PARENT, None)


def test_a_trace_outlives_a_restart_while_a_human_is_asked(house, models):
    weir = house([{"tools": {"calculator": "ask"}}])
    models.say(MODEL, [call("calculator", {"expression": "6*7"}, id="c1")], "Done.")
    asked = invoke(weir, "go", HEADERS, session_id="s")
    assert asked.json()["metadata"]["interrupted"], asked.text
    weir.restart()
    with weir.http() as http:
        answer = http.post("/resume", json={"thread_id": "s", "human_input": "yes"})
    assert answer.json()["output"] == "Done.", answer.text
    assert [seen(asked) for asked in models.asked] == [(PARENT, STATE)] * 2


def test_a_runtime_gets_each_trace_on_a_stream_of_its_own(start_weir):
    other = PARENT.replace("0af7", "1af7")
    with far_runtime.Runtime() as runtime:
        weir = start_weir(config=f"threads: 1\nagents: [{{slug: far, kind: converse, address: '{runtime.address}', key_env: FAR_KEY}}]\n", env=KEY)
        for parent in (PARENT, PARENT, other, None, None):
            assert invoke(weir, "hello", [("traceparent", parent)] if parent else [], session_id="s").status_code == 200
        assert [asked.metadata.get("traceparent") for asked in runtime.asked] == [PARENT, PARENT, other, None, None]
        assert len({asked.stream for asked in runtime.asked}) == 4
