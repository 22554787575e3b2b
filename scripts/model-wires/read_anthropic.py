"""Parses answers of Anthropic's Messages API."""

import errors
from answer import Broken, Failure, Reply, arguments, pick, plus

STOP = {"max_tokens": "length", "model_context_window_exceeded": "length", "refusal": "refusal"}
HOSTED = ("server_tool_use", "mcp_tool_use")


def whole(body):
    if not isinstance(body, dict):
        raise Broken("not an object")
    if body.get("type") == "error" or (body.get("error") and not body.get("content")):
        return errors.inside(body["error"])
    if not isinstance(body.get("content"), list):
        raise Broken("no content")
    return _reply(body["content"], body.get("usage") or {}, body.get("stop_reason"), body.get("stop_details"))


def stream(events):
    blocks, usage, reason, details = {}, {}, None, None
    ended = False
    for event in events:
        if not isinstance(event, dict):
            continue
        kind = event.get("type")
        if kind == "error":
            return errors.inside(event.get("error") or {})
        if kind == "message_start":
            usage = {**usage, **_present(event["message"].get("usage"))}
        elif kind == "content_block_start":
            # A repeated index starts a new block.
            key = (event["index"], sum(1 for one in blocks if one[0] == event["index"]))
            blocks[key] = {**event["content_block"], "_pieces": ""}
        elif kind == "content_block_delta":
            same = [one for one in blocks if one[0] == event["index"]]
            if not same:
                raise Broken("a delta without a block")
            _add(blocks[same[-1]], event["delta"])
        elif kind == "message_delta":
            usage = {**usage, **_present(event.get("usage"))}
            reason = event["delta"].get("stop_reason") or reason
            details = event["delta"].get("stop_details") or details
        elif kind == "message_stop":
            ended = True
            break
    if not ended and reason is None:
        raise Broken("the stream ends without a reason")
    return _reply([_finished(block) for block in blocks.values()], usage, reason, details)


def _present(usage):
    return {name: value for name, value in (usage or {}).items() if value is not None}


def _add(block, delta):
    for source, target in (("text", "text"), ("thinking", "thinking"), ("signature", "signature")):
        if isinstance(delta.get(source), str):
            block[target] = (block.get(target) or "") + delta[source]
    if isinstance(delta.get("partial_json"), str):
        block["_pieces"] += delta["partial_json"]


def _finished(block):
    pieces = block.pop("_pieces")
    if pieces:
        block["input"] = arguments(pieces)
    return block


def _reply(blocks, usage, reason, details):
    text = "".join(block.get("text") or "" for block in blocks if block.get("type") == "text")
    calls = [(block.get("name", ""), arguments(block.get("input"))) for block in blocks if block.get("type") == "tool_use"]
    stop = STOP.get(reason, "end")
    if stop == "refusal" and not text.strip() and not calls:
        return Failure("refused", "refusal", (details or {}).get("explanation") or "")
    returned = {}
    thoughts = [block for block in blocks if block.get("type") in ("thinking", "redacted_thinking")]
    if thoughts and calls:
        returned["thinking"] = thoughts
    cached, written = pick(usage, "cache_read_input_tokens"), pick(usage, "cache_creation_input_tokens")
    read = {
        "input": plus(pick(usage, "input_tokens"), cached, written),
        "cached": cached,
        "cache_write": written,
        "output": pick(usage, "output_tokens"),
        "reasoning": pick(usage, "output_tokens_details.thinking_tokens"),
    }
    hosted = any(block.get("type") in HOSTED for block in blocks)
    return Reply(text, calls, read, stop, returned, hosted)
