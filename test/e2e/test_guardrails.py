"""Guardrails on every wire: what is redacted, what is blocked, and what nobody ever sees."""
import json

import crawbl
import harness
import pytest
import vendor
from test_transfers import Model

SCRIPT = "test/e2e/scripts/guarded.yaml"
CONFIG = """
guardrails:
  - {name: no-bombs, type: keyword, pattern: "bomb, Sprengstoff", action: block, on: input}
  - {name: keys, pattern: 'sk-[a-z0-9]{4,}', replace: "[KEY]"}
  - {name: never, pattern: forbidden, action: block, on: output}
  - {name: names, pattern: '(?i)zelda', replace: "[NAME]", on: input}
  - {name: seen, pattern: hello, action: warn}
agents:
  - slug: manager
    provider: scripted
    delegates: [clerk]
    guardrails: [pii_detection, no-bombs, keys, never, seen]
  - {slug: clerk, provider: scripted, delegates: [manager], guardrails: [names]}
"""

guarded = pytest.mark.weir(script=SCRIPT, config=CONFIG)


def invoke(weir, text, session="s-1"):
    with weir.http() as http:
        return http.post("/invoke", json={"input": text, "session_id": session})


def stream(weir, text):
    """The payloads of the events, by name."""
    with weir.http() as http:
        body = http.post("/stream", json={"input": text}).text
    assert body.endswith("data: [DONE]\n\n")
    events = []
    for frame in body.split("\n\n"):
        lines = dict(line.split(": ", 1) for line in frame.splitlines() if ": " in line)
        if lines.get("data", "[DONE]") != "[DONE]":
            events.append((lines.get("event", "text"), json.loads(lines["data"])))
    return events


def stored(weir):
    """All that the store has, as bytes."""
    weir.stop()
    everything = b""
    for path in weir.data.rglob("*"):
        if path.is_file():
            everything += path.read_bytes()
    return everything


@guarded
def test_personal_data_never_reaches_the_model_or_the_store(weir):
    text = "hello,\nI am a@b.example, 4111 1111 1111 1111 is my card at 1700000000000"
    answer = invoke(weir, text)
    assert answer.status_code == 200
    assert answer.json()["output"] == (
        "heard: hello,\nI am [REDACTED-EMAIL], [REDACTED-CC] is my card at 1700000000000"
    )
    assert invoke(weir, "hello again").json()["output"] == "heard: hello again"
    kept = stored(weir)
    assert b"hello again" in kept and b"a@b.example" not in kept and b"4111" not in kept


@guarded
def test_a_blocked_request_is_refused_with_its_rule_on_every_wire(weir):
    answer = invoke(weir, "how is a BOMB made")
    assert answer.status_code == 403
    error = answer.json()["error"]
    assert error["code"] == "GUARDRAIL_BLOCKED" and "'no-bombs'" in error["message"]
    assert "BOMB" not in answer.text
    (name, data), = stream(weir, "Sprengstoff")
    assert name == "error" and "no-bombs" in data["error"]
    with crawbl.open_stream(weir) as call:
        turn = call.ask("a bomb")
        assert "no-bombs" in turn.error and turn.text == ""
    assert b"BOMB" not in stored(weir)


@guarded
def test_a_streamed_answer_is_redacted_across_its_pieces(weir):
    events = stream(weir, "say the key")
    text = "".join(data["delta"] for name, data in events if name == "text")
    assert text == "The key is [KEY], and that is all."
    assert [data["output"] for name, data in events if name == "result"] == [text]
    assert sum(name == "text" for name, _ in events) > 1
    with crawbl.open_stream(weir) as call:
        assert call.ask("say the key").text == text
    assert b"sk-abcd" not in stored(weir)


@guarded
def test_a_blocked_answer_ends_where_its_match_begins(weir):
    events = stream(weir, "say it")
    text = "".join(data["delta"] for name, data in events if name == "text")
    assert "It begins well and then the ".startswith(text) and text
    assert events[-1][0] == "error" and "'never'" in events[-1][1]["error"]
    assert "forbidden" not in json.dumps(events)
    answer = invoke(weir, "say it")
    assert answer.status_code == 403 and "forbidden" not in answer.text


@guarded
def test_an_agent_that_gets_the_turn_reads_it_through_its_own_rules(weir):
    assert invoke(weir, "ask the clerk about Zelda").json()["output"] == (
        "clerk read: ask the clerk about [NAME]"
    )


@pytest.mark.parametrize("hands_over", [False, True])
def test_an_agent_reads_what_others_heard_and_said_through_its_own_rules(start_weir, hands_over):
    with Model() as model:
        provider = {"name": "house", "kind": "openai", "base_url": model.url + "/v1", "key_env": "HOUSE_KEY"}
        rule = {"name": "names", "pattern": "(?i)zelda", "replace": "[NAME]", "on": "input"}
        agents = [{"slug": "plain", "model": "house/big", "delegates": ["strict"]},
                  {"slug": "strict", "model": "house/big", "guardrails": ["names"]}]
        config = json.dumps({"providers": [provider], "guardrails": [rule], "agents": agents})
        weir = start_weir(config=config, env={"HOUSE_KEY": vendor.KEY})
        model.replies = ["I noted Zelda.", "Read."]
        assert crawbl.one_turn(weir, "I am Zelda", session_id="s", agent_id="plain").error is None
        if hands_over:
            model.replies = [[("transfer_to_agent", {"agent_name": "strict"})], "Read."]
        asked = {} if hands_over else {"agent_id": "strict"}
        assert crawbl.one_turn(weir, "ask for zelda", session_id="s", **asked).text.endswith("Read.")
        assert "zelda" not in model.read().lower()
        for words in ("I am [NAME]", "[plain] said: I noted [NAME].", "ask for [NAME]"):
            assert words in model.read()
        if hands_over:
            assert "I am Zelda" in json.dumps(model.asked[1]), "plain reads all"


@guarded
def test_thinking_is_redacted_as_well(weir):
    invoke(weir, "think")
    assert b"sk-abcd" not in stored(weir)


@guarded
def test_messages_that_a_caller_brings_pass_the_rules(weir):
    messages = [
        {"role": "user", "content": "I am a@b.example"},
        {"role": "assistant", "content": "fine"},
        {"role": "user", "content": [{"type": "text", "text": "write to c@d.example"}]},
    ]
    assert invoke(weir, {"messages": messages}).json()["output"] == (
        "heard: write to [REDACTED-EMAIL]"
    )
    kept = stored(weir)
    assert b"a@b.example" not in kept and b"c@d.example" not in kept


def test_a_pattern_that_runs_away_blocks_in_bounded_time(start_weir):
    weir = start_weir(
        script=SCRIPT,
        config="guardrails:\n  - {name: slow, pattern: '(a|aa)+$'}\n"
        "agents:\n  - {slug: manager, provider: scripted, guardrails: [slow]}\n",
    )
    answer = invoke(weir, "a" * 100_000)
    assert answer.status_code == 403
    assert "could not be checked in time" in answer.json()["error"]["message"]
    assert invoke(weir, "short").json()["output"] == "heard: short"


AGENT_YAML = """
name: guarded-agent
version: 1.0.0
team: t
owner: a@b.example
framework: custom
model: {primary: scripted}
deploy: {cloud: local}
guardrails:
"""


def test_the_guardrails_of_an_agent_yaml_are_never_dropped(start_weir):
    rules = (
        "  - pii_detection\n"
        "  - {name: content_filter, type: keyword, pattern: 'bomb', action: block}\n"
    )
    weir = start_weir(config=AGENT_YAML + rules, env={"WEIR_SCRIPT": str(harness.ROOT / SCRIPT)})
    assert invoke(weir, "I am a@b.example").json()["output"] == "heard: I am [REDACTED-EMAIL]"
    assert invoke(weir, "a bomb").status_code == 403
    assert "meaning here: deploy\"" in weir.log()


PROMISED = """
script: 1
agents: [{slug: manager}]
scenes:
  - match: long
    reply: [{text: begun}, {wait: 30s}]
  - reply: "{input}"
"""


def test_a_run_that_never_began_shows_its_words_as_the_rules_let_them(start_weir, tmp_path):
    """POST /weir/v1/runs answers with an id before the rules have read the words: of a run that is
    cancelled in its queue, or blocked, the journal has what may be recorded."""
    (tmp_path / "long.yaml").write_text(PROMISED)
    config = CONFIG + "session: {busy: queue}\n"
    weir = start_weir(script=tmp_path / "long.yaml", config=config.replace("provider: scripted, ", "").replace("    provider: scripted\n", ""))

    def begin(http, text, session="s-1"):
        return http.post("/weir/v1/runs", json={"input": text, "session_id": session}).json()["id"]

    def events(http, run):
        lines = http.get(f"/weir/v1/runs/{run}/events").text.splitlines()
        return [json.loads(line[6:]) for line in lines if line.startswith("data: ")]

    with weir.http(headers=harness.bearer()) as http:
        first = begin(http, "long")
        queued = [begin(http, "I am a@b.example"), begin(http, "a bomb")]
        for run in [*queued, first]:
            assert http.post(f"/weir/v1/runs/{run}/cancel").is_success
        told = [events(http, run) for run in [*queued, begin(http, "the bomb", "s-2")]]
        assert [[e["type"] for e in run] for run in told] == [["started", "cancelled"]] * 2 + [["started", "failed"]]
        assert told[2][-1]["reason"] == "GUARDRAIL_BLOCKED"
        texts = [run[0]["text"] for run in told]
        assert "a@b.example" not in texts[0] and texts[0].startswith("I am ")
        assert texts[1] == texts[2] == "[Words stood here that a guardrail blocked.]"
    everything = stored(weir)
    assert b"a@b.example" not in everything and b" bomb" not in everything
