"""The content of a recorded answer, and functions that all parsers of recordings share. `None` in a usage means that the
recording does not contain the number.
"""

import json
from dataclasses import dataclass, field

from wires import LeftOut


@dataclass
class Reply:
    text: str = ""
    calls: list = field(default_factory=list)  # (name, arguments)
    usage: dict = field(default_factory=dict)
    stop: str = "end"
    # Parts that a later request of the same conversation must contain, by kind.
    returned: dict = field(default_factory=dict)
    hosted: bool = False  # the provider ran tools of its own


@dataclass
class Failure:
    kind: str  # one of errors.KINDS
    message: str = ""
    # The provider's explanation, which lango must show to the user.
    explanation: str = ""


class Broken(Exception):
    """The stream ends before the reply is complete, or is malformed."""


def arguments(text):
    """Returns the parsed arguments of a call, or the text itself if it is not valid JSON. No text is an empty object."""
    if text is None or text == "":
        return {}
    if not isinstance(text, str):
        return text
    try:
        value = json.loads(text)
    except ValueError:
        return text
    return {} if value is None else value


def number(value):
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def pick(mapping, *paths):
    """Returns the first number at one of the dotted paths."""
    for path in paths:
        value = mapping
        for part in path.split("."):
            value = value.get(part) if isinstance(value, dict) else None
        if number(value) is not None:
            return value
    return None


def plus(*values):
    present = [value for value in values if value is not None]
    return sum(present) if present else None


def no_reply(reason):
    raise LeftOut(reason)
