"""Parses answers of Gemini's generateContent, of Google AI and of Vertex."""

import errors
from answer import Broken, Failure, Reply, no_reply, pick, plus

ENDS = (None, "STOP", "FINISH_REASON_UNSPECIFIED", "OTHER", "FINISH_REASON_STOP")
BROKEN = ("MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL", "MALFORMED_RESPONSE", "TOO_MANY_TOOL_CALLS", "MISSING_THOUGHT_SIGNATURE")


def whole(body):
    return stream(body if isinstance(body, list) else [body])


def stream(chunks):
    parts, usage, reason, blocked, explanation = [], {}, None, None, ""
    has_candidate = False
    for chunk in chunks:
        if not isinstance(chunk, dict):
            raise Broken("not an object")
        if chunk.get("error"):
            return errors.inside(chunk["error"])
        feedback = chunk.get("promptFeedback") or {}
        blocked = feedback.get("blockReason") or blocked
        explanation = feedback.get("blockReasonMessage") or explanation
        # The last usage is the total. A field that it lacks is zero, even if an earlier one had it.
        usage = chunk.get("usageMetadata") or usage
        for candidate in (chunk.get("candidates") or [])[:1]:
            has_candidate = True
            reason = candidate.get("finishReason") or reason
            explanation = candidate.get("finishMessage") or explanation
            parts.extend((candidate.get("content") or {}).get("parts") or [])
    if blocked:
        return Failure("refused", blocked, explanation)
    if not has_candidate:
        raise Broken("no candidate")
    if reason is None:
        raise Broken("the stream ends without a reason")
    if isinstance(reason, int):
        no_reply("numeric enumerations, which lango does not request")
    return _reply(parts, usage, reason, explanation)


def _reply(parts, usage, reason, explanation):
    text, calls, signed = [], [], []
    hosted = False
    for part in parts:
        if not isinstance(part, dict):
            raise Broken("a part is not an object")
        if "partialArgs" in (part.get("functionCall") or {}) or "willContinue" in (part.get("functionCall") or {}):
            no_reply("streamed arguments, which lango does not request")
        if part.get("functionCall") is not None:
            call = part["functionCall"]
            calls.append((call.get("name", ""), call.get("args") or {}))
            if part.get("thoughtSignature"):
                signed.append({part["thoughtSignature"]})
        if part.get("text") and part.get("thought") is not True:
            text.append(part["text"])
        hosted = hosted or bool({"executableCode", "codeExecutionResult", "toolCall"} & set(part))
    visible = "".join(text)
    stop = "end"
    if reason == "MAX_TOKENS":
        stop = "length"
    elif reason not in ENDS:
        stop = "filter"
        if not visible.strip() and not calls:
            return Failure("broken" if reason in BROKEN else "refused", reason, explanation)
    thoughts = pick(usage, "thoughtsTokenCount")
    read = {
        "input": pick(usage, "promptTokenCount"),
        "cached": pick(usage, "cachedContentTokenCount"),
        "output": plus(pick(usage, "candidatesTokenCount"), thoughts),
        "reasoning": thoughts,
        # The results of hosted tools are input for the model too.
        "input_of_hosted_tools": pick(usage, "toolUsePromptTokenCount"),
    }
    returned = {"thoughtSignature": signed} if signed else {}
    return Reply(visible, calls, read, stop, returned, hosted)
