"""Runs the tasks: one turn of lango per task, with all its seeds in the same browser."""

import argparse
import os
import subprocess
import sys
import tempfile
import time

from model import PolicyServer
from pages import PageServer
from policies import TASKS
from view import View

# Most rewards are 1 or -1. Tasks that measure distances or angles cannot be solved exactly with whole pixels.
SOLVED = 0.9

CONFIG = """
[agent]
multiAgent = false
model = "policy/policy"
maxModelCalls = 2000
maxToolCalls = 2000
turnTimeout = "30m"
[providers.policy]
kind = "openai"
baseUrl = "http://127.0.0.1:{model}/v1"
[browser]
enabled = true
[egress]
allow = ["127.0.0.1:{pages}"]
maxRequests = 100000
[[approval.rules]]
action = "allow"
tool = "browser_*"
"""


def episodes(view, task, solve, pages, seeds, failures):
    """Plays all episodes of one task. A policy that raises an error loses only its own episode."""
    for seed in seeds:
        output = yield "browser_navigate", {"url": pages.url(task, seed)}
        output = yield "browser_observe", {"full": True}
        view.read(output)
        try:
            yield from solve(view)
        except Exception as problem:
            failures.append((seed, f"{type(problem).__name__}: {problem}"))
        # The page sends the reward in the background, so it may still be on its way.
        for _ in range(20):
            if (task, seed) in pages.rewards:
                break
            time.sleep(0.05)


def run_task(lango, task, solve, seeds, show):
    pages, model = PageServer(sys.argv[1]), PolicyServer()
    failures = []
    with tempfile.TemporaryDirectory() as home:
        with open(os.path.join(home, "lango.toml"), "w") as file:
            file.write(CONFIG.format(model=model.port, pages=pages.port))
        work = os.path.join(home, "work")
        os.mkdir(work)
        model.play(episodes(View(show), task, solve, pages, seeds, failures))
        environment = {"PATH": os.environ["PATH"], "LANGO_HOME": home}
        ended = subprocess.run(
            [lango, "run", f"solve {task}"], cwd=work, env=environment, capture_output=True, text=True, stdin=subprocess.DEVNULL
        )
        if ended.returncode != 0 or show:
            print(ended.stdout[-2000:], ended.stderr[-2000:])
    solved = [seed for seed in seeds if pages.rewards.get((task, seed), 0) >= SOLVED]
    pages.server.shutdown()
    model.server.shutdown()
    return solved, failures, model.calls


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("pages")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--first", type=int, default=1, help="the first seed")
    parser.add_argument("--only", default="")
    parser.add_argument("--show", action="store_true")
    options = parser.parse_args()
    wanted = [task for task in options.only.split(",") if task]
    seeds = range(options.first, options.first + options.seeds)
    total = total_solved = 0
    for task, solve in TASKS.items():
        if wanted and task not in wanted:
            continue
        started = time.monotonic()
        solved, failures, calls = run_task(os.environ["LANGO"], task, solve, seeds, options.show)
        total += len(seeds)
        total_solved += len(solved)
        unsolved = [seed for seed in seeds if seed not in solved]
        note = f"  unsolved {unsolved}: {failures[0] if failures else 'wrong result'}" if unsolved else ""
        print(f"{task:32} {len(solved):3} of {len(seeds)}  {calls:4} calls  {time.monotonic() - started:6.1f} s{note}", flush=True)
    share = total_solved / max(total, 1)
    print(f"\n{total_solved} of {total} episodes solved ({share:.1%}), {total // max(len(seeds), 1)} tasks")
    sys.exit(0 if share >= 0.9 else 1)


main()
