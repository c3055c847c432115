"""Each caller reads the words of its own turn, letter for letter, while many others read theirs.

The replies come in pieces of many sizes, so that they end anywhere in the blocks of memory that
the turns before them used.
"""
import json
import random
import threading

import crawbl
import harness
import wires

CALLERS, TURNS = 8, 30  # at once, and by each


def reply(name, chance):
    """Pieces of a reply, each with the name of whose it is."""
    sizes = [chance.choice((12, 40, 200, 401, 900, 1500)) for _ in range(chance.randrange(1, 40))]
    return [f"[{name}-{n}]".ljust(size, name[0]) for n, size in enumerate(sizes)]


def script(replies, folder):
    scenes = []
    for name, pieces in replies.items():
        steps = [{"text": piece} for piece in pieces]
        scenes.append({"exact": name, "reply": steps})
    file = folder / "play.json"
    file.write_text(json.dumps({"script": 1, "pace": {"every": 0, "chunk": 0}, "agents": [{"slug": "manager"}], "scenes": scenes}))
    return file


def ask(weir, names, replies, wrong):
    for number, name in enumerate(names):
        wire = wires.NAMES[number % len(wires.NAMES)]
        told = wires.open(wire, weir).ask(name)
        whole = "".join(replies[name])
        if told.error or told.text != whole or told.output != whole:
            wrong.append((wire, name, told.error, told.text[:200]))


def test_nobody_reads_the_words_of_another(start_weir, tmp_path):
    chance = random.Random(7)
    replies = {f"{chr(97 + n % 26)}{n}": reply(f"{chr(97 + n % 26)}{n}", chance) for n in range(60)}
    weir = start_weir(script=script(replies, tmp_path), env={"CRAWBL_MCP_SIGNING_KEY": harness.SIGNING_KEY})
    wrong, threads = [], []
    for _ in range(CALLERS):
        names = chance.choices(list(replies), k=TURNS)
        threads.append(threading.Thread(target=ask, args=(weir, names, replies, wrong)))
        threads[-1].start()
    for thread in threads:
        thread.join(crawbl.PATIENCE * 5)
        assert not thread.is_alive(), "a turn does not end"
    assert not wrong, f"{len(wrong)} turns, of them {wrong[:5]}"
