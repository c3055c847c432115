#!/usr/bin/env python3
"""nimi_workflows: a thousand workflows at once, their memory, and a kill in their middle.

    test/proof/nimi_workflows.py [COUNT]        1,000 without a number

One app submits COUNT workflows of a model, a text of a mebibyte made of it, and a merge. After
half of them are over the daemon is killed. In the end every one is COMPLETED, no node was asked
for twice after it was finished, and the process never held more than LIMIT_MIB beside what it
holds when idle.
"""
import pathlib
import sys
import tempfile
import threading
import time

import clients  # noqa: F401  first: it finds the others
import harness
import nimi_client as nimi
import test_nimi_workflows as flows
from test_nimi_workflows import node

LIMIT_MIB = 256
TIMES = "{{x.value}}" * 43
GRAPH = [
    node("ask", "generate", prompt="quick"),  # 13 bytes
    node("some", "template", template=TIMES),
    node("more", "template", template=TIMES),
    node("much", "template", template=TIMES),  # a mebibyte
    node("all", "merge"),
]
EDGES = ["ask.text > some.x", "some.text > more.x", "more.text > much.x", "much.text > all.a",
         "ask.text > all.b"]


def resident_mib(weir):
    for line in pathlib.Path(f"/proc/{weir.pid}/status").read_text().splitlines():
        if line.startswith("VmRSS"):
            return int(line.split()[1]) / 1024
    return 0


class Peak(threading.Thread):
    def __init__(self, weir):
        super().__init__(daemon=True)
        self.weir, self.mib = weir, 0

    def run(self):
        while True:
            try:
                self.mib = max(self.mib, resident_mib(self.weir))
            except (OSError, AttributeError):  # between two processes
                pass
            time.sleep(0.01)


def wait(client, tasks, count):
    left = list(tasks)
    while len(tasks) - len(left) < count:
        time.sleep(2)  # each reply has a mebibyte
        left = [task for task in left if client.get(task).status != flows.COMPLETED]


def main(count=1000):
    with tempfile.TemporaryDirectory() as folder:
        weir = harness.Daemon(
            pathlib.Path(folder), script="test/e2e/scripts/slow.yaml",
            config="nimi: {slots: 0, slots_per_app: 0}\n",
        ).start()
        try:
            client = flows.Workflows(weir)
            idle = resident_mib(weir)
            peak = Peak(weir)
            peak.start()
            began = time.monotonic()
            tasks = [client.submit(GRAPH, EDGES) for _ in range(count)]
            took = time.monotonic() - began
            wait(client, tasks, count // 2)
            jobs = {t: client.get(t).nodes[0].provider_job_id for t in tasks
                    if client.get(t).nodes[0].status == flows.COMPLETED}
            weir.kill()
            weir.start()
            client = flows.Workflows(weir)
            wait(client, tasks, count)
            ended = time.monotonic() - began
            for task, job in jobs.items():
                assert client.get(task).nodes[0].provider_job_id == job
            answer = client.events(tasks[0])
            flows.check_story(answer, flows.wf.WORKFLOW_EVENT_COMPLETED)
        finally:
            weir.kill()
    print(f"nimi_workflows: {count} accepted in {took:.1f} s, all over after {ended:.1f} s and a "
          f"kill, {len(jobs)} finished nodes kept; {idle:.0f} MiB idle, at most {peak.mib:.0f}")
    assert peak.mib - idle < LIMIT_MIB


if __name__ == "__main__":
    main(*map(int, sys.argv[1:2]))
