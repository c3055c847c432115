"""Agents that are shared libraries: turns, tools, people, and how they go wrong."""
import concurrent.futures
import json
import shutil
import signal
import subprocess

import crawbl
import grpc
import harness
import pytest
import vendors

EXAMPLE = harness.ROOT / "examples/plugin"
FLAGS = ["-shared", "-fPIC", "-pthread", "-Wall", "-Wextra", "-Werror", "-I", str(harness.ROOT / "include")]
if b"__tsan_init" in harness.BINARY.read_bytes():
    FLAGS.append("-fsanitize=thread")

# What the user says is what it does.
WILD = r"""
#include "weir/agent.h"
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
static unsigned begun;
static void *speaks(void *ctx) {
    const struct weir_host *host = ctx;
    for (int i = 0; i < 500 && host->say(host->ctx, "x") == WEIR_OK; i++)
        if (host->usage(host->ctx, "m", 1, 1) == WEIR_OVER || host->cancelled(host->ctx)) break;
    return NULL;
}
static void *crashes(void *ctx) {
    const struct weir_host *host = ctx;
    host->step(host->ctx, "crashing");
    raise(SIGKILL);
    return NULL;
}
static void in_threads(const struct weir_host *host, int count, void *(*work)(void *)) {
    pthread_t threads[8];
    for (int i = 0; i < count; i++) pthread_create(&threads[i], NULL, work, (void *)host);
    for (int i = 0; i < count; i++) pthread_join(threads[i], NULL);
}
static void turn(const struct weir_turn *turn, const struct weir_host *host) {
    struct weir_result results[2];
    const struct weir_call calls[] = {{"calculator", "{\"expression\":\"1+1\"}"},
                                      {"calculator", "{\"expression\":\"2+2\"}"}};
    if (!strcmp(turn->input, "hang")) pause();
    if (!strcmp(turn->input, "both")) {
        if (host->call(host->ctx, calls, 2, results) == WEIR_OVER) return;
        host->say(host->ctx, results[1].result);
    }
    if (!strcmp(turn->input, "changes")) host->call(host->ctx, calls, 1 + begun++, results);
    if (!strcmp(turn->input, "many")) host->call(host->ctx, calls, 1000, results);
    if (!strcmp(turn->input, "config")) host->say(host->ctx, turn->config);
    if (!strcmp(turn->input, "turn")) host->say(host->ctx, turn->turn);
    if (!strcmp(turn->input, "threads")) in_threads(host, 8, speaks);
    if (!strcmp(turn->input, "crash")) in_threads(host, 1, crashes);
    if (!strcmp(turn->input, "usages"))
        while (host->usage(host->ctx, "m", 1, 1) == WEIR_OK) continue;
    if (!strcmp(turn->input, "huge")) {
        char *text = calloc(1, (24 << 20) + 1);
        memset(text, 'x', 24 << 20);
        host->say(host->ctx, text);
        free(text);
    }
    if (!strcmp(turn->input, "flood"))
        while (!host->cancelled(host->ctx)) host->say(host->ctx, "0123456789012345678901234567");
    if (!strcmp(turn->input, "deaf"))
        while (host->say(host->ctx, "word ") != WEIR_OVER) usleep(1000);
}
const struct weir_agent *weir_agent(void) {
    static const struct weir_agent agent = {sizeof(agent), VERSION, turn};
    return &agent;
}
"""


def build(folder, source=None, version="WEIR_AGENT_ABI"):
    library = folder / "agent.so"
    if source is None:
        source = EXAMPLE / "agent.c"
    else:
        (folder / "agent.c").write_text(source)
        source = folder / "agent.c"
    flags = [*FLAGS, f"-DVERSION={version}"]
    subprocess.run(["cc", *flags, "-o", library, source], check=True)
    return library


def config(library, more=""):
    return f"threads: 1\nagents:\n  - {{slug: guide, kind: plugin, library: {library}{more}}}\n"


def output(weir, text, session="s"):
    answer = vendors.invoke(weir, text, session_id=session)
    assert answer.status_code == 200, answer.text
    return answer.json()["output"]


def resume(weir, session, said):
    with weir.http() as http:
        return http.post("/resume", json={"thread_id": session, "human_input": said}).json()


def test_the_example_runs_as_its_page_says(tmp_path):
    for name in ("agent.c", "weir.yaml"):
        shutil.copy(EXAMPLE / name, tmp_path)
    build(tmp_path)
    for asked, answered in (("add 40+2", "The calculator says"), ("hi", "I heard: hi")):
        answer = subprocess.run(
            [str(harness.BINARY), "run", "-c", str(tmp_path / "weir.yaml"), asked],
            env=harness.clean_environment({"HOME": tmp_path}),
            capture_output=True, text=True, timeout=60,
        )  # fmt: skip
        assert answer.returncode == 0 and answered in answer.stdout, answer.stdout + answer.stderr


def test_turns_tools_and_people_on_every_wire(start_weir, tmp_path):
    weir = start_weir(config=config(build(tmp_path), ", tools: {calculator: ask}"))
    told = vendors.stream(weir, "hello")
    assert told.text == "I heard: hello" and told.of("step")[0]["description"] == "listening"
    with crawbl.open_stream(weir) as call:
        turn = call.ask("hello")
        assert turn.text == "I heard: hello"
        [usage] = turn.of("usage")
        assert (usage.prompt_tokens, usage.completion_tokens, usage.model) == (2, 3, "no-model")
    asked = vendors.invoke(weir, "add 40+2", session_id="a").json()
    assert asked["metadata"]["interrupted"] is True
    assert vendors.invoke(weir, "ask", session_id="b").json()["output"] == "Shall I go on?"
    weir.kill()
    weir.restart()
    answer = resume(weir, "a", "yes")
    assert answer["output"].startswith("The calculator says ") and "42" in answer["output"]
    assert [made["name"] for made in answer["history"]] == ["calculator"]
    assert resume(weir, "b", "in May")["output"] == 'You said {"answer":"in May"}'
    error = vendors.invoke(weir, "fail").json()["error"]
    assert error["message"] == "the agent 'guide' failed: there is nothing here"
    with concurrent.futures.ThreadPoolExecutor(32) as pool:
        said = list(pool.map(lambda n: output(weir, f"n{n}", f"m-{n}"), range(200)))
    assert said == [f"I heard: n{n}" for n in range(200)]


def test_what_goes_wrong_ends_the_turn_with_its_reason(start_weir, tmp_path):
    library = build(tmp_path, WILD)
    more = ", silence: 2s, tools: [calculator], config: {city: Kyoto}"
    weir = start_weir(config=config(library, more))
    assert output(weir, "config") == '{"city":"Kyoto"}'
    assert json.loads(output(weir, "turn"))["input"] == "turn"
    assert json.loads(output(weir, "both"))["result"] == 4

    def reason(text):
        answer = vendors.invoke(weir, text, session_id=text)
        assert answer.status_code >= 400, answer.text
        return answer.json()["error"]["details"]["reason"]

    assert reason("hang") == "AGENT_STALLED"
    assert reason("changes") == "AGENT_PROTOCOL"
    assert reason("many") == "AGENT_PROTOCOL"
    assert reason("flood") == "REPLY_TOO_LONG"
    assert reason("huge") == "REPLY_TOO_LONG"
    assert output(weir, "threads") == "x" * 4000
    with weir.http() as http, http.stream("POST", "/stream", json={"input": "deaf"}) as stream:
        assert next(stream.iter_lines()) == 'data: {"delta":"word "}'
    weir.said("cancelled")
    assert output(weir, "config") == '{"city":"Kyoto"}'


def test_a_library_that_only_counts_holds_no_other_turn_up(start_weir, tmp_path):
    """It is faster than the loop that listens; the turn's own limit ends it."""
    settings = config(build(tmp_path, WILD), ", config: {city: Kyoto}")
    weir = start_weir(config=settings + "limits:\n  turn: 2s\n")
    later = crawbl.in_background(vendors.invoke, weir, "usages")
    for n in range(20):
        assert output(weir, "config", f"s-{n}") == '{"city":"Kyoto"}'
    assert later().json()["error"]["details"]["reason"] == "TURN_TIMEOUT"
    assert output(weir, "config") == '{"city":"Kyoto"}'


def test_a_crash_ends_weir_and_the_next_start_goes_on(start_weir, tmp_path):
    """It is part of the process, as its page says."""
    weir = start_weir(config=config(build(tmp_path, WILD), ", config: {city: Kyoto}"))
    with crawbl.open_stream(weir) as call:
        call.send("crash", session_id="s-1")
        assert call.status() == grpc.StatusCode.UNAVAILABLE
    assert weir.wait() == -signal.SIGKILL
    weir.start()
    turn = crawbl.one_turn(weir, "config", session_id="s-1")
    assert turn.text == '{"city":"Kyoto"}' and turn.error is None


def test_it_may_be_a_delegate(start_weir, tmp_path):
    """Of a Manager whose model hands over, by a script here; its tools ask a person as ever."""
    script = tmp_path / "script.yaml"
    script.write_text(
        "script: 1\nagents: [{slug: boss, delegates: [guide]}, {slug: guide}]\nscenes:\n"
        "  - {match: add, replies: [[{text: 'one moment. '}, {transfer: guide}]]}\n"
        "  - {reply: 'the boss'}\n"
    )
    library = build(tmp_path)
    agents = (
        "agents:\n  - {slug: boss, provider: scripted, delegates: [guide]}\n"
        f"  - {{slug: guide, kind: plugin, library: {library}, tools: {{calculator: ask}}}}\n"
    )
    weir = start_weir(config=agents, env={"WEIR_SCRIPT": str(script)})
    assert output(weir, "hello") == "the boss"
    turn = crawbl.one_turn(weir, "add 40+2", session_id="s-1")
    assert turn.error is None and "calculator" in turn.text
    turn = crawbl.one_turn(weir, "yes", session_id="s-1")
    assert turn.error is None and "42" in turn.text, turn.events
    assert [t.agent_id for t in turn.done.turns][-1] == "guide"


@pytest.mark.parametrize(
    "source, version, why",
    [
        ("int nothing;", "0", "has no function weir_agent()"),
        (WILD, "99", "is made for version 99 of weir/agent.h"),
        (WILD.replace("{sizeof(agent),", "{8,"), "1", "answers no whole struct weir_agent"),
    ],
)
def test_a_library_that_does_not_fit_is_refused_at_the_start(tmp_path, source, version, why):
    library = build(tmp_path, source, version)
    (tmp_path / "weir.yaml").write_text(config(library))
    answer = subprocess.run(
        [str(harness.BINARY), "config", "check", str(tmp_path / "weir.yaml")],
        env=harness.clean_environment({"HOME": tmp_path}), capture_output=True, text=True,
        timeout=60,
    )  # fmt: skip
    assert answer.returncode == 2 and why in answer.stderr, answer.stderr
    assert "weir.yaml:3:" in answer.stderr
