//! A call that waits for a person, as they are shown it: who wants what, exactly as it would run, and why they are asked.

use super::{count, one_line};
use crate::markdown::sanitize;
use lango_core::{ApprovalRequest, Risk, Waiting};
use std::fmt::Write;

/// The lines of a request, without the keys that answer it. `more` others wait behind it.
pub fn request(waiting: &Waiting, preview: Option<&str>, more: usize) -> String {
    let request = &waiting.request;
    let risk = match request.risk {
        Risk::Safe => "safe",
        Risk::Moderate => "changes something",
        Risk::Dangerous => "can do harm",
    };
    let mut text = format!(
        "┌ {} wants to use {} · {risk}\n",
        request.agent, request.tool
    );
    let arguments = match preview {
        Some(preview) => preview.to_owned(),
        None => format!("{:#}", request.arguments),
    };
    for line in sanitize(&arguments).trim_end().lines() {
        let _ = writeln!(text, "│   {line}");
    }
    let _ = write!(text, "│ why: {}", one_line(&request.reason, 200));
    if more > 0 {
        let _ = write!(text, " · {} behind it", count(more as u64, "request"));
    }
    text
}

/// Who wants what, on one line.
pub fn subject_line(request: &ApprovalRequest) -> String {
    let arguments = super::progress::brief_arguments(&request.arguments);
    format!(
        "{} {} {}",
        request.agent,
        request.tool,
        one_line(&arguments, 80)
    )
}

/// The rule that would have let this call run, as a flag; none if no rule can.
pub fn allowing_rule(waiting: &Waiting) -> Option<String> {
    let request = &waiting.request;
    let pattern = request.pattern.as_ref()?;
    let fields = [("tool", request.tool.as_str()), ("match", pattern)];
    let mut rule = "action=\"allow\"".to_owned();
    for (name, value) in fields {
        let _ = write!(rule, ",{name}={}", toml::Value::from(value));
    }
    let quoted = rule.replace('\'', r"'\''");
    Some(format!("-c 'approval.rules=[{{{quoted}}}]'"))
}
