"""Parses a recorded answer: visible text, calls, usage and stop reason, or the class of its error.

It is written from the providers' documentation and the raw JSON, independently of lango's parsers: the same mistake in both would
not be found.
"""

import json
import re

import errors
import read_anthropic
import read_chat
import read_gemini
import read_responses
from answer import Broken, Failure
from wires import ANTHROPIC, CHAT, GEMINI, RESPONSES, streamed

READERS = {CHAT: read_chat, RESPONSES: read_responses, ANTHROPIC: read_anthropic, GEMINI: read_gemini}


def read(wire, recording):
    """Returns a `Reply` or a `Failure`."""
    if recording.status >= 400:
        return errors.of_status(recording.status, recording.body)
    try:
        if streamed(recording):
            return READERS[wire].stream(events(recording.body))
        return READERS[wire].whole(parsed(recording.body))
    except Broken as error:
        return Failure("broken", str(error))


def parsed(body):
    try:
        return json.loads(body.decode("utf-8", "replace").lstrip("\ufeff"))
    except ValueError as error:
        raise Broken(f"not JSON: {error}") from None


def events(body):
    """Returns the parsed data of every server-sent event. `[DONE]` stays text."""
    found = []
    data = []
    lines = re.split(r"\r\n|\n|\r", body.decode("utf-8", "replace").lstrip("\ufeff"))
    for line in lines + [""]:
        if line == "":
            if data:
                found.append("\n".join(data))
            data = []
        elif line.startswith("data:"):
            data.append(line[5:].removeprefix(" "))
        elif line == "{":
            # Google ends a failed stream with the bare JSON of the error.
            found.append("\n".join(lines[lines.index(line) :]))
            break
    values = []
    for at, text in enumerate(found):
        if text.strip() == "[DONE]":
            values.append("[DONE]")
            continue
        try:
            values.append(json.loads(text))
        except ValueError:
            # Ignore an incomplete event at the end of a truncated stream.
            if at + 1 < len(found) or lines[-1] == "":
                raise Broken("an event is not JSON") from None
    return values
