"""Tests the comparison itself: the answers below are replayed through the binary and must be parsed as expected, and wrong
expectations must be reported. See `scripts/recordings --self-test`."""

import copy
import json
import os
import sys

import expected
import wires
from answer import Failure, Reply
from compare import Observed, differences, sent_back
from playback import Answer, Lango, Server, final_text, settings
from sources import Recording


def events(*values, names=False, done=False):
    lines = [(f"event: {value['type']}\n" if names else "") + f"data: {json.dumps(value)}\n\n" for value in values]
    return "".join(lines + (["data: [DONE]\n\n"] if done else [])).encode()


def delta(finish=None, **fields):
    return {"choices": [{"index": 0, "delta": fields, "finish_reason": finish}]}


def piece(text, **head):
    return {"tool_calls": [{"index": 0, **head, "function": {"arguments": text, **({"name": "pick_colour"} if head else {})}}]}


REASONING = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "ZW5jcnlwdGVk"}
FUNCTION_CALL = {"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "pick_colour", "arguments": '{"colour": "grey"}', "status": "completed"}

CASES = {
    "a stream of text and a call": (
        wires.CHAT,
        200,
        events(
            delta(content="Grüße, "),
            delta(content="☃"),
            delta(**piece('{"colour"', id="call_1", type="function")),
            delta("tool_calls", **piece(': "blue"}')),
            {"choices": [], "usage": {"prompt_tokens": 9, "completion_tokens": 5, "total_tokens": 14}},
            done=True,
        ),
        Reply("Grüße, ☃", [("pick_colour", {"colour": "blue"})], {"input": 9, "output": 5}),
    ),
    "a truncated answer, not streamed": (
        wires.CHAT,
        200,
        json.dumps({"choices": [{"message": {"role": "assistant", "content": "One, two"}, "finish_reason": "length"}], "usage": {"prompt_tokens": 3, "completion_tokens": 2}}).encode(),
        Reply("One, two", [], {"input": 3, "output": 2}, "length"),
    ),
    "signed thinking before a call": (
        wires.ANTHROPIC,
        200,
        events(
            {"type": "message_start", "message": {"usage": {"input_tokens": 4, "cache_read_input_tokens": 6, "output_tokens": 1}}},
            {"type": "content_block_start", "index": 0, "content_block": {"type": "thinking", "thinking": "", "signature": ""}},
            {"type": "content_block_delta", "index": 0, "delta": {"type": "thinking_delta", "thinking": "Hm."}},
            {"type": "content_block_delta", "index": 0, "delta": {"type": "signature_delta", "signature": "c2lnbmVk"}},
            {"type": "content_block_stop", "index": 0},
            {"type": "content_block_start", "index": 1, "content_block": {"type": "tool_use", "id": "toolu_1", "name": "pick_colour", "input": {}}},
            {"type": "content_block_delta", "index": 1, "delta": {"type": "input_json_delta", "partial_json": '{"colour": "red"}'}},
            {"type": "content_block_stop", "index": 1},
            {"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 12}},
            {"type": "message_stop"},
            names=True,
        ),
        Reply("", [("pick_colour", {"colour": "red"})], {"input": 10, "cached": 6, "output": 12}),
    ),
    "encrypted reasoning before a call": (
        wires.RESPONSES,
        200,
        events(
            {"type": "response.created", "response": {"id": "resp_1", "object": "response", "status": "in_progress", "output": []}},
            {"type": "response.output_item.done", "output_index": 0, "item": REASONING},
            {"type": "response.output_item.added", "output_index": 1, "item": {**FUNCTION_CALL, "arguments": ""}},
            {"type": "response.function_call_arguments.delta", "output_index": 1, "item_id": "fc_1", "delta": FUNCTION_CALL["arguments"]},
            {"type": "response.output_item.done", "output_index": 1, "item": FUNCTION_CALL},
            {"type": "response.completed", "response": {"id": "resp_1", "status": "completed", "output": [REASONING, FUNCTION_CALL], "usage": {"input_tokens": 7, "output_tokens": 9, "output_tokens_details": {"reasoning_tokens": 4}}}},
            names=True,
        ),
        Reply("", [("pick_colour", {"colour": "grey"})], {"input": 7, "output": 9, "reasoning": 4}),
    ),
    "thinking and text": (
        wires.GEMINI,
        200,
        events(
            {"candidates": [{"content": {"parts": [{"text": "Let me see.", "thought": True}]}}]},
            {"candidates": [{"content": {"parts": [{"text": "Six."}]}, "finishReason": "STOP"}], "usageMetadata": {"promptTokenCount": 8, "candidatesTokenCount": 2, "thoughtsTokenCount": 3}},
        ),
        Reply("Six.", [], {"input": 8, "output": 5, "reasoning": 3}),
    ),
    "a wrong key": (wires.CHAT, 401, b'{"error": {"message": "Incorrect key", "code": "invalid_api_key"}}', Failure("bad_key")),
    "too many requests": (wires.ANTHROPIC, 429, b'{"type": "error", "error": {"type": "rate_limit_error", "message": "Slow down"}}', Failure("rate_limited")),
    "a refused request": (wires.CHAT, 400, b'{"error": {"message": "Unknown parameter", "type": "invalid_request_error"}}', Failure("refused")),
}

URLS = {
    wires.CHAT: "https://api.openai.com/v1/chat/completions",
    wires.RESPONSES: "https://api.openai.com/v1/responses",
    wires.ANTHROPIC: "https://api.anthropic.com/v1/messages",
    wires.GEMINI: "https://generativelanguage.googleapis.com/v1beta/models/gemini-2.5-flash:generateContent",
}


def main():
    lango, server = Lango(os.environ["LANGO"]), Server()
    problems = []
    for number, (name, (wire, status, body, intended)) in enumerate(CASES.items()):
        kind = "text/event-stream" if body.startswith((b"data", b"event")) else "application/json"
        recording = Recording(name, 1, "POST", URLS[wire], {"model": "m"}, status, {"content-type": kind}, body)
        read = expected.read(wires.classify(recording)[0], recording)
        if not agrees(read, intended):
            problems.append(f"{name}: parsed as {read}")
        exchange = server.play(str(number), [Answer(status, body, kind, {"retry-after-ms": "1"})], final_text(wire))
        ended = lango.run(settings("p", "m", wire, server.url(str(number), wire), stream=wires.streamed(recording)))
        seen = Observed(ended, exchange.requests)
        problems += [f"{name}: {one}" for one in [*differences(read, seen), *sent_back(read, seen)]]
        for field, wrong in falsified(read):
            if not [*differences(wrong, seen), *sent_back(wrong, seen)]:
                problems.append(f"{name}: a wrong {field} is not detected")
    print("\n".join(problems) or f"{len(CASES)} answers are parsed as expected, and every wrong expectation is detected")
    sys.exit(1 if problems else 0)


def agrees(read, intended):
    if isinstance(intended, Failure) or isinstance(read, Failure):
        return getattr(read, "kind", None) == getattr(intended, "kind", None)
    given = {name: value for name, value in read.usage.items() if value is not None}
    return (read.text, read.calls, read.stop, given) == (intended.text, intended.calls, intended.stop, intended.usage)


def falsified(read):
    """Yields copies of an expectation with one wrong field, for every field that is compared."""
    if isinstance(read, Failure):
        for kind in {"bad_key", "too_long", "overloaded"} - {read.kind}:
            yield "class of error", Failure(kind)
        yield "explanation", Failure(read.kind, "", "a text that is not in the answer")
        yield "reply", Reply("text")
        return
    yield "error", Failure("refused")
    wrong = copy.deepcopy(read)
    wrong.text += "!"
    yield "text", wrong
    if read.stop == "end":
        wrong = copy.deepcopy(read)
        wrong.stop = "length"
        yield "stop", wrong
    for name in ("input", "output", "cached", "reasoning"):
        wrong = copy.deepcopy(read)
        wrong.usage[name] = (read.usage.get(name) or 0) + 1
        yield f"usage ({name})", wrong
    wrong = copy.deepcopy(read)
    wrong.calls = read.calls + [("another", {})]
    yield "number of calls", wrong
    if read.calls:
        wrong = copy.deepcopy(read)
        wrong.calls[0] = (read.calls[0][0], {"colour": "green"})
        yield "argument", wrong
    for kind in read.returned:
        wrong = copy.deepcopy(read)
        wrong.returned[kind] = [{"another"} if kind == "encrypted_content" else {"type": "thinking", "thinking": "another"}]
        yield f"part to send back ({kind})", wrong


if __name__ == "__main__":
    main()
