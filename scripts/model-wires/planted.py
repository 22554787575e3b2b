"""Checks the checker of requests: a right request of every provider passes, and each of them with one thing wrong does not. An
unknown field and a value of the wrong type are planted at every place of every request that is not free-form JSON."""

import copy

from replies import PROVIDERS
from sdk_types import problems

SCHEMA = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}
# Places that hold any JSON.
FREE = {"parameters", "input_schema", "parametersJsonSchema", "input", "args", "response", "schema", "responseJsonSchema"}


def _chat(ident="call_1", **assistant):
    call = {"id": ident, "type": "function", "function": {"name": "fs_list", "arguments": "{}"}}
    return {
        "model": "m",
        "messages": [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": [{"type": "text", "text": "What is this?"}, {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}]},
            {"role": "assistant", "content": None, "tool_calls": [call], **assistant},
            {"role": "tool", "tool_call_id": ident, "content": "notes.md"},
        ],
        "tools": [{"type": "function", "function": {"name": "fs_list", "description": "Lists", "parameters": SCHEMA}}],
        "temperature": 0.5,
        "response_format": {"type": "json_schema", "json_schema": {"name": "answer", "schema": SCHEMA, "strict": True}},
        "stream": True,
    }


RIGHT = {
    "openai": {**_chat(), "stream_options": {"include_usage": True}, "reasoning_effort": "low", "max_completion_tokens": 10},
    "deepseek": {**_chat(reasoning_content="Hm."), "stream_options": {"include_usage": True}},
    "openrouter": _chat(),
    "mistral": {**_chat("A00000001"), "max_tokens": 10},
    "responses": {
        "model": "m",
        "instructions": "Be brief.",
        "input": [
            {"role": "user", "content": [{"type": "input_text", "text": "What is this?"}, {"type": "input_image", "image_url": "data:image/png;base64,AAAA", "detail": "auto"}]},
            {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "AAAA"},
            {"type": "function_call", "call_id": "call_1", "name": "fs_list", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "call_1", "output": "notes.md"},
        ],
        "tools": [{"type": "function", "name": "fs_list", "description": "Lists", "parameters": SCHEMA, "strict": False}],
        "text": {"format": {"type": "json_schema", "name": "answer", "schema": SCHEMA, "strict": True}},
        "reasoning": {"effort": "low"},
        "include": ["reasoning.encrypted_content"],
        "store": False,
        "stream": True,
    },
    "anthropic": {
        "model": "m",
        "max_tokens": 10,
        "system": [{"type": "text", "text": "Be brief.", "cache_control": {"type": "ephemeral"}}],
        "messages": [
            {"role": "user", "content": [{"type": "text", "text": "What is this?"}, {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AAAA"}}]},
            {"role": "assistant", "content": [{"type": "thinking", "thinking": "Hm.", "signature": "AAAA"}, {"type": "tool_use", "id": "toolu_1", "name": "fs_list", "input": {}}]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "toolu_1", "content": "notes.md", "is_error": False}]},
        ],
        "tools": [{"name": "fs_list", "description": "Lists", "input_schema": SCHEMA}],
        "tool_choice": {"type": "none"},
        "thinking": {"type": "adaptive"},
        "stream": True,
    },
    "gemini": {
        "systemInstruction": {"parts": [{"text": "Be brief."}]},
        "contents": [
            {"role": "user", "parts": [{"text": "What is this?"}, {"inlineData": {"mimeType": "image/png", "data": "AAAA"}}]},
            {"role": "model", "parts": [{"functionCall": {"name": "fs_list", "args": {}}, "thoughtSignature": "AAAA"}]},
            {"role": "user", "parts": [{"functionResponse": {"name": "fs_list", "response": {"result": "notes.md"}}}]},
        ],
        "tools": [{"functionDeclarations": [{"name": "fs_list", "description": "Lists", "parametersJsonSchema": SCHEMA}]}],
        "toolConfig": {"functionCallingConfig": {"mode": "NONE"}},
        "generationConfig": {"temperature": 0.5, "maxOutputTokens": 10, "thinkingConfig": {"thinkingLevel": "LOW"}, "responseMimeType": "application/json"},
    },
}


def wrong(provider, body):
    """Yields what is wrong and the wrong request."""
    # Mistral takes arguments as an object too.
    free = FREE | ({"arguments"} if provider == "mistral" else set())
    for place in places(body, free):
        value = at(body, place)
        name = ".".join(map(str, place)) or "the request"
        if isinstance(value, dict):
            changed = copy.deepcopy(body)
            at(changed, place)["planted_field"] = 1
            yield f"an unknown field in {name}", changed
        elif not isinstance(value, list):
            changed = copy.deepcopy(body)
            at(changed, place[:-1])[place[-1]] = {"planted_type": 1}
            yield f"an object in place of {name}", changed


def wrong_conversations(provider, body):
    """The same for the rules beside the types: the messages of the request in a wrong order, and names that are not taken."""
    field = {"chat": "messages", "responses": "input", "anthropic": "messages", "gemini": "contents"}[PROVIDERS[provider]]
    for what, messages in {
        "a call without its result": body[field][:-1],
        "a result without its call": [body[field][0], body[field][-1]],
        "a message between a call and its result": [*body[field][:-1], body[field][-4 if field == "input" else 0], body[field][-1]],
    }.items():
        yield what, {**body, field: messages}
    yield "a name with a dot", _replaced(body, "fs_list", "fs.list")
    if provider == "mistral":
        yield "an id of another provider", _replaced(body, "A00000001", "call_1")


def _replaced(value, text, other):
    if isinstance(value, dict):
        return {key: _replaced(one, text, other) for key, one in value.items()}
    if isinstance(value, list):
        return [_replaced(one, text, other) for one in value]
    return other if value == text else value


def places(value, free, place=()):
    """Every place in a request, the free-form ones left out."""
    yield place
    if isinstance(value, dict):
        for key, one in value.items():
            if key not in free or isinstance(one, list):
                yield from places(one, free, (*place, key))
    elif isinstance(value, list):
        for number, one in enumerate(value):
            yield from places(one, free, (*place, number))


def at(value, place):
    for part in place:
        value = value[part]
    return value


def main():
    """Prints what went unnoticed; returns the exit code."""
    missed, planted = [], 0
    for provider, body in RIGHT.items():
        refused = problems(provider, body)
        missed += [f"{provider}: a right request is refused: {problem}" for problem in refused]
        if refused:
            continue
        for what, changed in [*wrong(provider, body), *wrong_conversations(provider, body)]:
            planted += 1
            if not problems(provider, changed):
                missed.append(f"{provider}: {what} is not noticed")
    print("\n".join(missed) or f"{planted} wrong requests, all noticed; {len(RIGHT)} right ones pass")
    return 1 if missed else 0
