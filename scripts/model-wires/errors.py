"""Classifies a provider's error by its status, code and message."""

import json
import re

from answer import Failure

KINDS = ("bad_key", "unknown_model", "rate_limited", "overloaded", "too_long", "refused", "broken")

TOO_LONG = re.compile(
    r"maximum context length|prompt is too long|context window|input token count.*exceeds|exceeds the available context"
    r"|exceeded max context length|too many tokens|input is too long|reduce the length of|max_seq_len|context length of"
    r"|exceeds the (model's )?maximum|exceeds the maximum number of tokens|context_length_exceeded",
    re.I,
)
KEY = re.compile(r"api[ _-]?key|unauthorized|authentication|credential|permission|access token|insufficient[ _](quota|balance|credit)|billing", re.I)
MODEL = re.compile(
    r"is not a valid model|model [^.]{0,80}(does not exist|not found|is not found|is not available|not exist)"
    r"|invalid model|unknown model|no such model|model_not_found|not a valid model id|models/\S+ is not found",
    re.I,
)


def of_status(status, body):
    error, message = parts(body)
    return Failure(kind(status, error, message), f"{status} {message[:160]}", explanation(error, message))


def parts(body):
    """Returns the error object of a body, and its message."""
    text = body.decode("utf-8", "replace") if isinstance(body, bytes) else json.dumps(body)
    try:
        value = json.loads(text)
    except ValueError:
        return {}, text
    if isinstance(value, list) and value:
        value = value[0]
    error = value.get("error", value) if isinstance(value, dict) else {}
    if not isinstance(error, dict):
        return (value if isinstance(value, dict) else {}), str(error)
    message = error.get("message") or error.get("detail") or value.get("message") or text
    return error, message if isinstance(message, str) else json.dumps(message)


def kind(status, error, message):
    words = {str(error.get(name)) for name in ("code", "type", "status") if error.get(name) is not None}
    details = error.get("details")
    for detail in details if isinstance(details, list) else []:
        if isinstance(detail, dict) and detail.get("reason"):
            words.add(str(detail["reason"]))
    is_request = status in (None, 400, 413, 422)
    if "content_filter" in words:
        return "refused"
    if status == 413 or words & {"context_length_exceeded", "exceed_context_size_error", "request_too_large"}:
        return "too_long"
    if is_request and TOO_LONG.search(message) and "max_tokens" not in message.split(":")[0]:
        return "too_long"
    if words & {"invalid_api_key", "insufficient_quota", "API_KEY_INVALID", "authentication_error", "billing_error"}:
        return "bad_key"
    if status in (401, 402, 403):
        return "bad_key"
    if is_request and re.search(r"api[ _-]?key", message, re.I):
        return "bad_key"
    if status in (404, 405) or words & {"model_not_found", "invalid_model"}:
        return "unknown_model"
    if is_request and MODEL.search(message):
        return "unknown_model"
    if status == 429 or words & {"rate_limit_error", "rate_limit_exceeded", "RESOURCE_EXHAUSTED"}:
        return "rate_limited"
    if status in (408, 409, 425) or (status or 0) >= 500:
        return "overloaded"
    if words & {"overloaded_error", "server_error", "api_error", "internal_server_error", "UNAVAILABLE", "INTERNAL"}:
        return "overloaded"
    if status is None and not words & {"invalid_request_error", "invalid_prompt"}:
        return "overloaded"
    return "refused"


def inside(error):
    """Returns the failure for an error inside an answer with status 200."""
    if not isinstance(error, dict):
        error = {"message": str(error)}
    numbers = [value for value in (error.get("code"), error.get("status")) if str(value).isdigit()]
    status = int(numbers[0]) if numbers else None
    message = str(error.get("message") or json.dumps(error))
    return Failure(kind(status, error, message), message[:160], explanation(error, message))


def explanation(error, message):
    """Returns the most specific message. OpenRouter has the error of the underlying provider in `metadata.raw`."""
    metadata = error.get("metadata")
    raw = metadata.get("raw") if isinstance(metadata, dict) else None
    if not isinstance(raw, str) or not raw:
        return message
    return parts(raw.encode())[1]
