//! PendingItem approvals as interrupts.

use super::render::call_id;
use crate::protocol::pending_text;
use lango_core::{ApprovalQuestion, PendingApproval};
use serde_json::{Value, json};

/// Returns the outcome of a run that waits for these approvals.
pub(super) fn outcome(waiting: &[PendingApproval]) -> Value {
    let interrupts: Vec<_> = waiting.iter().map(interrupt).collect();
    json!({ "type": "interrupt", "interrupts": interrupts })
}

fn interrupt(waiting: &PendingApproval) -> Value {
    let request = &waiting.request;
    let reason = match request.question {
        ApprovalQuestion::Permission => "tool_call",
        ApprovalQuestion::UnknownOutcome => "lango:unknown_outcome",
        ApprovalQuestion::ContinueTurn => "lango:interrupted_turn",
    };
    let mut interrupt = json!({
        "id": request.id,
        "reason": reason,
        "message": pending_text(std::slice::from_ref(waiting)),
        "responseSchema": response_schema(waiting),
        "metadata": { "lango": {
            "agent": request.agent,
            "tool": request.tool,
            "effect": request.effect,
            "risk": request.risk,
            "reason": request.reason,
            "session": waiting.session,
            "turn": waiting.turn,
        } },
    });
    if let Some(pattern) = &request.pattern {
        interrupt["metadata"]["lango"]["pattern"] = json!(pattern);
    }
    if request.question != ApprovalQuestion::ContinueTurn {
        interrupt["toolCallId"] = json!(call_id(&waiting.turn, &request.call));
    }
    interrupt
}

/// Returns the schema of the payload that answers a request.
fn response_schema(waiting: &PendingApproval) -> Value {
    let answers: &[&str] = match (waiting.request.question, &waiting.request.pattern) {
        (ApprovalQuestion::Permission, Some(_)) => &["once", "session", "always", "no"],
        (ApprovalQuestion::Permission, None) => &["once", "no"],
        (ApprovalQuestion::UnknownOutcome, _) => &["retry", "skip", "happened"],
        (ApprovalQuestion::ContinueTurn, _) => &["retry", "skip"],
    };
    json!({
        "type": "object",
        "properties": {
            "approved": { "type": "boolean" },
            "answer": { "type": "string", "enum": answers },
            "pattern": { "type": "string" },
            "reason": { "type": "string" },
        },
        "anyOf": [{ "required": ["approved"] }, { "required": ["answer"] }],
        "additionalProperties": false,
    })
}
