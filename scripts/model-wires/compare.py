"""Compares what lango reports with the recording. Every difference has a class and the two values."""

import json
import re

from answer import Reply, arguments

# The texts by which lango reports each class of error. Any other text is the class "other", and so a difference.
ERRORS = [
    ("rate_limited", "too many requests"),
    ("overloaded", "cannot serve now"),
    ("too_long", "conversation is too long"),
    ("bad_key", "key is not accepted"),
    ("unknown_model", "no such model"),
    ("refused", "refuses the request"),
    ("broken", "cannot be read"),
    ("broken", "was cut off"),
    ("silent", "sent nothing for"),
    ("unreachable", "cannot be reached"),
]
RETRIED = ("rate_limited", "overloaded", "broken")
SETUP = ("bad_key", "unknown_model")
STOPS = {"output_limit": "length", "filtered": "filter"}
CUT = re.compile(r"\n\n\[the answer was cut off here[^\n]*\]\Z")


class Observed:
    """The first reply that lango stored, or the error it reported."""

    def __init__(self, run, requests):
        self.run = run
        self.requests = requests
        self.error = self.error_text = None
        retry = re.search(r"model `[^\n]*; retrying in [^\n]*", run.progress)
        failed = next((event for event in run.events if event.get("fault") in ("model_failed", "context_too_long")), None)
        if retry or failed:
            self.error_text = retry.group(0) if retry else failed["detail"]
            # lango's own text comes before the provider's message, which could contain any of these texts.
            own_text = re.sub(r"\A.*?model `[^`]*`: ", "", self.error_text).split(":")[0]
            self.error = next((kind for kind, text in ERRORS if text in own_text), "other")
        self.retried = bool(retry)
        self.message = next((event for event in run.events if event["type"] == "agent.message" and event.get("model")), None)
        text = (self.message or {}).get("text", "")
        self.text = CUT.sub("", text)
        self.calls = [(call["name"], arguments(call["arguments"])) for call in (self.message or {}).get("calls", [])]
        self.usage = (self.message or {}).get("usage", {})
        self.stop = STOPS.get(((self.message or {}).get("stop") or {}).get("reason"))
        self.cut = self.text != text


def differences(expected, seen):
    """Yields each difference as `(class, recorded, reported)`."""
    if seen.message is None and seen.error is None:
        yield "no reply and no error", _short(expected), seen.run.progress[-200:]
        return
    if not isinstance(expected, Reply):
        yield from _of_failure(expected, seen)
        return
    if seen.error is not None:
        yield f"a reply is reported as an error: {seen.error}", _short(expected), seen.error_text[:300]
        return
    yield from _of_reply(expected, seen)


def _of_failure(expected, seen):
    if seen.error is None:
        yield f"an error ({expected.kind}) is reported as a reply", expected.message, _short(seen)
        return
    if seen.error != expected.kind:
        yield f"an error of the class {expected.kind} is reported as {seen.error}", expected.message, seen.error_text[:300]
        return
    if expected.kind == "too_long" and len(seen.requests) > 1 and _size(seen, 1) >= _size(seen, 0):
        yield "too_long: the next request is not shorter", f"{_size(seen, 0)} bytes", f"{_size(seen, 1)} bytes"
    if (expected.kind in RETRIED) != seen.retried:
        yield f"{expected.kind}: retried is {seen.retried}", expected.message, seen.error_text[:300]
    if (expected.kind in SETUP) != (seen.run.code == 3):
        yield f"{expected.kind}: exit code {seen.run.code}", expected.message, seen.error_text[:300]
    wanted, shown = (re.sub(r"\W+", " ", text) for text in (expected.explanation, seen.error_text))
    if wanted.strip() and wanted[:60].strip() not in shown:
        yield "the provider's explanation is not shown", expected.explanation[:300], seen.error_text[:300]


def _of_reply(expected, seen):
    if expected.text != seen.text:
        is_same_text = expected.text.split() == seen.text.split()
        yield ("text: white space" if is_same_text else "text"), _short(expected.text), _short(seen.text)
    names = [name for name, _ in expected.calls], [name for name, _ in seen.calls]
    if names[0] != names[1]:
        yield "calls", names[0], names[1]
    elif expected.calls != seen.calls:
        yield "arguments of calls", _short(expected.calls), _short(seen.calls)
    fields = {"input": "input_tokens", "cached": "cached_tokens", "output": "output_tokens", "reasoning": "reasoning_tokens"}
    fields["cache_write"] = next((name for name in seen.usage if "writ" in name or "creat" in name), None)
    for name, reported in fields.items():
        recorded = expected.usage.get(name)
        if recorded is None or reported is None:
            continue
        allowed = {recorded}
        if name == "input" and expected.usage.get("input_of_hosted_tools"):
            allowed.add(recorded + expected.usage["input_of_hosted_tools"])
        if seen.usage.get(reported) not in allowed:
            yield f"usage: {name}", recorded, seen.usage.get(reported)
    wanted = {"end": None, "refusal": "filter"}.get(expected.stop, expected.stop)
    if seen.stop != wanted:
        yield f"stop: {expected.stop} is reported as {seen.stop}", expected.stop, _short(seen.message.get("stop"))
    # If the reply is an answer, its text must tell the user too.
    is_answer = bool(expected.text.strip()) and not expected.calls
    if seen.cut != (wanted is not None and is_answer):
        yield f"stop: {expected.stop}, and the text {'has' if seen.cut else 'lacks'} a note about it", expected.stop, _short(seen.message["text"][-200:])


def sent_back(expected, seen):
    """Yields differences between the parts that must be sent back after a reply with calls, and the next request."""
    if not isinstance(expected, Reply) or not expected.returned or not expected.calls or len(seen.requests) < 2:
        return
    text = json.dumps(seen.requests[1][2], ensure_ascii=False)
    for kind, value in expected.returned.items():
        if kind == "reasoning_content" and _message(seen, "assistant").get("reasoning_content") != value:
            yield "sent back: reasoning_content", _short(value), _short(_message(seen, "assistant"))
        elif kind == "reasoning_details":
            given = _message(seen, "assistant").get("reasoning_details")
            wanted = merged(value)
            if [_present(one) for one in given or []] != wanted:
                yield "sent back: reasoning_details", _short(wanted), _short(given)
        elif kind == "thinking":
            content = _message(seen, "assistant").get("content") or []
            given = [block for block in content if block.get("type") in ("thinking", "redacted_thinking")]
            if given != value:
                yield "sent back: thinking blocks", _short(value), _short(given)
        elif kind in ("thoughtSignature", "encrypted_content"):
            for choices in value:
                if not any(json.dumps(one) in text for one in choices):
                    yield f"sent back: {kind}", _short(sorted(choices)), "absent"


def merged(details):
    """Joins the pieces of OpenRouter's reasoning items: texts are concatenated, other fields have their last value."""
    items = []
    for detail in details:
        last = items[-1] if items else None
        same = last is not None and last.get("type") == detail.get("type") and last.get("index") == detail.get("index")
        if same and detail.get("id") in (None, last.get("id")) or (same and last.get("id") is None):
            for name, value in detail.items():
                if name in ("text", "summary", "data") and isinstance(value, str):
                    last[name] = (last.get(name) or "") + value
                elif value is not None:
                    last[name] = value
        else:
            items.append(dict(detail))
    return [_present(item) for item in items]


def _present(mapping):
    return {name: value for name, value in mapping.items() if value is not None}


def _size(seen, request):
    return len(json.dumps(seen.requests[request][2]))


def _message(seen, role):
    messages = seen.requests[1][2].get("messages", [])
    return next((message for message in reversed(messages) if message.get("role") == role), {})


def _short(value):
    if isinstance(value, Reply):
        value = {"text": value.text, "calls": value.calls, "stop": value.stop}
    elif isinstance(value, Observed):
        value = {"text": value.text, "calls": value.calls}
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= 400 else f"{text[:200]} … {text[-180:]}"
