"""What every gRPC client expects of a server beside its services: reflection, health, gzip."""
import signal

import crawbl
import grpc
import pytest
from google.protobuf.descriptor_pool import DescriptorPool
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection_pb2
from grpc_reflection.v1alpha.proto_reflection_descriptor_database import (
    ProtoReflectionDescriptorDatabase,
)

AGENT_RUNTIME = "crawbl.agentruntime.v1.AgentRuntime"
SERVICES = {
    AGENT_RUNTIME,
    "crawbl.agentruntime.v1.Memory",
    "grpc.health.v1.Health",
    "grpc.reflection.v1.ServerReflection",
    "grpc.reflection.v1alpha.ServerReflection",
}


# --- reflection ----------------------------------------------------------------------------


def ask(channel, version, **question):
    """The answer to one question; v1 has the messages of v1alpha."""
    call = channel.stream_stream(
        f"/grpc.reflection.{version}.ServerReflection/ServerReflectionInfo",
        request_serializer=reflection_pb2.ServerReflectionRequest.SerializeToString,
        response_deserializer=reflection_pb2.ServerReflectionResponse.FromString,
    )
    (answer,) = call(iter([reflection_pb2.ServerReflectionRequest(**question)]), timeout=20)
    return answer


@pytest.mark.parametrize("version", ["v1", "v1alpha"])
def test_reflection_lists_what_is_served(weir, version):
    answer = ask(weir.channel(), version, list_services="*")
    assert {service.name for service in answer.list_services_response.service} == SERVICES


def test_a_client_without_our_files_can_build_every_service(weir):
    database = ProtoReflectionDescriptorDatabase(weir.channel())
    pool = DescriptorPool(database)
    for name in database.get_services():
        assert pool.FindServiceByName(name).full_name == name
    converse = pool.FindServiceByName(AGENT_RUNTIME).FindMethodByName("Converse")
    assert converse.client_streaming and converse.server_streaming
    assert converse.input_type.fields_by_name["session_id"].number == 1
    assert converse.output_type.fields_by_name["done"].message_type.name == "DoneEvent"


@pytest.mark.parametrize(
    "question",
    [
        {"file_by_filename": "none.proto"},
        {"file_containing_symbol": "none.None"},
        {"all_extension_numbers_of_type": "none.None"},
    ],
)
def test_what_is_not_there_is_an_answer_not_an_error(weir, question):
    answer = ask(weir.channel(), "v1", **question)
    assert answer.error_response.error_code == grpc.StatusCode.NOT_FOUND.value[0]


@pytest.mark.weir(env={"WEIR_REFLECTION": "false"})
def test_reflection_can_be_switched_off(weir):
    with pytest.raises(grpc.RpcError) as refused:
        ask(weir.channel(), "v1", list_services="*")
    assert refused.value.code() == grpc.StatusCode.UNIMPLEMENTED


# --- health --------------------------------------------------------------------------------


def health(weir):
    return health_pb2_grpc.HealthStub(weir.channel())


def request(service=""):
    return health_pb2.HealthCheckRequest(service=service)


def test_health_is_checked_by_name(weir):
    for name in ("", AGENT_RUNTIME, "crawbl.agentruntime.v1.Memory"):
        answer = health(weir).Check(request(name), timeout=20)
        assert answer.status == health_pb2.HealthCheckResponse.SERVING
    with pytest.raises(grpc.RpcError) as refused:
        health(weir).Check(request("none.None"), timeout=20)
    assert refused.value.code() == grpc.StatusCode.NOT_FOUND


def test_a_watch_of_an_unknown_service_says_so_and_stays(weir):
    watch = health(weir).Watch(request("none.None"))
    assert next(watch).status == health_pb2.HealthCheckResponse.SERVICE_UNKNOWN
    assert watch.is_active()
    watch.cancel()


def test_a_watch_hears_of_the_stop_and_ends_cancelled(weir):
    watch = health(weir).Watch(request(AGENT_RUNTIME), timeout=20)
    assert next(watch).status == health_pb2.HealthCheckResponse.SERVING
    weir.signal(signal.SIGTERM)
    assert next(watch).status == health_pb2.HealthCheckResponse.NOT_SERVING
    with pytest.raises(grpc.RpcError) as ended:
        next(watch)
    assert ended.value.code() == grpc.StatusCode.CANCELLED
    assert weir.wait() == 0


# --- compression ---------------------------------------------------------------------------


def test_a_client_may_compress_what_it_says(weir):
    channel = weir.channel()
    converse = channel.stream_stream(
        crawbl.METHOD,
        request_serializer=crawbl.pb.ConverseRequest.SerializeToString,
        response_deserializer=crawbl.pb.ConverseEvent.FromString,
    )
    said = crawbl.first("hello " * 200)
    events = converse(
        iter([said]), metadata=weir.metadata(), timeout=20, compression=grpc.Compression.Gzip
    )
    assert [e.WhichOneof("event") for e in events][-1] == "done"
