"""A turn, told while it happens, with nothing but Python: connect.py [URL] [TEXT]"""
import json
import os
import sys
import urllib.request

url = sys.argv[1] if len(sys.argv) > 1 else "http://127.0.0.1:8080"
text = sys.argv[2] if len(sys.argv) > 2 else "plan two days in Kyoto"
headers = {"content-type": "application/json"}
if token := os.environ.get("AGENT_AUTH_TOKEN"):
    headers["authorization"] = f"Bearer {token}"

body = json.dumps({"input": text}).encode()
name, finished = "", False
with urllib.request.urlopen(urllib.request.Request(f"{url}/stream", body, headers)) as stream:
    for line in map(bytes.decode, map(bytes.rstrip, stream)):
        if line.startswith("event: "):
            name = line[7:]
        elif line == "data: [DONE]":  # the stream is whole
            finished = True
        elif line.startswith("data: "):
            data = json.loads(line[6:])
            if not name:
                print(data["delta"], end="", flush=True)
            elif name == "tool_call":
                print(f"\n[{data['name']} {data['args']}]")
            elif name == "error":
                sys.exit(f"\nfailed: {data['error']}")
            name = ""
print()
if not finished:
    sys.exit("the connection ended before the answer did")
