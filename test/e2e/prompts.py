"""prompts: what a request says to its vendor, read the same way for every kind of provider.

    prompt = prompts.of("anthropic", models.asked[1].body)
    assert prompt.results == [("c1", {"expression": "6*7", "result": "42"})]
"""
import dataclasses
import json


@dataclasses.dataclass
class Prompt:
    system: str
    tools: dict  # name -> JSON Schema of its arguments
    calls: list  # (id, name, arguments) of the conversation, in order
    results: list  # (id of the call, its name for Gemini; object or text)
    texts: list  # (role, text)


def value(text):
    """What a result says: an object where it is one."""
    try:
        return json.loads(text)
    except (TypeError, ValueError):
        return text


def text_of(content):
    """Content as the vendors take it: a string, or parts of which some have a text."""
    if isinstance(content, str):
        return content
    return "".join(part.get("text", "") for part in content or [])


def openai(body):
    prompt = Prompt("", {}, [], [], [])
    for tool in body.get("tools", []):
        prompt.tools[tool["function"]["name"]] = tool["function"]["parameters"]
    for message in body["messages"]:
        role, text = message["role"], text_of(message.get("content"))
        if role in ("system", "developer"):
            prompt.system += text
        elif role == "tool":
            prompt.results.append((message["tool_call_id"], value(text)))
        elif text:
            prompt.texts.append((role, text))
        for made in message.get("tool_calls", []):
            function = made["function"]
            prompt.calls.append((made["id"], function["name"], json.loads(function["arguments"])))
    return prompt


def openai_responses(body):
    prompt = Prompt(body.get("instructions", ""), {}, [], [], [])
    for tool in body.get("tools", []):
        prompt.tools[tool["name"]] = tool["parameters"]
    for item in body["input"]:
        kind = item.get("type", "message")
        if kind == "function_call":
            prompt.calls.append((item["call_id"], item["name"], json.loads(item["arguments"])))
        elif kind == "function_call_output":
            prompt.results.append((item["call_id"], value(item["output"])))
        elif kind == "message" and item["role"] in ("system", "developer"):
            prompt.system += text_of(item["content"])
        elif kind == "message":
            prompt.texts.append((item["role"], text_of(item["content"])))
    return prompt


def anthropic(body):
    prompt = Prompt(text_of(body.get("system")), {}, [], [], [])
    for tool in body.get("tools", []):
        prompt.tools[tool["name"]] = tool["input_schema"]
    for message in body["messages"]:
        content = message["content"]
        for part in [{"type": "text", "text": content}] if isinstance(content, str) else content:
            if part["type"] == "tool_use":
                prompt.calls.append((part["id"], part["name"], part["input"]))
            elif part["type"] == "tool_result":
                prompt.results.append((part["tool_use_id"], value(text_of(part["content"]))))
            elif part["type"] == "text":
                prompt.texts.append((message["role"], part["text"]))
    return prompt


def gemini(body):
    prompt = Prompt(text_of(body.get("systemInstruction", {}).get("parts")), {}, [], [], [])
    for group in body.get("tools", []):
        for tool in group["functionDeclarations"]:
            schema = tool.get("parameters") or tool.get("parametersJsonSchema")
            prompt.tools[tool["name"]] = schema
    for content in body["contents"]:
        for part in content["parts"]:
            if "functionCall" in part:
                made = part["functionCall"]
                prompt.calls.append((made.get("id"), made["name"], made.get("args", {})))
            elif "functionResponse" in part:
                given = part["functionResponse"]
                prompt.results.append((given["name"], given["response"]))
            elif "text" in part and not part.get("thought"):
                role = "assistant" if content["role"] == "model" else content["role"]
                prompt.texts.append((role, part["text"]))
    return prompt


KINDS = {
    "anthropic": anthropic,
    "gemini": gemini,
    "openai": openai,
    "openai-responses": openai_responses,
}


def of(kind, body):
    return KINDS[kind](body)
