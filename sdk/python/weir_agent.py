"""A weir agent in Python: one function that takes a turn.

    import weir_agent

    def answer(turn):
        weather = turn.call("get_weather", city="Kyoto")
        turn.say(f"It is {weather['sky']} there.")

    weir_agent.run(answer)

A turn may be given to the function anew, after a restart or because it waited long for a person.
Its calls are then answered from the record, in their order, and what it says before them is not
said twice. So do what has an effect in a tool.
"""
import json
import os
import queue
import sys
import threading
import traceback

__version__ = "0.1.0"


class Cancelled(Exception):
    """The turn is over for weir. Let it pass; nothing more of this turn is heard."""


class ToolError(Exception):
    """The tool failed, was refused by a person, or does not exist."""


class Turn:
    """What is asked (input, messages, instructions, tools, agent, session, user, workspace, model,
    the caller's config and metadata, and its traceparent and tracestate), and the ways to answer."""

    def __init__(self, wire, line):
        self._wire, self._id, self._recorded, self._calls = wire, line["turn"], line["calls"], 0
        self.input, self.messages, self.tools = line["input"], line["messages"], line["tools"]
        self.instructions, self.agent, self.model = line["instructions"], line["agent"], line["model"]
        self.session, self.user, self.workspace = line["session"], line["user"], line["workspace"]
        self.config, self.metadata = line.get("config", {}), line.get("metadata", {})
        self.traceparent, self.tracestate = line.get("traceparent", ""), line.get("tracestate", "")

    def say(self, text):
        """A piece of the answer."""
        self._tell("text", text=text)

    def think(self, text):
        """A piece of the reasoning."""
        self._tell("thinking", text=text)

    def step(self, text):
        """What is being done, for those who watch."""
        self._tell("step", text=text)

    def usage(self, input=None, output=None, model=""):
        """The tokens of one call of a model."""
        self._tell("usage", input=input, output=output, model=model)

    def call(self, tool, /, **args):
        """Call a tool and wait for its result. Raises ToolError."""
        (result,) = self.call_all([(tool, args)])
        if isinstance(result, ToolError):
            raise result
        return result

    def call_all(self, calls):
        """Call several tools, [(name, arguments), ...], at once. A failure is a ToolError in place."""
        calls = [{"tool": tool, "args": args} for tool, args in calls]
        return self._answers(calls, {"type": "call", "calls": calls})

    def ask(self, question):
        """Ask a person and wait for the answer, however long it takes."""
        (result,) = self._answers([None], {"type": "ask", "question": question})
        return result.get("answer", result) if isinstance(result, dict) else result

    def resume(self):
        """For code that goes on from `messages`: what is on record there is not called again."""
        self._calls = len(self._recorded)

    def _answers(self, calls, line):
        start = self._calls
        self._calls += len(calls)
        results = self._recorded[start : self._calls]
        if not results:
            self._wire.write(self._id, line)
            results = [self._wire.result(self._id) for _ in calls]
        elif len(results) < len(calls):
            raise RuntimeError("the turn was given anew and makes other calls than before")
        for call, result in zip(calls, results):
            if call and "tool" in result and result["tool"] != call["tool"]:
                raise RuntimeError(f"the turn was given anew and calls {call['tool']!r}, not {result['tool']!r}")
        return [ToolError(_text(r["result"])) if r["error"] else r["result"] for r in results]

    def _tell(self, kind, **members):
        new = self._calls >= len(self._recorded)  # else it was said before
        if new and members.get("text") != "":
            self._wire.write(self._id, {"type": kind, **members})


def _text(result):
    return result if isinstance(result, str) else json.dumps(result)


class _Wire:
    def __init__(self):  # print() goes to standard error: standard output is weir's
        self._out = os.fdopen(os.dup(1), "w", encoding="utf-8")
        os.dup2(2, 1)
        self._lines, self._dropped = queue.SimpleQueue(), None
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self):
        for text in sys.stdin:
            line = json.loads(text)
            if line["type"] == "cancel":
                self._dropped = line["turn"]
            self._lines.put(line)
        self._lines.put(None)

    def next(self):
        return self._lines.get() or sys.exit(0)  # weir is gone

    def result(self, turn):
        while (line := self.next())["type"] != "result":
            if line["type"] == "cancel" and line["turn"] == turn:
                raise Cancelled()
        return line

    def write(self, turn, line):
        if self._dropped == turn and line["type"] not in ("done", "error"):
            raise Cancelled()
        print(json.dumps({**line, "turn": turn}), file=self._out, flush=True)


def run(answer):
    """Serve turns, one after the other, until weir ends. What `answer` returns is said last."""
    wire = _Wire()
    while True:
        line = wire.next()
        if line["type"] != "turn":
            continue
        turn = Turn(wire, line)
        try:
            turn.say(answer(turn) or "")
            wire.write(line["turn"], {"type": "done"})
        except Cancelled:
            wire.write(line["turn"], {"type": "done"})
        except Exception as failure:
            traceback.print_exc()
            wire.write(line["turn"], {"type": "error", "message": f"{type(failure).__name__}: {failure}"})
