"""Memory of nimi.runtime.v1: banks, records, recall, and the log of their events."""
import contextlib
import random
import threading
import time

import attack
import crawbl
import grpc
import nimi_client as nimi
import pytest
import test_nimi_identity as identity
from google.protobuf import struct_pb2, timestamp_pb2
from nimi.runtime.v1 import memory_pb2 as pb
from nimi.runtime.v1 import memory_pb2_grpc
from subscriptions import Events, assert_in_order, assert_stopped
from test_nimi_identity import issuer  # noqa: F401

CODE = grpc.StatusCode


def locator(name="w"):
    owner = pb.WorkspacePrivateBankOwner(account_id="acc", workspace_id=name)
    return pb.PublicMemoryBankLocator(workspace_private=owner)


def place(name="w"):
    owner = pb.WorkspacePrivateBankOwner(account_id="acc", workspace_id=name)
    return pb.MemoryBankLocator(
        scope=pb.MEMORY_BANK_SCOPE_WORKSPACE_PRIVATE, workspace_private=owner
    )


def episode(text, at=None, **fields):
    told = pb.EpisodicMemoryRecord(summary=text)
    if at is not None:
        told.occurred_at.seconds = at
    return pb.MemoryRecordInput(episodic=told, **fields)


class Memory:
    """What one app and subject do with their memory."""

    def __init__(self, weir, app="app.a", subject="anna", token=None):
        self.weir, self.app, self.subject = weir, app, subject
        self.client = nimi.Client(weir)
        self.stub = memory_pb2_grpc.RuntimeCognitionServiceStub(self.client.channel)
        self.context = pb.MemoryRequestContext(app_id=app, subject_user_id=subject)
        self.metadata = self.client.metadata(app_id=app, participant_id=app, caller_id=app)
        if token:
            self.metadata += [("authorization", f"Bearer {token}")]

    def ask(self, method, request, key=None):
        metadata = self.metadata + ([("x-nimi-idempotency-key", key)] if key else [])
        return self.client.ask(getattr(self.stub, method), request, metadata)[0]

    def create(self, name="w", **fields):
        asked = pb.CreateBankRequest(context=self.context, locator=locator(name), **fields)
        return self.ask("CreateBank", asked).bank

    def get(self, name="w"):
        return self.ask("GetBank", pb.GetBankRequest(context=self.context, locator=place(name))).bank

    def banks(self, **fields):
        return self.ask("ListBanks", pb.ListBanksRequest(context=self.context, **fields))

    def drop(self, name="w"):
        return self.ask(
            "DeleteBank", pb.DeleteBankRequest(context=self.context, locator=locator(name))
        )

    def retain(self, *records, name="w", key=None):
        records = [episode(r) if isinstance(r, str) else r for r in records]
        asked = pb.RetainRequest(context=self.context, bank=place(name), records=records)
        return list(self.ask("Retain", asked, key).records)

    def recall(self, text, name="w", **fields):
        query = pb.MemoryRecallQuery(query=text, **fields)
        asked = pb.RecallRequest(context=self.context, bank=place(name), query=query)
        return list(self.ask("Recall", asked).hits)

    def history(self, name="w", **fields):
        query = pb.MemoryHistoryQuery(**fields)
        asked = pb.HistoryRequest(context=self.context, bank=place(name), query=query)
        return self.ask("History", asked)

    def forget(self, *ids, name="w", reason=""):
        asked = pb.DeleteMemoryRequest(
            context=self.context, bank=place(name), memory_ids=ids, reason=reason
        )
        return list(self.ask("DeleteMemory", asked).deleted_memory_ids)

    def open(self, cursor="", **fields):
        asked = pb.SubscribeMemoryEventsRequest(context=self.context, cursor=cursor, **fields)
        return self.stub.SubscribeMemoryEvents(asked, metadata=self.metadata)

    def subscribe(self, cursor="", **fields):
        """Events from when this returns: the headers are there, so nothing is missed."""
        call = self.open(cursor, **fields)
        events = Events(call)
        call.initial_metadata()
        return events


def texts(records):
    return [record.episodic.summary for record in records]


def refused(call, *args, **fields):
    with pytest.raises(nimi.Refused) as found:
        call(*args, **fields)
    return found.value


def as_words(event):
    """An event as a short sentence, to compare."""
    kind = event.WhichOneof("detail")
    detail = getattr(event, kind)
    if kind == "record_retained":
        return f"+{detail.episodic.summary}"
    if kind == "record_deleted":
        return f"-{len(detail.memory_ids)}"
    return f"{kind}:{detail.locator.workspace_private.workspace_id}"


# --- banks --------------------------------------------------------------------------------------


def test_a_bank_comes_is_found_and_goes(weir):
    anna = Memory(weir)
    metadata = struct_pb2.Struct(fields={"x": struct_pb2.Value(string_value="ü\u0000\n")})
    bank = anna.create(display_name="Notes", metadata=metadata)
    assert bank.locator == place() and bank.display_name == "Notes" and bank.metadata == metadata
    assert len(bank.bank_id) == 26 and bank.public_api_writable and bank.created_at.seconds
    assert anna.create(display_name="other") == bank == anna.get()  # it is there already
    assert list(anna.banks().banks) == [bank]
    assert anna.drop().ack.ok
    gone, never = refused(anna.get), refused(anna.get, "never")
    assert gone.code == never.code == CODE.NOT_FOUND
    assert gone.text == never.text == "memory bank not found"
    for call in (anna.drop, anna.history):
        assert refused(call).code == CODE.NOT_FOUND
    assert refused(anna.retain, "x").code == CODE.NOT_FOUND
    again = anna.create()
    assert again.bank_id != bank.bank_id and not anna.history().records


def test_banks_are_listed_in_pages_of_their_filter(weir):
    anna = Memory(weir)
    made = [anna.create(f"w{i}") for i in range(7)]
    made.sort(key=lambda bank: bank.bank_id)
    seen, token = [], ""
    while True:
        page = anna.banks(page_size=3, page_token=token)
        seen += page.banks
        token = page.next_page_token
        if not token:
            break
        first = token
    assert seen == made
    one = pb.MemoryBankOwnerFilter(
        workspace_private=pb.WorkspacePrivateBankOwner(account_id="acc", workspace_id="w3")
    )
    assert [b.locator for b in anna.banks(owner_filters=[one]).banks] == [place("w3")]
    assert not anna.banks(scope_filters=[pb.MEMORY_BANK_SCOPE_APP_PRIVATE]).banks
    for fields in (
        {"page_token": first, "owner_filters": [one]},  # of another filter
        {"page_token": "forged"},
    ):
        assert refused(anna.banks, **fields).reason == "PAGE_TOKEN_INVALID"
    assert refused(anna.history, name="w3", page_token=first).reason == "PAGE_TOKEN_INVALID"
    assert refused(Memory(weir, subject="ben").banks, page_token=first).code == CODE.INVALID_ARGUMENT
    for size in (-1, -(2**31)):
        assert refused(anna.banks, page_size=size).code == CODE.INVALID_ARGUMENT
    assert len(anna.banks(page_size=2**31 - 1).banks) == 7


def test_what_makes_no_bank(weir):
    anna = Memory(weir)
    other = pb.PublicMemoryBankLocator(
        app_private=pb.AppPrivateBankOwner(account_id="acc", app_id="app.b")
    )
    vectors = pb.MemoryEmbeddingProfile(provider="openai", model_id="m", dimension=3)
    for fields, reason in (
        ({"locator": None}, "PROTOCOL_ENVELOPE_INVALID"),
        ({"locator": locator("")}, "PROTOCOL_ENVELOPE_INVALID"),
        ({"locator": locator("a\nb")}, "PROTOCOL_ENVELOPE_INVALID"),
        ({"locator": other}, "PROTOCOL_DOMAIN_FIELD_CONFLICT"),
        ({"embedding_profile": pb.MemoryEmbeddingProfile()}, "PROTOCOL_ENVELOPE_INVALID"),
        ({"embedding_profile": vectors}, "KNOWLEDGE_EMBEDDING_PROFILE_UNAVAILABLE"),
        ({"display_name": "x" * 257}, "PROTOCOL_ENVELOPE_INVALID"),
    ):
        asked = {"context": anna.context, "locator": locator(), **fields}
        assert refused(anna.ask, "CreateBank", pb.CreateBankRequest(**asked)).reason == reason
    assert not anna.banks().banks
    for i in range(100):
        anna.create(f"w{i}")
    assert refused(anna.create, "one too many").code == CODE.RESOURCE_EXHAUSTED
    Memory(weir, subject="ben").create()  # another's limit is another's


# --- records ------------------------------------------------------------------------------------


def test_records_are_kept_byte_for_byte_and_recalled_by_words(weir):  # T8
    anna = Memory(weir)
    anna.create()
    odd = ["' OR 1=1 --", '") MATCH "*', "NEAR(a b)", "{words} : x", "Kyōto, cheap!", "\u0000", "x" * 60000]
    kept = anna.retain(*odd)
    assert texts(kept) == odd
    assert texts(reversed(anna.history().records)) == odd
    facts = pb.SemanticMemoryRecord(subject="Ada", predicate="lives in", object="Kyoto", confidence=0.5)
    seen = pb.ObservationalMemoryRecord(observation="it rains in Oslo", source_ref="s")
    more = anna.retain(pb.MemoryRecordInput(semantic=facts), pb.MemoryRecordInput(observational=seen))
    assert more[0].semantic == facts and more[1].observational == seen
    assert more[0].kind == pb.MEMORY_RECORD_KIND_SEMANTIC
    found = anna.recall("KYOTO in")
    assert [hit.record.memory_id for hit in found][:2] == [more[0].memory_id, kept[4].memory_id] or [
        hit.record.memory_id for hit in found
    ][0] == more[0].memory_id
    assert found[0].record == more[0] and found[0].match_reason == "bm25"
    scores = [hit.relevance_score for hit in found]
    assert scores == sorted(scores, reverse=True) and scores[-1] > 0
    for text in ("' OR 1=1 --", '") MATCH "*', "NEAR(a b)", "{words} : x", 'words : "a"'):
        anna.recall(text)  # no text is a syntax error
    only = anna.recall("kyoto oslo", kinds=[pb.MEMORY_RECORD_KIND_OBSERVATIONAL])
    assert [hit.record.memory_id for hit in only] == [more[1].memory_id]
    assert anna.recall("nothing-of-this-kind") == []
    assert refused(anna.recall, "  ").reason == "PROTOCOL_ENVELOPE_INVALID"
    assert refused(anna.recall, "x", limit=-1).code == CODE.INVALID_ARGUMENT
    assert len(anna.recall("kyoto", limit=2**31 - 1)) == 2 and len(anna.recall("kyoto", limit=1)) == 1


def test_the_score_depends_on_the_bank_alone(weir):  # M1
    anna, ben = Memory(weir), Memory(weir, subject="ben")
    for one in (anna, ben):
        one.create()
        one.retain("the weir holds", "the mill turns", "nothing else")
    before = [(h.record.episodic.summary, h.relevance_score) for h in anna.recall("the weir")]
    ben.retain(*["weir weir weir"] * 50)
    assert before == [(h.record.episodic.summary, h.relevance_score) for h in anna.recall("the weir")]
    assert len(before) == 2 and before[0][0] == "the weir holds"
    # ln(1 + 2.5/1.5) for `weir` and ln(1 + 1.5/2.5) for `the`, f = 1, 3 of 8/3 words
    norm = 1.2 * (1 - 0.75 + 0.75 * 3 / (8 / 3))
    assert before[0][1] == pytest.approx((0.980829 + 0.470004) * 2.2 / (1 + norm), rel=1e-5)


def test_history_goes_by_time_in_pages(weir):
    anna = Memory(weir)
    anna.create()
    for i in (5, 1, 4, 2, 3):
        anna.retain(episode(str(i), at=1000 * i))
    assert texts(anna.history().records) == ["5", "4", "3", "2", "1"]
    seen, token = [], ""
    for _ in range(3):
        page = anna.history(page_size=2, page_token=token)
        seen += texts(page.records)
        token = page.next_page_token
        anna.retain(episode("new", at=9000))  # what comes in front shifts no page
    assert seen == ["5", "4", "3", "2", "1"] and not token
    between = {
        "start_time": timestamp_pb2.Timestamp(seconds=2000),
        "end_time": timestamp_pb2.Timestamp(seconds=4000),
    }
    assert texts(anna.history(**between).records) == ["4", "3", "2"]
    token = anna.history(page_size=2).next_page_token
    assert refused(anna.history, page_token=token, **between).reason == "PAGE_TOKEN_INVALID"
    assert refused(anna.history, page_size=-1).code == CODE.INVALID_ARGUMENT
    wrong = {"start_time": timestamp_pb2.Timestamp(seconds=2**60)}
    assert refused(anna.history, **wrong).code == CODE.INVALID_ARGUMENT


def test_what_is_not_retained(weir):
    anna = Memory(weir)
    anna.create()
    mixed = pb.MemoryRecordInput(
        kind=pb.MEMORY_RECORD_KIND_SEMANTIC, episodic=pb.EpisodicMemoryRecord(summary="x")
    )
    for records in (
        [],
        [pb.MemoryRecordInput()],
        [mixed],
        [episode("x" * 70000)],
        [episode("x", canonical_class=9)],
        ["x"] * 101,
        ["good", pb.MemoryRecordInput()],  # all or none
    ):
        assert refused(anna.retain, *records).reason == "PROTOCOL_ENVELOPE_INVALID"
    assert not anna.history().records
    for ids in ([], ["x" * 65], [""], ["x"] * 1001):
        assert refused(anna.forget, *ids).reason == "PROTOCOL_ENVELOPE_INVALID"
    assert anna.forget("01ARZ3NDEKTSV4RRFFQ69G5FAV") == []


def test_a_deleted_record_is_nowhere(weir):
    anna = Memory(weir)
    anna.create()
    kept = anna.retain("secret one", "secret two", "secret three")
    ids = [record.memory_id for record in kept]
    assert anna.forget(ids[1], ids[1], "no-such-id", reason="asked") == [ids[1]]
    assert texts(reversed(anna.history().records)) == ["secret one", "secret three"]
    assert len(anna.recall("secret")) == 2 and anna.recall("two") == []
    late = anna.subscribe(cursor="0")
    events = [late.next() for _ in range(5)]
    assert [as_words(event) for event in events] == [
        "bank_created:w", "+secret one", "+", "+secret three", "-1",
    ]
    head = events[2].record_retained
    assert head.memory_id == ids[1] and head.bank == place() and head.created_at == kept[1].created_at
    assert not head.WhichOneof("payload")
    assert list(events[4].record_deleted.memory_ids) == [ids[1]]
    assert events[4].record_deleted.reason == "asked"
    late.cancel()


def test_one_key_is_one_retain(weir):
    anna = Memory(weir)
    anna.create()
    answers = []
    threads = [
        threading.Thread(target=lambda: answers.append(anna.retain("once", key="k")))
        for _ in range(12)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(answers) == 12 and all(answer == answers[0] for answer in answers)
    assert texts(anna.history().records) == ["once"]
    assert refused(anna.retain, "other", key="k").code == CODE.INVALID_ARGUMENT


# --- two owners ---------------------------------------------------------------------------------


def test_another_owner_finds_nothing(weir):  # M1, M3, M4
    anna = Memory(weir)
    anna.create()
    kept = anna.retain("of anna")
    for other in (
        Memory(weir, app="app.b"),
        Memory(weir, subject="ben"),
        Memory(weir, subject=""),
        Memory(weir, subject="anna\u00a0"),
    ):
        for call in (other.get, other.history, other.drop):
            found, never = refused(call), refused(call, "never")
            assert (found.code, found.text) == (never.code, never.text)
            assert found.code == CODE.NOT_FOUND
        assert refused(other.retain, "x").code == CODE.NOT_FOUND
        assert refused(other.recall, "anna").code == CODE.NOT_FOUND
        assert refused(other.forget, kept[0].memory_id).code == CODE.NOT_FOUND
        assert not other.banks().banks
        heard = other.subscribe(cursor="0")
        other.create()
        assert heard.next().sequence == 1  # and nothing of anna's before it
        assert not other.history().records and other.recall("anna") == []
        assert other.forget(kept[0].memory_id) == []
        heard.cancel()
        assert len(heard.all) == 1
    assert texts(anna.history().records) == ["of anna"]
    foreign = Memory(weir)
    foreign.context = pb.MemoryRequestContext(app_id="app.b", subject_user_id="anna")
    assert refused(foreign.get).reason == "PROTOCOL_DOMAIN_FIELD_CONFLICT"


def test_with_issuers_the_subject_is_the_tokens(start_weir, issuer):  # noqa: F811 M3
    key = issuer.key("k")
    issuer.keys = [key]
    weir = start_weir(config=identity.configured(issuer))
    scope = "runtime.memory.read runtime.memory.write"

    def of(user, subject=None, claims=scope):
        token = key.sign(issuer.url, user, scope=claims)
        return Memory(weir, subject=user if subject is None else subject, token=token)

    anna, ben = of("anna"), of("ben")
    anna.create()
    anna.retain("of anna")
    assert refused(ben.get).code == CODE.NOT_FOUND
    assert refused(of("ben", subject="anna").get).code == CODE.PERMISSION_DENIED
    # Without a context the token alone says whose it is.
    silent = of("ben")
    silent.context = None
    assert refused(silent.get).code == CODE.NOT_FOUND
    silent = of("anna")
    silent.context = None
    assert silent.get() == anna.get()
    assert refused(of("anna", claims="runtime.memory.read").retain, "x").code == CODE.PERMISSION_DENIED
    assert texts(of("anna", claims="runtime.memory.read").history().records) == ["of anna"]
    assert refused(of("anna", claims="other").get).code == CODE.PERMISSION_DENIED
    assert refused(Memory(weir).get).code == CODE.UNAUTHENTICATED
    events = Events(Memory(weir).open())
    assert events.rest() == [] and events.code == CODE.UNAUTHENTICATED
    events = Events(of("ben", subject="anna").open())
    assert events.rest() == [] and events.code == CODE.PERMISSION_DENIED


# --- events -------------------------------------------------------------------------------------


def test_every_change_is_heard_once_and_in_order(weir):
    anna = Memory(weir)
    live = anna.subscribe()
    anna.create()
    anna.create()  # no change
    kept = anna.retain("one", "two")
    anna.forget(kept[0].memory_id)
    anna.forget(kept[0].memory_id)  # no change
    anna.drop()
    wanted = ["bank_created:w", "+one", "+two", "-1", "bank_deleted:w"]
    assert [as_words(live.next()) for _ in wanted] == wanted
    assert live.sequences == [1, 2, 3, 4, 5]
    assert live.all[1].record_retained == kept[0] and live.all[1].bank == place()
    assert live.all[1].timestamp.seconds
    # From a cursor: what is after it, without the texts of what is gone.
    late = anna.subscribe(cursor="1")
    assert [as_words(late.next()) for _ in range(4)] == ["+", "+", "-1", "bank_deleted:w"]
    anna.create("v")
    assert as_words(late.next()) == as_words(live.next()) == "bank_created:v"
    assert late.sequences == [2, 3, 4, 5, 6]
    never = anna.subscribe(cursor="99")  # all that is kept
    assert [never.next().sequence for _ in range(6)] == [1, 2, 3, 4, 5, 6]
    for wrong in ("x", "-1", "1.5", " 1"):
        events = Events(anna.open(cursor=wrong))
        assert events.rest() == [] and events.code == CODE.INVALID_ARGUMENT
    for one in (live, late, never):
        one.cancel()


def test_a_subscriber_hears_what_it_filters_for(weir):
    anna = Memory(weir)
    app = pb.PublicMemoryBankLocator(
        app_private=pb.AppPrivateBankOwner(account_id="acc", app_id="app.a")
    )
    one = pb.MemoryBankOwnerFilter(
        workspace_private=pb.WorkspacePrivateBankOwner(account_id="acc", workspace_id="v")
    )
    of_apps = anna.subscribe(scope_filters=[pb.MEMORY_BANK_SCOPE_APP_PRIVATE])
    of_v = anna.subscribe(owner_filters=[one])
    anna.create("w")
    anna.create("v")
    anna.ask("CreateBank", pb.CreateBankRequest(context=anna.context, locator=app))
    anna.retain("in v", name="v")
    assert of_apps.next().bank.app_private.app_id == "app.a"
    assert [as_words(of_v.next()) for _ in range(2)] == ["bank_created:v", "+in v"]
    late = anna.subscribe(cursor="0", owner_filters=[one])
    assert [as_words(late.next()) for _ in range(2)] == ["bank_created:v", "+in v"]
    assert of_v.sequences == late.sequences == [2, 4] and of_apps.sequences == [3]
    for events in (of_apps, of_v, late):
        events.cancel()
    assert len(of_apps.all) == 1 and len(of_v.all) == 2
    for fields in ({"scope_filters": [9]}, {"owner_filters": [pb.MemoryBankOwnerFilter()]}):
        events = Events(anna.open(**fields))
        assert events.rest() == [] and events.code == CODE.INVALID_ARGUMENT


def test_writers_on_many_connections_make_one_order(start_weir):
    """Loops commit at once; each subscriber sees each change once, in the same order."""
    weir = start_weir(config="threads: 2\n")
    anna = Memory(weir)
    anna.create()
    early = [Memory(weir).subscribe() for _ in range(4)]

    def write(number):
        mine = Memory(weir)
        for i in range(25):
            mine.retain(f"{number}.{i}", f"{number}.{i}b")

    threads = [threading.Thread(target=write, args=[n]) for n in range(6)]
    for thread in threads:
        thread.start()
    middle = Memory(weir).subscribe(cursor="1")
    for thread in threads:
        thread.join()
    late = Memory(weir).subscribe(cursor="1")
    heard = []
    for events in (*early, middle, late):
        for _ in range(300):
            events.next()
        heard.append([as_words(event) for event in events.all])
        assert events.sequences == list(range(2, 302))
        events.cancel()
    assert all(one == heard[0] for one in heard) and len(set(heard[0])) == 300
    for number in range(6):
        mine = [text for text in heard[0] if text.startswith(f"+{number}.")]
        assert mine == [f"+{number}.{i}{b}" for i in range(25) for b in ("", "b")]


def test_a_cursor_outlives_the_daemon(weir):
    anna = Memory(weir)
    live = anna.subscribe()
    anna.create()
    anna.retain("one")
    cursor = [live.next(), live.next()][1].sequence
    anna.retain("two")
    weir.signal(15)
    assert_stopped(live)
    assert weir.wait() == 0  # a second signal would end it at once
    weir.start()
    anna = Memory(weir)
    assert texts(reversed(anna.history().records)) == ["one", "two"]
    assert len(anna.recall("two")) == 1
    late = anna.subscribe(cursor=str(cursor))
    assert as_words(late.next()) == "+two" and late.all[0].sequence == cursor + 1
    anna.retain("three")
    assert as_words(late.next()) == "+three"
    late.cancel()


@pytest.mark.parametrize("seed", range(3))
def test_a_killed_daemon_loses_and_repeats_no_change(start_weir, seed):
    """Killed among writes: what was acknowledged is there, and a cursor misses nothing."""
    chance = random.Random(seed)
    weir = start_weir()
    Memory(weir).create()
    acknowledged, heard, cursor = [], [], "1"
    for life in range(4):
        anna = Memory(weir)
        events = anna.subscribe(cursor=cursor)
        writers, stop = [], threading.Event()

        def write(number, mine):
            for i in range(1000):
                if stop.is_set():
                    return
                text = f"{life}.{number}.{i}"
                with contextlib.suppress(nimi.Refused):
                    mine.retain(text)
                    acknowledged.append(text)

        # Their stubs are made before the channel may be closed: grpcio does not stand both at once.
        writers = [threading.Thread(target=write, args=[n, Memory(weir)]) for n in range(3)]
        for writer in writers:
            writer.start()
        for _ in range(chance.randrange(5, 40)):
            heard.append(events.next())
        stop.set()
        weir.kill()
        for writer in writers:
            writer.join()
        cursor = str(heard[-1].sequence)  # a client that noted this much, and no more
        weir.start()
    late = Memory(weir).subscribe(cursor=cursor)
    total = len(list(_all_records(Memory(weir))))
    while len(heard) < total:
        heard.append(late.next())
    late.cancel()
    assert [event.sequence for event in heard] == list(range(2, total + 2))
    told = [event.record_retained.episodic.summary for event in heard]
    assert len(set(told)) == len(told) and set(acknowledged) <= set(told)


def _all_records(memory):
    token = ""
    while True:
        page = memory.history(page_size=200, page_token=token)
        yield from page.records
        token = page.next_page_token
        if not token:
            return


# --- slow subscribers, and the end --------------------------------------------------------------


def stall(weir, streams):
    """One connection whose streams subscribe and whose client never reads nor grants a window."""
    names = {name.replace("-", "_"): value for name, value in nimi.HEADERS.items()}
    path = "/nimi.runtime.v1.RuntimeCognitionService/SubscribeMemoryEvents"
    fields = {**names, **attack.GRPC, "x_nimi_app_id": "app.a", "path": path}
    context = pb.MemoryRequestContext(app_id="app.a", subject_user_id="anna")
    body = pb.SubscribeMemoryEventsRequest(context=context).SerializeToString()
    peer = attack.dial(weir.port("nimi_grpc"))
    peer.settimeout(attack.PATIENCE)
    asked = b"".join(
        attack.frame(attack.HEADERS, attack.END_HEADERS, number, attack.request(**fields))
        + attack.frame(
            attack.DATA, attack.END_STREAM, number, b"\0" + len(body).to_bytes(4, "big") + body
        )
        for number in range(1, 2 * streams, 2)
    )
    peer.sendall(attack.START + asked)
    return peer


def test_a_slow_subscriber_is_ended_and_costs_nobody(start_weir):  # B2
    weir = start_weir(config="threads: 1\nlimits: {write_stall: 4s}\n")
    anna = Memory(weir)
    anna.create()
    healthy = [Memory(weir).subscribe() for _ in range(5)]
    with stall(weir, 20) as peer:
        for i in range(20):  # more than the window of a stream, and than that of the topic
            anna.retain("x" * 30000 + str(i))
            for one in healthy:
                assert as_words(one.next()).endswith(str(i))
        ending = attack.Ending()
        peer.settimeout(0.1)
        give_up = time.monotonic() + attack.PATIENCE
        while ending.count(attack.RESET) < 20 and time.monotonic() < give_up:
            with contextlib.suppress(TimeoutError):
                ending.received += peer.recv(262144)
        reset = [payload for kind, _, _, payload in ending.frames if kind == attack.RESET]
        # What gRPC clients show as RESOURCE_EXHAUSTED; trailers could not pass the full window.
        assert reset == [attack.ENHANCE_YOUR_CALM.to_bytes(4, "big")] * 20
    anna.retain("after")
    for one in healthy:
        assert as_words(one.next()) == "+after"
        assert one.sequences == list(range(2, 23))
        one.cancel()


def test_a_reader_that_pauses_goes_on_from_the_store(weir):
    """It falls out of the window that is shared live, and misses nothing."""
    anna = Memory(weir)
    anna.create()
    call = anna.open()
    call.initial_metadata()
    for i in range(60):  # 1.8 MB: beyond what lies in buffers and in the window
        anna.retain("x" * 30000 + str(i))
    seen = [next(call) for _ in range(60)]
    assert [event.sequence for event in seen] == list(range(2, 62))
    assert [event.record_retained.episodic.summary[30000:] for event in seen] == [
        str(i) for i in range(60)
    ]
    call.cancel()


def test_stopping_cancels_250_subscriptions(weir):  # C10
    anna = Memory(weir)
    anna.create()
    events = [anna.subscribe(cursor="0" if i % 2 else "") for i in range(250)]
    weir.signal(15)
    for one in events:
        assert_stopped(one)
        assert_in_order(one)
    assert weir.wait() == 0


# --- many ---------------------------------------------------------------------------------------


@pytest.mark.skipif(crawbl.is_sanitized(), reason="the size, not the code, is what is tried")
def test_a_bank_of_100_000_records(start_weir):
    """It is filled, searched, paged, outlives its log, and goes without holding up others."""
    weir = start_weir(config="store: {durability: normal}\n")
    anna = Memory(weir)
    anna.create()
    subscriber = anna.subscribe()
    words = ["weir", "mill", "sea", "stone", "reed"]

    def fill(number):
        mine = Memory(weir)
        for i in range(250):
            mine.retain(*[f"{words[(i + j) % 5]} of day {number}.{i}.{j}" for j in range(100)])

    threads = [threading.Thread(target=fill, args=[n]) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(anna.recall("weir", limit=200)) == 200
    found = anna.recall("3.77.42 stone")
    assert "3.77.42" in found[0].record.episodic.summary
    page = anna.history(page_size=200)
    again = anna.history(page_size=200, page_token=page.next_page_token)
    assert len({r.memory_id for r in [*page.records, *again.records]}) == 400
    # It kept up with all of it, or fell behind what is kept and is told so, without a gap.
    with contextlib.suppress(AssertionError):
        while subscriber.next().sequence < 100001:
            pass
    assert subscriber.sequences == list(range(2, len(subscriber.all) + 2))
    subscriber.call.cancel()
    ended = CODE.CANCELLED if len(subscriber.all) == 100000 else CODE.RESOURCE_EXHAUSTED
    assert subscriber.code == ended
    # The log keeps the newest 10,000: an older cursor gets those, and the gap says so.
    late = anna.subscribe(cursor="5")
    assert [late.next().sequence for _ in range(10000)] == list(range(90002, 100002))
    late.cancel()
    anna.drop()
    anna.create()
    anna.retain("the first one")
    assert texts(anna.history().records) == ["the first one"] and anna.recall("weir") == []
