"""An agent on a server of its own: FastAPI and the Runtime Contract v1.

    pip install fastapi uvicorn
    python agent.py 8000              # then: weir -c weir.yaml

It remembers each session, looks up a city's weather with a tool of its own, and asks a person
before it books.
"""
import json
import sys

import uvicorn
from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse, StreamingResponse

app = FastAPI()
turns = {}  # by session: what was said
waiting = {}  # by session: what is to be booked
WEATHER = {"kyoto": "sunny", "bergen": "rain"}


@app.middleware("http")
async def version(request, call_next):
    answer = await call_next(request)
    answer.headers["X-Runtime-Contract-Version"] = "1"
    return answer


def weather(city):
    return {"city": city, "weather": WEATHER.get(city.lower(), "unknown")}


def take_turn(body):
    """What happens in a turn, as events: (name, data)."""
    text, session = body["input"], body.get("session_id", "")
    said = turns.setdefault(session, [])
    said.append(text)
    words = text.split()
    if words[0] == "book":
        waiting[session] = text
        yield "result", {
            "output": f"Shall I {text}?",
            "metadata": {"interrupted": True, "awaiting": ["booking"]},
            "thread_id": session,
        }
        return
    yield "step", {"description": "thinking"}
    if words[0] == "weather":
        yield "tool_call", {"name": "weather", "args": {"city": words[-1]}}
        found = weather(words[-1])
        yield "tool_result", {"name": "weather", "result": found}
        answer = f"{found['weather']} in {found['city']}"
    elif words[0] == "fail":
        yield "error", {"error": "NOT_FOUND: there is no such city"}
        return
    else:
        answer = f"turn {len(said)}: {text}"
    for word in answer.split(" "):
        yield "message", {"delta": word + " "}
    yield "done", {"tokens": {"input": len(text), "output": len(answer)}, "model": "tiny-1"}


@app.get("/health")
def health():
    return {"status": "healthy", "agent_name": "far", "version": "1.0.0"}


@app.post("/stream")
async def stream(request: Request):
    body = await request.json()

    def frames():
        for name, data in take_turn(body):
            event = "" if name == "message" else f"event: {name}\n"
            yield f"{event}data: {json.dumps(data)}\n\n"
        yield "data: [DONE]\n\n"

    return StreamingResponse(
        frames(),
        media_type="text/event-stream",
        headers={"Cache-Control": "no-cache", "X-Accel-Buffering": "no"},
    )


@app.post("/resume")
async def resume(request: Request):
    body = await request.json()
    booking = waiting.pop(body["thread_id"], None)
    if booking is None:
        error = {"code": "THREAD_NOT_FOUND", "message": "nothing waits there"}
        return JSONResponse({"error": error}, status_code=404)
    said = body["human_input"]
    done = "done: " + booking if said == "yes" else f"not done ({json.dumps(said)})"
    return {"output": done, "metadata": None, "thread_id": body["thread_id"], "history": []}


if __name__ == "__main__":
    uvicorn.run(app, port=int(sys.argv[1]) if len(sys.argv) > 1 else 8000, log_level="warning")
