//! The events of a run as JSON.

use super::run_input::RunInput;
use crate::problem::Problem;
use lango_core::Usage;
use serde_json::{Value, json};

/// The protocol version that lango reports to clients of version 1.
const PROTOCOL_VERSION: &str = "1.0";

/// The kind of activity that shows a delegation.
const DELEGATION: &str = "lango.delegation";

pub(super) fn run_started(run: &RunInput) -> Value {
    let mut event = json!({ "type": "RUN_STARTED", "threadId": run.thread, "runId": run.run });
    if run.is_version_1 {
        event["protocolVersion"] = json!(PROTOCOL_VERSION);
    }
    event
}

pub(super) fn run_finished(run: &RunInput, outcome: Value) -> Value {
    json!({ "type": "RUN_FINISHED", "threadId": run.thread, "runId": run.run, "outcome": outcome })
}

pub(super) fn success() -> Value {
    json!({ "type": "success" })
}

pub(super) fn run_error(message: &str, code: &str) -> Value {
    json!({ "type": "RUN_ERROR", "message": message, "code": code })
}

pub(super) fn problem(problem: &Problem) -> Value {
    let message = match &problem.next {
        Some(next) => format!("{}; {next}", problem.detail),
        None => problem.detail.clone(),
    };
    let code = problem.kind.rsplit(':').next().unwrap_or_default();
    run_error(&message, &code.replace('-', "_"))
}

pub(super) fn step_started(name: &str) -> Value {
    json!({ "type": "STEP_STARTED", "stepName": name })
}

pub(super) fn step_finished(name: &str) -> Value {
    json!({ "type": "STEP_FINISHED", "stepName": name })
}

pub(super) fn activity(message: &str, content: &Value) -> Value {
    json!({
        "type": "ACTIVITY_SNAPSHOT",
        "messageId": message,
        "activityType": DELEGATION,
        "content": content,
        "replace": true,
    })
}

pub(super) fn text_start(message: &str) -> Value {
    json!({ "type": "TEXT_MESSAGE_START", "messageId": message, "role": "assistant" })
}

pub(super) fn text_content(message: &str, delta: &str) -> Value {
    json!({ "type": "TEXT_MESSAGE_CONTENT", "messageId": message, "delta": delta })
}

pub(super) fn text_end(message: &str) -> Value {
    json!({ "type": "TEXT_MESSAGE_END", "messageId": message })
}

/// Returns the three events of a call.
pub(super) fn tool_call(id: &str, name: &str, arguments: &str) -> [Value; 3] {
    [
        json!({ "type": "TOOL_CALL_START", "toolCallId": id, "toolCallName": name }),
        json!({ "type": "TOOL_CALL_ARGS", "toolCallId": id, "delta": arguments }),
        json!({ "type": "TOOL_CALL_END", "toolCallId": id }),
    ]
}

pub(super) fn tool_result(id: &str, content: &str) -> Value {
    json!({
        "type": "TOOL_CALL_RESULT",
        "messageId": format!("{id}:result"),
        "toolCallId": id,
        "content": content,
        "role": "tool",
    })
}

pub(super) fn usage(usage: Usage) -> Value {
    json!([{
        "inputTokens": usage.input_tokens,
        "outputTokens": usage.output_tokens,
        "totalTokens": usage.total(),
        "reasoningTokens": usage.reasoning_tokens,
        "cachedInputTokens": usage.cached_tokens,
        "cacheWriteInputTokens": usage.cache_write_tokens,
    }])
}
