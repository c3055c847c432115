"""Memories: one table behind the Memory service and our own routes."""
import random
import sqlite3
import time

import crawbl
import grpc
import harness
import pytest
from agentruntime.v1 import memory_pb2 as pb
from agentruntime.v1 import memory_pb2_grpc

LIST = "/crawbl.agentruntime.v1.Memory/ListMemories"
INT_MAX = 2**31 - 1


class Memory:
    """The service as one caller sees it: replies are values, refusals are (code, text)."""

    def __init__(self, weir, workspace="ws-1", user="user-1", authenticated=True):
        self.stub = memory_pb2_grpc.MemoryStub(weir.channel())
        self.metadata = weir.metadata(user, workspace) if authenticated else ()
        self.workspace = workspace if authenticated else ""

    def _ask(self, method, request):
        call = getattr(self.stub, method)
        return call(request, metadata=self.metadata, timeout=20)

    def _whole(self, fields):
        """A request names its workspace (K36), unless the test says otherwise."""
        return {"workspace_id": self.workspace, **fields}

    def list(self, **fields):
        return list(self._ask("ListMemories", pb.ListMemoriesRequest(**self._whole(fields))).entries)

    def create(self, key="", content="", category="", **fields):
        request = pb.CreateMemoryRequest(
            key=key, content=content, category=category, **self._whole(fields)
        )
        return self._ask("CreateMemory", request).entry

    def delete(self, key="", **fields):
        return self._ask("DeleteMemory", pb.DeleteMemoryRequest(key=key, **self._whole(fields)))

    def keys(self, **fields):
        return [entry.key for entry in self.list(**fields)]


def refused(ask, *args, **fields):
    with pytest.raises(grpc.RpcError) as refusal:
        ask(*args, **fields)
    return refusal.value.code().name, refusal.value.details()


@pytest.fixture
def memory(weir):
    return Memory(weir)


# --- the table of the contract -----------------------------------------------------------------


def test_what_is_created_is_listed_newest_first(memory):
    before = time.time()
    for key in ("b", "a", "c"):
        entry = memory.create(key, f"content of {key}", "core")
        assert (entry.key, entry.content, entry.category) == (key, f"content of {key}", "core")
        assert entry.created_at == entry.updated_at
        assert before - 1 < entry.created_at.ToMicroseconds() / 1e6 < time.time() + 1
        time.sleep(0.002)
    assert memory.keys() == ["c", "a", "b"]
    memory.create("b", "again", "core")
    assert memory.keys() == ["b", "c", "a"]


def test_create_replaces_within_its_category_and_keeps_when_it_was_made(memory):
    first = memory.create("k", "1", "core")
    memory.create("k", "2", "daily")
    time.sleep(0.002)
    again = memory.create("k", "3", "core")
    assert again.created_at == first.created_at
    assert again.updated_at.ToMicroseconds() > first.updated_at.ToMicroseconds()
    assert {(e.category, e.content) for e in memory.list()} == {("core", "3"), ("daily", "2")}


def test_a_category_is_exact_and_empty_means_all(memory):
    for category in ("core", "Core", ""):
        memory.create("k", category, category)
    assert [e.content for e in memory.list(category="core")] == ["core"]
    assert [e.content for e in memory.list(category="Core")] == ["Core"]
    assert memory.list(category="cor") == []
    assert len(memory.list()) == 3


def test_delete_takes_a_key_out_of_every_category(memory):
    memory.create("k", "1", "core")
    memory.create("k", "2", "daily")
    memory.create("other", "3", "core")
    memory.delete("k")
    assert memory.keys() == ["other"]
    assert refused(memory.delete, "k") == ("NOT_FOUND", "memory: entry not found")


def test_what_is_missing_is_named(memory):
    required = ("INVALID_ARGUMENT", "memory: key is required")
    assert refused(memory.create) == required
    assert refused(memory.delete) == required
    entry = memory.create("empty")
    assert (entry.content, entry.category) == ("", "")


# I7
def test_pages_have_bounds(memory):
    for number in range(103):
        memory.create(f"k{number}", "x", "core")
    assert len(memory.list()) == 100
    assert len(memory.list(limit=INT_MAX)) == 103
    assert len(memory.list(limit=5, offset=100)) == 3
    assert memory.list(offset=103) == []
    assert memory.list(offset=INT_MAX, limit=INT_MAX) == []
    assert refused(memory.list, limit=-1)[0] == "INVALID_ARGUMENT"
    assert refused(memory.list, offset=-1)[0] == "INVALID_ARGUMENT"
    seen = [e.key for page in range(0, 103, 10) for e in memory.list(limit=10, offset=page)]
    assert sorted(seen) == sorted(f"k{n}" for n in range(103))


def test_sizes_have_bounds(memory):
    memory.create("k" * 256, "c" * 16384, "g" * 256)
    for too_long in ({"key": "k" * 257}, {"key": "k", "content": "c" * 16385},
                     {"key": "k", "category": "g" * 257}):
        assert refused(memory.create, **too_long)[0] == "INVALID_ARGUMENT"
    assert len(memory.list()) == 1


def test_a_page_that_clients_could_not_take_is_refused_and_a_smaller_one_is_not(memory):
    for number in range(260):
        memory.create(f"k{number}", "c" * 16384)
    code, text = refused(memory.list, limit=1000)
    assert code == "RESOURCE_EXHAUSTED" and "limit" in text
    assert len(memory.list(limit=200)) == 200


# --- whose memories ------------------------------------------------------------------------------


# A5
def test_naming_another_workspace_is_refused_and_changes_nothing(weir, memory):
    other = Memory(weir, workspace="ws-2", user="user-2")
    other.create("theirs", "secret", "core")
    before = other.list()
    denied = "PERMISSION_DENIED"
    assert refused(memory.list, workspace_id="ws-2")[0] == denied
    assert refused(memory.create, "theirs", "mine", "core", workspace_id="ws-2")[0] == denied
    assert refused(memory.delete, "theirs", workspace_id="ws-2")[0] == denied
    assert refused(memory.delete, "theirs")[0] == "NOT_FOUND"
    assert memory.list() == [] and other.list() == before
    memory.create("k", "v", workspace_id="ws-1")
    assert memory.keys(workspace_id="ws-1") == memory.keys() == ["k"]


def test_a_call_without_a_valid_token_is_unauthenticated(weir):
    stranger = Memory(weir, authenticated=False)
    assert refused(stranger.list)[0] == "UNAUTHENTICATED"
    stranger.metadata = (("authorization", "Bearer " + harness.token(key="another key")),)
    assert refused(stranger.create, "k", "v") == ("UNAUTHENTICATED", "invalid bearer token")


@pytest.mark.weir(env={"CRAWBL_MCP_SIGNING_KEY": None})
def test_without_a_key_the_request_says_whose(weir):
    anybody = Memory(weir, authenticated=False)
    required = ("INVALID_ARGUMENT", "memory: workspace_id is required")
    assert refused(anybody.list) == required
    assert refused(anybody.create, "k", "v") == required
    assert refused(anybody.delete, "k") == required
    anybody.create("k", "v", workspace_id="a")
    assert anybody.keys(workspace_id="a") == ["k"]
    assert anybody.keys(workspace_id="b") == []


# T8
def test_injected_text_is_only_text(weir, memory):
    other = Memory(weir, workspace="ws-2")
    other.create("kept", "kept", "kept")
    texts = ["'; DROP TABLE memory; --", '" OR "1"="1', "%' OR 1=1 --", "a\1b", "NEAR(a b)",
             "place:w7773", "* ^ (", "系统", "\u202etxt", "🎉", "?1 :a @b $c", "\\'\\\"", "\n"]
    for text in texts:
        entry = memory.create(text, text, text)
        assert (entry.key, entry.content, entry.category) == (text, text, text)
        (found,) = memory.list(category=text)
        assert found == entry
        memory.delete(text)
    assert memory.list() == [] and other.keys() == ["kept"]


NO_NUL = "has a NUL (U+0000) at byte 1, which a store of texts cannot hold; leave it out"


def nul_is_refused(weir, memory, client):
    """Each door says the same, and nothing is written."""
    memory.create("kept", "kept")
    for fields in ({"key": "a\0b"}, {"key": "k", "content": "a\0b"}, {"key": "k", "category": "a\0b"}):
        code, text = refused(memory.create, **fields)
        assert code == "INVALID_ARGUMENT" and NO_NUL in text
        answer = client.post(MEMORIES, json={"content": "", "category": "", **fields})
        assert answer.status_code == 422 and NO_NUL in answer.text
    assert refused(memory.delete, "a\0b")[0] == "INVALID_ARGUMENT"
    assert refused(memory.list, category="a\0b")[0] == "INVALID_ARGUMENT"
    assert client.delete(MEMORIES + "/a%00b").status_code in (400, 422)
    assert client.get(MEMORIES, params={"category": "a\0b"}).status_code in (400, 422)
    assert memory.keys() == ["kept"]


def test_a_nul_is_refused_before_anything_is_written(weir, memory):
    nul_is_refused(weir, memory, http(weir))


# --- the wire --------------------------------------------------------------------------------------


def test_the_golden_request_is_understood(weir, memory):
    memory.create("k", "v", workspace_id="ws-1")
    golden = bytes.fromhex("00000000040a027731")
    assert crawbl.frame(pb.ListMemoriesRequest(workspace_id="w1").SerializeToString()) == golden
    raw = weir.channel().unary_unary(LIST)  # bytes in, bytes out
    with pytest.raises(grpc.RpcError) as refusal:
        raw(golden[5:], metadata=weir.metadata(), timeout=20)
    assert refusal.value.code() == grpc.StatusCode.PERMISSION_DENIED
    assert raw(golden[5:], metadata=weir.metadata(workspace="w1"), timeout=20) == b""
    with pytest.raises(grpc.RpcError) as refusal:
        raw(b"\x0a\x05w", metadata=weir.metadata(), timeout=20)
    assert refusal.value.code() == grpc.StatusCode.INTERNAL


# --- it lasts --------------------------------------------------------------------------------------


def test_memories_outlive_restarts_and_kills(weir):
    Memory(weir).create("k", "v", "core")
    weir.restart()
    (kept,) = Memory(weir).list()
    assert (kept.key, kept.content, kept.category) == ("k", "v", "core")
    Memory(weir).create("k", "v2", "core")
    weir.kill()
    weir.start()
    (kept,) = Memory(weir).list()
    assert kept.content == "v2" and kept.updated_at.ToMicroseconds() > 0


# M1, small
def test_random_operations_of_several_workspaces_agree_with_a_model(weir):
    dice = random.Random(7)
    doors = {name: Memory(weir, workspace=name) for name in ("ws-a", "ws-b", "ws-c")}
    model = {}
    for step in range(400):
        name = dice.choice(sorted(doors))
        key, category = dice.choice("abcdef"), dice.choice(["core", "daily"])
        if dice.random() < 0.6:
            doors[name].create(key, str(step), category)
            model[name, category, key] = str(step)
        elif any((name, c, key) in model for c in ("core", "daily")):
            doors[name].delete(key)
            model = {k: v for k, v in model.items() if (k[0], k[2]) != (name, key)}
        else:
            assert refused(doors[name].delete, key)[0] == "NOT_FOUND"
        told = {(name, e.category, e.key): e.content for e in doors[name].list()}
        assert told == {k: v for k, v in model.items() if k[0] == name}
    weir.stop()
    with sqlite3.connect(weir.data / "weir.db") as db:
        assert db.execute("PRAGMA integrity_check").fetchone() == ("ok",)


# --- the same table over HTTP ------------------------------------------------------------------------

MEMORIES = "/weir/v1/memories"


def http(weir, workspace="ws-1", user="user-1"):
    token = harness.token(user, workspace)
    return weir.http(headers={"authorization": "Bearer " + token})


def put(client, key, content="", category="", **params):
    body = {"key": key, "content": content, "category": category}
    answer = client.post(MEMORIES, json=body, params=params)
    assert answer.status_code == 200, answer.text
    return answer.json()["memory"]


def get(client, **params):
    answer = client.get(MEMORIES, params=params)
    assert answer.status_code == 200, answer.text
    return answer.json()["memories"]


def failure(answer):
    return answer.status_code, answer.json()["error"]["code"]


def test_both_doors_show_one_table(weir, memory):
    client = http(weir)
    stored = put(client, "k", "over HTTP", "core")
    (entry,) = memory.list()
    assert (entry.key, entry.content, entry.category) == ("k", "over HTTP", "core")
    assert entry.updated_at.ToMilliseconds() == stored["updated_unix_ms"]
    memory.create("k/2 ä", "over gRPC", "core")
    assert {e["key"]: e["content"] for e in get(client)} == {
        "k": "over HTTP",
        "k/2 ä": "over gRPC",
    }
    answer = client.delete(MEMORIES + "/k%2F2%20%C3%A4")
    assert answer.json() == {"deleted": 1}
    assert failure(client.delete(MEMORIES + "/k%2F2%20%C3%A4")) == (404, "MEMORY_NOT_FOUND")
    assert memory.keys() == ["k"]


def test_words_are_searched_best_first(weir):
    client = http(weir)
    put(client, "kyoto", "two days, cheap", "trip")
    put(client, "osaka", "one day near Kyōto", "trip")
    put(client, "ramen", "cheap", "food")
    assert [e["key"] for e in get(client, q="KYOTO")] == ["kyoto", "osaka"]
    assert [e["key"] for e in get(client, q='cheap "kyoto" AND')] == []
    assert [e["key"] for e in get(client, q='"cheap* -kyoto')] == ["kyoto"]
    assert [e["key"] for e in get(client, q="cheap", category="food")] == ["ramen"]
    page = client.get(MEMORIES, params={"limit": 2}).json()
    assert len(page["memories"]) == 2 and page["more"] is True
    page = client.get(MEMORIES, params={"limit": 2, "offset": 2}).json()
    assert len(page["memories"]) == 1 and page["more"] is False


@pytest.mark.parametrize(
    "params, status",
    [
        ({"limit": "-1"}, 422),
        ({"offset": "-1"}, 422),
        ({"limit": "many"}, 400),
        ({"category": "g" * 257}, 422),
        ({"q": "w" * 1025}, 422),
        ({"categroy": "core"}, 400),
    ],
)
def test_a_wrong_filter_is_refused_not_ignored(weir, params, status):
    assert failure(http(weir).get(MEMORIES, params=params)) == (status, "INVALID_INPUT")


@pytest.mark.parametrize(
    "body, status",
    [
        ("{", 400),
        ("[]", 400),
        ("{}", 400),
        ('{"key":""}', 422),
        ('{"key":5}', 422),
        ('{"key":"k","content":5}', 422),
        ('{"key":"k","content":"c","categroy":"core"}', 400),
        ('{"key":"k","content":"c","":0}', 400),
        ('{"key":"' + "k" * 257 + '"}', 422),
    ],
)
def test_a_wrong_body_is_refused(weir, body, status):
    headers = {"content-type": "application/json"}
    answer = http(weir).post(MEMORIES, content=body, headers=headers)
    assert failure(answer)[0] == status


# K23
def test_over_http_a_workspace_is_as_closed_as_over_grpc(weir):
    mine, theirs = http(weir), http(weir, workspace="ws-2")
    put(theirs, "secret", "canary")
    assert get(mine) == [] and get(mine, q="canary") == []
    assert failure(mine.get(MEMORIES, params={"workspace": "ws-2"})) == (403, "FORBIDDEN")
    assert failure(mine.delete(MEMORIES + "/secret")) == (404, "MEMORY_NOT_FOUND")
    assert failure(mine.delete(MEMORIES + "/secret?workspace=ws-2")) == (403, "FORBIDDEN")
    assert [e["key"] for e in get(theirs, workspace="ws-2")] == ["secret"]
    assert weir.http().get(MEMORIES).status_code == 401


@pytest.mark.weir(env={"CRAWBL_MCP_SIGNING_KEY": None})
def test_without_any_token_this_machine_sees_all_workspaces(weir):
    client = weir.http()
    put(client, "k", "v")
    put(client, "k", "other", workspace="b")
    assert [e["content"] for e in get(client)] == ["v"]
    assert [e["content"] for e in get(client, workspace="default")] == ["v"]
    assert [e["content"] for e in get(client, workspace="b")] == ["other"]


# --- many at once --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "compression", [grpc.Compression.NoCompression, grpc.Compression.Gzip], ids=["plain", "gzip"]
)
def test_what_many_workspaces_store_at_once_over_one_connection_stays_apart(weir, compression):
    stub = memory_pb2_grpc.MemoryStub(weir.channel())
    options = {"compression": compression, "timeout": 60}

    def content(number):
        return f"only for space {number:03}: " + f"{number:03} " * (number * 7 % 97)

    asked = []
    for number in range(200):
        space = f"space-{number}"
        request = pb.CreateMemoryRequest(
            key="k", content=content(number), category=f"c{number}", workspace_id=space
        )
        metadata = weir.metadata("user-1", space)
        asked.append(stub.CreateMemory.future(request, metadata=metadata, **options))
    for number, call in enumerate(asked):
        assert call.result().entry.content == content(number)
    for number in range(200):
        space = f"space-{number}"
        metadata = weir.metadata("user-1", space)
        request = pb.ListMemoriesRequest(workspace_id=space)
        entries = stub.ListMemories(request, metadata=metadata, **options).entries
        assert [(e.category, e.content) for e in entries] == [(f"c{number}", content(number))]
