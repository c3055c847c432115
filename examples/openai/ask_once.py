"""Ask an agent with OpenAI's library, and never have one question answered twice.

    pip install openai
    python examples/openai/ask_once.py http://127.0.0.1:8080/v1 "plan two days in Kyoto"

The library sends a request again by itself after a timeout, a broken connection, 409, 429 and
5xx. With an Idempotency-Key the repetition gets the answer of the run that the first one began.
Without it the agent would begin a second run, and call its tools a second time.
"""
import os
import sys
import uuid

from openai import OpenAI


def main():
    url = sys.argv[1] if len(sys.argv) > 1 else "http://127.0.0.1:8080/v1"
    text = sys.argv[2] if len(sys.argv) > 2 else "hello"
    client = OpenAI(base_url=url, api_key=os.environ.get("AGENT_AUTH_TOKEN", "none"))
    key = str(uuid.uuid4())  # one for each question; keep it to ask again after a crash, too
    answer = client.chat.completions.with_raw_response.create(
        model="manager",
        messages=[{"role": "user", "content": text}],
        extra_headers={"Idempotency-Key": key},
    )
    print(answer.parse().choices[0].message.content)
    print(f"-- run {answer.headers['x-weir-run-id']}")


if __name__ == "__main__":
    main()
