"""Classifies recordings by wire (the API) and provider, and decides which ones are left out."""

import json
import re
from urllib.parse import urlsplit

CHAT, RESPONSES, ANTHROPIC, GEMINI = "chat", "responses", "anthropic", "gemini"

HOSTS = {
    "api.openai.com": "openai",
    "api.anthropic.com": "anthropic",
    "generativelanguage.googleapis.com": "gemini",
    "aiplatform.googleapis.com": "vertex",
    "openrouter.ai": "openrouter",
    "api.mistral.ai": "mistral",
    "api.groq.com": "groq",
    "api.deepseek.com": "deepseek",
    "api.x.ai": "xai",
    "api.moonshot.ai": "moonshot",
    "api.together.ai": "together",
    "api.together.xyz": "together",
    "router.huggingface.co": "huggingface",
    "api.perplexity.ai": "perplexity",
    "api.cerebras.ai": "cerebras",
    "api.fireworks.ai": "fireworks",
    "ollama.com": "ollama",
    "api.z.ai": "zai",
    "api.writer.com": "writer",
}


class LeftOut(Exception):
    """The reason why a recording is not replayed."""


def classify(recording):
    """Returns the wire and the provider of a recording. Raises `LeftOut` if it cannot be replayed."""
    wire = _by_address(recording) if recording.url else _by_shape(recording)
    return wire, provider(recording)


def _by_address(recording):
    path = urlsplit(recording.url).path.rstrip("/")
    if recording.method != "POST":
        raise LeftOut("not a call of a model")
    if path.endswith("/chat/completions") or (path.endswith("/v1/chat") and b'"choices"' in recording.body):
        wire = CHAT
    elif path.endswith("/responses"):
        wire = RESPONSES
    elif re.search(r"/v1(beta)?/messages$|/anthropic/.*messages$", path) or path.endswith(":rawPredict"):
        wire = ANTHROPIC
    elif re.search(r":(stream)?generateContent$", path, re.I):
        wire = GEMINI
    elif re.search(r"/converse|/invoke", path):
        raise LeftOut("Bedrock")
    elif re.search(r"embed", path, re.I):
        raise LeftOut("embeddings")
    elif re.search(r"image|audio|speech|transcri|video|realtime", path, re.I):
        raise LeftOut("images, audio or video")
    elif re.search(r"batch", path, re.I):
        raise LeftOut("batches")
    elif re.search(r"/api/(chat|generate)$|/v[12]/chat$|/completions?$|interactions|/generate$|threads|assistants", path):
        raise LeftOut("another protocol of a provider")
    else:
        raise LeftOut("not a call of a model")
    if recording.status in (0, 204) or (300 <= recording.status < 400):
        raise LeftOut("no answer in it")
    asked = recording.request
    if isinstance(asked, dict) and wire == RESPONSES and asked.get("background"):
        raise LeftOut("a response in the background")
    if not recording.body.strip():
        raise LeftOut("no answer in it")
    return wire


def _by_shape(recording):
    """Recognizes the wire by the body, if nothing else was recorded."""
    place = recording.path.lower()
    for word in ("bedrock", "embedding", "rerank", "transcription", "image", "speech", "realtime", "interactions", "cohere", "span"):
        if word in place.replace("image-rejected", "").replace("image-invalid", ""):
            raise LeftOut("another protocol of a provider")
    sample = _sample(recording)
    if not isinstance(sample, dict):
        raise LeftOut("no recording")
    wire = _wire_of(sample)
    if wire is None and "error" in sample:
        wire = _wire_of_place(place)
    if wire is None:
        raise LeftOut("no recording")
    if "events" in recording.notes:
        recording.body = _stream(wire, recording.notes["events"])
    return wire


def _sample(recording):
    if recording.notes.get("events"):
        return recording.notes["events"][0]
    text = recording.body.decode("utf-8", "replace").lstrip("\ufeff").strip()
    if text.startswith(("data:", "event:")):
        found = re.search(r"^data:(.*)$", text, re.M)
        text = found.group(1).strip() if found else ""
    try:
        value = json.loads(text)
    except ValueError:
        # The first event of some streams is broken intentionally.
        return {"candidates": []} if "vertexai-sdk" in recording.path and text else None
    return value[0] if isinstance(value, list) and value else value


def _wire_of(sample):
    kind = str(sample.get("type", ""))
    if kind in ("message", "message_start", "content_block_start", "content_block_delta") or sample.get("role") == "assistant":
        return ANTHROPIC
    if kind.startswith("response.") or sample.get("object") == "response" or isinstance(sample.get("output"), list):
        return RESPONSES
    if "choices" in sample and sample.get("object") != "text_completion":
        return CHAT
    if "candidates" in sample or "promptFeedback" in sample or "usageMetadata" in sample:
        return GEMINI
    return None


def _wire_of_place(place):
    if "google" in place or "vertexai" in place or "gemini" in place:
        return GEMINI
    if "anthropic" in place:
        return ANTHROPIC
    if "responses" in place:
        return RESPONSES
    return CHAT if "/chat/" in place or "openai" in place else None


def _stream(wire, events):
    lines = []
    for event in events:
        if wire in (ANTHROPIC, RESPONSES) and "type" in event:
            lines.append(f"event: {event['type']}\n")
        lines.append(f"data: {json.dumps(event, ensure_ascii=False)}\n\n")
    if wire == CHAT:
        lines.append("data: [DONE]\n\n")
    return "".join(lines).encode()


def provider(recording):
    """Returns the provider's name, from the URL or from the path of the file."""
    host = urlsplit(recording.url).hostname or ""
    if host in HOSTS:
        return HOSTS[host]
    if host.endswith("googleapis.com"):
        return "vertex"
    if host.endswith("azure.com"):
        return "azure"
    parts = recording.path.split("/")
    for at, part in enumerate(parts[:-1]):
        if part in ("cassettes", "cassette") and not host:
            return parts[at + 1].removesuffix(".yaml")
        if part in ("packages", "Fixtures"):
            return parts[at + 1]
        if part == "testdata":
            return re.sub(r"(?<=[a-z])(Common.*|Responses.*|Thinking.*|Object.*|With.*)$", "", parts[at + 1].removeprefix("Test")).lower()
        if part == "mock-responses":
            return "gemini" if parts[at + 1] == "googleai" else "vertex"
    words = re.findall(r"ollama|gpustack|vllm|snowflake|gateway|groq|mistral|anthropic|gemini|openai", (host + recording.url + recording.path).lower())
    return words[0] if words else (host or "unknown")


def model(recording, wire):
    """Returns the id of the requested model, or of the one that answered."""
    asked = recording.request
    if wire == GEMINI:
        found = re.search(r"/models/([^/:?]+):", recording.url)
        return found.group(1) if found else "gemini-2.5-flash"
    name = asked.get("model") if isinstance(asked, dict) else None
    found = name or re.search(r"/deployments/([^/?]+)/", recording.url)
    if found and not isinstance(found, str):
        found = found.group(1)
    if not found:
        found = re.search(rb'"model"\s*:\s*"([^"]+)"', recording.body)
        found = found.group(1).decode() if found else "some-model"
    return found


def streamed(recording):
    """Returns whether the answer is a stream of events, regardless of its content type."""
    start = recording.body.lstrip()[:8]
    return start.startswith((b"data:", b"event:", b":", b"id:"))
