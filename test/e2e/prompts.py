"""prompts: what a request says to its vendor, read the same way for every kind of provider.

    prompt = prompts.of("anthropic", models.asked[1].body)
    assert prompt.results == [("c1", {"expression": "6*7", "result": "42"})]

    assert prompts.said("anthropic", models.asked[1].body) == [
        ("user", "six times seven?"),
        ("call", "calculator", {"expression": "6*7"}),
        ("result", {"expression": "6*7", "result": "42"}),
    ]
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


# --- the conversation in order --------------------------------------------------------------


def pieces(kind, body):
    """The conversation of a request as it was sent, without the instructions: (role, message) of
    each message, or of each of its blocks where it has some. Marks of what a vendor may cache
    move from request to request and are left out."""
    messages = body.get("messages") or body.get("contents") or body.get("input")
    found = []
    for message in messages:
        role = message.get("role")
        if role in ("system", "developer"):
            continue
        name = "parts" if kind == "gemini" else "content"
        content = message.get(name)
        blocks = [content] if not isinstance(content, list) else content
        for block in blocks:
            if isinstance(block, dict):
                block = {k: v for k, v in block.items() if k != "cache_control"}
            found.append((role, {**message, name: block}))
    return found


def said(kind, body):
    """The same, read: ("user", text), ("assistant", text), ("call", name, arguments) and
    ("result", what it says), in the order in which they stand."""
    return [item for role, message in pieces(kind, body) for item in READERS[kind](role, message)]


def texts_of(role, content):
    text = content if isinstance(content, str) else (content or {}).get("text", "")
    return [("assistant" if role == "model" else role, text)] if text else []


def read_openai(role, message):
    if role == "tool":
        return [("result", value(message["content"]))]
    found = texts_of(role, message.get("content"))
    for made in message.get("tool_calls", []):
        function = made["function"]
        found.append(("call", function["name"], json.loads(function["arguments"])))
    return found


def read_responses(role, item):
    if item.get("type") == "function_call":
        return [("call", item["name"], json.loads(item["arguments"]))]
    if item.get("type") == "function_call_output":
        return [("result", value(item["output"]))]
    return texts_of(role, item.get("content"))


def read_anthropic(role, message):
    block = message["content"]
    if isinstance(block, dict) and block["type"] == "tool_use":
        return [("call", block["name"], block["input"])]
    if isinstance(block, dict) and block["type"] == "tool_result":
        return [("result", value(text_of(block["content"])))]
    return texts_of(role, block)


def read_gemini(role, content):
    part = content["parts"]
    if "functionCall" in part:
        return [("call", part["functionCall"]["name"], part["functionCall"].get("args", {}))]
    if "functionResponse" in part:
        return [("result", part["functionResponse"]["response"])]
    return [] if part.get("thought") else texts_of(role, part)


READERS = {
    "anthropic": read_anthropic,
    "gemini": read_gemini,
    "openai": read_openai,
    "openai-responses": read_responses,
}
