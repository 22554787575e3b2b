"""Parses answers of chat completions, the API that OpenAI defined and many others offer."""

import re

import errors
from answer import Broken, Failure, Reply, arguments, no_reply, number, pick, plus

STOP = {"length": "length", "max_tokens": "length", "model_length": "length", "content_filter": "filter"}


def whole(body):
    if not isinstance(body, dict):
        raise Broken("not an object")
    if body.get("error"):
        return errors.inside(body["error"])
    choices = body.get("choices")
    if not choices:
        raise Broken("no choices")
    choice = choices[0]
    message = choice.get("message") or {}
    if message.get("function_call") and not message.get("tool_calls"):
        no_reply("functions of the API before tools")
    calls = [_call(call) for call in message.get("tool_calls") or []]
    if message.get("audio"):
        no_reply("audio")
    return _reply(
        _text(message.get("content")),
        message.get("refusal") or "",
        calls,
        body.get("usage"),
        choice.get("finish_reason"),
        _returned(message, bool(calls)),
    )


def stream(events):
    text, refusal, reasoning = [], [], []
    details = []
    pieces = {}
    order = []
    usage = finish = None
    ended = False
    for event in events:
        if event == "[DONE]":
            ended = True
            break
        if not isinstance(event, dict):
            continue
        if event.get("error"):
            return errors.inside(event["error"])
        usage = event.get("usage") or (event.get("x_groq") or {}).get("usage") or usage
        for choice in event.get("choices") or []:
            if choice.get("index") not in (0, None):
                continue
            finish = choice.get("finish_reason") or finish
            delta = choice.get("delta") or choice.get("message") or {}
            if delta.get("function_call"):
                no_reply("functions of the API before tools")
            if delta.get("audio"):
                no_reply("audio")
            text.append(_text(delta.get("content")))
            refusal.append(delta.get("refusal") or "")
            reasoning.append(delta.get("reasoning_content") or "")
            details.extend(delta.get("reasoning_details") or [])
            for piece in delta.get("tool_calls") or []:
                _add_piece(pieces, order, piece)
    if not ended and finish is None:
        raise Broken("the stream ends without a reason")
    calls = [(pieces[key]["name"], arguments(pieces[key]["arguments"])) for key in order]
    message = {"reasoning_content": "".join(reasoning), "reasoning_details": details}
    return _reply("".join(text), "".join(refusal), calls, usage, finish, _returned(message, bool(calls)))


def _add_piece(pieces, order, piece):
    """Adds a piece to its call. Calls are distinguished by index, or by a new id where a server gives all the same index."""
    function = piece.get("function") or {}
    key = piece.get("index")
    if key is None:
        key = piece.get("id") or (order[-1] if order else 0)
    call = pieces.get(key)
    new_id = piece.get("id")
    if call and new_id and call["id"] and new_id != call["id"]:
        key = (key, new_id)
        call = pieces.get(key)
    elif call is None and not new_id:
        same = [one for one in order if one == key or (isinstance(one, tuple) and one[0] == key)]
        call = pieces.get(same[-1]) if same else None
    elif call and not new_id:
        same = [one for one in order if one == key or (isinstance(one, tuple) and one[0] == key)]
        call = pieces[same[-1]]
    if call is None:
        call = pieces[key] = {"id": new_id, "name": "", "arguments": ""}
        order.append(key)
    name = function.get("name")
    if name and not call["name"]:
        call["name"] = name
    given = function.get("arguments")
    if isinstance(given, str):
        call["arguments"] += given
    elif given is not None:
        call["arguments"] = given


def _call(call):
    if call.get("custom"):
        no_reply("custom tools, which lango does not ask for")
    function = call.get("function") or {}
    return function.get("name", ""), arguments(function.get("arguments"))


def _text(content):
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "".join(part.get("text") or "" for part in content if isinstance(part, dict) and part.get("type", "text") == "text")
    return ""


def _returned(message, has_calls):
    """Returns what must be sent back with a message with calls: the reasoning for DeepSeek and Moonshot, its details for
    OpenRouter."""
    returned = {}
    if has_calls and message.get("reasoning_details"):
        returned["reasoning_details"] = message["reasoning_details"]
    elif has_calls and message.get("reasoning_content"):
        returned["reasoning_content"] = message["reasoning_content"]
    return returned


def _reply(text, refusal, calls, usage, finish, returned):
    visible = re.sub(r"\A\s*<think>.*?(</think>\s*|\Z)", "", text, flags=re.S)
    stop = STOP.get(finish, "end")
    if not visible.strip() and not calls and refusal:
        return Failure("refused", refusal[:160], refusal)
    if not visible.strip() and not calls and stop == "filter":
        return Failure("refused", "content filter")
    return Reply(visible, calls, _usage(usage), stop, returned)


def _usage(usage):
    if not isinstance(usage, dict):
        return {}
    sent = pick(usage, "prompt_tokens", "input_tokens")
    output = pick(usage, "completion_tokens", "output_tokens")
    reasoning = pick(usage, "completion_tokens_details.reasoning_tokens", "reasoning_tokens", "output_tokens_details.reasoning_tokens")
    total = number(usage.get("total_tokens"))
    # Some providers count reasoning separately from the completion, which their total shows.
    if None not in (sent, output, reasoning, total) and reasoning and total == sent + output + reasoning:
        output = plus(output, reasoning)
    cached = [
        pick(usage, path)
        for path in (
            "prompt_tokens_details.cached_tokens",
            "prompt_token_details.cached_tokens",
            "input_tokens_details.cached_tokens",
            "cached_tokens",
            "num_cached_tokens",
            "prompt_cache_hit_tokens",
            "cache_read_input_tokens",
        )
    ]
    cached = [value for value in cached if value is not None]
    return {
        "input": sent,
        "cached": max(cached) if cached else None,
        "cache_write": pick(usage, "prompt_tokens_details.cache_write_tokens", "cache_creation_input_tokens"),
        "output": output,
        "reasoning": reasoning,
    }
