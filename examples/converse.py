"""Two turns over gRPC on one stream.

    python examples/converse.py 127.0.0.1:42618 "$(weir token new)"

Needs grpcio, and the stubs of proto/agentruntime/v1/runtime.proto on the Python path:

    python -m grpc_tools.protoc -I proto --python_out=. --grpc_python_out=. proto/agentruntime/v1/runtime.proto
"""
import queue
import sys

import grpc
from agentruntime.v1 import runtime_pb2, runtime_pb2_grpc


def main(address, token):
    requests = queue.Queue()
    with grpc.insecure_channel(address) as channel:
        events = runtime_pb2_grpc.AgentRuntimeStub(channel).Converse(
            iter(requests.get, None), metadata=[("authorization", f"Bearer {token}")]
        )
        for text in ("plan two days in Kyoto", "and what if it rains?"):
            requests.put(
                runtime_pb2.ConverseRequest(
                    session_id="kyoto", message=text, workspace_id="demo", user_id="demo"
                )
            )
            for event in events:
                kind = event.WhichOneof("event")
                if kind == "chunk":
                    print(event.chunk.text, end="", flush=True)
                elif kind == "tool_call":
                    print(f"\n[{event.tool_call.agent_id} calls {event.tool_call.tool}]")
                elif kind == "done":
                    print(f"\n-- {event.done.model}: {len(event.done.turns)} turns\n")
                    break
        requests.put(None)
        for event in events:
            raise SystemExit(f"an event after the end: {event}")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
