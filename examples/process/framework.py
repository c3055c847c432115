"""A framework as a process agent: Pydantic AI asks the model, weir makes the calls.

    pip install pydantic-ai-slim ./sdk/python

The framework has weir's tools, and so their policies, approvals and limits. Each turn goes on from
the messages that weir has kept: a person may take days to approve, and this program may be
killed meanwhile. Without `model:` in the settings a few lines below stand in for one.
"""
import asyncio
import json

import weir_agent
from pydantic_ai import Agent, ModelRetry, Tool
from pydantic_ai import messages as said
from pydantic_ai.models.function import FunctionModel


def tool_of(turn, offer):
    async def call(**args):
        try:
            return turn.call(offer["name"], **args)
        except weir_agent.ToolError as failure:
            raise ModelRetry(str(failure)) from failure

    return Tool.from_schema(call, offer["name"], offer["description"], offer["parameters"])


def history_of(turn):
    """What was said and called in the conversation so far, in the framework's words."""
    history = []
    for message in turn.messages:
        call = {"tool_name": message.get("tool"), "tool_call_id": message.get("call")}
        kind, part = {
            "system": lambda: (said.ModelRequest, said.SystemPromptPart(message["text"])),
            "user": lambda: (said.ModelRequest, said.UserPromptPart(message["text"])),
            "assistant": lambda: (said.ModelResponse, said.TextPart(message["text"])),
            "tool_call": lambda: (said.ModelResponse, said.ToolCallPart(args=message["args"], **call)),
            "tool_result": lambda: (said.ModelRequest, said.ToolReturnPart(content=message["result"], **call)),
        }[message["role"]]()
        if not history or not isinstance(history[-1], kind):
            history.append(kind(parts=[]))
        history[-1].parts.append(part)
    return history


async def take(turn):
    turn.resume()
    agent = Agent(
        turn.model or FunctionModel(pretend),
        instructions=turn.instructions or None,
        tools=[tool_of(turn, offer) for offer in turn.tools],
    )
    async with agent.iter(message_history=history_of(turn)) as run:
        async for node in run:
            if Agent.is_call_tools_node(node):  # the model has answered
                answer = node.model_response
                turn.usage(answer.usage.input_tokens, answer.usage.output_tokens, answer.model_name)
                turn.say("".join(part.content for part in answer.parts if isinstance(part, said.TextPart)))


def pretend(messages, info):
    """In place of a model: "add 1 2 3" and "note TEXT" call a tool, and its result is told."""
    last = messages[-1].parts[-1]
    if not isinstance(last, said.UserPromptPart):
        return said.ModelResponse([said.TextPart(f"I have {json.dumps(last.content)}.")])
    word, _, rest = last.content.partition(" ")
    if word == "add":
        return said.ModelResponse([said.ToolCallPart("calculator", {"expression": rest.replace(" ", "+")})])
    if word == "note":
        return said.ModelResponse([said.ToolCallPart("memory_write", {"key": "note", "content": rest})])
    return said.ModelResponse([said.TextPart("I heard you.")])


weir_agent.run(lambda turn: asyncio.run(take(turn)))
