//! The result of a tool call on one line, and the arguments as they are.

use super::one_line;
use lango_core::CallStatus;
use serde_json::Value;

const RESULT_CHARACTERS: usize = 100;

/// The last lines of a command that failed.
const LAST_LINES: usize = 5;

/// Describes the result of a call: counts of an edit, the exit code of a command, or the first line of the output.
pub(super) fn result_text(
    tool: &str,
    arguments: &Value,
    status: CallStatus,
    output: &str,
) -> String {
    let first = first_line(output);
    let result = match (tool, status) {
        ("exec", _) => return exit_text(first),
        ("fs_write" | "fs_edit" | "fs_delete" | "fs_mkdir", CallStatus::Ok) => {
            // The line starts with a verb and the path, which the call shows already.
            let path = arguments.get("path").and_then(Value::as_str);
            let rest = path
                .and_then(|path| first.split_once(path))
                .map(|(_, rest)| rest);
            rest.unwrap_or(first)
        }
        _ => first,
    };
    // Memories are lines of JSON, of which the user wants the text.
    let fields: Option<Value> = (tool.starts_with("memory_") && status == CallStatus::Ok)
        .then(|| serde_json::from_str(result).ok())
        .flatten();
    let text = fields.as_ref().and_then(|fields| fields["text"].as_str());
    one_line(text.unwrap_or(result), RESULT_CHARACTERS)
}

/// Describes why a call did not run. What follows the first part of the sentence is advice for the model.
pub(super) fn refusal_text(output: &str) -> String {
    let first = first_line(output);
    let reason = first.split_once("; ").map_or(first, |(reason, _)| reason);
    one_line(reason, RESULT_CHARACTERS)
}

/// Returns the last lines of a command's output.
pub(super) fn last_lines(tool: &str, output: &str) -> Vec<String> {
    if tool != "exec" {
        return Vec::new();
    }
    // The first line is about the exit code.
    let lines: Vec<&str> = output.lines().skip(1).collect();
    let first = lines.len().saturating_sub(LAST_LINES);
    let lines = lines[first..].iter();
    lines
        .map(|line| one_line(line, RESULT_CHARACTERS))
        .collect()
}

/// Whether a call failed from the user's point of view: also a command that ran and returned a failure.
pub(super) fn has_failed(tool: &str, status: CallStatus, output: &str) -> bool {
    match status {
        CallStatus::Ok if tool == "exec" => !first_line(output).starts_with("exit code 0 "),
        CallStatus::Ok => false,
        CallStatus::Error | CallStatus::Denied | CallStatus::Unknown => true,
    }
}

/// The symbol for a call of which only the user's report is known, which may be good or bad.
pub(super) const REPORTED_SYMBOL: &str = "·";

/// Returns the symbol for the status of a call.
pub(super) fn status_symbol(status: CallStatus) -> &'static str {
    match status {
        CallStatus::Ok => "✓",
        CallStatus::Error => "✗",
        CallStatus::Denied => "⊘",
        CallStatus::Unknown => "?",
    }
}

/// Returns the first informative line of an output. It skips the mark for untrusted data, which is meant for models
/// and the same for every call.
pub(super) fn first_line(output: &str) -> &str {
    let mut lines = output.lines();
    let first = lines.next().unwrap_or_default();
    if first.starts_with("[untrusted: ") {
        lines.next().unwrap_or(first)
    } else {
        first
    }
}

/// Formats arguments as `path=. lines=3`, which reads better than JSON.
pub(super) fn brief_arguments(arguments: &Value) -> String {
    let Some(fields) = arguments.as_object() else {
        return arguments.to_string();
    };
    let field = |(name, value): (&String, &Value)| match value {
        Value::String(text) => format!("{name}={text}"),
        other => format!("{name}={other}"),
    };
    // What a call changes must not be cut off behind a long content.
    let mut fields: Vec<_> = fields.iter().collect();
    fields.sort_by_key(|(name, _)| *name != "path");
    fields.into_iter().map(field).collect::<Vec<_>>().join(" ")
}

/// Shortens `exit code 3 after 0.1 s` to `exit 3`; the time is shown for every call.
fn exit_text(first: &str) -> String {
    let code = first.strip_prefix("exit code ");
    let code = code.and_then(|rest| rest.split_once(' '));
    match code {
        Some(("0", _)) => String::new(),
        Some((code, _)) => format!("exit {code}"),
        None => one_line(first, RESULT_CHARACTERS),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn of_a_line_of_json_only_the_text_is_shown() {
        let output = r#"{"id":"m_1","text":"My cat is called Ada.","trust":"untrusted"}"#;
        let shown = result_text("memory_recall", &json!({}), CallStatus::Ok, output);
        assert_eq!(shown, "My cat is called Ada.");
        let shown = result_text("any", &json!({}), CallStatus::Ok, r#"{"ok":true}"#);
        assert_eq!(shown, r#"{"ok":true}"#);
    }

    #[test]
    fn a_result_says_what_happened() {
        let path = json!({"path": "a.md"});
        let result = |tool, output| result_text(tool, &path, CallStatus::Ok, output);
        assert_eq!(result("fs_edit", "edited a.md +3 −1\n@@"), "+3 −1");
        assert_eq!(result("exec", "exit code 3 after 0.2 s\nboom"), "exit 3");
        assert_eq!(result("exec", "exit code 0 after 0.2 s\nok"), "");
        assert_eq!(
            result("fs_list", "1 folder, 2 files in .\nsrc/"),
            "1 folder, 2 files in ."
        );
        assert!(has_failed(
            "exec",
            CallStatus::Ok,
            "exit code 3 after 0.2 s"
        ));
        assert!(!has_failed(
            "exec",
            CallStatus::Ok,
            "exit code 0 after 0.2 s"
        ));
    }

    #[test]
    fn the_mark_for_untrusted_data_is_skipped_unless_it_is_the_only_line() {
        let marked = "[untrusted: MCP server s, tool t] Data.\n\u{7}the result\nmore\n[end]";
        assert_eq!(first_line(marked), "\u{7}the result");
        assert_eq!(first_line("[untrusted: x]"), "[untrusted: x]");
        assert_eq!(first_line("plain\nmore"), "plain");
        assert_eq!(first_line(""), "");
    }
}
