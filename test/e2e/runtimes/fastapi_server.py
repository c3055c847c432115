"""A server of the Runtime Contract as a FastAPI user writes it: what is wrong with a body is
left to the framework.

    python fastapi_server.py PORT
"""
import json
import os
import sys
import uuid

import uvicorn
from fastapi import Depends, FastAPI, Header, HTTPException
from fastapi.responses import StreamingResponse
from pydantic import BaseModel, Field

app = FastAPI(title="small", version="1.0.0")


def bearer(authorization: str | None = Header(default=None)):
    expected = os.environ.get("AGENT_AUTH_TOKEN")
    if not expected:
        return
    if not authorization or not authorization.startswith("Bearer "):
        raise HTTPException(401, "Missing bearer token")
    if authorization.removeprefix("Bearer ") != expected:
        raise HTTPException(403, "Invalid bearer token")


class Turn(BaseModel):
    input: str | dict | list
    session_id: str | None = None
    config: dict = Field(default_factory=dict)
    metadata: dict = Field(default_factory=dict)


class Resume(BaseModel):
    thread_id: str
    human_input: object


@app.get("/health")
def health():
    return {"status": "healthy", "agent_name": "small", "version": "1.0.0"}


@app.post("/invoke", dependencies=[Depends(bearer)])
async def invoke(turn: Turn):
    text = turn.input if isinstance(turn.input, str) else json.dumps(turn.input)
    return {"output": text, "session_id": turn.session_id or str(uuid.uuid4()), "metadata": {}}


@app.post("/stream", dependencies=[Depends(bearer)])
async def stream(turn: Turn):
    async def events():
        for word in str(turn.input).split():
            yield f"data: {json.dumps({'delta': word})}\n\n"
        yield f"event: result\ndata: {json.dumps({'output': str(turn.input)})}\n\n"
        yield "data: [DONE]\n\n"

    headers = {"Cache-Control": "no-cache", "X-Accel-Buffering": "no"}
    return StreamingResponse(events(), media_type="text/event-stream", headers=headers)


@app.post("/resume", dependencies=[Depends(bearer)])
async def resume(body: Resume):
    raise HTTPException(404, "no such thread")


if __name__ == "__main__":
    uvicorn.run(app, host="127.0.0.1", port=int(sys.argv[1]), log_level="warning")
