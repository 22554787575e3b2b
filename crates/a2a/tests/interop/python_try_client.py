"""Calls the agent of python_agent.py with lango's client, over both bindings, with and without streaming, and checks the results.

    python_try_client.py PATH_OF_THE_EXAMPLE_call BASE_URL
"""

import json
import subprocess
import sys

PATHS = ["jsonrpc-stream", "jsonrpc-poll", "rest-stream", "rest-poll"]

CANCELLED = "error: remote agent `remote` failed: it reports that the task was cancelled"
NO_SIGN_IN = "it needs an authorization that lango cannot give: Sign in first."
PARTS = '{"answer":42.0}\n[file: hello.txt, text/plain, 5 bytes]'

# The arguments of each call and the expected events. Chunks of text are joined, and ids of tasks are left out.
CASES = [
    (["echo hi there"], ["accepted", "text: hi there", "answer: hi there"]),
    (["count 5"], ["accepted", "text: 0 1 2 3 4 ", "answer: 0 1 2 3 4 "]),
    (["thrice abcdef"], ["accepted", "text: abcdef", "answer: abcdef"]),
    (["status fine"], ["accepted", "answer: fine"]),
    (["message x"], ["answer: just x"]),
    (["parts"], ["accepted", f"text: {PARTS}", f"answer: {PARTS}"]),
    (
        ["ask", "--reply", "Rome"],
        ["accepted", "question: Which city?", "accepted", "text: weather of Rome", "answer: weather of Rome"],
    ),
    (["reject"], ["accepted", "answer: [REJECT] not my trade"]),
    (["fail"], ["accepted", "error: remote agent `remote` failed: it reports that the task failed: out of flour"]),
    (["crash"], ["accepted", "error: remote agent `remote` failed: it reports that the task failed"]),
    (["auth"], ["accepted", f"error: remote agent `remote` failed: {NO_SIGN_IN}"]),
    (["slow", "--cancel"], ["accepted", "cancelled", CANCELLED]),
    (["count 5", "--go-on"], ["accepted", "text: 0 1 2 3 4 ", "answer: 0 1 2 3 4 "]),
]


def summarize(lines):
    events, chunks = [], 0
    for line in map(json.loads, lines):
        if "text" in line:
            chunks += 1
            if events and events[-1].startswith("text: "):
                events[-1] += line["text"]
            else:
                events.append(f"text: {line['text']}")
        elif "answer" in line:
            events.append(f"{'question' if line['waits'] else 'answer'}: {line['answer']}")
        elif "error" in line:
            events.append(f"error: {line['error']}" + (" (unknown)" if line["unknown"] else ""))
        else:
            events += [name for name in ("accepted", "cancelled", "withdrawn", "skipped") if name in line]
    return events, chunks


def main():
    call, base = sys.argv[1:]
    wrong = 0
    for path in PATHS:
        for arguments, expected in CASES:
            run = subprocess.run(
                [call, f"{base}/{path}", *arguments], capture_output=True, text=True, timeout=60
            )
            events, chunks = summarize(run.stdout.splitlines())
            is_streamed = path.endswith("stream") and arguments[0] == "count 5"
            is_right = events == expected and (not is_streamed or chunks >= 3)
            print(f"{'ok   ' if is_right else 'WRONG'} {path:15} {' '.join(arguments):20} {' | '.join(events)!r}")
            if not is_right:
                wrong += 1
                print(f"      expected {' | '.join(expected)!r}; chunks: {chunks}; {run.stderr}")
    print(f"{len(PATHS) * len(CASES)} calls of lango's client, {wrong} not as expected")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
