"""speaker: a model that answers in any of the four dialects, as a test's function says.

    def answer(model, body):
        return Reply("It is ", "42.", calls=[("calculator", {"expression": "6*7"})])

    with Speaker("anthropic", answer) as speaker:
        weir = start_weir(config=vendors.settings(speaker.provider(), agents))

Beside aimock (vendors.py), which is independent of us, this one is for long random
conversations: one process, one thread a request, no list of replies to keep in step.
"""
import dataclasses
import http.server
import itertools
import json
import select
import threading

import vendors


@dataclasses.dataclass(init=False)
class Reply:
    texts: tuple  # pieces of its text, one event each
    calls: list  # (name of a tool, arguments)
    status: int  # other than 200: refused
    end: str  # "finish"; "cut": the stream ends without one; "hold": nothing more comes

    def __init__(self, *texts, calls=(), status=200, end="finish"):
        self.texts, self.calls, self.status, self.end = texts, list(calls), status, end


def refusal(status):
    return json.dumps({"error": {"message": f"refused with {status}", "type": "error"}})


# --- the dialects: the events of a reply, those of its finish apart --------------------------


def event(data, name=None):
    return (f"event: {name}\n" if name else "") + f"data: {json.dumps(data)}\n\n"


def openai(reply, ids):
    def chunk(delta, reason=None):
        choice = {"index": 0, "delta": delta, "finish_reason": reason}
        return event({"model": "m-1", "choices": [choice]})

    body = [chunk({"content": text}) for text in reply.texts]
    for index, (name, arguments) in enumerate(reply.calls):
        function = {"name": name, "arguments": json.dumps(arguments)}
        made = {"index": index, "id": next(ids), "type": "function", "function": function}
        body.append(chunk({"tool_calls": [made]}))
    finish = [chunk({}, "tool_calls" if reply.calls else "stop")]
    usage = {"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5}
    finish += [event({"choices": [], "usage": usage}), "data: [DONE]\n\n"]
    return body, finish


def openai_responses(reply, ids):
    def typed(kind, **data):
        return event({"type": kind, **data}, kind)

    body = [typed("response.created", response={"id": "resp_1", "model": "m-1"})]
    if reply.texts:
        item = {"type": "message", "id": "msg_1", "role": "assistant", "content": []}
        body.append(typed("response.output_item.added", output_index=0, item=item))
    for text in reply.texts:
        delta = {"item_id": "msg_1", "output_index": 0, "content_index": 0, "delta": text}
        body.append(typed("response.output_text.delta", **delta))
    items = []
    if reply.texts:
        content = [{"type": "output_text", "text": "".join(reply.texts)}]
        items.append({**item, "content": content})
        body.append(typed("response.output_item.done", output_index=0, item=items[0]))
    for name, arguments in reply.calls:
        at, text = len(items), json.dumps(arguments)
        call = {"type": "function_call", "id": f"fc_{at}", "call_id": next(ids), "name": name}
        begun = {**call, "arguments": ""}
        items.append({**call, "arguments": text})
        body.append(typed("response.output_item.added", output_index=at, item=begun))
        whole = {"item_id": call["id"], "output_index": at, "arguments": text}
        body.append(typed("response.function_call_arguments.done", **whole))
        body.append(typed("response.output_item.done", output_index=at, item=items[-1]))
    usage = {"input_tokens": 3, "output_tokens": 2, "total_tokens": 5}
    whole = {"id": "resp_1", "model": "m-1", "status": "completed", "output": items}
    return body, [typed("response.completed", response={**whole, "usage": usage})]


def anthropic(reply, ids):
    def typed(kind, **data):
        return event({"type": kind, **data}, kind)

    message = {"id": "msg_1", "type": "message", "role": "assistant", "model": "m-1"}
    message |= {"content": [], "usage": {"input_tokens": 3, "output_tokens": 1}}
    body, index = [typed("message_start", message=message)], 0
    if reply.texts:
        block = {"type": "text", "text": ""}
        body.append(typed("content_block_start", index=0, content_block=block))
        for text in reply.texts:
            delta = {"type": "text_delta", "text": text}
            body.append(typed("content_block_delta", index=0, delta=delta))
        index = 1
    stops = [typed("content_block_stop", index=0)] if reply.texts else []
    for name, arguments in reply.calls:
        block = {"type": "tool_use", "id": next(ids), "name": name, "input": {}}
        delta = {"type": "input_json_delta", "partial_json": json.dumps(arguments)}
        stops.append(typed("content_block_start", index=index, content_block=block))
        stops.append(typed("content_block_delta", index=index, delta=delta))
        stops.append(typed("content_block_stop", index=index))
        index += 1
    delta = {"stop_reason": "tool_use" if reply.calls else "end_turn"}
    finish = [typed("message_delta", delta=delta, usage={"output_tokens": 2})]
    return body, stops + finish + [typed("message_stop")]


def gemini(reply, _):
    def chunk(parts, **more):
        content = {"role": "model", "parts": parts}
        return event({"candidates": [{"content": content, "index": 0, **more}]})

    body = [chunk([{"text": text}]) for text in reply.texts]
    calls = [{"functionCall": {"name": n, "args": arguments}} for n, arguments in reply.calls]
    return body, [chunk(calls or [{"text": ""}], finishReason="STOP")]


DIALECTS = {
    "anthropic": anthropic,
    "gemini": gemini,
    "openai": openai,
    "openai-responses": openai_responses,
}


# --- the server ------------------------------------------------------------------------------


class Speaker:
    def __init__(self, kind, answer):
        self.kind, self.answer = kind, answer
        self.asked = []  # (model, body) of each request, in order
        self.ids = (f"call_{number}" for number in itertools.count(1))
        self._server = _Server(("127.0.0.1", 0), _Handler)
        self._server.speaker = self
        thread = threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True)
        thread.start()

    def provider(self, name="house", **settings):
        """Its entry of `providers:`."""
        path, _ = vendors.KINDS[self.kind]
        url = f"http://127.0.0.1:{self._server.server_port}{path}"
        entry = {"name": name, "kind": self.kind, "base_url": url, "key_env": "HOUSE_KEY"}
        return {**entry, **settings}

    def events(self, reply):
        body, finish = DIALECTS[self.kind](reply, self.ids)
        return body + finish if reply.end == "finish" else body

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._server.stop.set()
        self._server.shutdown()
        self._server.server_close()


class _Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, *args):
        self.stop = threading.Event()
        super().__init__(*args)

    def handle_error(self, request, client_address):
        pass  # who asked was killed


class _Handler(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        speaker = self.server.speaker
        model = body.get("model") or self.path.rpartition("/")[2].partition(":")[0]
        speaker.asked.append((model, body))
        reply = speaker.answer(model, body)
        self.send_response(reply.status)
        if reply.status != 200:
            self.send_header("content-type", "application/json")
            self.end_headers()
            self.wfile.write(refusal(reply.status).encode())
            return
        self.send_header("content-type", "text/event-stream")
        self.end_headers()
        self.wfile.write("".join(speaker.events(reply)).encode())
        self.wfile.flush()
        if reply.end == "hold":
            self.wait_until_gone()

    def wait_until_gone(self):
        while not self.server.stop.is_set():
            readable, _, _ = select.select([self.connection], [], [], 0.05)
            if readable:
                return  # nobody who asked says anything more: it is closed

    def log_message(self, *args):
        pass
