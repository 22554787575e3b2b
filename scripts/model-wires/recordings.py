"""Replays recordings of provider traffic through the lango binary. See `scripts/recordings`."""

import argparse
import collections
import concurrent.futures
import dataclasses
import hashlib
import json
import os
import sys
import time

import expected
import sources
import wires
from compare import Observed, differences, sent_back
from playback import Answer, Lango, Server, final_text, settings


def collect(folder, only, cut):
    """Returns the recordings that can be replayed, and the number of those left out by reason. With `cut`, returns only streams,
    truncated at a pseudo-random position."""
    chosen, left_out, seen = [], collections.Counter(), set()
    for recording in sources.find(folder):
        if isinstance(recording, tuple):
            left_out[f"the file cannot be read ({recording[1].split(':')[0]})"] += 1
            continue
        try:
            wire, provider = wires.classify(recording)
            recording = shortened(recording) if cut else recording
            answer = expected.read(wire, recording)
        except wires.LeftOut as reason:
            left_out[str(reason)] += 1
            continue
        digest = hashlib.sha256(f"{wire} {recording.status} ".encode() + recording.body).digest()
        if digest in seen:
            left_out["the same answer was recorded before"] += 1
            continue
        seen.add(digest)
        if only in recording.name or only in (wire, provider):
            chosen.append((recording, wire, provider, answer))
    return chosen, left_out


def shortened(recording):
    if not wires.streamed(recording) or recording.status != 200 or len(recording.body) < 3:
        raise wires.LeftOut("not a stream")
    position = int.from_bytes(hashlib.sha256(recording.name.encode()).digest()[:8]) % (len(recording.body) - 2)
    headers = {**recording.headers, "content-type": "text/event-stream"}
    return dataclasses.replace(recording, body=recording.body[: position + 1], headers=headers)


def replay(lango, server, number, recording, wire, provider, answer):
    """Replays one recording. Returns its line of the detailed report."""
    run = str(number)
    content_type = recording.headers.get("content-type") or "application/json"
    if "REDACTED" in content_type or ("json" in content_type and wires.streamed(recording)):
        content_type = "text/event-stream" if wires.streamed(recording) else "application/json"
    played = Answer(recording.status, recording.body, content_type)
    if recording.status == 429 or recording.status >= 500:
        played.headers["retry-after-ms"] = "1"
    exchange = server.play(run, [played], final_text(wire))
    name = provider if provider.isidentifier() else "recorded"
    chosen = settings(name, wires.model(recording, wire), wire, server.url(run, wire), stream=wires.streamed(recording))
    ended = lango.run(chosen)
    seen = Observed(ended, exchange.requests)
    del server.exchanges[run]
    found = [*differences(answer, seen), *sent_back(answer, seen)]
    return {
        "recording": recording.name,
        "provider": provider,
        "wire": wire,
        "status": recording.status,
        "streamed": wires.streamed(recording),
        "expected": getattr(answer, "kind", "reply"),
        "differences": [{"class": kind, "recorded": recorded, "reported": reported} for kind, recorded, reported in found],
    }


def replay_all(lango, chosen, jobs, out):
    server = Server()
    lines = []
    started = time.monotonic()
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool, open(out, "w", encoding="utf-8") as details:
        futures = [pool.submit(replay, lango, server, number, *one) for number, one in enumerate(chosen)]
        for future in futures:
            line = future.result()
            lines.append(line)
            details.write(json.dumps(line, ensure_ascii=False) + "\n")
            if len(lines) % 500 == 0:
                print(f"{len(lines)} of {len(chosen)}, {time.monotonic() - started:.0f} s", file=sys.stderr)
    return lines


def report(lines, left_out, examples):
    by_provider = collections.defaultdict(collections.Counter)
    classes = collections.defaultdict(list)
    for line in lines:
        counts = by_provider[(line["wire"], line["provider"])]
        counts["tried"] += 1
        counts["wrong" if line["differences"] else "right"] += 1
        for difference in line["differences"]:
            classes[(line["wire"], difference["class"])].append((line, difference))
    print(f"{'wire':10} {'provider':24} {'tried':>6} {'right':>6} {'wrong':>6}")
    for (wire, provider), count in sorted(by_provider.items(), key=lambda item: (item[0][0], -item[1]["tried"])):
        print(f"{wire:10} {provider:24} {count['tried']:6} {count['right']:6} {count['wrong']:6}")
    wrong = sum(1 for line in lines if line["differences"])
    print(f"{'all':35} {len(lines):6} {len(lines) - wrong:6} {wrong:6}")
    for (wire, kind), found in sorted(classes.items(), key=lambda item: -len(item[1])):
        providers = collections.Counter(line["provider"] for line, _ in found)
        print(f"\n{len(found):5}  {wire}: {kind}  ({', '.join(f'{name} {count}' for name, count in providers.most_common(6))})")
        for line, difference in found[:examples]:
            print(f"       {line['recording']}")
            print(f"         recorded: {str(difference['recorded'])[:220]!r}")
            print(f"         reported: {str(difference['reported'])[:220]!r}")
    print("\nleft out:")
    for reason, count in left_out.most_common():
        print(f"{count:6}  {reason}")
    return wrong


def main():
    parser = argparse.ArgumentParser(prog="scripts/recordings")
    parser.add_argument("folder")
    parser.add_argument("--only", default="", help="a wire, a provider, or a part of a recording's name")
    parser.add_argument("--examples", type=int, default=2, help="number of recordings to print for every class of difference")
    parser.add_argument("--jobs", type=int, default=4)
    parser.add_argument("--cut", action="store_true", help="truncate every stream")
    parser.add_argument("--out", default="target/recordings.jsonl", help="the file for the detailed report, one recording per line")
    chosen_options = parser.parse_args()
    chosen, left_out = collect(chosen_options.folder, chosen_options.only, chosen_options.cut)
    lango = Lango(os.environ["LANGO"])
    if not lango.supports("providers.p.api"):
        without = [one for one in chosen if one[1] != wires.RESPONSES]
        left_out["Responses, which this binary does not support"] += len(chosen) - len(without)
        chosen = without
    lines = replay_all(lango, chosen, chosen_options.jobs, chosen_options.out)
    wrong = report(lines, left_out, chosen_options.examples)
    print(f"\ndetails: {chosen_options.out}")
    sys.exit(1 if wrong else 0)


main()
