"""Provider answers for the scenarios of `wire_requests`: text, or calls with reasoning that must be sent back."""

import base64
import json

from playback import Answer

# The wire of each tested provider.
PROVIDERS = {
    "openai": "chat",
    "deepseek": "chat",
    "openrouter": "chat",
    "mistral": "chat",
    "responses": "responses",
    "anthropic": "anthropic",
    "gemini": "gemini",
}
MODELS = {
    "openai": "gpt-4.1-mini",
    "deepseek": "deepseek-v4-flash",
    "openrouter": "anthropic/claude-sonnet-4.5",
    "mistral": "mistral-small-latest",
    "responses": "gpt-5-mini",
    "anthropic": "claude-sonnet-4-5",
    "gemini": "gemini-3-flash-preview",
}
# Opaque data that only the provider that sent it can read.
MARKS = {
    "deepseek": "thoughts of deepseek",
    "openrouter": "c2lnbmVkLWJ5LW9wZW5yb3V0ZXI=",
    "mistral": "thoughts of mistral",
    "responses": "ZW5jcnlwdGVkLWJ5LW9wZW5haQ==",
    "anthropic": "c2lnbmVkLWJ5LWFudGhyb3BpYw==",
    "gemini": base64.b64encode(b"signed by gemini").decode(),
}


def text(provider, words):
    return Answer(200, json.dumps(_body(provider, words, [])).encode())


def calls(provider, *called, words="", stop=None):
    """Returns an answer with calls. `called` has pairs of a name and arguments as JSON text."""
    return Answer(200, json.dumps(_body(provider, words, called, stop)).encode())


def failure(status, message="Service unavailable"):
    return Answer(status, json.dumps({"error": {"message": message, "type": "server_error"}}).encode(), headers={"retry-after-ms": "1"})


def _body(provider, words, called, stop=None):
    build = {"chat": _chat, "anthropic": _anthropic, "gemini": _gemini, "responses": _responses}[PROVIDERS[provider]]
    return build(provider, words, called, stop)


def _chat(provider, words, called, stop):
    message = {"role": "assistant", "content": words or None}
    if called:
        ids = "A{:08d}" if provider == "mistral" else "call_of_a_provider_with_long_ids_{:08d}"
        message["tool_calls"] = [
            {"id": ids.format(at), "type": "function", "function": {"name": name, "arguments": arguments}} for at, (name, arguments) in enumerate(called)
        ]
    if provider == "deepseek":
        message["reasoning_content"] = MARKS[provider]
    if provider == "openrouter":
        message["reasoning_details"] = [{"type": "reasoning.text", "text": "Hm.", "signature": MARKS[provider], "format": "anthropic-claude-v1", "index": 0}]
    if provider == "mistral":
        thoughts = {"type": "thinking", "thinking": [{"type": "text", "text": MARKS[provider]}]}
        message["content"] = [thoughts, *([{"type": "text", "text": words}] if words else [])]
    choice = {"index": 0, "message": message, "finish_reason": stop or ("tool_calls" if called else "stop")}
    return {"id": "1", "object": "chat.completion", "choices": [choice], "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}}


def _anthropic(provider, words, called, stop):
    content = [{"type": "thinking", "thinking": "Hm.", "signature": MARKS[provider]}]
    if words:
        content.append({"type": "text", "text": words})
    for at, (name, arguments) in enumerate(called):
        content.append({"type": "tool_use", "id": f"toolu_{at}", "name": name, "input": _parsed(arguments)})
    return {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "content": content,
        "stop_reason": stop or ("tool_use" if called else "end_turn"),
        "usage": {"input_tokens": 1, "output_tokens": 1},
    }


def _gemini(provider, words, called, stop):
    parts = [{"text": words}] if words else []
    for at, (name, arguments) in enumerate(called):
        part = {"functionCall": {"name": name, "args": _parsed(arguments)}}
        if at == 0:
            part["thoughtSignature"] = MARKS[provider]
        parts.append(part)
    candidate = {"content": {"role": "model", "parts": parts}, "finishReason": stop or "STOP", "index": 0}
    return {"candidates": [candidate], "usageMetadata": {"promptTokenCount": 1, "candidatesTokenCount": 1}}


def _responses(provider, words, called, stop):
    output = [{"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": MARKS[provider]}]
    if words:
        part = {"type": "output_text", "text": words, "annotations": []}
        output.append({"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": [part]})
    for at, (name, arguments) in enumerate(called):
        output.append({"type": "function_call", "id": f"fc_{at}", "call_id": f"call_{at}", "name": name, "arguments": arguments, "status": "completed"})
    return {"id": "resp_1", "object": "response", "status": "completed", "output": output, "usage": {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2}}


def _parsed(arguments):
    try:
        return json.loads(arguments)
    except ValueError:
        return {}
