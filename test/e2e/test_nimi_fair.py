"""nimi.runtime.v1: no app waits because of another app's work, also after a restart."""
import grpc
import nimi_client as nimi
import pytest
from nimi_client import pb

ENDLESS = pytest.mark.weir(script="test/e2e/scripts/nimi.yaml")
BUSY = [f"busy-{i}" for i in range(4)]


def submit(client, app, message="for ever"):
    request = pb.SubmitScenarioJobRequest(
        head=nimi.head(app_id=app),
        scenario_type=pb.SCENARIO_TYPE_TEXT_GENERATE,
        execution_mode=pb.EXECUTION_MODE_ASYNC_JOB,
        spec=nimi.text_spec(message),
    )
    return client.ask(client.ai.SubmitScenarioJob, request, client.metadata(app_id=app))[0].job


def used(client, app):
    request = pb.PeekSchedulingRequest(app_id=app)
    return client.ask(client.ai.PeekScheduling, request, client.metadata(app_id=app))[0].occupancy


def until_used(client, slots):
    while used(client, BUSY[0]).global_used < slots:
        pass


def streams_do_not_wait(client):
    for _ in range(3):
        answer = client.stream("hello")
        assert answer.last.HasField("completed"), answer.kinds
        assert answer.trailers["x-nimi-queue-wait-ms"] == "0"


# D4, M5: four apps with 30 jobs each, and a fifth that reads a stream.
@ENDLESS
def test_a_stream_does_not_wait_behind_four_apps_with_30_jobs_each(weir):
    client = nimi.Client(weir)
    for app in BUSY * 30:
        submit(client, app)
    until_used(client, 6)  # of 8: a quarter is left to those who watch
    assert max(used(client, app).app_used for app in BUSY) <= 2
    streams_do_not_wait(client)
    weir.kill()
    weir.start()
    client = nimi.Client(weir)
    until_used(client, 6)
    streams_do_not_wait(client)


@pytest.mark.weir(
    script="test/e2e/scripts/nimi.yaml",
    config="nimi: {queue_per_app: 20, app_weights: demo.app=2}\n",
)
def test_one_apps_flood_does_not_take_the_places_of_others(weir):
    client = nimi.Client(weir)
    for _ in range(22):  # two run, 20 wait
        submit(client, BUSY[0])
    with pytest.raises(nimi.Refused) as refused:
        submit(client, BUSY[0])
    assert refused.value.code == grpc.StatusCode.RESOURCE_EXHAUSTED
    assert "of this app" in refused.value.message["message"]
    assert submit(client, BUSY[1]).status == 1
    streams_do_not_wait(client)


def test_a_weight_that_is_none_is_refused_at_the_start(start_weir):
    with pytest.raises(AssertionError) as refused:
        start_weir(
            script="test/e2e/scripts/nimi.yaml", config="nimi: {app_weights: desktop}\n"
        )
    assert "'desktop' is no weight" in str(refused.value)
