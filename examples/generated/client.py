"""Every route of the Runtime Contract, with a client that openapi-python-client has made.

    curl -s 127.0.0.1:8080/openapi.json > openapi.json
    openapi-python-client generate --path openapi.json --meta none --output-path weir_client
    python3 client.py http://127.0.0.1:8080
"""
import sys

from weir_client import Client
from weir_client.api.default import (
    get_agent_card,
    get_agent_card_head,
    get_health,
    get_health_head,
    get_open_api,
    get_open_api_head,
    invoke_agent,
    resume_agent,
    stream_agent,
)
from weir_client.models import InvokeRequest, ResumeRequest

# With AGENT_AUTH_TOKEN: weir_client.AuthenticatedClient(base_url=..., token=...)
client = Client(base_url=sys.argv[1], timeout=60)

print("getHealth", get_health.sync(client=client).status)
print("getHealthHead", get_health_head.sync_detailed(client=client).status_code.value)
print("getOpenAPI", get_open_api.sync(client=client).openapi)
print("getOpenAPIHead", get_open_api_head.sync_detailed(client=client).status_code.value)
print("getAgentCard", get_agent_card.sync(client=client).name)
print("getAgentCardHead", get_agent_card_head.sync_detailed(client=client).status_code.value)

stream = stream_agent.sync_detailed(client=client, body=InvokeRequest(input_="two days in Kyoto"))
print("streamAgent", stream.content.decode().splitlines()[-2])

# The demo asks a person before it books.
turn = invoke_agent.sync(client=client, body=InvokeRequest(input_="book the trip"))
print("invokeAgent", turn.metadata.approval.question)
answer = ResumeRequest(thread_id=turn.session_id, human_input="yes")
print("resumeAgent", resume_agent.sync(client=client, body=answer).output)
