"""An AgentRuntime with grpcio: one bidirectional stream, one DoneEvent for each request.

    python -m grpc_tools.protoc -I proto --python_out=. --grpc_python_out=. agentruntime/v1/runtime.proto
    RUNTIME_KEY=secret python examples/remote/runtime.py 42618
    RUNTIME_KEY=secret weir -c examples/remote/converse.yaml
"""
import base64
import concurrent.futures
import hashlib
import hmac
import json
import os
import sys
import time

import grpc
from agentruntime.v1 import runtime_pb2 as pb
from agentruntime.v1 import runtime_pb2_grpc

KEY = os.environ["RUNTIME_KEY"].encode()


def caller(context):
    """(user, workspace) of the token, which is good for five minutes; a stream may live longer."""
    token = dict(context.invocation_metadata()).get("authorization", "").removeprefix("Bearer ")
    payload, _, signature = token.partition(".")
    expected = hmac.new(KEY, payload.encode(), hashlib.sha256).hexdigest()
    if not hmac.compare_digest(signature, expected):
        context.abort(grpc.StatusCode.UNAUTHENTICATED, "invalid bearer token")
    user, workspace, at = base64.urlsafe_b64decode(payload + "==").decode().split(":")
    if abs(time.time() - int(at)) > 300:
        context.abort(grpc.StatusCode.UNAUTHENTICATED, "invalid bearer token")
    return user, workspace


class Runtime(runtime_pb2_grpc.AgentRuntimeServicer):
    def __init__(self):
        self.history = {}  # a runtime remembers its sessions

    def Converse(self, requests, context):  # noqa: N802 - the contract's name
        user, workspace = caller(context)
        for request in requests:
            said = self.history.setdefault((workspace, user, request.session_id), [])
            said.append(request.message)
            yield from self.turn(request.message, said)

    def turn(self, message, said):
        if message.startswith("add "):
            numbers = [int(number) for number in message.split()[1:]]
            call = pb.ToolCallEvent(
                agent_id="far", tool="adder", args_json=json.dumps({"numbers": numbers}), call_id="call-1"
            )
            yield pb.ConverseEvent(tool_call=call)
            result = json.dumps({"sum": sum(numbers)})
            yield pb.ConverseEvent(tool_result=pb.ToolResultEvent(call_id="call-1", result_json=result))
            answer = f"That makes {sum(numbers)}."
        else:
            answer = f"I heard {len(said)} of your messages."
        for word in answer.split(" "):
            yield pb.ConverseEvent(chunk=pb.ChunkEvent(agent_id="far", text=word + " "))
        usage = pb.UsageEvent(agent_id="far", model="none", prompt_tokens=1, completion_tokens=1, total_tokens=2)
        yield pb.ConverseEvent(usage=usage)
        yield pb.ConverseEvent(done=pb.DoneEvent(model="none", turns=[pb.Turn(agent_id="far", text=answer)]))


def main():
    server = grpc.server(concurrent.futures.ThreadPoolExecutor(64))
    runtime_pb2_grpc.add_AgentRuntimeServicer_to_server(Runtime(), server)
    server.add_insecure_port(f"127.0.0.1:{sys.argv[1]}")
    server.start()
    server.wait_for_termination()


main()
