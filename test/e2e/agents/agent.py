"""A process agent for tests: what the user says is what it does."""
import json
import os
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../../../sdk/python"))
import weir_agent


def answer(turn):
    print("this goes to standard error")
    what, _, rest = turn.input.partition(" ")
    if what == "hello":
        turn.step("greeting")
        turn.usage(input=10, output=2, model="own-model")
        turn.say("heard: ")
        return turn.input
    if what == "calc":
        turn.say("it is ")
        result = turn.call("calculator", expression=rest)
        return json.dumps(result)
    if what == "both":
        one, two = turn.call_all(
            [("calculator", {"expression": "1+1"}), ("no_such_tool", {"x": 1})]
        )
        return f"{json.dumps(one)} and {type(two).__name__}"
    if what == "effects":
        till, text = rest.split()
        results = turn.call_all([(f"{till}_pay", {"text": text}), ("charge", {"text": text})])
        return json.dumps([str(r) if isinstance(r, weir_agent.ToolError) else r for r in results])
    if what == "write":
        turn.say("before ")
        first = turn.call("calculator", expression="2+3")
        turn.say("writing ")
        try:
            turn.call("file_write", key="note.txt", content=rest)
        except weir_agent.ToolError as refused:
            return f"refused {refused}"
        return f"after {first['result'] if 'result' in first else first}"
    if what == "ask":
        turn.say("well: ")
        return "they said " + str(turn.ask("May I go on?"))
    if what == "transfer":
        turn.call("transfer_to_agent", agent_name=rest)
        return "it came back"
    if what == "session":
        return json.dumps([turn.agent, turn.workspace, turn.user, turn.session, len(turn.messages)])
    if what == "extras":
        if rest:
            turn.ask("May I go on?")
        return json.dumps([turn.config, turn.metadata])
    if what == "trace":
        return json.dumps([turn.traceparent, turn.tracestate])
    if what == "pid":
        return str(os.getpid())
    if what == "slow":
        for _ in range(int(rest or 10000)):
            turn.say("word ")
            time.sleep(0.01)
        return "end"
    if what == "flood":
        for _ in range(int(rest)):
            turn.say("x" * 1000)
        return "end"
    if what == "aside":  # KIND COUNT: as many times 100 kB of thinking or steps
        kind, count = rest.split()
        for _ in range(int(count)):
            getattr(turn, kind)("x" * 100000)
        return "end"
    if what == "child":
        pid = os.fork()
        if pid == 0:
            os.setsid()
            time.sleep(1000)
        turn.say(f"{os.getpid()} {pid}")
        return None
    if what == "fail":
        raise ValueError("this is why")
    if what == "crash":
        turn.say("about to ")
        os._exit(3)
    if what == "hang":
        time.sleep(1000)
    if what == "nonsense":
        os.write(turn._wire._out.fileno(), b"this is no JSON\n")
        time.sleep(1000)
    if what == "huge":
        os.write(turn._wire._out.fileno(), b'{"type":"text","text":"')
        while True:
            os.write(turn._wire._out.fileno(), b"x" * 65536)
    raise AssertionError(what)


weir_agent.run(answer)
