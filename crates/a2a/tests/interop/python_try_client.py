"""Calls the agent of python_agent.py through lango's client, over both bindings, streamed and not, and compares what comes.

    python_try_client.py PATH_OF_THE_EXAMPLE_call BASE_URL
"""

import json
import subprocess
import sys

PLACES = ["jsonrpc-stream", "jsonrpc-poll", "rest-stream", "rest-poll"]

CANCELLED = "error: remote agent `remote` failed: the task was cancelled there"
NO_SIGN_IN = "it needs an authorisation that lango cannot give here: Sign in first."
PARTS = '{"answer":42.0}\n[file: hello.txt, text/plain, 5 bytes]'

# What is called, and what is seen: pieces of text are put together, names of tasks left out.
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
    (["fail"], ["accepted", "error: remote agent `remote` failed: it says that the task failed: out of flour"]),
    (["crash"], ["accepted", "error: remote agent `remote` failed: it says that the task failed"]),
    (["auth"], ["accepted", f"error: remote agent `remote` failed: {NO_SIGN_IN}"]),
    (["slow", "--cancel"], ["accepted", "cancelled", CANCELLED]),
    (["count 5", "--go-on"], ["accepted", "text: 0 1 2 3 4 ", "answer: 0 1 2 3 4 "]),
]


def summed_up(lines):
    seen, pieces = [], 0
    for line in map(json.loads, lines):
        if "text" in line:
            pieces += 1
            if seen and seen[-1].startswith("text: "):
                seen[-1] += line["text"]
            else:
                seen.append(f"text: {line['text']}")
        elif "answer" in line:
            seen.append(f"{'question' if line['waits'] else 'answer'}: {line['answer']}")
        elif "error" in line:
            seen.append(f"error: {line['error']}" + (" (unknown)" if line["unknown"] else ""))
        else:
            seen += [name for name in ("accepted", "cancelled", "withdrawn", "skipped") if name in line]
    return seen, pieces


def main():
    call, base = sys.argv[1:]
    wrong = 0
    for place in PLACES:
        for arguments, expected in CASES:
            run = subprocess.run(
                [call, f"{base}/{place}", *arguments], capture_output=True, text=True, timeout=60
            )
            seen, pieces = summed_up(run.stdout.splitlines())
            is_streamed = place.endswith("stream") and arguments[0] == "count 5"
            is_right = seen == expected and (not is_streamed or pieces >= 3)
            print(f"{'ok   ' if is_right else 'WRONG'} {place:15} {' '.join(arguments):20} {' | '.join(seen)!r}")
            if not is_right:
                wrong += 1
                print(f"      expected {' | '.join(expected)!r}; pieces: {pieces}; {run.stderr}")
    print(f"{len(PLACES) * len(CASES)} calls of lango's client, {wrong} not as expected")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
