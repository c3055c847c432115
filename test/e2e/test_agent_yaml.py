"""agent.yaml: what it names is there, or the file is refused with the line that would help.

The files are AgentBreeder's own, as its package on PyPI has them; scripts/e2e fetches it."""
import concurrent.futures
import http.server
import json
import os
import pathlib
import re
import subprocess
import sys
import threading

import crawbl
import harness
import pytest
import vendors
import yaml
from vendors import call

UPSTREAM = pathlib.Path(os.environ.get("WEIR_AGENTBREEDER", pathlib.Path(sys.prefix).parent / "agentbreeder"))
FILES = sorted(UPSTREAM.rglob("agent.yaml"))
LISTS = ("tools", "knowledge_bases", "mcp_servers", "subagents", "guardrails")
MODEL = "gpt-5-mini"
SERVER = pathlib.Path(__file__).parent / "mcp_server.py"


@pytest.fixture
def kind():
    return "openai"


def check(file, env=None, *flags):
    return subprocess.run(
        [harness.BINARY, "config", "check", str(file), *flags], capture_output=True, text=True,
        env=harness.clean_environment({"HOME": "/nonexistent", **(env or {})}),
    )


def all_checks(files, envs=None, *flags):
    envs = envs or [{}] * len(files)
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        return list(pool.map(lambda pair: check(pair[0], pair[1], *flags), zip(files, envs)))


def items(kind):
    """(file, item) of all items of one list."""
    for file in FILES:
        for item in yaml.safe_load(file.read_text()).get(kind) or []:
            yield file, item


def named(item):
    return item if isinstance(item, str) else item.get("ref") or item["name"]


def variable(tool):
    last = tool.get("name") or tool["ref"].split("/")[-1]
    return "TOOL_ENDPOINT_" + re.sub(r"[^a-zA-Z0-9]", "_", last).upper()


def test_these_are_upstreams_files():
    assert len(FILES) == 44
    counts = {kind: len(list(items(kind))) for kind in LISTS}
    assert counts == {"tools": 119, "knowledge_bases": 25, "mcp_servers": 3, "subagents": 5, "guardrails": 46}


HELP = {
    "tools": r"TOOL_ENDPOINT_|tools: \{web_search: ",
    "knowledge_bases": "TOOL_ENDPOINT_",
    "mcp_servers": r"mcp: \[\{name: ",
    "subagents": "slug: ",
    "guardrails": "- {name: ",
}
# What needs nothing: built-in tools and rules.
THERE = {"calculator", "tools/get-current-time", "fetch_url", "pii_detection", "hitl_approve"}


def test_each_name_that_is_nowhere_is_refused_at_its_line_with_the_fix():
    told = dict(zip(FILES, all_checks(FILES)))
    refused = {kind: 0 for kind in LISTS}
    for kind in LISTS:
        for file, item in items(kind):
            name = named(item)
            line = re.search(rf"^{re.escape(str(file))}:(\d+):\d+: [\w ]+ '{re.escape(name)}' .*$",
                             told[file].stderr, re.M)
            assert (line is None) == (name in THERE), (file, name)
            if not line:
                continue
            refused[kind] += 1
            assert re.search(HELP[kind], line[0]), line[0]
            assert name in file.read_text().splitlines()[int(line[1]) - 1]
    assert refused == {"tools": 115, "knowledge_bases": 25, "mcp_servers": 3, "subagents": 5, "guardrails": 26}
    assert sum(r.returncode == 0 for r in told.values()) == 9


def test_all_of_them_load_with_what_the_lines_say(tmp_path):
    """The fixes of the test above, and every tool of every file is there."""
    settings, envs, expected = [], [], []
    for number, file in enumerate(FILES):
        agent = yaml.safe_load(file.read_text())
        tools = agent.get("tools") or []
        bases = agent.get("knowledge_bases") or []
        servers = [s["ref"].split("/")[-1] for s in agent.get("mcp_servers") or []]
        rules = [named(g) for g in agent.get("guardrails") or [] if named(g) not in THERE]
        others = [s["ref"].split("/")[-1] for s in agent.get("subagents") or []]
        main = {
            "agents": [{"agent_yaml": str(file)}] + [{"slug": s, "model": "ollama/x"} for s in others],
            "guardrails": [{"name": n, "type": "keyword", "pattern": "xyzzy"} for n in rules],
            "mcp": [{"name": s, "command": ["true"]} for s in servers],
        }
        prompt = (agent.get("prompts") or {}).get("system", "")
        env = {variable(t): "http://127.0.0.1:9/x" for t in tools + bases}
        if prompt.startswith("prompts/"):
            env["AGENT_SYSTEM_PROMPT"] = "You help."
        settings.append(tmp_path / f"{number}.yaml")
        settings[-1].write_text(yaml.safe_dump(main))
        envs.append(env)
        of_servers = sum(re.sub("-mcp$", "", t.get("ref", "").split("/")[-1]) in servers for t in tools)
        expected.append(len(tools) + len(bases) - of_servers)
    for file, told, count in zip(FILES, all_checks(settings, envs), expected):
        assert told.returncode == 0 and "nowhere" not in told.stderr, (file, told.stderr)
        assert re.search(rf": good; \d agents?, {count} tools?$", told.stdout.strip()), (file, told.stdout)
    assert sum(expected) == 119 + 25 - 3


def test_all_of_them_load_where_missing_only_warns():
    for file, told in zip(FILES, all_checks(FILES, None, "--agent-yaml-missing", "warn")):
        assert told.returncode == 0, (file, told.stderr)


def test_the_example_beside_other_settings_is_good():
    told = check(harness.ROOT / "examples/agentbreeder/weir.yaml")
    assert told.returncode == 0 and ": good; 2 agents, 2 tools" in told.stdout, told.stderr
    alone = check(harness.ROOT / "examples/agentbreeder/support/agent.yaml")
    assert alone.returncode != 0 and "tool 'tools/word-count' is nowhere here" in alone.stderr


# --- what is there works ---------------------------------------------------------------------


class Tool(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"]))
        self.server.heard.append((self.path, self.headers["content-type"], json.loads(body)))
        answer = json.dumps({"output": {"rows": 3}, "took": 1} if "sql" in self.path else ["a", "b"]).encode()
        self.send_response(200)
        self.send_header("content-length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *_):
        pass


@pytest.fixture
def endpoint():
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Tool) as server:
        server.heard = []
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        yield server
        server.shutdown()


AGENT = """name: {name}
version: 1.0.0
description: {name} helps.
team: t
owner: a@b.example
framework: custom
model: {{primary: house/gpt-5-mini}}
deploy: {{cloud: local}}
"""


def test_tools_servers_and_subagents_of_a_file_are_used(start_weir, models, kind, endpoint, tmp_path):
    (tmp_path / "faults").mkdir()
    (tmp_path / "agents/clerk").mkdir(parents=True)
    (tmp_path / "agents/clerk/agent.yaml").write_text(AGENT.format(name="clerk"))
    (tmp_path / "agent.yaml").write_text(AGENT.format(name="lead") + """tools:
  - {name: execute_sql, description: Runs SQL., schema: {type: object, properties: {sql: {type: string}}, required: [sql]}}
  - {ref: tools/faults-mcp, approval: {require: true}}
knowledge_bases: [{ref: kb/faq}]
subagents: [{ref: agents/clerk}]
""")
    url = f"http://127.0.0.1:{endpoint.server_address[1]}"
    server = {"name": "faults", "command": [sys.executable, str(SERVER), str(tmp_path / "faults")]}
    config = vendors.settings(models.provider(kind), [{"agent_yaml": str(tmp_path / "agent.yaml")}], mcp=[server])
    weir = start_weir(config=config, env={
        "HOUSE_KEY": vendors.KEY, "TOOL_ENDPOINT_EXECUTE_SQL": f"{url}/sql", "TOOL_ENDPOINT_KB_FAQ": f"{url}/faq"})
    models.say(MODEL, [call("execute_sql", {"sql": "select 1"}, id="c1"), call("faq", {"query": "q"}, id="c2")],
               call("transfer_to_agent", {"agent_name": "clerk"}, id="c3"), "I am the clerk.")
    told = crawbl.one_turn(weir, "go")
    assert told.error is None and told.text == "I am the clerk."
    offered = {t["function"]["name"]: t["function"] for t in models.asked[0].body["tools"]}
    assert offered["execute_sql"]["description"] == "Runs SQL."
    assert offered["execute_sql"]["parameters"]["required"] == ["sql"]
    assert {"say", "crash", "faq", "transfer_to_agent"} <= set(offered)
    assert sorted(endpoint.heard) == [("/faq", "application/json", {"query": "q"}),
                                      ("/sql", "application/json", {"sql": "select 1"})]
    read = [m["content"] for m in models.asked[1].body["messages"] if m["role"] == "tool"]
    assert [json.loads(r) for r in read] == [{"output": {"rows": 3}}, {"output": ["a", "b"]}]

    models.say(MODEL, call("say", {"text": "hi"}, id="c4"), "Done.")
    told = vendors.invoke(weir, "say it", session_id="s-2").json()
    assert told["metadata"]["interrupted"]  # the server's tools ask, as the file says
