"""Memory banks with vectors: what a model makes of records, and what Recall makes of that."""
import math
import time

import embeddings
import grpc
import nimi_client as nimi
import pytest
from nimi.runtime.v1 import memory_pb2 as pb
from test_nimi_memory import Memory, refused, texts

CODE = grpc.StatusCode
HOUSE = {"HOUSE_KEY": "k"}
PATIENCE = 30  # seconds


@pytest.fixture
def maker():
    server = embeddings.Embeddings()
    yield server
    server.end()


def profile(dimension=6, model="m", provider="maker", **fields):
    return pb.MemoryEmbeddingProfile(
        provider=provider, model_id=model, dimension=dimension, **fields
    )


HASH = profile(256, "hash-256", "local")


def until(condition):
    """What the condition returned, once that is something."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        found = condition()
        if found:
            return found
        time.sleep(0.02)
    raise AssertionError("it did not come about")


def reasons(hits):
    return {hit.record.episodic.summary: hit.match_reason for hit in hits}


def embedded(memory, query, count, name="w"):
    """The hits of a query once `count` records have their vectors."""

    def look():
        hits = memory.recall(query, name, limit=200)
        return hits if sum("cosine" in h.match_reason for h in hits) >= count else None

    return until(look)


def cosine(one, other):
    a, b = embeddings.vector_of(one, 6), embeddings.vector_of(other, 6)
    dot = sum(x * y for x, y in zip(a, b))
    return dot / math.sqrt(sum(x * x for x in a) * sum(y * y for y in b))


def test_meaning_is_found_without_the_word(start_weir, maker):
    weir = start_weir(config=maker.config, env=HOUSE)
    anna = Memory(weir)
    made = anna.create(embedding_profile=profile())
    assert made.embedding_profile == profile() == anna.get().embedding_profile
    anna.retain("the automobile stands", "the loaf is warm", "an ocean of time", "car car")
    hits = embedded(anna, "car", 4)
    assert texts([h.record for h in hits[:2]]) == ["car car", "the automobile stands"]
    found = {h.record.episodic.summary: h for h in hits}
    assert found["the automobile stands"].match_reason == "cosine"
    assert found["car car"].match_reason == "bm25+cosine"
    for text in ("the automobile stands", "the loaf is warm"):
        assert found[text].relevance_score == pytest.approx(cosine("car", text) / 2, abs=1e-6)
    assert all(h.relevance_score <= 1 for h in hits)
    # Filters and limits hold for vectors too.
    assert len(anna.recall("car", limit=1)) == 1
    assert not anna.recall("car", kinds=[pb.MEMORY_RECORD_KIND_SEMANTIC])
    # What is deleted is found by nothing; another's bank has none of it.
    anna.forget(found["the automobile stands"].record.memory_id)
    assert "the automobile stands" not in reasons(anna.recall("car"))
    ben = Memory(weir, subject="ben")
    ben.create(embedding_profile=profile())
    assert ben.recall("car") == []


def test_the_demo_has_a_model_of_its_own(weir):
    anna = Memory(weir)
    anna.create(embedding_profile=HASH)
    anna.retain("wagonwheels roll", "the sea is calm")
    hits = embedded(anna, "wagonwheel", 1)
    assert reasons(hits)["wagonwheels roll"] == "cosine"  # parts of words
    wrong = profile(255, "hash-256", "local")
    failure = refused(anna.create, "other", embedding_profile=wrong)
    assert failure.code == CODE.INVALID_ARGUMENT and "256" in failure.text
    for bad in (
        profile(256, "nothing", "local"),
        profile(provider="nobody"),
        profile(5000),
        profile(distance_metric=7),
    ):
        assert refused(anna.create, "other", embedding_profile=bad).code in (
            CODE.FAILED_PRECONDITION,
            CODE.INVALID_ARGUMENT,
        )
    assert len(anna.banks().banks) == 1


def test_a_distance_is_a_metric_too(start_weir, maker):
    weir = start_weir(config=maker.config, env=HOUSE)
    anna = Memory(weir)
    anna.create(embedding_profile=profile(distance_metric=pb.MEMORY_DISTANCE_METRIC_EUCLIDEAN))
    anna.retain("automobile")
    hits = until(lambda: [h for h in anna.recall("car") if h.match_reason == "euclidean"])
    assert hits[0].relevance_score == pytest.approx(0.5, abs=1e-6)


def test_a_model_that_is_down_is_waited_for(start_weir, maker):
    """Over a restart, too. Meanwhile words find what there is."""
    weir = start_weir(config=maker.config, env=HOUSE)
    anna = Memory(weir)
    maker.status = 503
    anna.create(embedding_profile=profile())  # it may come back
    anna.retain("automobile", "bread")
    assert reasons(anna.recall("automobile")) == {"automobile": "bm25"}
    assert anna.recall("car") == []
    weir.kill()
    weir.restart()
    anna = Memory(weir)
    assert reasons(anna.recall("bread")) == {"bread": "bm25"}
    maker.status = 200
    assert reasons(embedded(anna, "car", 1))["automobile"] == "cosine"
    before = len(maker.texts())
    maker.status = 503  # the query alone
    assert reasons(anna.recall("automobile")) == {"automobile": "bm25"}
    assert maker.texts()[before:] == ["automobile"]


def test_a_record_that_the_model_refuses_holds_up_no_other(start_weir, maker):
    weir = start_weir(config=maker.config, env=HOUSE)
    anna = Memory(weir)
    anna.create(embedding_profile=profile())
    maker.refused = "poison"
    anna.retain("automobile", "poison", " ", "wagon")
    found = reasons(embedded(anna, "car", 2))
    assert set(found) == {"automobile", "wagon"}
    assert reasons(anna.recall("poison"))["poison"] == "bm25"
    anna.retain("car")  # and later ones
    assert "car" in reasons(embedded(anna, "car", 3))
    # If it refuses everything, nothing is given up.
    maker.refused = ""
    maker.status = 400
    anna.retain("wagon two")
    until(lambda: maker.asked[-1] == ["weir"])
    maker.status = 200
    assert "wagon two" in reasons(embedded(anna, "car", 4))


def test_vectors_of_another_length_are_not_kept(start_weir, maker):
    weir = start_weir(config=maker.config, env=HOUSE)
    anna = Memory(weir)
    anna.create(embedding_profile=profile())
    maker.dimension = 7
    failure = refused(anna.create, "other", embedding_profile=profile())
    assert failure.code == CODE.INVALID_ARGUMENT and "7 numbers" in failure.text
    anna.retain("automobile")
    until(lambda: "automobile" in maker.texts())
    assert anna.recall("car") == []
    assert reasons(anna.recall("automobile")) == {"automobile": "bm25"}
    maker.dimension = 6
    assert reasons(embedded(anna, "car", 1))["automobile"] == "cosine"


def test_a_profile_changes_only_where_it_is_said(start_weir, maker):
    weir = start_weir(config=maker.config, env=HOUSE)
    anna = Memory(weir)
    bank = anna.create(embedding_profile=profile())
    anna.retain("automobile", "bread")
    embedded(anna, "car", 1)
    other = profile(256, "hash-256", "builtin")
    assert anna.create(embedding_profile=other) == bank == anna.create()
    frozen = profile(256, "hash-256", "builtin", migration_policy=pb.MEMORY_MIGRATION_POLICY_FREEZE)
    assert anna.create(embedding_profile=frozen) == bank
    anew = profile(256, "hash-256", "builtin", migration_policy=pb.MEMORY_MIGRATION_POLICY_REINDEX)
    changed = anna.create(embedding_profile=anew)
    assert changed.bank_id == bank.bank_id and changed.embedding_profile == anew == anna.get().embedding_profile
    assert changed.created_at == bank.created_at and changed.metadata == bank.metadata
    hits = embedded(anna, "automobil", 1)
    assert reasons(hits)["automobile"] == "cosine"
    # A bank that had none gets vectors for what it has.
    anna.create("plain")
    anna.retain("wagonwheels", name="plain")
    assert anna.recall("wagonwheel", "plain") == []
    anna.create("plain", embedding_profile=anew)
    assert embedded(anna, "wagonwheel", 1, "plain")


def test_who_leaves_while_a_model_thinks_asks_for_nothing(start_weir, maker):
    weir = start_weir(config=maker.config, env=HOUSE)
    anna = Memory(weir)
    anna.create(embedding_profile=profile())
    anna.retain("automobile")
    embedded(anna, "car", 1)
    maker.goes_on.clear()
    query = pb.MemoryRecallQuery(query="wagon")
    asked = pb.RecallRequest(context=anna.context, bank=anna.get().locator, query=query)
    call = anna.stub.Recall.future(asked, metadata=anna.metadata)
    until(lambda: "wagon" in maker.texts())
    call.cancel()
    locator = pb.PublicMemoryBankLocator(
        app_private=pb.AppPrivateBankOwner(account_id="acc", app_id=anna.app)
    )
    making = pb.CreateBankRequest(
        context=anna.context, locator=locator, embedding_profile=profile()
    )
    count = len(maker.asked)
    call = anna.stub.CreateBank.future(making, metadata=anna.metadata)
    until(lambda: len(maker.asked) > count)
    call.cancel()
    # A model that says nothing holds up no recall for long.
    assert reasons(anna.recall("automobile")) == {"automobile": "bm25"}
    maker.goes_on.set()
    assert len(anna.banks().banks) == 1
    embedded(anna, "car", 1)


def test_a_stop_waits_for_no_vectors(start_weir, maker):
    weir = start_weir(config=maker.config, env=HOUSE)
    anna = Memory(weir)
    anna.create(embedding_profile=profile())
    maker.goes_on.clear()
    anna.retain("automobile")
    until(lambda: "automobile" in maker.texts())
    query = pb.MemoryRecallQuery(query="wagon")
    asked = pb.RecallRequest(context=anna.context, bank=anna.get().locator, query=query)
    call = anna.stub.Recall.future(asked, metadata=anna.metadata)
    until(lambda: "wagon" in maker.texts())
    weir.signal(15)
    assert weir.wait() == 0
    assert call.code() in (CODE.OK, CODE.CANCELLED, CODE.UNAVAILABLE)
    maker.goes_on.set()
    weir.restart()
    assert embedded(Memory(weir), "car", 1)


def test_a_bank_that_goes_takes_its_vectors_along(start_weir, maker):
    weir = start_weir(config=maker.config, env=HOUSE)
    anna = Memory(weir)
    anna.create(embedding_profile=profile())
    anna.retain(*[f"automobile {i}" for i in range(100)])
    embedded(anna, "car", 100)
    anna.retain("behind")
    anna.drop()
    assert refused(anna.recall, "car").code == CODE.NOT_FOUND
    anna.create(embedding_profile=profile())
    assert anna.recall("car") == []
    anna.retain("wagon")
    assert reasons(embedded(anna, "car", 1)) == {"wagon": "cosine"}
