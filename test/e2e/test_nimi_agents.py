"""Agents of nimi.runtime.v1: their life, their state, and the log of their events."""
import random
import threading

import grpc
import nimi_client as nimi
import pytest
import test_nimi_identity as identity
from google.protobuf import struct_pb2
from nimi.runtime.v1 import agent_pb2 as pb
from nimi.runtime.v1 import agent_pb2_grpc
from subscriptions import Events, assert_in_order, assert_stopped
from test_nimi_identity import issuer  # noqa: F401

CODE = grpc.StatusCode
ACTIVE, TERMINATED = pb.AGENT_LIFECYCLE_STATUS_ACTIVE, pb.AGENT_LIFECYCLE_STATUS_TERMINATED
IDLE, SUSPENDED = pb.AGENT_EXECUTION_STATE_IDLE, pb.AGENT_EXECUTION_STATE_SUSPENDED


class Agents:
    """What one app and subject do with their agents."""

    def __init__(self, weir, app="app.a", subject="anna", token=None):
        self.client = nimi.Client(weir)
        self.stub = agent_pb2_grpc.RuntimeAgentServiceStub(self.client.channel)
        self.context = pb.AgentRequestContext(app_id=app, subject_user_id=subject)
        self.metadata = self.client.metadata(app_id=app, participant_id=app, caller_id=app)
        if token:
            self.metadata += [("authorization", f"Bearer {token}")]

    def ask(self, method, kind, key=None, **fields):
        metadata = self.metadata + ([("x-nimi-idempotency-key", key)] if key else [])
        request = kind(context=self.context, **fields)
        return self.client.ask(getattr(self.stub, method), request, metadata)[0]

    def initialize(self, agent="ada", **fields):
        return self.ask("InitializeAgent", pb.InitializeAgentRequest, agent_id=agent, **fields)

    def terminate(self, agent="ada", **fields):
        return self.ask("TerminateAgent", pb.TerminateAgentRequest, agent_id=agent, **fields)

    def get(self, agent="ada"):
        return self.ask("GetAgent", pb.GetAgentRequest, agent_id=agent).agent

    def state(self, agent="ada"):
        return self.ask("GetAgentState", pb.GetAgentStateRequest, agent_id=agent).state

    def list(self, **fields):
        return self.ask("ListAgents", pb.ListAgentsRequest, **fields)

    def update(self, *mutations, agent="ada", **fields):
        return self.ask(
            "UpdateAgentState",
            pb.UpdateAgentStateRequest,
            agent_id=agent,
            mutations=[pb.AgentStateMutation(**m) for m in mutations],
            **fields,
        ).state

    def say(self, text, agent="ada", **fields):
        return self.update(status_text(text), agent=agent, **fields)

    def open(self, agent="ada", **fields):
        asked = pb.SubscribeAgentEventsRequest(context=self.context, agent_id=agent, **fields)
        return self.stub.SubscribeAgentEvents(asked, metadata=self.metadata)

    def subscribe(self, agent="ada", **fields):
        call = self.open(agent, **fields)
        events = Events(call)
        call.initial_metadata()
        return events


def status_text(text):
    return {"set_status_text": pb.AgentStateSetStatusText(status_text=text)}


def attribute(key, value):
    return {"put_attribute": pb.AgentStatePutAttribute(key=key, value=value)}


def refused(call, *args, **fields):
    with pytest.raises(nimi.Refused) as found:
        call(*args, **fields)
    return found.value


def as_words(event):
    if event.HasField("lifecycle"):
        return f"{event.lifecycle.previous_status}>{event.lifecycle.current_status}"
    if event.state.family == pb.AGENT_STATE_EVENT_FAMILY_EXECUTION_STATE_CHANGED:
        return f"x{event.state.previous_execution_state}>{event.state.current_execution_state}"
    return f"{event.state.previous_status_text}>{event.state.current_status_text}"


BORN, OVER, AGAIN = ["0>2", "x0>1"], ["2>5", "x1>5"], ["5>2", "x5>1"]


def test_an_agent_lives_and_ends_and_lives_again(weir):
    anna = Agents(weir)
    config = pb.AgentAutonomyConfig(daily_token_budget=7, mode=pb.AGENT_AUTONOMY_MODE_HIGH)
    metadata = struct_pb2.Struct(fields={"x": struct_pb2.Value(string_value="ü\u0000")})
    made = anna.initialize(
        display_name="Ada", autonomy_config=config, world_id="w", metadata=metadata
    )
    assert made.agent.lifecycle_status == ACTIVE and made.state.execution_state == IDLE
    assert made.agent.display_name == "Ada" and made.agent.metadata == metadata
    assert made.agent.autonomy.config == config and not made.agent.autonomy.enabled
    assert made.state.active_world_id == "w" and made.agent.created_at.seconds
    assert anna.initialize(display_name="other") == made  # it is there already
    assert anna.get() == made.agent and anna.state() == made.state
    assert anna.terminate(reason="done").ack.ok and anna.terminate().ack.ok
    assert anna.get().lifecycle_status == TERMINATED
    assert anna.state().execution_state == SUSPENDED
    assert refused(anna.say, "x").code == CODE.FAILED_PRECONDITION
    again = anna.initialize()
    assert again.agent.display_name == "ada" and again.agent.lifecycle_status == ACTIVE
    assert not again.state.active_world_id and not again.agent.HasField("metadata")
    events = anna.subscribe()
    wanted = BORN + OVER + AGAIN
    assert [as_words(events.next()) for _ in wanted] == wanted
    assert events.sequences == [1, 2, 3, 4, 5, 6]
    assert all(event.agent_id == "ada" and event.timestamp.seconds for event in events.all)
    events.cancel()
    for call in (anna.get, anna.state, anna.terminate, anna.say):
        arguments = ("x", "never") if call == anna.say else ("never",)
        unknown = refused(call, *arguments)
        assert (unknown.code, unknown.text) == (CODE.NOT_FOUND, "agent not found")


def test_mutations_are_made_in_order_or_not_at_all(weir):
    anna = Agents(weir)
    anna.initialize()
    events = anna.subscribe(cursor="2")
    state = anna.update(
        status_text("thinking\u0000 ü"),
        {"set_world_context": pb.AgentStateSetWorldContext(world_id="w")},
        {"set_dyadic_context": pb.AgentStateSetDyadicContext(user_id="ben")},
        attribute("a", "1"),
        attribute("b", "2"),
        attribute("a", "3"),
        {"remove_attribute": pb.AgentStateRemoveAttribute(key="b")},
        {"remove_attribute": pb.AgentStateRemoveAttribute(key="none")},
        {"clear_world_context": pb.AgentStateClearWorldContext()},
    )
    assert state.status_text == "thinking\u0000 ü" and dict(state.attributes) == {"a": "3"}
    assert state.active_user_id == "ben" and not state.active_world_id
    assert anna.state() == state
    cleared = anna.update({"clear_dyadic_context": pb.AgentStateClearDyadicContext()})
    assert not cleared.active_user_id and cleared.attributes == state.attributes
    for wrong in (
        [],
        [{}],
        [status_text("x" * 1025)],
        [attribute("", "x")],
        [attribute("k" * 129, "x")],
        [attribute("k", "x" * 5000)],
        [{"set_world_context": pb.AgentStateSetWorldContext()}],
        [status_text("lost"), attribute("", "x")],
        [attribute("k", "v")] * 101,
    ):
        assert refused(anna.update, *wrong).reason == "PROTOCOL_ENVELOPE_INVALID"
    for i in range(63):
        anna.update(attribute(f"k{i}", "v"))
    full = refused(anna.update, status_text("lost"), attribute("one", "more"))
    assert full.code == CODE.RESOURCE_EXHAUSTED
    assert anna.state().status_text == state.status_text
    anna.say("")
    told = [events.next() for _ in range(2)]
    assert [as_words(event) for event in told] == [">thinking\u0000 ü", "thinking\u0000 ü>"]
    assert [event.state.has_previous_status_text for event in told] == [False, True]
    assert events.sequences == [3, 4]
    events.cancel()


def test_two_that_change_an_agent_at_once_lose_nothing(start_weir):
    weir = start_weir(config="threads: 2\n")
    Agents(weir).initialize()

    def change(number):
        mine = Agents(weir)
        for i in range(10):
            mine.update(attribute(f"{number}.{i}", "v"), status_text(f"{number}.{i}"))

    threads = [threading.Thread(target=change, args=[n]) for n in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(Agents(weir).state().attributes) == 50
    events = Agents(weir).subscribe(cursor="2")
    texts = [events.next().state for _ in range(50)]
    assert [t.previous_status_text for t in texts] == [""] + [t.current_status_text for t in texts][:-1]
    assert events.sequences == list(range(3, 53))
    events.cancel()


def test_agents_are_listed_the_newest_first_in_pages(weir):
    anna = Agents(weir)
    for i in range(7):
        anna.initialize(f"a{i}")
    anna.terminate("a3")
    names = lambda page: [agent.agent_id for agent in page.agents]  # noqa: E731
    seen, token = [], ""
    while True:
        page = anna.list(page_size=3, page_token=token)
        seen += names(page)
        token, last = page.next_page_token, token
        if not token:
            break
    assert seen == [f"a{i}" for i in range(6, -1, -1)]
    assert names(anna.list(lifecycle_filter=TERMINATED)) == ["a3"]
    assert len(names(anna.list(lifecycle_filter=ACTIVE))) == 6
    assert not names(anna.list(autonomy_enabled=True)) and len(names(anna.list(autonomy_enabled=False))) == 7
    assert refused(anna.list, page_token=last, lifecycle_filter=ACTIVE).reason == "PAGE_TOKEN_INVALID"
    assert refused(anna.list, page_token="forged").reason == "PAGE_TOKEN_INVALID"
    assert refused(anna.list, page_size=-1).code == CODE.INVALID_ARGUMENT
    assert refused(anna.list, lifecycle_filter=9).code == CODE.INVALID_ARGUMENT


def test_another_owner_sees_no_agent(weir):  # M1, M3, M4
    anna = Agents(weir)
    anna.initialize()
    anna.say("of anna")
    for other in (Agents(weir, app="app.b"), Agents(weir, subject="ben"), Agents(weir, subject="")):
        for call in (other.get, other.state, other.terminate):
            found, never = refused(call), refused(call, "never")
            assert (found.code, found.text) == (never.code, never.text) == (CODE.NOT_FOUND, "agent not found")
        assert not other.list().agents
        heard, silent = other.subscribe(), other.subscribe("never")
        other.initialize()
        assert [as_words(heard.next()) for _ in range(2)] == BORN and heard.sequences == [1, 2]
        heard.cancel()
        assert silent.cancel() == []
    assert anna.state().status_text == "of anna"


def test_with_issuers_the_token_says_whose_it_is(start_weir, issuer):  # noqa: F811 M3
    key = issuer.key("k")
    issuer.keys = [key]
    weir = start_weir(config=identity.configured(issuer))

    def of(user, subject=None, scope="runtime.agent.read runtime.agent.write"):
        token = key.sign(issuer.url, user, scope=scope)
        return Agents(weir, subject=user if subject is None else subject, token=token)

    of("anna").initialize()
    assert refused(of("ben").get).code == CODE.NOT_FOUND
    assert refused(of("ben", subject="anna").get).code == CODE.PERMISSION_DENIED
    assert refused(of("anna", scope="runtime.agent.read").terminate).code == CODE.PERMISSION_DENIED
    assert of("anna", scope="runtime.agent.read").get().agent_id == "ada"
    for call, code in (
        (Agents(weir).open(), CODE.UNAUTHENTICATED),
        (of("anna", scope="").open(), CODE.PERMISSION_DENIED),
        (of("ben", subject="anna").open(), CODE.PERMISSION_DENIED),
    ):
        events = Events(call)
        assert events.rest() == [] and events.code == code


def test_what_no_subscription_is(weir):
    anna = Agents(weir)
    nameless = Events(anna.open(""))
    assert nameless.rest() == [] and nameless.code == CODE.INVALID_ARGUMENT
    assert nameless.text == "agent_id is required"  # plain, as upstream has it
    for fields in ({"cursor": "x"}, {"event_filters": [9]}, {"agent": "a\nb"}):
        events = Events(anna.open(**fields))
        assert events.rest() == [] and events.code == CODE.INVALID_ARGUMENT
    for wrong in ({"agent": ""}, {"agent": "x" * 257}, {"display_name": "x" * 257}):
        assert refused(anna.initialize, **wrong).reason == "PROTOCOL_ENVELOPE_INVALID"


def test_a_subscriber_hears_the_types_it_names(weir):
    anna = Agents(weir)
    lives = anna.subscribe(event_filters=[pb.AGENT_EVENT_TYPE_LIFECYCLE])
    states = anna.subscribe(event_filters=[pb.AGENT_EVENT_TYPE_STATE])
    anna.initialize()
    anna.say("hi")
    anna.terminate()
    assert [as_words(lives.next()) for _ in range(2)] == ["0>2", "2>5"]
    assert [as_words(states.next()) for _ in range(3)] == ["x0>1", ">hi", "x1>5"]
    assert lives.sequences == [1, 4] and states.sequences == [2, 3, 5]
    for events in (lives, states):
        events.cancel()


def test_a_log_keeps_256_events(weir):
    anna = Agents(weir)
    anna.initialize()
    live = anna.subscribe()
    for i in range(300):
        anna.say(str(i))
    assert [live.next().sequence for _ in range(302)] == list(range(1, 303))
    late = anna.subscribe()  # all that is kept; the gap says the rest
    assert [late.next().sequence for _ in range(256)] == list(range(47, 303))
    lost = anna.subscribe(cursor="3")
    assert lost.next().sequence == 47
    for events in (live, late, lost):
        events.cancel()


@pytest.mark.parametrize("end", ["stop", "kill"])
def test_agents_and_cursors_outlive_the_daemon(weir, end):
    anna = Agents(weir)
    anna.initialize()
    live = anna.subscribe()
    chance = random.Random(7)
    said, cursor = 0, 0
    for _ in range(3):
        for _ in range(chance.randrange(3, 9)):
            anna.say(str(said))
            said += 1
        if end == "stop":
            weir.signal(15)
            assert_stopped(live)
        else:
            live.next()
            weir.kill()
        assert_in_order(live)
        assert live.sequences == list(range(cursor + 1, cursor + 1 + len(live.all)))
        cursor += len(live.all)
        weir.restart()
        anna = Agents(weir)
        assert anna.state().status_text == str(said - 1)
        live = anna.subscribe(cursor=str(cursor))
    rest = [live.next() for _ in range(said + 2 - cursor)]
    assert [event.sequence for event in rest] == list(range(cursor + 1, said + 3))
    if rest:
        assert rest[-1].state.current_status_text == str(said - 1)
    live.cancel()


def test_no_agent_is_read_while_the_daemon_stops(weir):
    anna = Agents(weir)
    anna.initialize()
    events = [anna.subscribe() for _ in range(50)]
    weir.signal(15)
    for one in events:
        assert_stopped(one)
        assert [as_words(event) for event in one.all] == BORN[: len(one.all)]
    assert weir.wait() == 0


def test_a_thousand_agents_and_then_the_oldest_that_is_over_goes(weir):
    anna = Agents(weir)
    for i in range(1000):
        anna.initialize(f"a{i}")
    assert refused(anna.initialize, "one too many").code == CODE.RESOURCE_EXHAUSTED
    Agents(weir, subject="ben").initialize()  # another's limit is another's
    anna.terminate("a5")
    anna.initialize("new")
    assert refused(anna.get, "a5").code == CODE.NOT_FOUND
    anna.terminate("a6")
    before = anna.subscribe("a5")  # of the one that is forgotten
    anna.initialize("a5")
    after = [before.next().sequence for _ in range(2)]
    assert after[0] > 4 and after[1] == after[0] + 1  # above every number that it had
    before.cancel()
