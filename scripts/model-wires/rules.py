"""Rules of the providers that their types do not express: every call has one result in the right position, ids and names have
only the characters that a provider accepts, and roles alternate."""

import re

NAMES = re.compile(r"[a-zA-Z_][a-zA-Z0-9_-]{0,63}")
IDS = {"mistral": re.compile(r"[a-zA-Z0-9]{9}"), "anthropic": re.compile(r"[a-zA-Z0-9_-]+"), "openai": re.compile(r".{1,40}")}


def problems(provider, wire, body):
    """Yields problems for which a provider would refuse a request that fits the types."""
    steps = {"chat": _chat, "responses": _responses, "anthropic": _anthropic, "gemini": _gemini}[wire](body)
    open_calls = []
    ids = IDS.get(provider)
    for kind, ident, name in steps:
        if name is not None and not NAMES.fullmatch(name):
            yield f"the name `{name}` has characters that are not accepted"
        if ident is not None and ids and not ids.fullmatch(ident):
            yield f"{provider} does not accept ids such as `{ident}`"
        if kind == "call":
            if ident is not None and ident in open_calls:
                yield f"the id `{ident}` is used twice"
            open_calls.append(ident)
        elif kind == "result":
            if ident in open_calls:
                open_calls.remove(ident)
            elif wire == "gemini" and open_calls:
                open_calls.pop(0)
            else:
                yield f"a result for `{ident}` without a call before it"
        elif open_calls:
            yield f"a message with the role {kind} before the results of {open_calls}"
            open_calls = []
    if open_calls:
        yield f"no results for {open_calls}"
    if wire == "anthropic":
        yield from _roles([message["role"] for message in body["messages"]], "user")
    if wire == "gemini":
        yield from _roles([content.get("role") for content in body["contents"]], "user")


def _roles(roles, first):
    if roles[:1] != [first] or roles[-1] != first:
        yield f"the conversation must start and end with the role {first}: {roles}"
    if any(one == other for one, other in zip(roles, roles[1:])):
        yield f"two messages in a row with the same role: {roles}"


def _chat(body):
    for tool in body.get("tools", []):
        yield "declaration", None, tool["function"]["name"]
    for message in body["messages"]:
        if message["role"] == "tool":
            yield "result", message["tool_call_id"], None
            continue
        yield message["role"], None, None
        for call in message.get("tool_calls") or []:
            yield "call", call["id"], call["function"]["name"]


def _responses(body):
    for tool in body.get("tools", []):
        yield "declaration", None, tool["name"]
    for item in body["input"]:
        if item.get("type") == "function_call":
            yield "call", item["call_id"], item["name"]
        elif item.get("type") == "function_call_output":
            yield "result", item["call_id"], None
        elif item.get("role"):
            yield item["role"], None, None


def _anthropic(body):
    for tool in body.get("tools", []):
        yield "declaration", None, tool["name"]
    for message in body["messages"]:
        results = [block for block in message["content"] if block["type"] == "tool_result"]
        for block in results:
            yield "result", block["tool_use_id"], None
        if not results:
            yield message["role"], None, None
        for block in message["content"]:
            if block["type"] == "tool_use":
                yield "call", block["id"], block["name"]


def _gemini(body):
    for tool in body.get("tools", []):
        for declaration in tool.get("functionDeclarations", []):
            yield "declaration", None, declaration["name"]
    for content in body["contents"]:
        results = [part["functionResponse"] for part in content["parts"] if "functionResponse" in part]
        for result in results:
            yield "result", result.get("id"), result["name"]
        if not results:
            yield content.get("role"), None, None
        for part in content["parts"]:
            if "functionCall" in part:
                yield "call", part["functionCall"].get("id"), part["functionCall"]["name"]
