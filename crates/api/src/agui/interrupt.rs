//! Pending approvals as interrupts.

use super::render::call_id;
use crate::protocol::pending_text;
use lango_core::{Asks, Waiting};
use serde_json::{Value, json};

/// Returns the outcome of a run that waits for these approvals.
pub(super) fn outcome(waiting: &[Waiting]) -> Value {
    let interrupts: Vec<_> = waiting.iter().map(interrupt).collect();
    json!({ "type": "interrupt", "interrupts": interrupts })
}

fn interrupt(waiting: &Waiting) -> Value {
    let request = &waiting.request;
    let reason = match request.asks {
        Asks::Permission => "tool_call",
        Asks::Fate => "lango:unknown_outcome",
        Asks::Turn => "lango:interrupted_turn",
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
    if request.asks != Asks::Turn {
        interrupt["toolCallId"] = json!(call_id(&waiting.turn, &request.call));
    }
    interrupt
}

/// Returns the schema of the payload that answers a request.
fn response_schema(waiting: &Waiting) -> Value {
    let answers: &[&str] = match (waiting.request.asks, &waiting.request.pattern) {
        (Asks::Permission, Some(_)) => &["once", "session", "always", "no"],
        (Asks::Permission, None) => &["once", "no"],
        (Asks::Fate, _) => &["retry", "skip", "happened"],
        (Asks::Turn, _) => &["retry", "skip"],
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
