"""What a model is sent next begins with what it was sent last, whatever became of the turn.

A random conversation of one session, over Converse: texts, tools, transfers, approvals, failures,
refusals, turns that are left, cancelled or over their limits, and deaths of the daemon in their
middle. Each request to a model must begin with all messages of the request before it to the same
agent, in the vendor's own form, and must hold what was asked and answered meanwhile, in order.

WEIR_PREFIX_TURNS says how many turns (40), WEIR_PREFIX_SEED from which seed; a failure prints it.
"""
import collections
import os
import random
import signal
import threading

import crawbl
import prompts
import pytest
import speaker as speakers
import vendor
import vendors
import wires
from speaker import Reply

TURNS = int(os.environ.get("WEIR_PREFIX_TURNS", 40))
AGENTS = {"manager": "You lead.", "wally": "You travel."}
CALLS_AT_MOST = 5  # of the model, and of tools, in one turn
LIMITS = {"model_calls": CALLS_AT_MOST, "tool_calls": CALLS_AT_MOST}


def calculate(number):
    return ("calculator", {"expression": f"{number}+1"})


def hand_over(slug):
    return ("transfer_to_agent", {"agent_name": slug})


ASKS_A_PERSON = ("current_time", {"zone": "UTC"})
SEARCH = ("web_search_tool", {"query": "who knows"})


def is_in_order(wanted, found):
    rest = iter(found)
    return all(item in rest for item in wanted)


def difference(slug, before, after):
    """Where two requests to an agent part, for whoever reads a failure."""
    at = next((i for i, (a, b) in enumerate(zip(before, after)) if a != b), len(after))
    was, now = before[at], after[at] if at < len(after) else "nothing"
    return f"message {at} to {slug} was\n  {was}\nand then\n  {now}"


class Conversation:
    def __init__(self, kind, start_weir, seed):
        self.kind, self.chance = kind, random.Random(seed)
        self.number = 0  # of texts, so that no two are the same
        self.replies = collections.deque()
        self.read = 0  # how many requests were looked at
        self.sent = {slug: [] for slug in AGENTS}  # what was in the last request to each agent
        self.answered = {slug: [] for slug in AGENTS}  # and what it has said, in order
        self.asked = []  # messages of the user that were not refused
        self.story = []  # the turns, for whoever reads a failure
        self.speaker = speakers.Speaker(kind, self.answer)
        self.search = vendor.Vendor()
        self.search_goes_on = threading.Event()
        self.search.search_gate = lambda _: self.search_goes_on.wait(wires.PATIENCE)
        plain = {"model": "house/m", "limits": LIMITS}
        plain["tools"] = {"calculator": "allow", "web_search_tool": "allow", "current_time": "ask"}
        agents = [
            {**plain, "slug": "manager", "instructions": AGENTS["manager"], "delegates": ["wally"]},
            {**plain, "slug": "wally", "instructions": AGENTS["wally"]},
        ]
        config = vendors.settings(
            self.speaker.provider(retries=0),
            agents,
            tools={"web_search": {"backend": "searxng", "url": self.search.url}},
            limits={"shutdown": "700ms"},
        )
        self.weir = start_weir(config=config, env={"HOUSE_KEY": vendors.KEY})
        self.talk = wires.open("converse", self.weir)

    def close(self):
        self.search_goes_on.set()
        self.search.stop()
        self.speaker.__exit__()

    # --- the model --------------------------------------------------------------------------

    def answer(self, model, body):
        """Its reply, as the turn has planned; what it says is the agent's from then on."""
        reply = self.replies.popleft() if self.replies else self.says()
        if reply.status == 200 and reply.texts:
            self.answered[self.agent_of(body)].append("".join(reply.texts))
        return reply

    def agent_of(self, body):
        system = prompts.of(self.kind, body).system
        return next(slug for slug, words in AGENTS.items() if words in system)

    def says(self, *calls, **end):
        self.number += 1
        return Reply("Saying ", f"word{self.number}.", calls=calls, **end)

    # --- what must hold ---------------------------------------------------------------------

    def look(self, refused=False):
        """Compare the requests of the turn that is over with those before."""
        asked, self.read = self.speaker.asked[self.read :], len(self.speaker.asked)
        for _, body in asked:
            slug = self.agent_of(body)
            pieces = prompts.pieces(self.kind, body)
            before = self.sent[slug]
            assert pieces[: len(before)] == before, difference(slug, before, pieces)
            kinds = collections.Counter(item[0] for item in prompts.said(self.kind, body))
            assert kinds["call"] == kinds["result"], f"a call has no result: {pieces}"
            self.sent[slug] = pieces[:-1] if refused else pieces
        if asked and not refused:
            self.holds_all(asked[0][1])

    def holds_all(self, body):
        """The first request of a turn holds all that its agent has heard and said before."""
        slug = self.agent_of(body)
        said = prompts.said(self.kind, body)
        users = [("user", text) for text in self.asked]
        assert is_in_order(users, said), f"of\n{users}\n{slug} was sent\n{said}"
        spoken = [text for role, *rest in said for text in rest[:1] if role == "assistant"]
        assert spoken == self.answered[slug][: len(spoken)], f"{slug} has said something else"
        assert len(spoken) >= self.spoken_before[slug], f"{slug} has forgotten what it said"

    # --- turns ------------------------------------------------------------------------------

    def turn(self, play=None):
        play = play or self.chance.choice(PLAYS)
        self.replies.clear()
        self.search_goes_on.clear()
        self.spoken_before = {slug: len(texts) for slug, texts in self.answered.items()}
        message = f"Asking {len(self.story)}?"
        self.story.append(play.__name__)
        self.asked.append(message)
        play(self, message)
        refused = play is a_message_that_is_refused
        if refused:
            self.asked.pop()
        self.look(refused)

    def plan(self, *replies):
        """Some calls of tools, then these."""
        rounds = self.chance.randrange(3)
        for number in range(rounds):
            calls = [calculate(n) for n in range(number, number + self.chance.randint(1, 2))]
            self.replies.append(self.says(*calls) if self.chance.random() < 0.5 else Reply(calls=calls))
        self.replies.extend(replies)

    def ask(self, message, **fields):
        if self.chance.random() < 0.2:
            fields.setdefault("agent_id", self.chance.choice(list(AGENTS)))
        return self.talk.ask(message, **fields)

    def until(self, message, **reached):
        return self.talk.begin(message, **reached)

    def die(self):
        if self.chance.random() < 0.5:
            self.weir.process.kill()
        else:
            self.weir.signal(signal.SIGTERM)
            assert self.weir.wait() == 0

    def revive(self):
        self.search_goes_on.set()
        wires.killed(self.weir)


def an_answer(talk, message):
    talk.plan(talk.says())
    assert talk.ask(message).error is None


def an_answer_by_other_instructions(talk, message):
    talk.plan(talk.says())
    words = f"{AGENTS['manager']} Only now: number {talk.number}."
    assert talk.ask(message, agent_id="manager", system_prompt=words).error is None


def an_answer_of_a_colleague(talk, message):
    talk.replies.extend([talk.says(hand_over("wally")), talk.says()])
    assert talk.talk.ask(message).error is None


def an_answer_that_comes_back(talk, message):
    there, back = talk.says(hand_over("wally")), Reply(calls=[hand_over("manager")])
    talk.replies.extend([there, back, talk.says()])
    assert talk.talk.ask(message).error is None


def a_failure(talk, message):
    talk.plan(talk.says(calculate(7)), Reply(status=talk.chance.choice([500, 429, 503])))
    assert talk.ask(message).error


def a_failure_at_once(talk, message):
    talk.replies.append(Reply(status=500))
    assert talk.ask(message).error


def an_answer_that_is_cut(talk, message):
    talk.plan(talk.says(end="cut"))
    assert talk.ask(message).error


def a_message_that_is_refused(talk, message):
    talk.replies.append(Reply(status=400))
    assert talk.ask(message).error


def too_many_calls_of_the_model(talk, message):
    talk.replies.extend(talk.says(calculate(n)) for n in range(CALLS_AT_MOST + 1))
    assert "RESOURCE_EXHAUSTED" in talk.ask(message).error


def too_many_calls_of_tools(talk, message):
    calls = [calculate(n) for n in range(CALLS_AT_MOST + 2)]
    talk.replies.extend([talk.says(*calls), talk.says()])
    assert talk.ask(message).error is None


def a_turn_that_is_left(talk, message):
    talk.replies.append(talk.says(end="hold"))
    with talk.until(message, shown="".join(talk.replies[0].texts)):
        pass
    assert talk.talk.over()["state"] == "cancelled"


def a_turn_that_is_cancelled(talk, message):
    talk.replies.append(talk.says(end="hold"))
    with talk.until(message, shown="".join(talk.replies[0].texts)) as caller:
        talk.talk.cancel()
        assert caller.rest().error


def a_turn_that_is_left_with_a_tool_out(talk, message):
    talk.replies.append(talk.says(SEARCH))
    with talk.until(message, tool=SEARCH[0]):
        pass
    assert talk.talk.over()["state"] == "cancelled"


def a_death_in_an_answer(talk, message):
    talk.replies.append(talk.says(end="hold"))
    texts = talk.replies[0].texts
    with talk.until(message, shown="".join(texts)):
        wires.on_disk(talk.weir, texts[-1])
        talk.die()
    talk.revive()


def a_death_with_a_tool_out(talk, message):
    talk.replies.append(talk.says(SEARCH))
    with talk.until(message, tool=SEARCH[0]):
        talk.die()
    talk.revive()


def a_death_between_turns(talk, message):
    talk.die()
    talk.revive()
    an_answer(talk, message)


def an_approval(talk, message, dies=False):
    talk.replies.extend([talk.says(ASKS_A_PERSON), talk.says()])
    assert talk.talk.ask(message).error is None
    if dies:
        talk.die()
        talk.revive()
    assert talk.talk.ask(talk.chance.choice(["yes", "no"])).error is None


def a_death_while_a_person_is_asked(talk, message):
    an_approval(talk, message, dies=True)


PLAYS = [
    an_answer,
    an_answer,
    an_answer_by_other_instructions,
    an_answer_of_a_colleague,
    an_answer_that_comes_back,
    a_failure,
    a_failure_at_once,
    an_answer_that_is_cut,
    a_message_that_is_refused,
    too_many_calls_of_the_model,
    too_many_calls_of_tools,
    a_turn_that_is_left,
    a_turn_that_is_cancelled,
    a_turn_that_is_left_with_a_tool_out,
    a_death_in_an_answer,
    a_death_with_a_tool_out,
    a_death_between_turns,
    an_approval,
    a_death_while_a_person_is_asked,
]


@pytest.fixture
def conversation(kind, start_weir):
    seed = int(os.environ.get("WEIR_PREFIX_SEED", random.randrange(1 << 32)))
    conversation = Conversation(kind, start_weir, seed)
    conversation.seed = seed
    yield conversation
    conversation.close()


@pytest.mark.timeout(60 + TURNS * 3)
def test_each_prompt_begins_with_the_one_before(conversation):
    for _ in range(TURNS):
        try:
            conversation.turn()
        except BaseException:
            told = "\n  ".join(conversation.story)
            print(f"WEIR_PREFIX_SEED={conversation.seed}, the turns were\n  {told}")
            raise


@pytest.mark.parametrize("kind", ["openai"])
@pytest.mark.parametrize("play", dict.fromkeys(PLAYS), ids=lambda play: play.__name__)
def test_the_prompt_begins_with_the_one_before_after(play, conversation, kind):
    """Each kind of turn by itself, so that a failure has a name."""
    for turn in (an_answer, play, an_answer, an_answer_of_a_colleague):
        conversation.turn(turn)
