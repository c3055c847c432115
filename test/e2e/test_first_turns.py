"""Many first turns at once, each of a workspace that nobody has asked for yet.

Such a turn waits for its orchestrator's agents and tools, and meanwhile the connection brings the
words of others. Whatever waits must have its own copy: nobody may be answered, stored or shown to
a model with words, ids or tokens of somebody else.
"""
import json

import crawbl
import grpc
import pytest
from orchestrator import Orchestrator, agent
from vendor import KEY, Vendor, text_of

COUNT = 200
PATIENCE = 100  # seconds: a sanitizer build on a busy machine


class Person:
    """One user with a workspace and a conversation; what is said has a length of its own. Every
    other one brings a system prompt, the rest have their workspace's."""

    def __init__(self, number):
        self.number = number
        self.user, self.workspace = f"user-{number:03}", f"space-{number:03}"
        self.session = f"conversation-{number:03}"
        self.said = []

    def words(self):
        filling = f"{self.number:03} " * (self.number * 7 % 97)
        self.said.append(f"private note {len(self.said)} of {self.user}: {filling}end")
        return self.said[-1]

    @property
    def agents(self):
        prompt = f"You manage {self.workspace}."
        return [agent("manager", role="manager", prompt=prompt)]

    @property
    def own_prompt(self):
        return f"Speak to {self.user} alone." if self.number % 2 else ""

    @property
    def prompt(self):
        return self.own_prompt or f"You manage {self.workspace}."

    @property
    def ids(self):
        return {
            "session_id": self.session,
            "user_id": self.user,
            "workspace_id": self.workspace,
            "system_prompt": self.own_prompt,
        }


@pytest.fixture
def people():
    return [Person(number) for number in range(COUNT)]


@pytest.fixture
def orchestrator(people):
    with Orchestrator() as double:
        double.slow_seconds = 0.2
        double.tools["greet"] = lambda args, _: "hello"
        for person in people:
            double.agents[person.workspace] = person.agents
        yield double


@pytest.fixture
def model():
    with Vendor() as vendor:
        yield vendor


def one_turn_each(weir, people, compression):
    """All at once, over one connection; the turns in the order of the people."""
    channel = weir.channel(**{"grpc.use_local_subchannel_pool": 1})
    options = {"compression": compression, "timeout": PATIENCE}
    streams = [
        crawbl.open_stream(weir, channel, weir.metadata(p.user, p.workspace), **options)
        for p in people
    ]
    for stream, person in zip(streams, people):
        stream.send(person.words(), **person.ids)
    turns = [stream.turn() for stream in streams]
    for stream in streams:
        stream.half_close()
    return turns


def assert_each_has_his_own_answer(turns, people):
    wrong = [
        (person.user, turn.error or turn.text[:200])
        for turn, person in zip(turns, people)
        if turn.error or not turn.text.startswith(f"You said: {person.said[-1]} (")
    ]
    assert not wrong, f"{len(wrong)} of {len(people)}: {wrong[:5]}"


def assert_the_model_heard_everybody_apart(asked, people):
    """Each prompt is one person's: his agents, his history, his words, nothing else."""
    by_words = {tuple(person.said): person for person in people}
    for body in asked:
        system = "".join(text_of(m) for m in body["messages"] if m["role"] == "system")
        said = tuple(text_of(m) for m in body["messages"] if m["role"] == "user")
        assert said in by_words, f"nobody said {said!r}"
        person = by_words.pop(said)
        assert system.startswith(person.prompt)
        assert "Bearer" not in json.dumps(body)
    assert not by_words, f"{len(by_words)} were not heard"


def assert_each_has_one_session(weir, people):
    with weir.http() as http:
        for person in people:
            headers = dict(weir.metadata(person.user, person.workspace))
            answer = http.get("/weir/v1/sessions", headers=headers)
            assert answer.status_code == 200, answer.text
            stored = answer.json()["sessions"]
            assert [s["session_id"] for s in stored] == [person.session]


def assert_the_orchestrator_was_asked_for_each(requests, people):
    conversation_of = {p.workspace: p.session for p in people}
    user_of = {p.workspace: p.user for p in people}
    seen = set()
    for request in requests:
        assert request.user == user_of[request.workspace]
        named = request.headers.get("x-conversation-id")
        assert named in (None, "", conversation_of[request.workspace])
        seen.add(request.workspace)
    assert seen == set(conversation_of)


@pytest.mark.timeout(400)
@pytest.mark.parametrize(
    "compression", [grpc.Compression.NoCompression, grpc.Compression.Gzip], ids=["plain", "gzip"]
)
def test_first_turns_at_once_keep_their_words_apart(
    start_weir, orchestrator, model, people, compression
):
    weir = start_weir(config=model.config(), env={**orchestrator.env, "HOUSE_KEY": KEY})
    for _ in range(2):
        turns = one_turn_each(weir, people, compression)
        assert_each_has_his_own_answer(turns, people)
        assert_the_model_heard_everybody_apart(model.asked, people)
        assert_the_orchestrator_was_asked_for_each(orchestrator.requests, people)
        assert_each_has_one_session(weir, people)
        model.asked.clear()
        orchestrator.requests.clear()
        weir.restart()  # nothing is known of any workspace again


def test_a_compressed_first_turn_alone_is_heard_as_it_was_said(start_weir, orchestrator, model):
    weir = start_weir(config=model.config(), env={**orchestrator.env, "HOUSE_KEY": KEY})
    person = Person(7)
    turns = one_turn_each(weir, [person], grpc.Compression.Gzip)
    assert_each_has_his_own_answer(turns, [person])
    assert_the_model_heard_everybody_apart(model.asked, [person])
    assert_each_has_one_session(weir, [person])
