"""Reads recordings of provider traffic in the file formats of public projects.

Every format is converted to a `Recording`: the request, and the status, headers and body of the answer. Files in other formats
are ignored. `wires` decides which recordings can be replayed.
"""

import base64
import gzip
import json
import zlib
from dataclasses import dataclass, field
from pathlib import Path

import yaml

FOLDERS = ("cassettes", "cassette", "vcr_cassettes", "__fixtures__", "fixtures", "Fixtures", "testdata", "mock-responses")
MAX_FILE_BYTES = 32 * 1024 * 1024


@dataclass
class Recording:
    path: str
    number: int
    method: str
    url: str
    request: object
    status: int
    headers: dict
    body: bytes
    # The parsed events of a recording that has no body.
    notes: dict = field(default_factory=dict)

    @property
    def name(self):
        return f"{self.path}#{self.number}"


class Loader(yaml.CSafeLoader):
    """Reads YAML with the tags that recorders use, other tags as plain values, and keys that are lists as text."""

    def construct_mapping(self, node, deep=False):
        pairs = [(self.construct_object(key, deep=True), self.construct_object(value, deep=True)) for key, value in node.value]
        return {key if isinstance(key, str) else str(key): value for key, value in pairs}


def _binary(loader, node):
    return base64.b64decode(loader.construct_scalar(node))


def _untagged(loader, _suffix, node):
    if isinstance(node, yaml.MappingNode):
        return loader.construct_mapping(node, deep=True)
    if isinstance(node, yaml.SequenceNode):
        return loader.construct_sequence(node, deep=True)
    return loader.construct_scalar(node)


Loader.add_constructor("!binary", _binary)
Loader.add_multi_constructor("!", _untagged)
Loader.add_multi_constructor("tag:yaml.org,2002:python/", _untagged)


def find(folder):
    """Yields every recording below a folder, sorted by path, and `(path, problem)` for files that cannot be read."""
    for path in sorted(Path(folder).rglob("*")):
        name = str(path.relative_to(folder))
        if not path.is_file() or not any(part in FOLDERS for part in path.parts) or path.stat().st_size > MAX_FILE_BYTES:
            continue
        try:
            if path.name.endswith((".yaml", ".yml")):
                yield from _yaml(name, path.read_bytes())
            elif path.name.endswith((".yaml.gz", ".yml.gz")):
                yield from _yaml(name, gzip.decompress(path.read_bytes()))
            elif path.name.endswith(".chunks.txt"):
                yield from _lines(name, path.read_text("utf-8"))
            elif path.name.endswith((".json", ".txt")):
                yield from _body(name, path.read_bytes())
        except (yaml.YAMLError, ValueError, KeyError, TypeError, AttributeError, EOFError, zlib.error) as error:
            yield name, f"{type(error).__name__}: {str(error)[:120]}"


def _yaml(name, data):
    number = 0
    for document in yaml.load_all(data, Loader):
        if not isinstance(document, dict):
            continue
        if "when" in document:
            pairs = [(_rig_request(document["when"]), _rig_response(document["then"]))]
        elif "request" in document and "response" in document:
            pairs = [(document["request"], document["response"])]
        elif "requests" in document:
            pairs = zip(document["requests"], document["responses"])
        else:
            interactions = document.get("interactions") or document.get("http_interactions") or []
            pairs = [(one["request"], one["response"]) for one in interactions if "request" in one and "response" in one]
        for request, response in pairs:
            number += 1
            yield _recording(name, number, request, response)


def _rig_request(when):
    return {
        "method": when.get("method", "POST"),
        "uri": when.get("path", ""),
        "body": when.get("body"),
        "query": when.get("query_param"),
    }


def _rig_response(then):
    headers = {head["name"]: [head["value"]] for head in then.get("header") or []}
    body = then.get("body")
    if body is None and then.get("body_base64"):
        body = base64.b64decode(then["body_base64"])
    return {"status": then.get("status", 200), "headers": headers, "body": body}


def _recording(name, number, request, response):
    status = response.get("code", response.get("status", response.get("status_code", 200)))
    status = status.get("code", 200) if isinstance(status, dict) else status
    headers = {}
    for key, value in (response.get("headers") or {}).items():
        headers[str(key).lower()] = str(value[0] if isinstance(value, list) and value else value)
    body = _decoded(_bytes(response), headers.get("content-encoding", ""))
    asked = _decoded(_bytes(request), "")
    try:
        asked = json.loads(asked)
    except ValueError:
        asked = None
    url = str(request.get("uri") or request.get("url") or "")
    return Recording(name, number, str(request.get("method", "")).upper(), url, asked, int(status), headers, body)


def _bytes(message):
    if message.get("parsed_body") is not None:
        return json.dumps(message["parsed_body"], ensure_ascii=False).encode()
    body = message.get("body", message.get("content"))
    if isinstance(body, dict):
        if body.get("base64_string") is not None:
            return base64.b64decode(body["base64_string"])
        body = body["string"] if "string" in body else json.dumps(body)
    if body is None:
        return b""
    if isinstance(body, bytes):
        return body
    return str(body).encode("utf-8", "surrogateescape")


def _decoded(body, encoding):
    """Decompresses a body. Recorders often keep the encoding header although the body is already decompressed."""
    if body[:2] == b"\x1f\x8b":
        return gzip.decompress(body)
    if body[:4] == b"\x28\xb5\x2f\xfd":
        import zstandard

        return zstandard.ZstdDecompressor().decompressobj().decompress(body)
    if encoding == "br" and body[:1] not in b"{[de:\n\r ":
        import brotli

        try:
            return brotli.decompress(body)
        except brotli.error:
            return body
    return body


def _lines(name, text):
    """Reads a stream that is stored as one JSON document per line."""
    events = [json.loads(line) for line in text.splitlines() if line.strip()]
    if not events or not isinstance(events[0], dict):
        return
    notes = {"events": events}
    yield Recording(name, 1, "POST", "", None, 200, {"content-type": "text/event-stream"}, b"", notes)


def _body(name, data):
    """Reads a file that contains only the body of an answer."""
    text = data.decode("utf-8", "replace").lstrip("\ufeff")
    if text.lstrip().startswith(("data:", "event:")):
        yield Recording(name, 1, "POST", "", None, 200, {"content-type": "text/event-stream"}, data)
        return
    try:
        value = json.loads(text)
    except ValueError:
        return
    if isinstance(value, dict) and isinstance(value.get("request"), dict) and isinstance(value.get("response"), dict):
        yield _recording(name, 1, value["request"], value["response"])
        return
    if isinstance(value, dict) and {"status", "headers", "body"} <= set(value):
        yield _recording(name, 1, {"method": "POST", "uri": ""}, value)
        return
    error = value.get("error") if isinstance(value, dict) else None
    status = 200
    if isinstance(error, dict):
        code = error.get("code")
        status = code if isinstance(code, int) and 400 <= code < 600 else 400
    yield Recording(name, 1, "POST", "", None, status, {"content-type": "application/json"}, data)
