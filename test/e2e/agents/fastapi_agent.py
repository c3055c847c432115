"""An agent of the Runtime Contract as its Python templates are: FastAPI, with uvicorn.

    uvicorn fastapi_agent:app --port 8081
"""
import json

import fastapi
import fastapi.responses
import pydantic

app = fastapi.FastAPI()


class Turn(pydantic.BaseModel):
    input: str | dict
    session_id: str | None = None


@app.get("/health")
def health():
    return {"status": "healthy", "agent_name": "fast", "version": "1.0.0"}


@app.post("/invoke")
async def invoke(turn: Turn, request: fastapi.Request):
    if turn.input == "boom":
        raise fastapi.HTTPException(500, "no")
    return {
        "output": f"you said: {turn.input}",
        "session_id": turn.session_id,
        "metadata": {"model": "gpt-4o", "heard": dict(request.headers)},
        "usage": {"prompt_tokens": 10, "completion_tokens": 2},
    }


@app.post("/stream")
async def stream(turn: Turn):
    async def events():
        for word in ("you ", "said: ", str(turn.input)):
            yield f"data: {json.dumps({'text': word})}\n\n"
        if turn.input == "boom":
            raise RuntimeError("no")
        yield f"event: result\ndata: {json.dumps({'output': turn.input})}\n\n"
        yield "data: [DONE]\n\n"

    return fastapi.responses.StreamingResponse(events(), media_type="text/event-stream")
