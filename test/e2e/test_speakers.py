"""The program that speaks is a child of the daemon: when it is ended, and that it always is."""
import os
import time

import grpc
import nimi_client as nimi
import pytest
from nimi_client import pb

LISTS = """
if [ "$1" = --voices ]; then
    echo "Pty Language       Age/Gender VoiceName          File                 Other Languages"
    echo " 2  en-gb           --/M      English_(Great_Britain) gmw/en               (en 2)"
    exit
fi
"""
PATIENCE = 90


def speech(text="hello"):
    return pb.StreamScenarioRequest(
        head=nimi.head(model_id="speech/espeak-ng"),
        scenario_type=pb.SCENARIO_TYPE_SPEECH_SYNTHESIZE,
        spec=pb.ScenarioSpec(
            speech_synthesize=pb.SpeechSynthesizeScenarioSpec(text=text)
        ),
    )


class Stage:
    """A daemon that finds our script where espeak-ng would be; it writes its pid to a file."""

    def __init__(self, start_weir, folder, speaks):
        self.pids = folder / "pids"
        self.secret = "sings-4711-canary"
        program = folder / "espeak-ng"
        program.write_text(f'#!/bin/sh\n{LISTS}\necho $$ >>"{self.pids}"\n{speaks}\n')
        program.chmod(0o700)
        path = f"{folder}:{os.environ['PATH']}"
        self.weir = start_weir(
            script="test/e2e/scripts/quick.yaml", env={"PATH": path, "OPENAI_API_KEY": self.secret}
        )
        self.client = nimi.Client(self.weir)

    def speaker(self):
        """The pid of the one that speaks, as soon as it does."""
        give_up = time.monotonic() + PATIENCE
        while time.monotonic() < give_up:
            if self.pids.exists() and (text := self.pids.read_text()).endswith("\n"):
                return int(text.split()[-1])
            time.sleep(0.005)
        raise AssertionError(self.weir.log())

    def children(self):
        pid = self.weir.process.pid
        found = ""
        for task in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{task}/children") as file:
                found += file.read()
        return found.split()

    def no_child_is_left(self):
        give_up = time.monotonic() + PATIENCE
        while self.children():
            assert time.monotonic() < give_up, self.children()
            time.sleep(0.005)


@pytest.fixture
def stage(start_weir, tmp_path):
    return lambda speaks: Stage(start_weir, tmp_path, speaks)


def test_a_caller_who_leaves_takes_the_speaker_along(stage):
    stage = stage("sleep 1000")
    call = stage.client.open(speech())
    pid = stage.speaker()
    assert str(pid) in stage.children()
    call.cancel()
    stage.no_child_is_left()
    assert not os.path.exists(f"/proc/{pid}")


def test_a_daemon_that_stops_leaves_no_speaker_behind(stage):
    stage = stage("sleep 1000")
    call = stage.client.open(speech())
    pid = stage.speaker()
    stage.weir.signal(15)
    with pytest.raises(grpc.RpcError) as error:
        list(call)
    assert error.value.code() == grpc.StatusCode.CANCELLED
    assert stage.weir.wait() == 0, stage.weir.log()
    assert not os.path.exists(f"/proc/{pid}")


def test_the_listing_is_waited_for_and_leaves_no_zombie(stage):
    stage = stage("exit 3")
    reply, _ = stage.client.ask(
        stage.client.ai.ListPresetVoices,
        pb.ListPresetVoicesRequest(app_id=nimi.APP, model_id="espeak-ng"),
    )
    assert [v.voice_id for v in reply.voices] == ["en"]
    stage.no_child_is_left()


def test_a_speaker_that_fails_is_quoted_and_gone(stage):
    stage = stage('cat >/dev/null; echo "no data" >&2; exit 3')
    answer = stage.client.stream(asked=speech())
    assert answer.code == grpc.StatusCode.OK and answer.kinds[-1] == "failed"
    assert "espeak-ng failed (status 3): no data" in answer.last.failed.action_hint
    stage.no_child_is_left()


def test_a_speaker_sees_nothing_of_our_environment_but_what_it_needs(stage):
    stage = stage('env >"${0%/*}/seen"; exit 3')
    stage.client.stream(asked=speech())
    seen = (stage.pids.parent / "seen").read_text()
    assert "PATH=" in seen
    assert stage.secret not in seen and "CRAWBL" not in seen and "KEY" not in seen
