"""One question to a model over nimi.runtime.v1, and how its stream ends.

    weir serve -c examples/weir.yaml --nimi-grpc 127.0.0.1:46371
    python examples/scenario.py 127.0.0.1:46371

Needs grpcio, and the stubs of proto/nimi/runtime/v1/ on the Python path:

    python -m grpc_tools.protoc -I proto --python_out=. --grpc_python_out=. proto/nimi/runtime/v1/*.proto
"""
import sys

import grpc
from nimi.runtime.v1 import ai_pb2, ai_pb2_grpc, common_pb2

APP = "demo.app"
HEADERS = [
    ("x-nimi-protocol-version", "1.0.0"),
    ("x-nimi-participant-protocol-version", "1.0.0"),
    ("x-nimi-participant-id", APP),
    ("x-nimi-domain", "runtime.rpc"),
    ("x-nimi-caller-kind", "third-party-app"),
    ("x-nimi-caller-id", APP),
]


def main(address):
    question = ai_pb2.ChatMessage(role="user", content="plan two days in Kyoto")
    request = ai_pb2.StreamScenarioRequest(
        head=ai_pb2.ScenarioRequestHead(
            app_id=APP, model_id="local/any", route_policy=common_pb2.ROUTE_POLICY_LOCAL
        ),
        scenario_type=ai_pb2.SCENARIO_TYPE_TEXT_GENERATE,
        execution_mode=ai_pb2.EXECUTION_MODE_STREAM,
        spec=ai_pb2.ScenarioSpec(
            text_generate=ai_pb2.TextGenerateScenarioSpec(input=[question])
        ),
    )
    with grpc.insecure_channel(address) as channel:
        events = ai_pb2_grpc.RuntimeAiServiceStub(channel).StreamScenario(
            request, metadata=HEADERS
        )
        for event in events:  # a failure before STARTED is raised here, with its reason
            kind = event.WhichOneof("payload")
            if kind == "started":
                print(f"[{event.started.model_resolved} answers]")
            elif kind == "delta":
                print(event.delta.text.text, end="", flush=True)
            elif kind == "failed":
                print(f"\n-- failed: {event.failed.action_hint}")
            elif kind == "completed":
                print(f"\n-- done, {event.frame.usage.output_tokens} tokens (-1: not known)")


if __name__ == "__main__":
    main(sys.argv[1])
