"""What a recorded answer can say, and the small functions that all readings of it share. `None` in a usage means that the
recording does not say it.
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
    # Parts that a later request of the same conversation has to contain, by kind.
    returned: dict = field(default_factory=dict)
    hosted: bool = False  # tools that the provider runs itself took part


@dataclass
class Failure:
    kind: str  # one of errors.KINDS
    message: str = ""
    # The provider's own explanation, which the user has to be shown.
    explanation: str = ""


class Broken(Exception):
    """The stream ends before the reply does, or is not what it says."""


def arguments(text):
    """The arguments of a call: parsed, or the text itself where it is not whole JSON. Nothing is an empty object."""
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
    """The first number that is found under one of the dotted paths."""
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
