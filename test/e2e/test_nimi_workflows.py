"""nimi.runtime.v1 workflows (mode B) with Google's client: a graph, asked once and kept."""
import threading

import grpc
import nimi_client as nimi
import pytest
from google.protobuf import json_format
from nimi.runtime.v1 import workflow_pb2 as wf
from nimi.runtime.v1 import workflow_pb2_grpc
from nimi_client import common, pb

QUICK = pytest.mark.weir(script="test/e2e/scripts/quick.yaml")
SLOW = pytest.mark.weir(script="test/e2e/scripts/slow.yaml")

ACCEPTED, QUEUED, RUNNING, COMPLETED, FAILED, CANCELED, SKIPPED = range(1, 8)
STARTED, NODE_STARTED, NODE_PROGRESS, NODE_COMPLETED, NODE_SKIPPED = range(1, 6)
TERMINAL = {wf.WORKFLOW_EVENT_COMPLETED, wf.WORKFLOW_EVENT_FAILED, wf.WORKFLOW_EVENT_CANCELED}

CONFIGS = {
    "template": (wf.WORKFLOW_NODE_TRANSFORM_TEMPLATE, "template_config", wf.TemplateNodeConfig),
    "extract": (wf.WORKFLOW_NODE_TRANSFORM_EXTRACT, "extract_config", wf.ExtractNodeConfig),
    "branch": (wf.WORKFLOW_NODE_CONTROL_BRANCH, "branch_config", wf.BranchNodeConfig),
    "merge": (wf.WORKFLOW_NODE_CONTROL_MERGE, "merge_config", wf.MergeNodeConfig),
    "noop": (wf.WORKFLOW_NODE_CONTROL_NOOP, "noop_config", wf.NoopNodeConfig),
    "generate": (wf.WORKFLOW_NODE_AI_GENERATE, "ai_generate_config", wf.AiGenerateNodeConfig),
    "embed": (wf.WORKFLOW_NODE_AI_EMBED, "ai_embed_config", wf.AiEmbedNodeConfig),
    "script": (wf.WORKFLOW_NODE_TRANSFORM_SCRIPT, "script_config", wf.ScriptNodeConfig),
}


def node(name, kind, depends_on=(), more=None, **config):
    number, member, message = CONFIGS[kind]
    if kind in ("generate", "embed"):
        config = {"model_id": "local/m", **config}
    return wf.WorkflowNode(
        node_id=name,
        node_type=number,
        depends_on=depends_on,
        **{member: message(**config)},
        **(more or {}),
    )


def edge(text):
    """"a.text > b.prompt"""
    source, target = (end.strip().split(".") for end in text.split(">"))
    return wf.WorkflowEdge(
        from_node_id=source[0], from_output=source[1], to_node_id=target[0], to_input=target[1]
    )


class Workflows(nimi.Client):
    def __init__(self, weir):
        super().__init__(weir)
        self.workflows = workflow_pb2_grpc.RuntimeWorkflowServiceStub(self.channel)

    def try_submit(self, nodes, edges=(), metadata=None, **fields):
        asked = wf.SubmitWorkflowRequest(
            **{"app_id": nimi.APP, "subject_user_id": "anna", **fields},
            definition=wf.WorkflowDefinition(
                workflow_type="test", nodes=nodes, edges=[edge(e) for e in edges]
            ),
        )
        return self.ask(self.workflows.SubmitWorkflow, asked, metadata)[0]

    def submit(self, nodes, edges=(), metadata=None, **fields):
        reply = self.try_submit(nodes, edges, metadata, **fields)
        assert reply.accepted and len(reply.task_id) == 26, reply
        assert reply.reason_code == common.ACTION_EXECUTED
        return reply.task_id

    def get(self, task, metadata=None):
        request = wf.GetWorkflowRequest(task_id=task)
        return self.ask(self.workflows.GetWorkflow, request, metadata)[0]

    def cancel(self, task, metadata=None):
        request = wf.CancelWorkflowRequest(task_id=task)
        return self.ask(self.workflows.CancelWorkflow, request, metadata)[0]

    def open_events(self, task, metadata=None):
        return self.workflows.SubscribeWorkflowEvents(
            wf.SubscribeWorkflowEventsRequest(task_id=task),
            metadata=metadata or self.metadata(),
            timeout=nimi.PATIENCE,
        )

    def events(self, task, metadata=None):
        return nimi.Answer(self.open_events(task, metadata))


def payload(message):
    return json_format.MessageToDict(message)


def check_story(answer, last):
    """What every subscriber may rely on."""
    assert answer.code == grpc.StatusCode.OK, answer.error
    types = [e.event_type for e in answer.events]
    assert types[0] == STARTED and types[-1] == last, types
    assert not TERMINAL & set(types[:-1])
    assert [e.sequence for e in answer.events] == list(range(1, len(types) + 1))
    assert len({(e.task_id, e.trace_id) for e in answer.events}) == 1
    moments = [e.timestamp.ToNanoseconds() for e in answer.events]
    assert moments == sorted(moments)
    return [(e.event_type, e.node_id) for e in answer.events[1:-1]]


def until(client, task, kind, name=""):
    call = client.open_events(task)
    seen = []
    for event in call:
        seen.append((event.event_type, event.node_id, event.sequence))
        if event.event_type == kind and event.node_id == name:
            call.cancel()
            return seen
    raise AssertionError(f"it ended before that: {seen}")


# Every note and event of the node repeats it; a long one once ended the daemon.
@QUICK
def test_the_longest_callback_ref_is_passed_on_whole(weir):
    client = Workflows(weir)
    longest = "\x01" * 1024
    task = client.submit([node("a", "generate", prompt="plain",
                               more={"execution_mode": 2, "callback_ref": longest})])
    answer = client.events(task)
    check_story(answer, wf.WORKFLOW_EVENT_COMPLETED)
    said = [e.payload["callback_ref"] for e in answer.events if "callback_ref" in e.payload]
    assert said and set(said) == {longest}


# Vectors are JSON of a few bytes a number, and eleven bytes a number in a Struct.
@QUICK
def test_a_result_longer_than_a_message_says_what_it_leaves_out(weir):
    client = Workflows(weir)
    vectors = node("v", "embed", model_id="local/hash-256", inputs=["x"] * 1600)
    task = client.submit([vectors, node("t", "template", depends_on=["v"], template="short")])
    answer = client.events(task)
    check_story(answer, wf.WORKFLOW_EVENT_COMPLETED)
    (made,) = [e for e in answer.events if e.event_type == NODE_COMPLETED and e.node_id == "v"]
    assert made.payload["vectors"]["bytes_omitted"] > 4 << 20
    assert payload(client.get(task).output)["output"]["text"] == "short"
    # As the workflow's own result it is left out, and the rest of the result is there.
    task = client.submit([vectors])
    answer = client.events(task)
    check_story(answer, wf.WORKFLOW_EVENT_COMPLETED)
    for result in (client.get(task).output, answer.events[-1].payload):
        assert result["output"]["bytes_omitted"] > 4 << 20
        assert list(result["completed_nodes"]) == ["v"] and result["last_node"] == "v"


# GetWorkflow, each subscriber and each restart read all of it.
@QUICK
def test_all_outputs_of_a_workflow_together_have_a_limit(weir):
    client = Workflows(weir)
    nodes = [node("n0", "template", template="x" * 2_900_000)]
    nodes += [node(f"n{i}", "noop") for i in range(1, 14)]
    edges = [f"n{i - 1}.output > n{i}.in" for i in range(1, 14)]
    task = client.submit(nodes, edges)
    answer = client.events(task)
    check_story(answer, wf.WORKFLOW_EVENT_FAILED)
    assert "32 MiB" in answer.events[-1].payload["reason"]
    assert answer.events[-1].reason_code == common.AI_OUTPUT_INVALID
    reply = client.get(task)
    assert [n.status for n in reply.nodes].count(COMPLETED) == 11, reply.nodes


# Acceptance 8: upstream's contract test.
@QUICK
def test_the_graph_of_upstreams_contract_test(weir):
    client = Workflows(weir)
    task = client.submit(
        [node("a", "template", template="contract"),
         node("b", "template", template="done: {{prompt.value}}")],
        ["a.text > b.prompt"],
    )
    story = check_story(client.events(task), wf.WORKFLOW_EVENT_COMPLETED)
    assert story == [(NODE_STARTED, "a"), (NODE_COMPLETED, "a"), (NODE_STARTED, "b"),
                     (NODE_COMPLETED, "b")]
    reply = client.get(task)
    assert reply.status == COMPLETED and reply.task_id == task
    assert [(n.node_id, n.status, n.attempt) for n in reply.nodes] == [
        ("a", COMPLETED, 1), ("b", COMPLETED, 1)]
    output = payload(reply.output)
    assert output["output"]["text"] == "done: contract" and output["last_node"] == "b"
    assert output["completed_nodes"] == ["a", "b"] and output["failed_nodes"] == []
    assert client.events(task).events[-1].payload == reply.output


@QUICK
def test_models_are_asked_and_what_they_say_flows_on(weir):
    client = Workflows(weir)
    task = client.submit(
        [node("ask", "template", template="a weir"),
         node("one", "generate", prompt="What is {{topic}}?"),
         node("two", "generate"),
         node("both", "merge"),
         node("last", "extract", source_input="all", json_path="$.x.value")],
        ["ask.text > one.topic", "ask.text > two.prompt", "one.text > both.x",
         "two.text > both.y", "both.output > last.all"],
    )
    answer = client.events(task)
    check_story(answer, wf.WORKFLOW_EVENT_COMPLETED)
    reply = client.get(task)
    assert payload(reply.output)["output"]["value"] == (
        "You said: What is a weir?. Grüße, and that was all.")
    made = {e.node_id: payload(e.payload) for e in answer.events
            if e.event_type == NODE_COMPLETED}
    assert made["two"]["text"] == "You said: a weir. Grüße, and that was all."
    assert made["two"]["usage"] == {"input_tokens": 7, "output_tokens": 11}
    jobs = {n.node_id: n.provider_job_id for n in reply.nodes}
    job = client.ask(client.ai.GetScenarioJob,
                     pb.GetScenarioJobRequest(job_id=jobs["one"]))[0].job
    assert job.status == 4 and not jobs["ask"]


@QUICK
def test_a_branch_skips_what_depends_on_the_other_target_alone(weir):
    client = Workflows(weir)
    task = client.submit(
        [node("in", "template", template="short"),
         node("if", "branch", condition="$.text == 'short'", true_target="yes",
              false_target="no"),
         node("yes", "template", ["if"], template="was short"),
         node("no", "template", ["if"], template="was long"),
         node("later", "noop", ["no"]),
         node("join", "merge", strategy=wf.MERGE_STRATEGY_ANY)],
        ["in.output > if.data", "yes.text > join.a", "no.text > join.b"],
    )
    story = check_story(client.events(task), wf.WORKFLOW_EVENT_COMPLETED)
    assert (NODE_SKIPPED, "no") in story and (NODE_SKIPPED, "later") in story
    reply = client.get(task)
    assert [n.status for n in reply.nodes] == [COMPLETED, COMPLETED, COMPLETED, SKIPPED, SKIPPED,
                                               COMPLETED]
    assert payload(reply.output)["output"] == {"a": {"value": "was short"}}
    assert reply.nodes[3].reason == "branch_not_selected"


# Each refusal is a reply, and its sentence names what is wrong.
@QUICK
@pytest.mark.parametrize(
    "reason, words, nodes, edges",
    [
        ("PROTOCOL_ENVELOPE_INVALID", "workflow_type and a node", [], []),
        ("WF_DAG_INVALID", "two nodes", [node("a", "noop"), node("a", "noop")], []),
        ("WF_DAG_INVALID", "unknown node", [node("a", "noop", ["b"])], []),
        ("WF_DAG_INVALID", "itself", [node("a", "noop", ["a"])], []),
        ("WF_DAG_INVALID", "cycle", [node("a", "noop", ["b"]), node("b", "noop", ["a"])], []),
        ("WF_DAG_INVALID", "two edges",
         [node("a", "template", template="x"), node("b", "noop")],
         ["a.text > b.x", "a.output > b.x"]),
        ("WF_DAG_INVALID", "does not have",
         [node("a", "template", template="x"), node("b", "noop")], ["a.song > b.x"]),
        ("WF_DAG_INVALID", "at most 256", [node(f"n{i}", "merge") for i in range(257)], []),
        ("WF_DAG_INVALID", "source_input",
         [node("a", "extract", source_input="in", json_path="$")], []),
        ("WF_DAG_INVALID", "target",
         [node("a", "branch", condition="$.x", true_target="b"), node("b", "noop")], []),
        ("WF_NODE_CONFIG_MISMATCH", "not run here", [node("a", "script", code="1")], []),
        ("WF_NODE_CONFIG_MISMATCH", "json_path",
         [node("a", "extract", source_input="in", json_path="a b")], []),
        ("WF_NODE_CONFIG_MISMATCH", "nothing to ask", [node("a", "generate")], []),
        ("WF_NODE_CONFIG_MISMATCH", "model_id", [node("a", "generate", model_id="")], []),
        ("WF_NODE_CONFIG_MISMATCH", "retry_backoff",
         [node("a", "generate", prompt="x", more={"retry_max_attempts": 1,
                                                  "retry_backoff": "soon"})], []),
        ("WF_NODE_CONFIG_MISMATCH", "EXTERNAL_ASYNC",
         [node("a", "template", template="x", more={"execution_mode": 2})], []),
        ("WF_NODE_CONFIG_MISMATCH", "callback_ref",
         [node("a", "generate", prompt="x",
               more={"execution_mode": 2, "callback_ref": "c" * 1025})], []),
        ("WF_NODE_CONFIG_MISMATCH", "another's",
         [wf.WorkflowNode(node_id="a", node_type=1, noop_config=wf.NoopNodeConfig())], []),
    ],
)
def test_a_definition_that_cannot_run_is_not_accepted(shared, reason, words, nodes, edges):
    asked = wf.SubmitWorkflowRequest(
        app_id=nimi.APP, subject_user_id="anna",
        definition=wf.WorkflowDefinition(workflow_type="t", nodes=nodes,
                                         edges=[edge(e) for e in edges]))
    reply, call = shared.workflows.SubmitWorkflow.with_call(asked, metadata=shared.metadata())
    assert not reply.accepted and not reply.task_id
    assert common.ReasonCode.Name(reply.reason_code) == reason
    assert words in dict(call.trailing_metadata())["x-nimi-reason-detail"]


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    import harness

    weir = harness.Daemon(tmp_path_factory.mktemp("weir"), script="test/e2e/scripts/quick.yaml")
    weir.start()
    yield Workflows(weir)
    weir.stop()


def test_only_its_owner_sees_a_workflow(shared):
    task = shared.submit([node("a", "template", template="x")])
    other = shared.metadata(app_id="other.app")
    for call in (shared.get, shared.cancel):
        with pytest.raises(nimi.Refused) as refused:
            call(task, other)
        assert refused.value.reason == "APP_SCOPE_FORBIDDEN"
    assert shared.events(task, other).error.reason == "APP_SCOPE_FORBIDDEN"
    assert shared.get("0" * 26).reason_code == common.WF_TASK_NOT_FOUND
    ack = shared.cancel("nothing")
    assert not ack.ok and ack.reason_code == common.WF_TASK_NOT_FOUND
    missing = shared.events("0" * 26)
    assert missing.code == grpc.StatusCode.NOT_FOUND
    assert missing.error.reason == "WF_TASK_NOT_FOUND"
    assert shared.events("").code == grpc.StatusCode.INVALID_ARGUMENT
    with pytest.raises(nimi.Refused) as refused:
        shared.submit([node("a", "noop")], app_id="other.app")
    assert refused.value.reason == "PROTOCOL_DOMAIN_FIELD_CONFLICT"
    shared.events(task)
    assert shared.cancel(task).action_hint == "workflow already terminal"


def test_a_text_that_doubles_without_end_fails_its_node(shared):
    nodes = [node("n0", "template", template="0123456789" * 100)]
    edges = []
    for i in range(1, 20):
        nodes.append(node(f"n{i}", "template", template="{{x.value}}{{x.value}}"))
        edges.append(f"n{i - 1}.text > n{i}.x")
    answer = shared.events(shared.submit(nodes, edges))
    check_story(answer, wf.WORKFLOW_EVENT_FAILED)
    assert answer.events[-1].reason_code == common.AI_OUTPUT_INVALID


def test_a_model_that_is_not_there_fails_the_workflow(shared):
    task = shared.submit([
        node("a", "generate", prompt="x", model_id="media/none"),
        node("b", "noop", ["a"]),
    ])
    answer = shared.events(task)
    check_story(answer, wf.WORKFLOW_EVENT_FAILED)
    assert answer.events[-1].reason_code == common.AI_MODEL_PROVIDER_MISMATCH
    reply = shared.get(task)
    assert reply.status == FAILED and reply.reason_code == common.AI_MODEL_PROVIDER_MISMATCH
    assert [n.status for n in reply.nodes] == [FAILED, CANCELED]
    assert "media/" in reply.nodes[0].last_error
    assert answer.events[-2].payload["error"] == reply.nodes[0].last_error


# A failure that a merge makes good; retries with their attempts; an outer clock.
@pytest.mark.weir(script="test/e2e/scripts/nimi.yaml")
def test_a_node_is_tried_again_and_a_merge_makes_its_failure_good(weir):
    client = Workflows(weir)
    task = client.submit(
        [node("bad", "generate", prompt="fail",
              more={"retry_max_attempts": 2, "retry_backoff": "exponential:20ms"}),
         node("good", "template", template="fine"),
         node("some", "merge", strategy=wf.MERGE_STRATEGY_ANY)],
        ["bad.text > some.a", "good.text > some.b"],
    )
    answer = client.events(task)
    story = check_story(answer, wf.WORKFLOW_EVENT_COMPLETED)
    assert story.count((NODE_STARTED, "bad")) == 3
    assert story.count((NODE_PROGRESS, "bad")) == 2
    bad = client.get(task).nodes[0]
    assert (bad.status, bad.attempt, bad.retry_count) == (FAILED, 3, 2)
    assert bad.reason == "AI_PROVIDER_UNAVAILABLE" and bad.last_error
    assert payload(client.get(task).output)["failed_nodes"] == ["bad"]

    task = client.submit([node("slow", "generate", prompt="for ever")], timeout_ms=200)
    answer = client.events(task)
    check_story(answer, wf.WORKFLOW_EVENT_FAILED)
    assert answer.events[-1].reason_code == common.WF_TIMEOUT
    job = client.get(task).nodes[0].provider_job_id
    while True:  # its model is not asked any longer
        state = client.ask(client.ai.GetScenarioJob, pb.GetScenarioJobRequest(job_id=job))[0].job
        if state.status == 6:
            break


@SLOW
def test_a_cancel_ends_it_and_its_nodes_jobs(weir):
    client = Workflows(weir)
    task = client.submit([
        node("a", "generate", prompt="for ever", more={"execution_mode": 2, "callback_ref": "r"}),
        node("b", "generate", prompt="for ever"),
    ])
    until(client, task, wf.WORKFLOW_EVENT_NODE_EXTERNAL_RUNNING, "a")
    call = client.open_events(task)
    assert client.cancel(task).ok
    assert client.get(task).status == CANCELED
    answer = nimi.Answer(call)
    story = check_story(answer, wf.WORKFLOW_EVENT_CANCELED)
    assert (wf.WORKFLOW_EVENT_NODE_EXTERNAL_SUBMITTED, "a") in story
    assert any(e.payload["callback_ref"] == "r" for e in answer.events
               if e.event_type == wf.WORKFLOW_EVENT_NODE_EXTERNAL_RUNNING)
    for shown in client.get(task).nodes:
        assert shown.status == CANCELED
    again = client.cancel(task)
    assert again.ok and again.action_hint == "workflow already terminal"


@QUICK
def test_subscribers_at_the_instant_of_the_end_all_hear_it(weir):
    client = Workflows(weir)
    answers = []
    for _ in range(40):
        task = client.submit([node("a", "template", template="x")])
        threads = [threading.Thread(target=lambda t=task: answers.append(client.events(t)))
                   for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert len(answers) == 120
    for answer in answers:
        check_story(answer, wf.WORKFLOW_EVENT_COMPLETED)


# what was acknowledged goes on, what was finished is not asked again.
@SLOW
def test_a_kill_in_the_middle_loses_nothing_and_asks_nothing_twice(weir):
    client = Workflows(weir)
    graph = [node("first", "generate", prompt="quick"),
             node("second", "generate", prompt="and {{x}}", more={"retry_max_attempts": 1}),
             node("third", "template", template="{{y}}")]
    edges = ["first.text > second.x", "second.text > third.y"]
    key = client.metadata(idempotency_key="one")
    task = client.submit(graph, edges, key)
    waiting = client.submit([node("a", "template", template="x")])
    heard = until(client, task, NODE_STARTED, "second")
    first = client.get(task).nodes[0].provider_job_id
    weir.kill()
    weir.start()
    client = Workflows(weir)
    assert client.submit(graph, edges, key) == task
    answer = client.events(task)
    check_story(answer, wf.WORKFLOW_EVENT_COMPLETED)
    now = [(e.event_type, e.node_id, e.sequence) for e in answer.events]
    assert now[: len(heard)] == heard
    assert [n for k, n, _ in now if k == NODE_STARTED] == ["first", "second", "third"]
    reply = client.get(task)
    assert reply.nodes[0].provider_job_id == first
    assert payload(reply.output)["output"]["text"].startswith("on on")
    check_story(client.events(waiting), wf.WORKFLOW_EVENT_COMPLETED)


@SLOW
def test_a_large_definition_is_taken_up_too(weir):
    client = Workflows(weir)
    task = client.submit([
        node("much", "template", template="0123456789abcdef" * 4096),
        node("ask", "generate", ["much"], prompt="and"),
    ])
    until(client, task, NODE_STARTED, "ask")
    weir.kill()
    weir.start()
    client = Workflows(weir)
    check_story(client.events(task), wf.WORKFLOW_EVENT_COMPLETED)
    assert [n.attempt for n in client.get(task).nodes] == [1, 1]


@SLOW
def test_stopping_cuts_subscribers_and_forges_no_end(weir):
    client = Workflows(weir)
    task = client.submit([node("a", "generate", prompt="for ever"),
                          node("m", "generate", prompt="for ever", more={"resume_strategy": 2})])
    until(client, task, NODE_STARTED, "m")
    call = client.open_events(task)
    next(call)
    weir.signal(15)
    answer = nimi.Answer(call)
    assert answer.code == grpc.StatusCode.CANCELLED
    assert not TERMINAL & {e.event_type for e in answer.events}
    assert weir.wait() == 0
    weir.process = None
    weir.start()
    client = Workflows(weir)
    answer = client.events(task)  # m is not made again, by its own wish
    check_story(answer, wf.WORKFLOW_EVENT_FAILED)
    assert "MANUAL" in answer.events[-1].payload["reason"]
