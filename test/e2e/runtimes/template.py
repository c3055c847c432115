"""One of AgentBreeder's own server templates, as the package has it, with an agent of two lines.

    python template.py custom_server PORT
"""
import importlib
import os
import pathlib
import sys
import types

import uvicorn

# As scripts/e2e has unpacked it, beside this Python.
PACKAGE = pathlib.Path(os.environ.get("WEIR_AGENTBREEDER", pathlib.Path(sys.prefix).parent / "agentbreeder"))


class Crew:
    """What the templates ask of CrewAI's and of a custom agent."""

    agents = tasks = ()

    def kickoff(self, inputs=None):
        return "heard: " + str(inputs)

    def run(self, input):
        return "heard: " + str(input)


def main(name, port):
    [folder] = PACKAGE.glob("*/engine/runtimes/templates")
    sys.path.insert(0, str(folder))
    agent = types.ModuleType("agent")
    agent.agent = agent.crew = Crew()
    sys.modules["agent"] = sys.modules["crew"] = agent
    app = importlib.import_module(name).app
    uvicorn.run(app, host="127.0.0.1", port=port, log_level="warning")


main(sys.argv[1], int(sys.argv[2]))
