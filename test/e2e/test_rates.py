"""Rates of `weir serve`: by address, by token and by agent, at each door with its own client."""
import asyncio
import json
import signal
import time

import crawbl
import grpc
import harness
import httpx
import httpx2
import nimi_client as nimi
import pytest
from a2a.client.errors import A2AClientError
from agentruntime.v1 import memory_pb2, memory_pb2_grpc
from google.rpc import error_details_pb2, status_pb2
from sdks import anthropic, openai
from test_a2a import Agent

PATIENCE = 60
SECRET = "a-secret-of-the-agent"
AGENTS = """
listen: {admin: '127.0.0.1:0'}
agents:
  - {slug: manager, description: Answers.}
  - {slug: writer, description: Writes.}
"""
SCRIPT = "test/e2e/scripts/quick.yaml"


def limited(**rates):
    """A daemon with these rates; an hour brings no second token while a test runs."""
    lines = "".join(f"  rate_{name}: {rate}\n" for name, rate in rates.items())
    return pytest.mark.weir(script=SCRIPT, config=AGENTS + "limits:\n" + lines)


ONE_BY_TOKEN = limited(token="1/h")
ONE_BY_AGENT = limited(agent="1/h")


def bearer(**who):
    return {"authorization": "Bearer " + harness.token(**who)}


def refusals(weir):
    """How often each limit refused, as Prometheus reads it."""
    with weir.http(base_url=f"http://127.0.0.1:{weir.port('admin')}") as http:
        lines = http.get("/metrics").text.splitlines()
    name = 'weir_rate_limited_total{limit="'
    return {
        line[len(name) :].split('"')[0]: float(line.split()[-1])
        for line in lines
        if line.startswith(name)
    }


def within_an_hour(answer):
    assert 3500 <= int(answer.headers["retry-after"]) <= 3600


# --- Runtime v1 ---------------------------------------------------------------------------------


@pytest.mark.parametrize("path", ["/invoke", "/stream"])
@pytest.mark.weir(
    script=SCRIPT,
    config=AGENTS + "limits: {rate_token: 1/h}\n",
    env={"AGENT_AUTH_TOKEN": SECRET},
)
def test_an_agent_never_answers_429(weir, path):
    headers = {"authorization": "Bearer " + SECRET}
    with weir.http(headers=headers) as http:
        assert http.post(path, json={"input": "one"}).status_code == 200
        answer = http.post(path, json={"input": "two"})
        assert answer.status_code == 503
        assert answer.headers["x-runtime-contract-version"] == "1"
        within_an_hour(answer)
        error = answer.json()["error"]
        assert error["code"] == "UNAVAILABLE"
        assert error["details"] == {"reason": "RATE_LIMITED"}
        assert http.get("/health").status_code == 200
        assert http.get("/openapi.json").status_code == 200
    assert refusals(weir) == {"token": 1}


@limited(address="2/h")
def test_a_wrong_token_counts_for_its_address(weir):
    with weir.http() as http:
        for _ in range(2):
            wrong = http.get("/weir/v1/runs", headers={"authorization": "Bearer x"})
            assert wrong.status_code == 403
        answer = http.get("/weir/v1/runs", headers=bearer())
        assert answer.status_code == 429
        assert 1700 <= int(answer.headers["retry-after"]) <= 1800
        assert http.get("/health").status_code == 200
    assert refusals(weir) == {"address": 1}


@ONE_BY_AGENT
def test_a_turn_too_many_of_an_agent_is_refused_by_it_alone(weir):
    with weir.http(headers=bearer()) as http:
        assert http.post("/weir/v1/runs", json={"input": "one", "session_id": "1"}).status_code == 202
        answer = http.post("/weir/v1/runs", json={"input": "two", "session_id": "2"})
        assert answer.status_code == 429
        within_an_hour(answer)
        assert "too many requests to this agent" in answer.json()["error"]["message"]
        other = {"input": "three", "session_id": "3", "agent": "writer"}
        assert http.post("/weir/v1/runs", json=other).status_code == 202
        assert http.get("/weir/v1/runs").status_code == 200
    assert refusals(weir) == {"agent": 1}


@pytest.mark.weir(
    script=SCRIPT,
    config=AGENTS + "limits: {rate_agent: 1/h}\n",
    env={"AGENT_AUTH_TOKEN": SECRET},
)
def test_a_turn_too_many_of_an_agent_is_503_on_runtime_v1(weir):
    with weir.http(headers={"authorization": "Bearer " + SECRET}) as http:
        assert http.post("/invoke", json={"input": "one"}).status_code == 200
        answer = http.post("/invoke", json={"input": "two"})
        assert answer.status_code == 503 and answer.json()["error"]["code"] == "UNAVAILABLE"
        within_an_hour(answer)


# --- the callers --------------------------------------------------------------------------------


@ONE_BY_TOKEN
def test_a_caller_with_a_new_token_is_the_same_caller(weir):
    with weir.http() as http:
        assert http.get("/weir/v1/runs", headers=bearer()).status_code == 200
        renewed = bearer(at=int(time.time()) - 7)
        again = http.get("/weir/v1/runs", headers=renewed)
        other = http.get("/weir/v1/runs", headers=bearer(user="user-2"))
    assert again.status_code == 429 and other.status_code == 200


@pytest.mark.weir(script=SCRIPT, config=AGENTS)
def test_without_rates_nobody_is_refused_and_a_reload_sets_them(weir):
    config = weir.folder / "weir.yaml"
    plain = config.read_text()
    with weir.http(headers=bearer()) as http:
        for _ in range(50):
            answer = http.get("/weir/v1/runs")
            assert answer.status_code == 200 and "retry-after" not in answer.headers
        config.write_text(plain + "limits: {rate_token: 1/h}\n")
        weir.signal(signal.SIGHUP)
        weir.said("the configuration was read again")
        assert http.get("/weir/v1/runs").status_code == 200
        assert http.get("/weir/v1/runs").status_code == 429
        config.write_text(plain)
        weir.signal(signal.SIGHUP)
        weir.said("the configuration was read again", times=2)
        assert http.get("/weir/v1/runs").status_code == 200


def test_what_is_no_rate_is_refused_with_its_place(start_weir):
    with pytest.raises(AssertionError, match="a rate is a number in a time"):
        start_weir(config="limits: {rate_token: fast}\n")


# --- OpenAI -------------------------------------------------------------------------------------


def openai_client(weir, **options):
    return openai.OpenAI(
        base_url=weir.url + "/v1",
        api_key=harness.token(),
        timeout=PATIENCE,
        http_client=openai.DefaultHttpxClient(trust_env=False, verify=harness.NO_TLS),
        **options,
    )


def complete(client, raw=False):
    chat = client.chat.completions
    create = chat.with_raw_response.create if raw else chat.create
    return create(model="manager", messages=[{"role": "user", "content": "hello"}])


@limited(token="2/h")
def test_openai_is_told_its_room_and_its_end(weir):
    client = openai_client(weir, max_retries=0)
    headers = complete(client, raw=True).headers
    assert headers["x-ratelimit-limit-requests"] == "2"
    assert headers["x-ratelimit-remaining-requests"] == "1"
    assert headers["x-ratelimit-reset-requests"].endswith("s")
    assert complete(client, raw=True).headers["x-ratelimit-remaining-requests"] == "0"
    with pytest.raises(openai.RateLimitError) as refused:
        complete(client)
    error = refused.value
    assert error.status_code == 429 and error.code == "rate_limit_exceeded"
    assert error.type == "rate_limit_error"
    assert error.response.headers["x-ratelimit-remaining-requests"] == "0"
    assert 1700 <= int(error.response.headers["retry-after"]) <= 1800


@limited(token="1/s")
def test_openai_comes_again_when_it_was_told_to(weir):
    client = openai_client(weir, max_retries=20)
    for _ in range(3):
        assert complete(client).choices[0].message.content


@limited(agent="1/s")
def test_openai_comes_again_for_an_agent_too(weir):
    client = openai_client(weir, max_retries=20)
    for _ in range(3):
        assert complete(client).choices[0].message.content


# --- Anthropic ----------------------------------------------------------------------------------


@limited(token="1/h")
def test_anthropic_is_told_its_room_and_its_end(weir):
    client = anthropic.Anthropic(
        base_url=weir.url,
        api_key=harness.token(),
        timeout=PATIENCE,
        max_retries=0,
        http_client=httpx2.Client(trust_env=False),
    )
    ask = {"model": "manager", "max_tokens": 100}
    ask["messages"] = [{"role": "user", "content": "hello"}]
    headers = client.messages.with_raw_response.create(**ask).headers
    assert headers["anthropic-ratelimit-requests-limit"] == "1"
    assert headers["anthropic-ratelimit-requests-remaining"] == "0"
    assert "T" in headers["anthropic-ratelimit-requests-reset"]
    with pytest.raises(anthropic.RateLimitError) as refused:
        client.messages.create(**ask)
    assert refused.value.body["error"]["type"] == "rate_limit_error"
    within_an_hour(refused.value.response)


# --- AG-UI, A2A, MCP ----------------------------------------------------------------------------


@pytest.mark.parametrize("rates", ["token", "agent"])
def test_agui_refuses_with_429(start_weir, rates):
    weir = start_weir(script=SCRIPT, config=AGENTS + f"limits: {{rate_{rates}: 1/h}}\n")
    body = {"threadId": "t", "runId": "r", "tools": [], "context": [], "state": {}}
    body |= {"forwardedProps": {}, "messages": [{"id": "1", "role": "user", "content": "hello"}]}
    with weir.http(headers=bearer()) as http:
        assert http.post("/agui", json=body).status_code == 200
        answer = http.post("/agui", json={**body, "threadId": "u"})
    assert answer.status_code == 429 and "too many requests" in answer.json()["error"]["message"]
    within_an_hour(answer)


@pytest.mark.parametrize("rates", ["token", "agent"])
def test_a2a_refuses_with_429(start_weir, rates):
    weir = start_weir(script=SCRIPT, config=AGENTS + f"limits: {{rate_{rates}: 1/h}}\n")

    async def twice():
        async with Agent(weir, streaming=False) as agent:
            assert [event async for event in agent.send("one")]
            with pytest.raises(A2AClientError) as refused:
                [event async for event in agent.send("two")]
            return refused.value

    assert "429" in str(asyncio.run(asyncio.wait_for(twice(), PATIENCE)))
    assert refusals(weir) == {rates: 1}


@limited(token="1/h")
def test_mcp_refuses_with_429(weir):
    ask = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
    headers = {**bearer(), "accept": "application/json, text/event-stream"}
    with weir.http(headers=headers) as http:
        assert http.post("/mcp", json=ask).status_code != 429
        answer = http.post("/mcp", json=ask)
    assert answer.status_code == 429
    within_an_hour(answer)


# --- gRPC ---------------------------------------------------------------------------------------


def retry_info(error):
    """The delay of google.rpc.RetryInfo, in seconds; and the pushback, in ms."""
    trailers = dict(error.trailing_metadata())
    status = status_pb2.Status.FromString(trailers["grpc-status-details-bin"])
    assert status.code == grpc.StatusCode.RESOURCE_EXHAUSTED.value[0]
    found = [d for d in status.details if d.Is(error_details_pb2.RetryInfo.DESCRIPTOR)]
    info = error_details_pb2.RetryInfo()
    assert len(found) == 1 and found[0].Unpack(info)
    return info.retry_delay.ToMilliseconds(), int(trailers["grpc-retry-pushback-ms"])


@ONE_BY_TOKEN
def test_the_memory_service_says_when_to_come_again(weir):
    stub = memory_pb2_grpc.MemoryStub(weir.channel())
    ask = memory_pb2.ListMemoriesRequest(workspace_id="ws-1")
    stub.ListMemories(ask, metadata=weir.metadata(), timeout=PATIENCE)
    with pytest.raises(grpc.RpcError) as refused:
        stub.ListMemories(ask, metadata=weir.metadata(at=int(time.time()) - 7), timeout=PATIENCE)
    assert refused.value.code() == grpc.StatusCode.RESOURCE_EXHAUSTED
    assert "too many requests with this token" in refused.value.details()
    delay, pushback = retry_info(refused.value)
    assert delay == pushback and 3_500_000 <= delay <= 3_600_000
    stub.ListMemories(
        memory_pb2.ListMemoriesRequest(workspace_id="ws-2"),
        metadata=weir.metadata(workspace="ws-2"),
        timeout=PATIENCE,
    )


@limited(token="1/s")
def test_grpcio_comes_again_when_it_was_told_to(weir):
    policy = {"maxAttempts": 5, "initialBackoff": "0.1s", "maxBackoff": "10s"}
    policy |= {"backoffMultiplier": 2, "retryableStatusCodes": ["RESOURCE_EXHAUSTED"]}
    config = {"methodConfig": [{"name": [{}], "retryPolicy": policy}]}
    options = {"grpc.service_config": json.dumps(config), "grpc.enable_retries": 1}
    stub = memory_pb2_grpc.MemoryStub(weir.channel(**options))
    calls = [
        stub.ListMemories.future(
            memory_pb2.ListMemoriesRequest(workspace_id="ws-1"),
            metadata=weir.metadata(),
            timeout=PATIENCE,
        )
        for _ in range(3)
    ]
    for call in calls:
        call.result()
    assert refusals(weir)["token"] >= 1


@pytest.mark.parametrize("rates", ["token", "agent"])
def test_a_turn_of_converse_is_refused_and_the_stream_goes_on(start_weir, rates):
    weir = start_weir(script=SCRIPT, config=AGENTS + f"limits: {{rate_{rates}: 1/h}}\n")
    with crawbl.open_stream(weir) as stream:
        assert stream.ask("one").error is None
        for _ in range(2):
            assert stream.ask("two").error.startswith("RESOURCE_EXHAUSTED")
    assert refusals(weir) == {rates: 2}


@limited(address="1/h")
def test_nimi_is_refused_before_its_stream_is_established(weir):
    client = nimi.Client(weir)
    assert client.stream("hello").code == grpc.StatusCode.OK
    answer = client.stream("hello")
    assert not answer.events
    error = answer.error
    assert error.code == grpc.StatusCode.RESOURCE_EXHAUSTED
    assert error.message["reasonCode"] == "AI_PROVIDER_RATE_LIMITED" and error.message["retryable"]
    status = status_pb2.Status.FromString(error.trailers["grpc-status-details-bin"])
    assert [d.TypeName() for d in status.details] == ["google.rpc.ErrorInfo", "google.rpc.RetryInfo"]
    assert int(error.trailers["grpc-retry-pushback-ms"]) > 3_500_000


# --- a flood ------------------------------------------------------------------------------------


@limited(address="1/h", token="1/h")
def test_wrong_tokens_leave_the_rates_of_others_alone(weir):
    """All from one address, so the first is let in to the guard and the rest are not."""
    with httpx.Client(base_url=weir.url, trust_env=False, verify=harness.NO_TLS) as http:
        answers = [
            http.get("/weir/v1/runs", headers={"authorization": f"Bearer {n}"}).status_code
            for n in range(200)
        ]
    assert answers == [403] + [429] * 199
    assert refusals(weir) == {"address": 199}
