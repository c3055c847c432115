"""Files of tools and artifacts in S3-compatible storage: moto's server, and a bent road to it."""
import json
import sqlite3
import threading

import harness
import pytest
import storage as s3
from storage import cut, held, lost, status, wait_for

BIG = 12 * 1024 * 1024  # two parts
LONG = 100_000  # a result longer than a model is shown


@pytest.fixture
def bucket():
    storage = s3.Storage()
    yield storage
    storage.close()
    assert not storage.wrong, storage.wrong[0]


def play(tmp_path, tools="[file_write, file_read, long]", own=True):
    """One agent, that does what the word says."""
    write = {"key": "/../notes//a plan+ü.md", "content": "Grüße\n"}
    scenes = [
        {"match": "write", "replies": [[{"tool_call": {"tool": "file_write", "args": write}}], "{result}"]},
        {"match": "read", "replies": [[{"tool_call": {"tool": "file_read", "args": {"key": write["key"]}}}], "{result}"]},
        {"match": "piece", "replies": [[{"tool_call": {"tool": "read_result", "args": {"result_id": 1, "offset": 50_000}}}], "{result}"]},
        {"match": "long", "replies": [[{"tool_call": {"tool": "long", "args": {}}}], "{result}"]},
        {"match": "", "reply": "hm"},
    ]
    del scenes[-1]["match"]
    script = {
        "script": 1,
        "pace": {"every": 0, "chunk": 0},
        "agents": [{"slug": "clerk"}],
        "scenes": scenes,
    }
    if own:
        script["tools"] = [{"name": "long", "result": {"text": "x" * LONG}}]
    (tmp_path / "play.yaml").write_text(json.dumps(script))
    return f"script: {tmp_path}/play.yaml\nagents:\n  - {{slug: clerk, provider: scripted, tools: {tools}}}\n"


@pytest.fixture
def weir(start_weir, bucket, tmp_path):
    return start_weir(config=play(tmp_path), env=bucket.environment(WEIR_FILES_S3_SWEEP="100ms"))


def say(weir, text, session=None):
    with weir.http() as http:
        answer = http.post("/invoke", json={"input": text, **({"session_id": session} if session else {})})
    assert answer.status_code == 200, answer.text
    answer = answer.json()
    results = [e for e in answer.get("history", []) if isinstance(e, dict)]
    return answer["output"], results


KEY = "workspaces/default/files/notes/a plan+ü.md"


def test_a_file_is_written_to_the_bucket_and_read_back(weir, bucket):
    output, _ = say(weir, "write")
    assert json.loads(output)["object_key"] == KEY
    assert bucket.keys() == [KEY] and bucket.body(KEY) == "Grüße\n".encode()
    head = bucket.client.head_object(Bucket=s3.BUCKET, Key=KEY)
    assert head["ContentType"] == "text/plain; charset=utf-8"
    output, _ = say(weir, "read")
    assert json.loads(output)["content"] == "Grüße\n"
    assert json.loads(output)["size_bytes"] == 8
    assert s3.SECRET not in weir.log()


def test_what_others_wrote_is_shown_by_its_type(weir, bucket):
    put = lambda body, kind: bucket.client.put_object(Bucket=s3.BUCKET, Key=KEY, Body=body, ContentType=kind)
    put(b"", "text/plain")
    assert json.loads(say(weir, "read")[0])["size_bytes"] == 0
    put(b"plain", "image/png")
    assert json.loads(say(weir, "read")[0])["encoding"] == "base64"
    put(b"a,b\n" * 10_000, "application/octet-stream")  # no type: its name and bytes count
    shown = json.loads(say(weir, "read")[0])
    assert shown["encoding"] == "text" and shown["size_bytes"] == 40_000 and shown["truncated"]


def test_a_missing_file_is_an_answer(weir):
    assert 'no file at key' in say(weir, "read")[0]


@pytest.mark.parametrize(
    "befall",
    [
        status(503, "SlowDown", {"retry-after": "1"}),
        status(500, "InternalError"),
        status(429),
        status(400, "RequestTimeout"),
        lost,
    ],
    ids=["slow-down", "internal", "429", "timeout", "lost"],
)
def test_what_may_be_repeated_is_repeated(weir, bucket, befall):
    bucket.spoil(befall, "PUT")
    assert json.loads(say(weir, "write")[0])["size_bytes"] == 8
    assert [m for m, _ in bucket.asked].count("PUT") == 2
    bucket.spoil(befall, "GET")
    assert json.loads(say(weir, "read")[0])["content"] == "Grüße\n"


@pytest.mark.parametrize(
    "befall, words",
    [
        (status(403, "SignatureDoesNotMatch"), "secret key of files.s3"),
        (status(403, "InvalidAccessKeyId"), "does not know the access key"),
        (status(403, "AccessDenied"), "grant it"),
        (status(403, "RequestTimeTooSkewed", {"date": "Sun, 06 Nov 1994 08:49:37 GMT"}), "ahead of"),
        (status(404, "NoSuchBucket"), "there is no bucket 'weir-files'"),
        (status(301, "PermanentRedirect", {"x-amz-bucket-region": "eu-west-1"}), "set files.s3.region: eu-west-1"),
        (status(307, "TemporaryRedirect", {"location": "http://127.0.0.1:1/"}), "files.s3.region"),
        (status(507, "QuotaExceeded"), "has no room"),
        (status(418), "answered 418"),
    ],
    ids=["signature", "key", "denied", "clock", "bucket", "region", "redirect", "quota", "teapot"],
)
def test_a_refusal_says_what_why_and_the_fix(weir, bucket, befall, words):
    bucket.spoil(befall, "PUT")
    output, _ = say(weir, "write")
    assert words in output
    assert s3.SECRET not in output and s3.SECRET not in weir.log()
    assert len(bucket.asked) == 1, "it was asked again"
    assert json.loads(say(weir, "write")[0])["size_bytes"] == 8


def test_a_storage_that_stays_away_is_given_up(weir, bucket):
    bucket.spoil(status(503, "SlowDown"), times=5)
    assert "try again later" in say(weir, "write")[0]
    assert len(bucket.asked) == 5


def test_a_body_that_is_cut_is_fetched_on_from_there(start_weir, bucket, tmp_path):
    weir = start_weir(config=play(tmp_path), env=bucket.environment())
    bucket.client.put_object(Bucket=s3.BUCKET, Key=KEY, Body=bytes(range(32, 127)) * 100, ContentType="text/plain")
    for _ in range(3):
        bucket.spoil(cut(after=1000), "GET")
    shown = json.loads(say(weir, "read")[0])
    assert shown["content"] == bytes(range(32, 127)).decode() * 100
    assert len([m for m, _ in bucket.asked if m == "GET"]) == 4


def test_bytes_of_two_versions_are_never_mixed(weir, bucket):
    bucket.client.put_object(Bucket=s3.BUCKET, Key=KEY, Body=b"x" * 9000, ContentType="text/plain")

    def cut_and_replaced(handler, forward):
        cut(after=1000)(handler, forward)
        bucket.client.put_object(Bucket=s3.BUCKET, Key=KEY, Body=b"y" * 9000, ContentType="text/plain")

    bucket.spoil(cut_and_replaced, "GET")
    output, _ = say(weir, "read")
    assert "changed meanwhile" in output or "another version" in output


def test_an_answer_that_contradicts_itself_is_not_shown(weir, bucket):
    bucket.client.put_object(Bucket=s3.BUCKET, Key=KEY, Body=b"x" * 90, ContentType="text/plain")
    bucket.spoil(s3.change(content_range="bytes 5-94/95"), "GET")
    assert "did not answer with the range" in say(weir, "read")[0]
    bucket.spoil(s3.change(content_range=None), "GET")
    assert "did not answer with the range" in say(weir, "read")[0]


# --- in parts ------------------------------------------------------------------------------


@pytest.fixture
def large(start_weir, bucket, tmp_path):
    """A program of the operator brings what no script may hold: its result is an artifact."""
    program = f"import json; print(json.dumps('0123456789abcdef' * ({BIG} // 16)))"
    tools = f"tools: {{long: {{description: x, command: [python3, -c, {json.dumps(program)}], output: 15MiB}}}}\n"
    return start_weir(config=play(tmp_path, tools="[long]", own=False) + tools, env=bucket.environment())


def test_what_is_large_goes_up_in_parts(large, bucket):
    say(large, "long", "s1")
    ((key, size, _),) = artifacts(large)
    assert size > BIG and bucket.body(key).count(b"0123456789abcdef") == BIG // 16
    methods = [f"{m} {p.partition('?')[2].split('=')[0]}" for m, p in bucket.asked]
    assert methods == ["POST uploads", "PUT partNumber", "PUT partNumber", "POST uploadId"]
    assert not bucket.uploads()
    assert json.loads(say(large, "piece", "s1")[0])["bytes_in_all"] == size


@pytest.mark.parametrize(
    "befall, when",
    [
        (status(403, "AccessDenied"), "partNumber=2"),
        (s3.change(etag=None), "partNumber=1"),
        (s3.instead("<Error><Code>InternalError</Code></Error>"), "?uploadId"),
        (s3.instead("<Complete"), "?uploadId"),
    ],
    ids=["part-refused", "no-tag", "error-in-200", "cut-xml"],
)
def test_an_upload_that_fails_is_aborted(large, bucket, befall, when):
    bucket.spoil(befall, when)
    say(large, "long", "s1")
    assert not artifacts(large) and len(doomed(large)) == 1
    assert bucket.asked[-1][0] == "DELETE" and "uploadId=" in bucket.asked[-1][1]
    assert not bucket.uploads()


def test_an_upload_whose_completion_was_lost_is_looked_for(large, bucket):
    bucket.spoil(lost, "?uploadId")
    say(large, "long", "s1")
    ((key, size, _),) = artifacts(large)
    assert len(bucket.body(key)) == size
    assert json.loads(say(large, "piece", "s1")[0])["bytes_in_all"] == size


def test_parts_that_a_kill_left_are_swept_away(large, bucket):
    arrived, go = threading.Event(), threading.Event()

    def silent(handler, forward):
        arrived.set()
        go.wait(30)

    bucket.spoil(silent, "partNumber=2")
    thread = threading.Thread(target=lambda: pytest.raises(Exception, say, large, "long", "s1"))
    thread.start()
    assert arrived.wait(30)
    large.kill()
    go.set()
    thread.join()
    assert len(bucket.uploads()) == 1 and not bucket.keys()
    with sqlite3.connect(large.data / "weir.db") as db:
        db.execute("UPDATE object_doomed SET due_ms = 0")
    large.start()
    wait_for(lambda: not bucket.uploads() and not doomed(large), "the parts are still there")


# --- artifacts -----------------------------------------------------------------------------


def artifacts(weir):
    with sqlite3.connect(weir.data / "weir.db") as db:
        rows = db.execute("SELECT object, size, length(bytes) FROM artifact JOIN artifact_object ON artifact = id")
        return [(o.decode(), size, kept) for o, size, kept in rows]


def doomed(weir):
    with sqlite3.connect(weir.data / "weir.db") as db:
        return [o.decode() for o, in db.execute("SELECT object FROM object_doomed")]


def test_a_long_result_is_in_the_bucket_and_only_its_key_in_the_store(weir, bucket):
    say(weir, "long", "s1")
    ((key, size, kept),) = artifacts(weir)
    assert bucket.keys() == [key] and kept == 0 and size == len(bucket.body(key)) > LONG
    assert key.startswith("artifacts/default/") and not doomed(weir)
    piece = json.loads(say(weir, "piece", "s1")[0])
    assert piece["bytes_in_all"] == size and set(piece["text"]) == {"x"}
    ranges = [m for m, p in bucket.asked if key in p]
    assert ranges == ["PUT", "GET"]


def test_an_artifact_that_was_replaced_is_refused(weir, bucket):
    say(weir, "long", "s1")
    ((key, size, _),) = artifacts(weir)
    bucket.client.put_object(Bucket=s3.BUCKET, Key=key, Body=b"y" * size)
    assert "cannot be reached" in say(weir, "piece", "s1")[0]
    assert "bytes of this artifact are gone" in weir.log()


def test_what_was_kept_before_is_still_read(start_weir, bucket, tmp_path):
    (tmp_path / "files").mkdir()
    weir = start_weir(config=play(tmp_path) + f"tools: {{files: {{root: {tmp_path}/files}}}}\n")
    say(weir, "long", "s1")
    weir.stop()
    weir._env |= bucket.environment()
    weir.start()
    assert json.loads(say(weir, "piece", "s1")[0])["bytes_in_all"] > LONG
    assert not bucket.keys()


def test_erasing_a_session_deletes_its_objects(weir, bucket):
    say(weir, "long", "s1")
    say(weir, "long", "s2")
    (first, *_), (second, *_) = artifacts(weir)
    bucket.spoil(status(503, "SlowDown"), "DELETE", times=5)  # this round comes to nothing
    with weir.http() as http:
        assert http.delete("/weir/v1/sessions/s1", headers=harness.bearer("anonymous", "default")).status_code == 200
    wait_for(lambda: bucket.keys() == [second], "the object of the session is still there")
    wait_for(lambda: not doomed(weir), "it is still listed")
    assert [key for key, *_ in artifacts(weir)] == [second]


def test_what_must_still_be_deleted_outlives_the_process(weir, bucket):
    say(weir, "long", "s1")
    bucket.spoil(status(403, "AccessDenied"), "DELETE", times=1000)
    with weir.http() as http:
        assert http.delete("/weir/v1/sessions/s1", headers=harness.bearer("anonymous", "default")).status_code == 200
    wait_for(lambda: ("DELETE" in [m for m, _ in bucket.asked]), "nothing was deleted")
    weir.kill()
    assert len(doomed(weir)) == 1 and len(bucket.keys()) == 1
    bucket._spoils.clear()
    weir.start()
    wait_for(lambda: not bucket.keys(), "the object is still there")


def test_a_kill_between_bucket_and_store_leaves_an_orphan_that_goes(weir, bucket):
    arrived, go = threading.Event(), threading.Event()

    def kept_then_silent(handler, forward):
        forward()
        arrived.set()
        go.wait(30)

    bucket.spoil(kept_then_silent, "PUT")
    thread = threading.Thread(target=lambda: pytest.raises(Exception, say, weir, "long", "s1"))
    thread.start()
    assert arrived.wait(30)
    weir.kill()
    go.set()
    thread.join()
    assert len(bucket.keys()) == 1 and not artifacts(weir) and len(doomed(weir)) == 1
    weir.start()  # it is not due yet: the writer might be another process
    say(weir, "hello")
    assert len(bucket.keys()) == 1
    weir.kill()
    with sqlite3.connect(weir.data / "weir.db") as db:
        db.execute("UPDATE object_doomed SET due_ms = 0")
    weir.start()
    wait_for(lambda: not bucket.keys() and not doomed(weir), "the orphan is still there")


def test_a_slow_storage_holds_up_nobody_else(weir, bucket):
    go = threading.Event()
    bucket.spoil(held(go), "PUT")
    result = []
    thread = threading.Thread(target=lambda: result.append(say(weir, "write", "slow")[0]))
    thread.start()
    wait_for(lambda: bucket.asked, "nothing was asked")
    assert say(weir, "hello", "other")[0] == "hm"
    go.set()
    thread.join()
    assert json.loads(result[0])["size_bytes"] == 8


# --- settings ------------------------------------------------------------------------------


def test_half_of_the_settings_is_an_error_that_names_the_rest(start_weir, bucket):
    environment = bucket.environment(CRAWBL_SPACES_REGION="", CRAWBL_SPACES_SECRET_KEY="")
    with pytest.raises(AssertionError) as refused:
        start_weir(env=environment)
    assert "files.s3.region (CRAWBL_SPACES_REGION), files.s3.secret_key_file" in str(refused.value)
    assert s3.ACCESS not in str(refused.value)


def test_keys_may_stand_in_files(start_weir, bucket, tmp_path):
    (tmp_path / "secret").write_text(s3.SECRET + "\n")
    environment = bucket.environment(CRAWBL_SPACES_SECRET_KEY=None)
    weir = start_weir(config=play(tmp_path) + f"files: {{s3: {{secret_key_file: {tmp_path}/secret}}}}\n", env=environment)
    assert json.loads(say(weir, "write")[0])["size_bytes"] == 8
