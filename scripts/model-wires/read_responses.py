"""Parses answers of OpenAI's Responses API."""

import errors
from answer import Broken, Failure, Reply, arguments, no_reply, pick

STOP = {"max_output_tokens": "length", "content_filter": "filter", "max_tokens": "length"}


def whole(body):
    if not isinstance(body, dict):
        raise Broken("not an object")
    if body.get("error"):
        return errors.inside(body["error"])
    if not isinstance(body.get("output"), list):
        raise Broken("no output")
    return _reply(body, body["output"])


def stream(events):
    done, last = {}, None
    for event in events:
        if not isinstance(event, dict):
            continue
        kind = event.get("type")
        if kind == "error":
            return errors.inside(event.get("error") or event)
        if kind == "response.failed":
            return errors.inside((event.get("response") or {}).get("error") or {"message": "failed"})
        if kind == "response.output_item.done":
            done[event.get("output_index", len(done))] = event["item"]
        if kind in ("response.completed", "response.incomplete"):
            last = event["response"]
            break
    if last is None:
        raise Broken("the stream ends without a response")
    finished = [done[at] for at in sorted(done)]
    return _reply(last, last.get("output") or finished, finished)


def _reply(response, items, finished=()):
    """`finished` has the items as the stream sent them one by one, in which the same reasoning is encrypted differently."""
    if response.get("status") in ("queued", "in_progress"):
        no_reply("a response that is not finished")
    text, refusal, calls, reasoning = [], [], [], []
    hosted = False
    for item in items:
        kind = item.get("type")
        if kind == "message":
            parts = item.get("content") or []
            text.append("".join(part.get("text") or "" for part in parts if part.get("type") in ("output_text", "text")))
            refusal += [part.get("refusal") or "" for part in parts if part.get("type") == "refusal"]
        elif kind == "function_call":
            calls.append((item.get("name", ""), arguments(item.get("arguments"))))
        elif kind == "reasoning":
            reasoning.append(item)
        else:
            hosted = True
    reason = (response.get("incomplete_details") or {}).get("reason")
    stop = STOP.get(reason, "length" if response.get("status") == "incomplete" else "end")
    # Each message becomes a paragraph.
    visible = "\n\n".join(one for one in text if one)
    if not visible.strip() and not calls and (refusal or stop == "filter"):
        return Failure("refused", "".join(refusal)[:160] or "content filter", "".join(refusal))
    usage = response.get("usage") or {}
    read = {
        "input": pick(usage, "input_tokens"),
        "cached": pick(usage, "input_tokens_details.cached_tokens"),
        "cache_write": pick(usage, "input_tokens_details.cache_write_tokens"),
        "output": pick(usage, "output_tokens"),
        "reasoning": pick(usage, "output_tokens_details.reasoning_tokens"),
    }
    returned = {}
    encrypted = [
        {same["encrypted_content"] for same in [item, *finished] if same.get("id") == item.get("id") and same.get("encrypted_content")}
        for item in reasoning
    ]
    if calls and any(encrypted):
        returned["encrypted_content"] = [choices for choices in encrypted if choices]
    return Reply(visible, calls, read, stop, returned, hosted)
