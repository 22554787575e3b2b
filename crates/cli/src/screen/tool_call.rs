//! What a tool call does, on one line: a verb with the arguments that matter, and all others that are set behind it.
//!
//! The same text is the heading of a question, so no argument that changes what the call does is left out.

use super::one_line;
use super::tool_line::brief_arguments;
use serde_json::{Map, Value};

/// The longest argument, such as a path or a command.
const ARGUMENT_CHARACTERS: usize = 80;

/// The longest argument that the wording of its tool does not mention, and the most characters of all of them.
const OTHER_CHARACTERS: usize = 40;
const OTHERS_CHARACTERS: usize = 120;

/// How the calls of a tool are described.
struct Wording {
    verb: &'static str,
    /// The arguments that follow the verb, each with the words before it.
    arguments: &'static [(&'static str, &'static str)],
    /// The arguments that are left out, because the result or the preview of the call shows them.
    shown_elsewhere: &'static [&'static str],
}

/// Describes a call: `edit src/parser.py`, `$ pytest -q`, or the tool with its arguments.
pub fn call_text(tool: &str, arguments: &Value) -> String {
    CallText::new(tool, arguments).to_string()
}

/// Asks whether a call may run: ``run `pytest -q`?``. A command is quoted, so that the question mark is no part of it.
pub fn call_question(tool: &str, arguments: &Value) -> String {
    let text = CallText::new(tool, arguments);
    if text.verb != "$" {
        return format!("{text}?");
    }
    format!("run `{}`{}?", text.subject, text.others)
}

/// The parts of the description of a call.
struct CallText {
    verb: String,
    /// The arguments that the wording of the tool mentions.
    subject: String,
    /// The other arguments, after a space; empty if there are none.
    others: String,
}

impl CallText {
    fn new(tool: &str, arguments: &Value) -> Self {
        let fields = arguments.as_object();
        let known = fields.and_then(|fields| Some((fields, wording(tool, fields)?)));
        let Some((fields, wording)) = known else {
            return Self {
                verb: one_line(tool, ARGUMENT_CHARACTERS),
                subject: one_line(&brief_arguments(arguments), ARGUMENT_CHARACTERS),
                others: String::new(),
            };
        };
        let subject = match tool {
            "browser_act" => steps(fields),
            "fs_list" if !fields.contains_key("path") => ".".to_owned(),
            _ => mentioned(&wording, fields),
        };
        Self {
            verb: wording.verb.to_owned(),
            subject,
            others: others(&wording, fields),
        }
    }
}

impl std::fmt::Display for CallText {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self {
            verb,
            subject,
            others,
        } = self;
        let space = if subject.is_empty() { "" } else { " " };
        write!(f, "{verb}{space}{subject}{others}")
    }
}

/// Returns how the calls of a built-in tool are described; `None` for other tools.
fn wording(tool: &str, fields: &Map<String, Value>) -> Option<Wording> {
    let has = |name: &str| fields.get(name).is_some_and(is_set);
    let (verb, arguments): (_, &[_]) = match tool {
        "exec" | "exec_bg" => ("$", &[("", "command"), ("", "argv")]),
        "exec_status" if has("job") => ("look at job", &[("", "job")]),
        "exec_status" => ("list jobs", &[]),
        "exec_stop" => ("stop job", &[("", "job")]),
        "fs_list" => ("list", &[("", "path")]),
        "fs_read" => ("read", &[("", "path")]),
        "fs_stat" => ("look at", &[("", "path")]),
        "fs_write" => ("write", &[("", "path")]),
        "fs_edit" => ("edit", &[("", "path")]),
        "fs_delete" => ("delete", &[("", "path")]),
        "fs_mkdir" => ("make folder", &[("", "path")]),
        "fs_search" => ("search", &[("", "pattern"), ("in", "path")]),
        "memory_list_observations" => ("list observations", &[]),
        "memory_list_reflections" => ("list reflections", &[]),
        "memory_save" => ("remember", &[("", "text")]),
        "memory_recall" => ("recall", &[("", "query")]),
        "memory_forget" => ("forget", &[("", "id"), ("everything with", "query")]),
        "observe_note" => ("note", &[("", "text")]),
        "reflect_now" => ("reflect on the observations", &[]),
        "save_knowledge" => ("save", &[("", "key")]),
        "search_knowledge" => ("search knowledge", &[("", "query")]),
        "save_learning" => ("save learning", &[("", "trigger")]),
        "search_learnings" => ("search learnings", &[("", "query")]),
        "rag_retrieve" => ("retrieve", &[("", "query")]),
        "graph_query" => ("query the graph", &[]),
        "graph_traverse" => ("explore the graph from", &[("", "start")]),
        "graph_relate" => (
            "relate",
            &[("", "subject"), ("", "predicate"), ("", "object")],
        ),
        "list_skills" => ("list skills", &[]),
        "create_skill" => ("create skill", &[("", "name")]),
        "search_web" => ("search the web", &[("", "query")]),
        "search_fetch" => ("read", &[("", "url")]),
        "browser_navigate" => ("open", &[("", "url"), ("", "path"), ("", "link")]),
        "browser_search" => ("search the page", &[("", "query")]),
        "browser_observe" => ("look at the page", &[]),
        "browser_act" => ("do", &[("", "steps")]),
        "browser_extract" => ("read the page", &[]),
        "browser_back" => ("go back", &[]),
        "browser_tabs" => ("tabs:", &[("", "action"), ("", "tab")]),
        "browser_screenshot" => ("take a screenshot", &[]),
        "browser_close" => ("close the browser", &[]),
        "secrets_list" => ("list secrets", &[]),
        "secrets_describe" => ("describe secret", &[("", "name")]),
        "secrets_request" => ("request secret", &[("", "name")]),
        "secrets_bind" => ("bind secret", &[("", "name")]),
        "secrets_revoke" => ("unbind secret", &[("", "name")]),
        "payment_balance" => ("check the balance", &[]),
        "payment_history" => ("list payments", &[]),
        "payment_quote" => ("quote", &[("", "amount"), ("to", "recipient")]),
        "payment_send" => ("pay", &[("", "amount"), ("to", "recipient")]),
        "payment_fetch" => ("fetch", &[("", "url"), ("for at most", "max_amount")]),
        _ => return None,
    };
    let shown_elsewhere: &[_] = match tool {
        "fs_write" => &["content"],
        "fs_edit" => &["old", "new"],
        _ => &[],
    };
    Some(Wording {
        verb,
        arguments,
        shown_elsewhere,
    })
}

/// Returns the arguments that the wording mentions.
fn mentioned(wording: &Wording, fields: &Map<String, Value>) -> String {
    let mut words = Vec::new();
    for (lead, name) in wording.arguments {
        if let Some(value) = fields.get(*name).filter(|value| is_set(value)) {
            words.extend((!lead.is_empty()).then(|| (*lead).to_owned()));
            let value = match *name {
                "pattern" => format!("\"{}\"", value_text(value)),
                // A line break starts another command, so it stays visible on one line.
                "command" => value_text(value).trim().replace('\n', " ␊ "),
                _ => value_text(value),
            };
            words.push(one_line(&value, ARGUMENT_CHARACTERS));
        }
    }
    words.join(" ")
}

/// Returns the arguments that are set and that nothing else shows: ` (first_line=10, lines=5)`.
fn others(wording: &Wording, fields: &Map<String, Value>) -> String {
    let is_mentioned = |name: &str| {
        let mut arguments = wording.arguments.iter();
        arguments.any(|(_, mentioned)| *mentioned == name)
            || wording.shown_elsewhere.contains(&name)
    };
    let others = fields
        .iter()
        .filter(|(name, value)| is_set(value) && !is_mentioned(name));
    let others: Vec<String> = others
        .map(|(name, value)| format!("{name}={}", one_line(&value_text(value), OTHER_CHARACTERS)))
        .collect();
    if others.is_empty() {
        return String::new();
    }
    format!(" ({})", one_line(&others.join(", "), OTHERS_CHARACTERS))
}

/// Describes the steps on a page: `click e3; type e4 text=hello`.
fn steps(fields: &Map<String, Value>) -> String {
    let Some(steps) = fields.get("steps").and_then(Value::as_array) else {
        return String::new();
    };
    let step = |step: &Value| {
        let Some(fields) = step.as_object() else {
            return step.to_string();
        };
        let lead = ["action", "handle"].iter().filter_map(|it| fields.get(*it));
        let lead = lead.map(value_text);
        let others = fields
            .iter()
            .filter(|(name, value)| is_set(value) && !["action", "handle"].contains(&&***name));
        let others = others.map(|(name, value)| format!("{name}={}", value_text(value)));
        lead.chain(others).collect::<Vec<_>>().join(" ")
    };
    let steps: Vec<String> = steps.iter().map(step).collect();
    one_line(&steps.join("; "), ARGUMENT_CHARACTERS)
}

/// Whether a value changes what a built-in tool does: there, `false` and an empty list are the same as no value.
fn is_set(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => false,
        Value::Array(values) => !values.is_empty(),
        _ => true,
    }
}

fn value_text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(values) if values.iter().all(Value::is_string) => {
            let words: Vec<&str> = values.iter().filter_map(Value::as_str).collect();
            words.join(" ")
        }
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_call_says_what_it_does() {
        let calls = [
            (
                "fs_edit",
                json!({"path": "src/parser.py", "old": "a", "new": "b"}),
                "edit src/parser.py",
            ),
            ("fs_list", json!({}), "list ."),
            ("exec", json!({"command": "pytest -q"}), "$ pytest -q"),
            ("exec", json!({"argv": ["git", "log"]}), "$ git log"),
            ("exec", json!({"command": "a\nb\n"}), "$ a ␊ b"),
            ("exec_status", json!({}), "list jobs"),
            ("exec_status", json!({"job": "j_2"}), "look at job j_2"),
            (
                "fs_search",
                json!({"pattern": "todo", "path": "src"}),
                "search \"todo\" in src",
            ),
            (
                "memory_save",
                json!({"text": "x", "tags": []}),
                "remember x",
            ),
            ("memory_forget", json!({"id": "m_3"}), "forget m_3"),
            (
                "memory_forget",
                json!({"query": "cat"}),
                "forget everything with cat",
            ),
            ("list_skills", json!({}), "list skills"),
            (
                "payment_send",
                json!({"amount": "1.50", "recipient": "0xab"}),
                "pay 1.50 to 0xab",
            ),
            (
                "browser_act",
                json!({"steps": [{"action": "click", "handle": "e3"}, {"action": "type", "handle": "e4", "text": "hi"}]}),
                "do click e3; type e4 text=hi",
            ),
        ];
        for (tool, arguments, expected) in calls {
            assert_eq!(call_text(tool, &arguments), expected);
        }
    }

    #[test]
    fn an_argument_that_changes_the_call_stays_visible_behind_a_long_one() {
        let read = json!({"path": "a.md", "first_line": 10, "lines": null});
        assert_eq!(call_text("fs_read", &read), "read a.md (first_line=10)");
        let relation =
            json!({"subject": "Ada", "predicate": "knows", "object": "Bob", "end": true});
        assert_eq!(
            call_text("graph_relate", &relation),
            "relate Ada knows Bob (end=true)"
        );
        let long = json!({"command": "x".repeat(900), "cwd": "sub"});
        assert!(call_text("exec", &long).ends_with("x… (cwd=sub)"));
    }

    #[test]
    fn another_tool_is_shown_by_its_safe_name_and_arguments() {
        let arguments = json!({"text": "x", "flag": false});
        assert_eq!(
            call_text("mcp_\u{1b}[2Jsave\nfs_list", &arguments),
            "mcp_␛[2Jsave fs_list flag=false text=x"
        );
        assert_eq!(call_text("fs_list", &json!([1])), "fs_list [1]");
    }

    #[test]
    fn the_question_mark_of_a_question_is_no_part_of_the_command() {
        let command = json!({"command": "sleep 5", "cwd": "sub"});
        assert_eq!(call_question("exec", &command), "run `sleep 5` (cwd=sub)?");
        assert_eq!(
            call_question("fs_write", &json!({"path": "a.md", "content": "b"})),
            "write a.md?"
        );
    }
}
