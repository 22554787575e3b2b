"""Tests the checker of requests: a correct request of every provider must pass, and the same request with one fault must not. An
unknown field and a value of the wrong type are planted at every position of every request that is not free-form JSON."""

import copy

from replies import PROVIDERS
from sdk_types import problems

SCHEMA = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}
# Fields that may contain any JSON.
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


CORRECT = {
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


def wrong_types(provider, body):
    """Yields the description of a fault and the request with the fault, for faults that violate the types."""
    # Mistral also accepts arguments as an object.
    free = FREE | ({"arguments"} if provider == "mistral" else set())
    for path in paths(body, free):
        value = at(body, path)
        name = ".".join(map(str, path)) or "the request"
        if isinstance(value, dict):
            changed = copy.deepcopy(body)
            at(changed, path)["planted_field"] = 1
            yield f"an unknown field in {name}", changed
        elif not isinstance(value, list):
            changed = copy.deepcopy(body)
            at(changed, path[:-1])[path[-1]] = {"planted_type": 1}
            yield f"an object in place of {name}", changed


def wrong_conversations(provider, body):
    """Does the same for faults that violate the other rules: messages in the wrong order, and invalid names and ids."""
    field = {"chat": "messages", "responses": "input", "anthropic": "messages", "gemini": "contents"}[PROVIDERS[provider]]
    for fault, messages in {
        "a call without its result": body[field][:-1],
        "a result without its call": [body[field][0], body[field][-1]],
        "a message between a call and its result": [*body[field][:-1], body[field][-4 if field == "input" else 0], body[field][-1]],
    }.items():
        yield fault, {**body, field: messages}
    yield "a name with a dot", _replaced(body, "fs_list", "fs.list")
    if provider == "mistral":
        yield "an id of another provider", _replaced(body, "A00000001", "call_1")


def _replaced(value, text, other):
    if isinstance(value, dict):
        return {key: _replaced(one, text, other) for key, one in value.items()}
    if isinstance(value, list):
        return [_replaced(one, text, other) for one in value]
    return other if value == text else value


def paths(value, free, path=()):
    """Yields the path of every value in a request, without those inside free-form JSON."""
    yield path
    if isinstance(value, dict):
        for key, one in value.items():
            if key not in free or isinstance(one, list):
                yield from paths(one, free, (*path, key))
    elif isinstance(value, list):
        for number, one in enumerate(value):
            yield from paths(one, free, (*path, number))


def at(value, path):
    for part in path:
        value = value[part]
    return value


def main():
    """Prints the faults that were not detected. Returns the exit code."""
    missed, planted = [], 0
    for provider, body in CORRECT.items():
        refused = problems(provider, body)
        missed += [f"{provider}: a correct request is refused: {problem}" for problem in refused]
        if refused:
            continue
        for fault, changed in [*wrong_types(provider, body), *wrong_conversations(provider, body)]:
            planted += 1
            if not problems(provider, changed):
                missed.append(f"{provider}: {fault} is not detected")
    print("\n".join(missed) or f"{planted} wrong requests, all detected; {len(CORRECT)} correct ones pass")
    return 1 if missed else 0
