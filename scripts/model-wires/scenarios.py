"""Conversations that make lango send every kind of request. A scenario runs the binary against scripted answers and returns the
captured requests, with the texts that they must and must not contain."""

import json
import os
import struct
import zlib
from dataclasses import dataclass, field

from playback import settings
from replies import MARKS, MODELS, PROVIDERS, calls, failure, text

LIST = ("fs_list", '{"path": "."}')
READ = ("fs_read", '{"path": "notes.md"}')


@dataclass
class Captured:
    scenario: str
    provider: str
    body: dict
    contains: list = field(default_factory=list)
    lacks: list = field(default_factory=list)


class Stage:
    """A server and a binary. Each run has its own number."""

    def __init__(self, server, lango):
        self.server = server
        self.lango = lango
        self.number = 0
        with open(f"{lango.workspace}/notes.md", "w", encoding="utf-8") as notes:
            notes.write("# Notes\n")

    def provider(self, provider, answers, stream=True):
        """Scripts a provider. Returns its configuration, and the list to which its requests will be added."""
        self.number += 1
        run, wire = f"r{self.number}", PROVIDERS[provider]
        exchange = self.server.play(run, answers, text(provider, "Done."))
        chosen = settings(provider, MODELS[provider], wire, self.server.url(run, wire), stream)
        del chosen["approval.rules"]
        return chosen, exchange.requests

    def run(self, provider, answers, stream=True, options=("--ephemeral",), **more):
        chosen, requests = self.provider(provider, answers, stream)
        ended = self.lango.run({**chosen, **{key.replace("_", "."): value for key, value in more.items()}}, options=options)
        if ended.code not in (0, 1, 4) or not requests:
            raise RuntimeError(f"lango ended with {ended.code}: {ended.progress[-400:]}")
        return [body for _, _, body in requests], ended


def text_only(stage, provider):
    bodies, _ = stage.run(provider, [])
    whole, _ = stage.run(provider, [], stream=False)
    return [Captured("text", provider, bodies[0]), Captured("text, not streamed", provider, whole[0])]


def tools(stage, provider):
    """One call, then two in one reply, with reasoning that must be sent back."""
    bodies, _ = stage.run(provider, [calls(provider, LIST, words="I look."), calls(provider, LIST, READ)])
    # Mistral accepts its reasoning back, but does not need it.
    marks = [MARKS[provider]] if provider in MARKS and provider != "mistral" else []
    return [Captured("tools", provider, body, contains=marks if at else []) for at, body in enumerate(bodies)]


def tool_errors(stage, provider):
    """An unknown tool, invalid arguments, a missing file, and a truncated reply."""
    cut = {"chat": "length", "anthropic": "max_tokens", "gemini": "MAX_TOKENS", "responses": None}[PROVIDERS[provider]]
    answers = [
        calls(provider, ("get_weather", "{}"), ("fs_read", '{"path": 7}'), ("fs_read", '{"path": "missing.md"}'), ("fs_list", '{"path": ')),
        calls(provider, LIST, stop=cut),
    ]
    bodies, _ = stage.run(provider, answers)
    return [Captured("tool errors", provider, body) for body in bodies]


def history(stage, provider):
    """Two turns of one session, the first with a call."""
    _, first = stage.run(provider, [calls(provider, LIST)], options=())
    session = first.events[0]["session"]
    bodies, _ = stage.run(provider, [calls(provider, READ)], options=("--session", session))
    return [Captured("history", provider, body) for body in bodies]


def delegation(stage, provider):
    """The orchestrator delegates a task to an agent, which calls a tool."""
    task = json.dumps({"agent": "operator", "task": "List the files.", "finish": False})
    bodies, _ = stage.run(provider, [calls(provider, ("delegate", task)), calls(provider, LIST), text(provider, "notes.md")], agent_multiAgent="true")
    return [Captured("delegation", provider, body) for body in bodies]


def last_call(stage, provider):
    """The last model call of a turn offers no functions, although calls were made before."""
    bodies, _ = stage.run(provider, [calls(provider, LIST)], agent_maxModelCalls="2")
    return [Captured("last call", provider, body) for body in bodies]


def fallback(stage, provider, other):
    """`provider` makes a call and then fails; `other` continues the turn."""
    chosen, _ = stage.provider(provider, [calls(provider, LIST), *[failure(401)] * 3])
    more, requests = stage.provider(other, [calls(other, READ)])
    more = {key: value for key, value in more.items() if key.startswith("providers.")}
    ended = stage.lango.run({**chosen, **more, "agent.fallback": f'["{other}/{MODELS[other]}"]'})
    if not requests:
        raise RuntimeError(f"the fallback was not used: {ended.progress[-300:]}")
    lacks = [MARKS[provider]] if provider in MARKS else []
    return [Captured(f"fallback from {provider}", other, body, lacks=lacks) for _, _, body in requests]


def attachments(stage, provider):
    image, notes = f"{stage.lango.workspace}/pixel.png", f"{stage.lango.workspace}/notes.md"
    with open(image, "wb") as file:
        file.write(png())
    options = ("--ephemeral", "--attach", image, "--attach", notes)
    bodies, _ = stage.run(provider, [calls(provider, LIST)], options=options)
    return [Captured("attachments", provider, body) for body in bodies]


def answer_schema(stage, provider):
    place = f"{stage.lango.workspace}/answer.schema.json"
    schema = {"type": "object", "properties": {"count": {"type": "integer"}}, "required": ["count"], "additionalProperties": False}
    with open(place, "w", encoding="utf-8") as file:
        json.dump(schema, file)
    bodies, _ = stage.run(provider, [calls(provider, LIST), text(provider, '{"count": 1}')], options=("--ephemeral", "--schema", place))
    return [Captured("answer schema", provider, body) for body in bodies]


def model_settings(stage, provider):
    """Model settings of a single agent, in addition to general ones."""
    folder = f"{stage.lango.workspace}/agents"
    os.makedirs(folder, exist_ok=True)
    with open(f"{folder}/counter.md", "w", encoding="utf-8") as file:
        file.write("---\ndescription: Counts files\nprefixes: [fs_]\ntemperature: 0.2\nreasoning_effort: low\nmax_output_tokens: 3000\n---\n")
    task = json.dumps({"agent": "counter", "task": "Count the files.", "finish": False})
    answers = [calls(provider, ("delegate", task)), calls(provider, LIST), text(provider, "One.")]
    general = {"agent_temperature": "0.7", "agent_reasoningEffort": "high", "agent_maxOutputTokens": "9000", "agent_agentsDir": folder}
    bodies, _ = stage.run(provider, answers, agent_multiAgent="true", **general)
    return [Captured("model settings", provider, body) for body in bodies]


def png():
    """Returns an image of one pixel."""

    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", 1, 1, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(b"\0\xff\0\0")) + chunk(b"IEND", b"")


ALWAYS = [text_only, tools, tool_errors, history, delegation, last_call]
