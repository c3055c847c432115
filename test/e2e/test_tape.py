"""Recording and replaying from the outside: a model and a tool are recorded, stopped, and heard
again over both wires."""
import json
import pathlib

import crawbl
import pytest
import vendor as vendors

INPUTS = ["plan a day", "find it with a search", "and now?"]


@pytest.fixture
def vendor():
    with vendors.Vendor() as vendor:
        yield vendor


def converse(weir, inputs):
    """(text, usage of each model call, names of tools) of each turn."""
    with crawbl.open_stream(weir) as stream:
        turns = [stream.ask(text) for text in inputs]
    return [
        (
            turn.text,
            [(u.prompt_tokens, u.completion_tokens, u.total_tokens) for u in turn.of("usage")],
            [call.tool for call in turn.of("tool_call")],
            turn.error,
        )
        for turn in turns
    ]


def stream(weir, text):
    """The frames of one /stream, without ids and times."""
    with weir.http() as http:
        answer = http.post("/stream", json={"input": text, "session_id": "s"})
    frames = [frame for frame in answer.text.split("\n\n") if not frame.startswith(":")]
    return "".join(
        json.loads(frame[6:])["delta"] for frame in frames if frame.startswith('data: {"delta"')
    ), [frame for frame in frames if frame.startswith("event: error")]


def recorded(start_weir, vendor, folder):
    weir = start_weir(
        config=vendor.config(),
        env={"HOUSE_KEY": vendors.KEY},
        args=["--record", folder],
    )
    heard = converse(weir, INPUTS), [stream(weir, text) for text in INPUTS]
    weir.stop()
    return heard


def test_what_was_recorded_is_heard_again_without_network_or_keys(start_weir, vendor, tmp_path):
    folder = tmp_path / "calls"
    heard = recorded(start_weir, vendor, folder)
    assert heard[0][1][2] == ["web_search_tool"] and "with a search" in heard[0][1][0]
    assert len(vendor.searches) == 2
    config = vendor.config()
    vendor.stop()

    weir = start_weir(config=config, args=["--replay", folder])
    assert (converse(weir, INPUTS), [stream(weir, text) for text in INPUTS]) == heard
    assert "libcurl" not in pathlib.Path(f"/proc/{weir.pid}/maps").read_text()
    assert len(vendor.asked) == 8 and len(vendor.searches) == 2


def test_a_changed_prompt_is_a_loud_miss(start_weir, vendor, tmp_path):
    folder = tmp_path / "calls"
    recorded(start_weir, vendor, folder)
    config = vendor.config()
    vendor.stop()

    weir = start_weir(config=config, args=["--replay", folder])
    (text, _, _, error) = converse(weir, ["plan a week"])[0]
    assert text == "" and "messages[0].text" in error, error
    assert "plan a day" in error and "plan a week" in error
    weir.said("no recording answers this")
    _, errors = stream(weir, "plan a month")
    assert len(errors) == 1 and "plan a month" in errors[0], errors

    weir = start_weir(config=config.replace("You help.", "You hinder."), args=["--replay", folder])
    (_, _, _, error) = converse(weir, INPUTS[:1])[0]
    assert "system: recorded " in error and "hinder" in error, error


def test_no_file_of_a_recording_holds_a_secret(start_weir, vendor, tmp_path):
    """Not even when a caller quotes it."""
    folder = tmp_path / "calls"
    weir = start_weir(
        config=vendor.config(f"You help. Never tell {vendors.KEY}."),
        env={"HOUSE_KEY": vendors.KEY},
        args=["--record", folder],
    )
    said = f"with a search for {vendors.KEY}, {vendors.HEADER}, Bearer abcdef and sk-canary-x1"
    assert converse(weir, [said])[0][3] is None
    weir.stop()
    files = list(folder.iterdir())
    assert len(files) == 3, files
    for file in files:
        assert file.suffix == ".json" and file.stat().st_mode & 0o777 == 0o600
        text = file.read_text()
        for secret in ("4711-s", "0815-s", "Bearer a", "canary"):
            assert secret not in text, (file, secret)
        assert json.loads(text)["weir_tape"] == 1 and "***" in text


OTHERS = """
  - {slug: far, kind: http, url: 'http://127.0.0.1:9', key_env: FAR_KEY, headers: {x-far: far-header-2-sings}}
  - {slug: own, kind: process, command: ['true'], environment: {OWN_API_KEY: own-variable-3-sings, LEVEL: so-many-words}}
mcp:
  - {name: m1, url: 'http://127.0.0.1:9', key_env: MCP_KEY, headers: {x-mcp: mcp-header-5-sings}}
  - {name: m2, command: ['true'], env: {M2_TOKEN: mcp-variable-6-sings}}
"""


def test_the_keys_of_agents_and_servers_elsewhere_are_in_no_recording(start_weir, vendor, tmp_path):
    keys = {"HOUSE_KEY": vendors.KEY, "FAR_KEY": "far-key-1-sings", "MCP_KEY": "mcp-key-4-sings"}
    folder = tmp_path / "calls"
    weir = start_weir(config=vendor.config() + OTHERS.lstrip("\n"), env=keys, args=["--record", folder])
    secrets = [*keys.values(), "far-header-2-sings", "own-variable-3-sings", "mcp-header-5-sings"]
    secrets.append("mcp-variable-6-sings")
    assert converse(weir, ["so-many-words, " + ", ".join(secrets)])[0][3] is None
    weir.stop()
    [file] = folder.iterdir()
    text = file.read_text()
    assert "so-many-words" in text and "sings" not in text, text


def test_recording_and_replaying_exclude_each_other(tmp_path, start_weir):
    with pytest.raises(AssertionError, match="'record' and 'replay' are both set"):
        start_weir(args=["--record", tmp_path / "a", "--replay", tmp_path / "b"])
    assert not (tmp_path / "a").exists()
