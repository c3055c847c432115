"""The same with the SDK: pip install ./sdk/python, or PYTHONPATH=sdk/python."""
import weir_agent


def answer(turn):
    if not turn.input.startswith("add "):
        return "I heard you."
    numbers = turn.input.split()[1:]
    turn.step(f"adding {len(numbers)} numbers")
    result = turn.call("calculator", expression="+".join(numbers))
    return f"That makes {result['result']}."


weir_agent.run(answer)
