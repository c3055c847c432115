"""nimi.runtime.v1 over several daemons on one store in PostgreSQL. They run in `make check` and not
in `make test`: WEIR_WITH_POSTGRES=1 scripts/e2e test/e2e/test_replicas_nimi.py."""
import concurrent.futures
import contextlib
import time

import grpc
import nimi_client as nimi
import pytest
import test_nimi_grant_use as use
import test_nimi_uploads as uploads
import test_nimi_workflows as workflows
from nimi.runtime.v1 import (
    account_pb2,
    account_pb2_grpc,
    auth_pb2,
    auth_pb2_grpc,
    memory_pb2,
)
from nimi_client import common as common_pb2
from replicas import NEED_POSTGRES, eventually, replicas, server, size  # noqa: F401  fixtures
from test_nimi_grants import Grants, refused
from test_nimi_jobs import (
    CANCELED,
    COMPLETED,
    RUNNING,
    Jobs,
    check_story,
    until_running,
)
from test_nimi_memory import Memory
from test_nimi_workflows import Workflows, node

pytestmark = NEED_POSTGRES

SCRIPT = "test/e2e/scripts/nimi.yaml"
SLOW = "test/e2e/scripts/slow.yaml"


def clients(replicas, kind=Jobs):
    return [kind(replica) for replica in replicas.all]


# --- jobs ---------------------------------------------------------------------------------------


def test_a_job_of_one_replica_is_read_at_another_and_cancelled_at_a_third(replicas):
    replicas.start(3, script=SCRIPT)
    a, b, c = clients(replicas)
    job = a.submit("for ever")
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        story = pool.submit(b.events, job.job_id)
        until_running(b, job.job_id)
        assert b.get(job.job_id).status == c.get(job.job_id).status == RUNNING
        cancelled = c.cancel(job.job_id, "the user changed their mind")
        assert cancelled.status == CANCELED
        check_story(story.result(), CANCELED)
    assert a.get(job.job_id) == b.get(job.job_id) == cancelled
    assert "changed their mind" in cancelled.reason_detail
    eventually(lambda: replicas.sql("SELECT count(*) FROM cancelling") == "0")
    eventually(lambda: replicas.sql("SELECT count(*) FROM slot") == "0")
    with pytest.raises(nimi.Refused) as refused:
        b.cancel(job.job_id)
    assert refused.value.reason == "AI_MEDIA_JOB_NOT_CANCELLABLE"


def test_what_came_of_a_job_is_fetched_at_any_replica(replicas):
    replicas.start(2, script=SCRIPT)
    a, b = clients(replicas)
    job = a.submit("a question")
    check_story(b.events(job.job_id), COMPLETED)
    assert b.result(job.job_id) == a.result(job.job_id)
    assert b.result(job.job_id).output.text_generate.text.startswith("You said: a question.")


def test_a_key_leads_to_one_job_at_all_replicas(replicas):
    replicas.start(2, script=SCRIPT)
    both = clients(replicas)
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        jobs = list(pool.map(lambda i: both[i % 2].submit("a question", key="k"), range(8)))
    assert len({job.job_id for job in jobs}) == 1
    with pytest.raises(nimi.Refused) as refused:
        both[1].submit("another", key="k")
    assert refused.value.reason == "AI_MEDIA_IDEMPOTENCY_CONFLICT"


def test_a_job_goes_on_at_another_replica_when_its_own_is_killed(replicas):
    replicas.start(2, script=SLOW)
    a, b = clients(replicas)
    jobs = [a.submit("a second", app_id=nimi.APP).job_id for _ in range(3)]
    until_running(a, jobs[0])
    with concurrent.futures.ThreadPoolExecutor(3) as pool:
        stories = [pool.submit(b.events, job) for job in jobs]
        until_running(b, jobs[0])
        replicas.all[0].kill()
        for story in stories:
            check_story(story.result(), COMPLETED)
    assert b.get(jobs[0]).retry_count == 1
    replicas.all[1].said("3 jobs")


def test_a_wish_to_cancel_outlives_the_replica_that_has_the_job(replicas):
    replicas.start(2, script=SCRIPT)
    a, b = clients(replicas)
    job = a.submit("for ever")
    until_running(b, job.job_id)
    replicas.all[0].signal(19)  # SIGSTOP: it hears nothing any more
    assert b.cancel(job.job_id).status == CANCELED  # another one has taken the job over
    replicas.all[0].signal(18)
    assert replicas.all[0].wait() != 0
    check_story(b.events(job.job_id), CANCELED)


def test_a_job_cut_short_too_often_is_not_begun_again(replicas):
    replicas.start(1, script=SCRIPT)
    job = Jobs(replicas.all[0]).submit("for ever")
    for attempt in range(1, 6):
        until_running(Jobs(replicas.all[-1]), job.job_id, attempt)
        replicas.start(1, script=SCRIPT)
        replicas.all[-2].kill()
    last = Jobs(replicas.all[-1]).events(job.job_id)
    assert last.code == grpc.StatusCode.OK
    assert "5 times" in last.events[-1].job.reason_detail


# --- slots --------------------------------------------------------------------------------------


def running_at_once(replicas, jobs):
    """The greatest number of jobs that ran at one time, as their logs say. Each runs for 600 ms, and
    the clocks of two loops differ by a few."""
    slack = 50_000_000
    moments = []
    for job in jobs:
        answer = Jobs(replicas.all[-1]).events(job)
        assert answer.code == grpc.StatusCode.OK
        at = {e.event_type: e.timestamp.ToNanoseconds() for e in answer.events}
        moments += [(at[RUNNING] + slack, 1), (at[COMPLETED] - slack, -1)]
    now = most = 0
    for _, change in sorted(moments, key=lambda m: (m[0], m[1])):
        now += change
        most = max(most, now)
    return most


def test_the_only_slot_is_that_of_all_replicas(replicas):
    replicas.start(2, script=SLOW, config="nimi: {slots: 1}\n")
    both = clients(replicas)
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        jobs = list(pool.map(lambda i: both[i % 2].submit("x", app_id=nimi.APP).job_id, range(8)))
    assert running_at_once(replicas, jobs) == 1
    eventually(lambda: replicas.sql("SELECT count(*) FROM slot") == "0")


def test_streams_and_jobs_share_the_slots_of_all_replicas(replicas):
    replicas.start(2, script=SCRIPT, config="nimi: {slots: 1}\n")
    a, b = clients(replicas)
    job = a.submit("for ever")
    until_running(a, job.job_id)
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        stream = pool.submit(b.stream, "hello")
        eventually(lambda: replicas.sql("SELECT count(*) FROM slot WHERE held = 0") == "1")
        assert not stream.done()
        b.cancel(job.job_id)
        assert stream.result().last.HasField("completed")


def test_the_slots_of_a_killed_replica_are_free_again(replicas):
    replicas.start(2, script=SCRIPT, config="nimi: {slots: 1}\n")
    a, b = clients(replicas)
    call = a.open(nimi.request("for ever"))
    next(call)
    replicas.all[0].kill()
    assert b.stream("hello").last.HasField("completed")


# --- workflows ----------------------------------------------------------------------------------


def test_a_workflow_of_one_replica_is_read_and_cancelled_at_another(replicas):
    replicas.start(2, script=SCRIPT)
    a, b = clients(replicas, Workflows)
    task = a.submit([node("n", "generate", prompt="for ever")])
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        story = pool.submit(b.events, task)
        eventually(lambda: b.get(task).status == workflows.RUNNING)
        assert b.cancel(task).ok
        workflows.check_story(story.result(), workflows.wf.WORKFLOW_EVENT_CANCELED)
    assert a.get(task).status == b.get(task).status == workflows.CANCELED
    eventually(lambda: replicas.sql("SELECT count(*) FROM slot") == "0")  # nor its node's job


def test_a_workflow_goes_on_at_another_replica_when_its_own_is_killed(replicas):
    replicas.start(2, script=SLOW)
    a, b = clients(replicas, Workflows)
    task = a.submit([node("one", "generate", prompt="a second"),
                     node("two", "generate", ["one"], prompt="another")])
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        story = pool.submit(b.events, task)
        eventually(lambda: b.get(task).status == workflows.RUNNING)
        replicas.all[0].kill()
        workflows.check_story(story.result(), workflows.wf.WORKFLOW_EVENT_COMPLETED)
    assert b.get(task).status == workflows.COMPLETED


# --- apps, sessions and access tokens -----------------------------------------------------------


def desks(replicas, app="app.desk"):
    """Clients of one app that registered at the first replica alone."""
    return [Grants(nimi.Client(replica), app, registers=i == 0)
            for i, replica in enumerate(replicas.all)]


def test_a_token_is_good_at_every_replica_until_it_is_revoked_at_any(replicas):
    replicas.start(3, script=SCRIPT)
    a, b, c = desks(replicas)
    made = b.authorize(scopes=["runtime.memory.read"])  # the app registered at another one
    readers = [use.remembering(replica, use.shown(made)) for replica in replicas.all]
    for reader, desk in zip(readers, (a, b, c)):
        use.read(reader)
        assert desk.validate(made.token_id).valid
        assert use.outcome(reader.create) == (use.DENIED, "APP_SCOPE_FORBIDDEN")
    assert use.outcome(use.read, use.remembering(
        replicas.all[2], use.shown(made, secret=made.secret[::-1]))) == use.UNKNOWN
    c.revoke(made.token_id)
    revoked = (use.DENIED, "APP_TOKEN_REVOKED")
    assert [use.outcome(use.read, reader) for reader in readers] == [revoked] * 3
    assert b.validate(made.token_id).reason_code == common_pb2.APP_TOKEN_REVOKED
    assert [entry.revoked for entry in a.chain(made.token_id, include_revoked=True).entries] == [True]


def test_no_token_is_accepted_after_its_revocation_was_answered(replicas):
    """Each round the other replica asks the moment the answer is there."""
    replicas.start(2, script=SCRIPT)
    a, b = desks(replicas)
    for i in range(size("WEIR_REVOCATIONS", 40)):
        one, other = (a, b) if i % 2 else (b, a)
        reader = use.remembering(replicas.all[i % 2], [])
        made = one.authorize(policy_version="p")
        reader.metadata = reader.metadata + use.shown(made)
        use.read(reader)
        other.revoke(made.token_id)
        assert use.outcome(use.read, reader) == (use.DENIED, "APP_TOKEN_REVOKED")


def test_what_was_delegated_of_a_token_ends_with_it_at_all_replicas(replicas):
    replicas.start(2, script=SCRIPT)
    a, b = desks(replicas)
    root = a.authorize(can_delegate=True, max_delegation_depth=2)
    child = b.delegate(root.token_id)
    grandchild = a.delegate(child.token_id)
    assert child.parent_token_id == root.token_id
    chain = [entry.token_id for entry in b.chain(root.token_id).entries]
    assert chain == [grandchild.token_id, child.token_id, root.token_id]
    b.revoke(root.token_id)
    for made in (root, child, grandchild):
        assert not a.validate(made.token_id).valid and not b.validate(made.token_id).valid
    assert refused(a.delegate, root.token_id)[1] == "APP_TOKEN_REVOKED"


def test_a_new_policy_at_one_replica_revokes_the_tokens_of_the_old_one_at_all(replicas):
    replicas.start(2, script=SCRIPT)
    a, b = desks(replicas)
    old = a.authorize(policy_version="p1")
    new = b.authorize(policy_version="p2")
    assert a.validate(old.token_id).reason_code == common_pb2.APP_TOKEN_REVOKED
    assert a.validate(new.token_id).valid


def test_of_policies_at_two_replicas_at_once_all_know_the_same_one(replicas):
    replicas.start(2, script=SCRIPT)
    both = desks(replicas)
    for _ in range(size("WEIR_POLICIES", 10)):
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            made = list(pool.map(lambda i: both[i].authorize(policy_version=f"p{i}"), range(2)))
        seen = [[desk.validate(one.token_id).valid for one in made] for desk in both]
        assert seen[0] == seen[1] and sum(seen[0]) == 1


def test_tokens_outlive_every_replica(replicas):
    replicas.start(2, script=SCRIPT)
    a, b = desks(replicas)
    kept, gone = a.authorize(), b.authorize(external_principal_id="other")
    a.revoke(gone.token_id)
    for replica in replicas.all[:2]:
        replica.kill()
    fresh = Grants(nimi.Client(replicas.start(1, script=SCRIPT)), "app.desk", registers=False)
    assert fresh.validate(kept.token_id).valid
    assert fresh.validate(gone.token_id).reason_code == common_pb2.APP_TOKEN_REVOKED
    assert fresh.authorize().token_id  # nor has the app to register again


def test_a_replica_that_starts_later_does_not_take_what_a_newer_policy_revoked(replicas):
    """Also when the token of the newer policy ends first, and when each one that knew it is dead."""
    replicas.start(2, script=SCRIPT)
    a, b = desks(replicas)
    old = a.authorize(policy_version="p1", ttl_seconds=86400, scopes=["runtime.memory.read"])
    use.read(use.remembering(replicas.all[1], use.shown(old)))
    new = b.authorize(policy_version="p2", ttl_seconds=60, scopes=["runtime.memory.read"])
    replicas.sql("DELETE FROM fact WHERE until_ms < "
                 "(extract(epoch FROM now()) + 86400) * 1000")  # the old one lives as long
    for replica in replicas.all[:2]:
        replica.kill()
    late = replicas.start(1, script=SCRIPT)
    fresh = Grants(nimi.Client(late), "app.desk", registers=False)
    assert fresh.validate(old.token_id).reason_code == common_pb2.APP_TOKEN_REVOKED
    assert fresh.validate(new.token_id).valid
    assert use.outcome(use.read, use.remembering(late, use.shown(old))) == (
        use.DENIED, "APP_TOKEN_REVOKED")
    use.read(use.remembering(late, use.shown(new)))


def test_a_stream_ends_when_its_token_is_revoked_at_another_replica(replicas):
    replicas.start(2, script=SCRIPT)
    a, b = desks(replicas)
    made = a.authorize(scopes=["runtime.memory.read"])
    reader = use.remembering(replicas.all[1], use.shown(made))
    call = reader.stub.SubscribeMemoryEvents(
        memory_pb2.SubscribeMemoryEventsRequest(context=reader.context),
        metadata=reader.metadata, timeout=nimi.PATIENCE)
    call.initial_metadata()
    a.revoke(made.token_id)
    with pytest.raises(grpc.RpcError) as ended:
        next(call)
    assert ended.value.code() == use.DENIED


def test_a_session_of_one_replica_is_refreshed_and_revoked_at_others(replicas):
    replicas.start(2, script=SCRIPT)
    auth = [(client, auth_pb2_grpc.RuntimeAuthServiceStub(client.channel))
            for client in map(nimi.Client, replicas.all)]

    def ask(at, name, request):
        client, stub = auth[at]
        return client.ask(getattr(stub, name), request)[0]

    app = ask(0, "RegisterApp", auth_pb2.RegisterAppRequest(app_id=nimi.APP))
    opened = ask(1, "OpenSession", auth_pb2.OpenSessionRequest(
        app_id=nimi.APP, app_instance_id=app.app_instance_id))
    kept = "SELECT (max(until_ms) - extract(epoch FROM now()) * 1000)::bigint FROM fact " \
           "WHERE until_ms < (extract(epoch FROM now()) + 2 * 86400) * 1000"  # an app's is longer
    assert 0 < int(replicas.sql(kept)) <= (opened.expires_at.seconds - opened.issued_at.seconds + 300) * 1000
    refresh = auth_pb2.RefreshSessionRequest(session_id=opened.session_id)
    assert ask(0, "RefreshSession", refresh).session_token != opened.session_token
    assert int(replicas.sql(kept)) > 86400 * 1000  # longer than any token that it replaces
    ask(1, "RevokeSession", auth_pb2.RevokeSessionRequest(session_id=opened.session_id))
    assert refused(ask, 0, "RefreshSession", refresh)[1] == "APP_NOT_REGISTERED"


def test_a_change_that_cannot_be_told_is_not_made(replicas):
    replicas.start(2, script=SCRIPT)
    a, b = desks(replicas)
    made = a.authorize()
    replicas.sql("ALTER TABLE fact RENAME TO fact_away")
    assert refused(a.revoke, made.token_id)[0] == grpc.StatusCode.UNAVAILABLE
    assert refused(b.validate, made.token_id)[0] == grpc.StatusCode.UNAVAILABLE  # not a guess
    replicas.sql("ALTER TABLE fact_away RENAME TO fact")
    assert a.validate(made.token_id).valid and b.validate(made.token_id).valid


def test_a_change_that_cannot_be_told_takes_nothing_from_others(replicas):
    """A stream goes on, longer than the second after which tokens are looked at again."""
    replicas.start(2, script=SCRIPT)
    a, b = desks(replicas)
    kept, made = a.authorize(scopes=["runtime.memory.read"]), b.authorize()
    reader = use.remembering(replicas.all[0], use.shown(kept))
    call = reader.stub.SubscribeMemoryEvents(
        memory_pb2.SubscribeMemoryEventsRequest(context=reader.context),
        metadata=reader.metadata, timeout=nimi.PATIENCE)
    call.initial_metadata()
    replicas.sql("CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS"
                 " $$BEGIN RAISE 'not now'; END$$;"
                 "CREATE TRIGGER refuse BEFORE INSERT ON fact"
                 " FOR EACH ROW EXECUTE FUNCTION refuse()")
    for _ in range(3):
        assert refused(a.revoke, made.token_id)[0] == grpc.StatusCode.UNAVAILABLE
        assert refused(a.authorize)[0] == grpc.StatusCode.UNAVAILABLE
        time.sleep(1)
    replicas.sql("DROP TRIGGER refuse ON fact")
    use.remembering(replicas.all[0], []).create()
    assert next(call).sequence
    call.cancel()
    assert a.validate(made.token_id).valid and b.validate(made.token_id).valid


def test_one_app_that_has_too_many_is_refused_and_no_other_one(replicas):
    replicas.start(2, script=SCRIPT)
    a, b = desks(replicas)
    made = a.authorize()
    caller = replicas.sql("SELECT DISTINCT encode(caller, 'escape') FROM fact")
    replicas.sql("INSERT INTO fact(kind, until_ms, bytes, caller, app, size) SELECT 1,"
                 f" 9000000000000, '', '{caller}', 'app.desk', 0 FROM generate_series(1, 2500)")
    code, reason = refused(b.authorize)
    assert (code, reason) == (grpc.StatusCode.RESOURCE_EXHAUSTED, "APP_AUTHORIZATION_DENIED")
    assert Grants(nimi.Client(replicas.all[1]), "other.app").authorize().token_id
    b.revoke(made.token_id)  # what ends something has room
    assert not a.validate(made.token_id).valid


# --- keys ---------------------------------------------------------------------------------------


def execute(client, key, message="hello"):
    return client.execute(message, metadata=client.metadata(idempotency_key=key))


def test_a_write_with_a_key_is_made_once_at_all_replicas(replicas):
    replicas.start(2, script=SLOW)
    both = clients(replicas, nimi.Client)
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        replies = list(pool.map(lambda i: execute(both[i % 2], "k"), range(8)))
    assert len({reply.trace_id for reply in replies}) == 1  # the model was asked once
    assert execute(both[0], "k") == execute(both[1], "k") == replies[0]
    assert refused(execute, both[1], "k", "another")[1] == "PROTOCOL_ENVELOPE_INVALID"
    assert execute(both[1], "l").trace_id != replies[0].trace_id
    replicas.all[0].kill()
    fresh = nimi.Client(replicas.start(1, script=SLOW))
    assert execute(fresh, "k") == replies[0]


def test_a_write_whose_replica_is_killed_is_made_by_one_that_waited_for_it(replicas):
    replicas.start(2, script=SLOW)
    a, b = clients(replicas, nimi.Client)
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        first = pool.submit(execute, a, "k", "for ever")
        eventually(lambda: replicas.sql("SELECT count(*) FROM slot WHERE held = 1") == "1")
        second = pool.submit(execute, b, "k", "for ever")
        replicas.all[0].kill()
        with pytest.raises(nimi.Refused):
            first.result()
        eventually(lambda: replicas.sql("SELECT count(*) FROM slot JOIN replica ON holder = id"
                                        " WHERE held = 1 AND name = 'b'") == "1")
        replicas.all[1].kill()
        with pytest.raises(nimi.Refused):
            second.result()


def test_a_write_that_failed_may_be_tried_again_at_another_replica(replicas):
    replicas.start(2, script=SCRIPT)
    a, b = clients(replicas, nimi.Client)
    assert refused(execute, a, "k", "fail") == refused(execute, b, "k", "fail")
    assert execute(b, "k", "hello").output  # nor is the key that request's any more


@contextlib.contextmanager
def nothing_is_kept(replicas):
    """Until the end of the block a transaction that keeps the reply to a keyed write stands still."""
    replicas.sql("CREATE FUNCTION wait() RETURNS trigger LANGUAGE plpgsql AS"
                 " $$BEGIN PERFORM pg_advisory_xact_lock(4242); RETURN NEW; END$$;"
                 "CREATE TRIGGER wait BEFORE UPDATE ON once_reply"
                 " FOR EACH ROW EXECUTE FUNCTION wait()")
    try:
        with replicas.server.session("SELECT pg_advisory_lock(4242)"):
            yield
    finally:
        replicas.sql("DROP TRIGGER wait ON once_reply; DROP FUNCTION wait")


def keeping(replicas):
    return replicas.server.sql("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'"
                               " AND objid = 4242 AND NOT granted") == "1"


def test_nobody_has_a_reply_that_a_killed_replica_did_not_keep(replicas):
    """Its repeat is made again, so the first one must not have been answered."""
    replicas.start(2, script=SCRIPT)
    a, b = clients(replicas, nimi.Client)
    with concurrent.futures.ThreadPoolExecutor(1) as pool, nothing_is_kept(replicas):
        first = pool.submit(execute, a, "k")
        eventually(lambda: first.done() or keeping(replicas))
        assert not first.done()
        replicas.all[0].kill()
        with pytest.raises(nimi.Refused):
            first.result()
    assert execute(b, "k") == execute(b, "k")


def test_what_a_killed_replica_wrote_is_not_written_again(replicas):
    """The effect and the reply are committed together: wherever the replica is killed, there are both
    or none."""
    replicas.start(2, script=SCRIPT)
    writer, reader = (Memory(replica, app="app.desk") for replica in replicas.all)
    writer.create()
    with concurrent.futures.ThreadPoolExecutor(1) as pool, nothing_is_kept(replicas):
        first = pool.submit(writer.retain, "one thing", key="k")
        eventually(lambda: first.done() or keeping(replicas))
        assert not first.done()
        replicas.all[0].kill()
        with pytest.raises(nimi.Refused):
            first.result()
    again = reader.retain("one thing", key="k")
    assert reader.retain("one thing", key="k") == again
    assert replicas.sql("SELECT count(*) FROM bank_record") == "1"


# --- uploads ------------------------------------------------------------------------------------


def picture(client, data, key="k"):
    return uploads.upload(client, [uploads.metadata(mime_type="image/png"), *uploads.chunks(data)],
                          client.metadata(idempotency_key=key))


def test_an_upload_with_a_key_is_kept_once_at_all_replicas(replicas):
    replicas.start(3, script=SCRIPT)
    at = clients(replicas, nimi.Client)
    with concurrent.futures.ThreadPoolExecutor(6) as pool:
        made = list(pool.map(lambda i: picture(at[i % 3], b"a picture"), range(6)))
    assert len({artifact.artifact_id for artifact in made}) == 1
    assert replicas.sql("SELECT count(*) FROM upload WHERE state = 1") == "1"
    assert refused(picture, at[1], b"another")[1] == "PROTOCOL_ENVELOPE_INVALID"
    replicas.sql("UPDATE upload SET state = 2")  # its half hour is over
    later = picture(at[2], b"a picture")
    assert later.artifact_id != made[0].artifact_id
    assert picture(at[0], b"a picture").artifact_id == later.artifact_id


# --- events of memory ---------------------------------------------------------------------------


def test_events_of_memory_reach_the_subscribers_of_other_replicas(replicas):
    replicas.start(2, script=SCRIPT)
    writer, reader = (Memory(replica, app="app.desk") for replica in replicas.all)
    call = reader.stub.SubscribeMemoryEvents(
        memory_pb2.SubscribeMemoryEventsRequest(context=reader.context),
        metadata=reader.metadata, timeout=nimi.PATIENCE)
    call.initial_metadata()
    writer.create()
    assert next(call).sequence
    call.cancel()


# --- what is refused ----------------------------------------------------------------------------


def test_a_method_whose_state_is_in_one_process_is_refused(replicas):
    replicas.start(1, script=SCRIPT)
    client = nimi.Client(replicas.all[0])
    stub = account_pb2_grpc.RuntimeAccountServiceStub(client.channel)
    with pytest.raises(nimi.Refused) as refused:
        client.ask(stub.GetAccountSessionStatus,
                   account_pb2.GetAccountSessionStatusRequest())
    assert refused.value.code == grpc.StatusCode.FAILED_PRECONDITION
    assert "store.replica" in refused.value.text
