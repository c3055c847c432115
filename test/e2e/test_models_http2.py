"""Models that are asked over one HTTP/2 connection: what happens to one call stays its own."""
import concurrent.futures
import time

import crawbl
import pytest
from h2_model import H2Model
from test_tls import Authority

PATIENCE = 60


@pytest.fixture
def start(tmp_path, start_weir):
    models = []
    root = Authority(tmp_path, "root")
    cert, key = root.sign("server")

    def start(streams=100, retries=0, more="", **options):
        model = H2Model(cert, key, streams)
        models.append(model)
        config = (
            f"providers: [{{name: far, kind: openai, base_url: '{model.url}', key_env: MODEL_KEY, http2: true, "
            f"retries: {retries}{more}}}]\nagents: [{{slug: manager, model: far/m}}]\n"
        )
        weir = start_weir(config=config, env={"MODEL_KEY": "k"}, args=["--threads", "1", "--tls-trust", root.pem], **options)
        return weir, model

    yield start
    for model in models:
        model.close()


def until(true):
    give_up = time.monotonic() + PATIENCE
    while not true():
        assert time.monotonic() < give_up
        time.sleep(0.005)


def ask_all(weir, texts):
    with concurrent.futures.ThreadPoolExecutor(len(texts)) as pool:
        return list(pool.map(lambda text: crawbl.one_turn(weir, text), texts))


def warm(weir, model):
    """Its connection is there, so that the next calls share it."""
    assert crawbl.one_turn(weir, "hello warm").text == "hello to warm"
    return len(model.peers)


def test_many_at_once_share_a_connection_and_each_hears_its_own(start):
    weir, model = start()
    warm(weir, model)
    turns = ask_all(weir, [f"hello n{n}" for n in range(40)])
    assert [turn.text for turn in turns] == [f"hello to n{n}" for n in range(40)]
    assert len(model.peers) == 1


def test_a_server_of_few_streams_gets_more_connections(start):
    weir, model = start(streams=2)
    warm(weir, model)
    with concurrent.futures.ThreadPoolExecutor(10) as pool:
        waiting = [pool.submit(crawbl.one_turn, weir, f"wait n{n}") for n in range(10)]
        until(lambda: len(model.asked) == 11)
        model.let_go()
        assert [w.result().text for w in waiting] == [f"hello to n{n}" for n in range(10)]
    assert len(model.peers) >= 5


@pytest.mark.parametrize("word", ["reset", "status 500", "status 401", "unended", "empty"])
def test_what_happens_to_one_call_is_its_own(start, word):
    weir, model = start()
    warm(weir, model)
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        other = pool.submit(crawbl.one_turn, weir, "half other")
        until(lambda: len(model.asked) == 2)
        turn = crawbl.one_turn(weir, word)
        assert turn.error, turn.text
        assert model.said(word) == 1
        model.let_go()
        assert other.result().text == "half other"
    assert len(model.peers) == 1


def test_a_refused_call_is_made_again_and_one_call_only(start):
    weir, model = start()
    warm(weir, model)
    assert crawbl.one_turn(weir, "refuse me").text == "hello to me"
    assert model.said("refuse me") == 2


def test_hints_and_trailers_are_no_answer(start):
    weir, _ = start()
    assert crawbl.one_turn(weir, "hints me").text == "hello to me"


def test_a_server_that_takes_no_more_calls_finishes_the_old_ones(start):
    weir, model = start()
    warm(weir, model)
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        old = pool.submit(crawbl.one_turn, weir, "goaway old")
        until(lambda: len(model.asked) == 2)
        time.sleep(0.1)
        assert crawbl.one_turn(weir, "hello new").text == "hello to new"
        model.let_go()
        assert old.result().text == "one old"
    assert len(model.peers) == 2


def test_a_connection_that_breaks_fails_the_calls_that_had_begun_once(start):
    weir, model = start()
    warm(weir, model)
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        other = pool.submit(crawbl.one_turn, weir, "half other")
        until(lambda: len(model.asked) == 2)
        turn = crawbl.one_turn(weir, "drop")
        assert turn.code == "UNAVAILABLE" and turn.text == "one "
        assert other.result().code == "UNAVAILABLE" and other.result().text == "half "
    assert model.said("drop") == 1 and model.said("half other") == 1
    assert crawbl.one_turn(weir, "hello again").text == "hello to again"


def test_a_call_whose_connection_always_breaks_ends(start):
    weir, model = start()
    warm(weir, model)
    turn = crawbl.one_turn(weir, "vanish")
    assert turn.code == "UNAVAILABLE"
    assert model.said("vanish") <= 2


def test_a_caller_who_does_not_read_holds_up_no_other(start):
    weir, model = start()
    warm(weir, model)
    with crawbl.open_stream(weir) as slow:
        slow.send("flood 3000")
        slow.next()
        time.sleep(1)  # the rest is not read
        began = time.monotonic()
        turns = ask_all(weir, [f"hello n{n}" for n in range(10)])
        assert [turn.text for turn in turns] == [f"hello to n{n}" for n in range(10)]
        assert time.monotonic() - began < 10
        rest = slow.turn()
        assert rest.error is None and len(rest.text) > 2_900_000


def test_long_prompts_of_a_server_that_does_not_read_hold_up_no_other(start):
    weir, model = start()
    warm(weir, model)
    model.reads_nothing = True
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        stuck = pool.submit(crawbl.one_turn, weir, "take " + "w" * 300_000)
        time.sleep(0.5)
        model.reads_nothing = False
        assert crawbl.one_turn(weir, "hello other").text == "hello to other"
        for peer in model.peers:
            peer.close()
        assert stuck.result().text == "300000" or stuck.result().error


def test_a_caller_who_leaves_has_his_call_cancelled_and_no_other(start):
    weir, model = start()
    warm(weir, model)
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        other = pool.submit(crawbl.one_turn, weir, "half other")
        with crawbl.open_stream(weir) as stream:
            stream.send("half left")
            stream.next()
        until(lambda: model.resets == [8])
        model.let_go()
        assert other.result().text == "half other"
    assert len(model.peers) == 1


def test_a_long_prompt_arrives_whole(start):
    weir, model = start()
    warm(weir, model)
    words = ["w" * (700_000 + n) for n in range(6)]
    assert [t.text for t in ask_all(weir, ["take " + w for w in words])] == [str(len(w)) for w in words]
