"""Captures requests of lango and checks them against the types of the providers' SDKs. See `scripts/wire-requests`."""

import argparse
import collections
import json
import os
import sys
from importlib.metadata import version

import planted
import scenarios
from playback import Lango, Server
from replies import PROVIDERS
from sdk_types import problems

PACKAGES = ("openai", "anthropic", "google-genai", "mistralai")


def problems_of(captured):
    yield from problems(captured.provider, captured.body)
    text = json.dumps(captured.body)
    yield from (f"`{mark}` is not sent back" for mark in captured.contains if mark not in text)
    yield from (f"`{mark}` of another provider is sent" for mark in captured.lacks if mark in text)


def capture(lango, providers):
    """Runs every scenario that the binary supports. Yields the captured requests, and a text for each scenario that fails."""
    stage = scenarios.Stage(Server(), lango)
    chosen = list(scenarios.ALWAYS)
    optional = {
        scenarios.attachments: lango.has_option("--attach"),
        scenarios.answer_schema: lango.has_option("--schema"),
        scenarios.model_settings: lango.supports("agent.temperature"),
    }
    chosen += [scenario for scenario, can in optional.items() if can]
    for scenario, can in optional.items():
        if not can:
            print(f"skipped, because this binary does not support it: {scenario.__name__}")
    plays = [(scenario, (provider,)) for scenario in chosen for provider in providers]
    plays += [(scenarios.fallback, (one, other)) for one in providers for other in providers if one != other]
    for scenario, names in plays:
        try:
            yield from scenario(stage, *names)
        except RuntimeError as error:
            yield f"{scenario.__name__} of {' and '.join(names)}: {error}"


def main():
    parser = argparse.ArgumentParser(prog="scripts/wire-requests")
    parser.add_argument("--only", default="", help="one provider")
    parser.add_argument("--show", action="store_true", help="print every request")
    parser.add_argument("--self-test", action="store_true", help="only check that wrong requests are detected")
    options = parser.parse_args()
    print(", ".join(f"{name} {version(name)}" for name in PACKAGES))
    if options.self_test:
        sys.exit(planted.main())
    lango = Lango(os.environ["LANGO"])
    providers = [name for name in PROVIDERS if options.only in ("", name)]
    if not lango.supports("providers.p.api"):
        print("skipped, because this binary does not support it: Responses")
        providers = [name for name in providers if name != "responses"]
    counts, found = collections.Counter(), collections.defaultdict(list)
    for captured in capture(lango, providers):
        if isinstance(captured, str):
            found[captured].append("")
            continue
        counts[captured.provider] += 1
        if options.show:
            print(json.dumps({"scenario": captured.scenario, "provider": captured.provider, "body": captured.body}))
        for problem in problems_of(captured):
            found[f"{captured.provider}: {problem}"].append(captured.scenario)
    for problem, places in sorted(found.items(), key=lambda item: -len(item[1])):
        print(f"{len(places):4}  {problem}  ({', '.join(sorted(set(places)))})")
    print(f"{sum(counts.values())} requests ({', '.join(f'{name} {count}' for name, count in counts.items())}), {len(found)} problems")
    sys.exit(1 if found else 0)


main()
