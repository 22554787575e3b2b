//! The table of rules: which requests the demo understands, and which tool does each.

mod changes;
mod commands;
mod files;
mod knowledge;
pub(super) mod memory;
mod mentions;
mod plans;
mod search;
mod services;
mod several;

use super::clause::Clause;
pub(super) use commands::{
    bare_command, command_of, length_of_loop, names_no_command, starts_with_program,
};
pub(super) use files::spaced_path;
use serde_json::Value;

/// The pseudo-tool of rules that answer with a plan instead of a call.
pub(super) const PLAN: &str = "plan";

/// What a request asks for.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Task {
    pub action: Action,
    /// Whether the request ends with text without quotation marks, so that more text could belong to it.
    pub is_open: bool,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Action {
    Call {
        tool: &'static str,
        arguments: Value,
    },
    /// Reads several files.
    Read { paths: Vec<String> },
    /// Adds a line at the end of a file, or creates the file with it.
    Append { path: String, line: String },
    /// Creates an empty file unless something is there.
    Create { path: String },
    /// Answers with a plan for a goal.
    Plan { goal: String },
}

/// A tool and the function that recognizes requests for it.
struct Rule {
    tool: &'static str,
    read: fn(&Clause<'_>) -> Option<Task>,
}

/// The first row that matches and whose tool is offered wins. Rows for narrow topics come before the files, where many
/// phrases would match.
const RULES: &[Rule] = &[
    rule("secrets_list", services::list_secrets),
    rule("crypto_hash", services::hash_text),
    rule("exec", commands::hash_file),
    rule("memory_save", memory::save),
    rule("memory_forget", memory::forget),
    rule("memory_list_observations", memory::list_observations),
    rule("memory_list_reflections", memory::list_reflections),
    rule("list_skills", services::list_skills),
    rule("save_knowledge", knowledge::save_note),
    rule("rag_retrieve", knowledge::search_notes_and_documents),
    // Without an embedding model there are only the saved notes.
    rule("search_knowledge", knowledge::search_notes),
    rule("graph_relate", knowledge::relate),
    rule("graph_traverse", knowledge::related),
    rule("graph_query", knowledge::facts),
    rule("search_web", services::search_web),
    rule("browser_navigate", services::open_page),
    rule("search_fetch", services::fetch),
    rule("memory_recall", memory::recall),
    rule("rag_retrieve", knowledge::retrieve),
    rule(PLAN, plans::plan),
    rule("exec", commands::run),
    rule("fs_mkdir", changes::make_folder),
    rule("fs_edit", changes::edit),
    rule("fs_edit", changes::append),
    rule("fs_write", changes::write),
    rule("fs_write", changes::create),
    rule("fs_delete", changes::delete),
    // Before `fs_stat`, because `is there a file that contains milk` names no file.
    rule("fs_search", mentions::mentions),
    rule("fs_stat", files::stat),
    rule("fs_search", search::find_marks),
    rule("fs_search", mentions::where_is),
    rule("fs_search", search::find_names),
    rule("fs_read", files::read),
    rule("fs_read", several::read),
    rule("fs_search", search::search),
    rule("fs_list", files::list),
];

/// Takes short questions that no other rule takes. The answer may be in the memory.
const QUESTION: Rule = rule("memory_recall", memory::question);

/// Takes `find` and one word.
const FIND_WORD: Rule = rule("fs_search", search::find_word);

const fn rule(tool: &'static str, read: fn(&Clause<'_>) -> Option<Task>) -> Rule {
    Rule { tool, read }
}

/// Returns what a request asks for, if a rule matches whose tool is offered.
pub(super) fn find(text: &str, offers: impl Fn(&str) -> bool) -> Option<Task> {
    let clause = Clause::read(text);
    let rules = RULES.iter().chain([&QUESTION, &FIND_WORD]);
    let mut offered = rules.filter(|rule| offers(rule.tool));
    offered.find_map(|rule| (rule.read)(&clause))
}

/// Returns whether a request is certainly a task, and not only a question that the memory may answer.
pub(super) fn is_task(text: &str) -> bool {
    let clause = Clause::read(text);
    RULES.iter().any(|rule| (rule.read)(&clause).is_some())
}

/// Returns what a request asks for that could also be the rest of a sentence: in `I like to go out and find mushrooms`,
/// nothing is to be searched.
pub(super) fn find_in_sentence(text: &str) -> Option<Task> {
    let clause = Clause::read(text);
    let mut rules = RULES.iter().chain([&QUESTION]);
    rules.find_map(|rule| (rule.read)(&clause))
}

/// Returns what a request asks for, whatever tools there are.
pub(super) fn find_any(text: &str) -> Option<Task> {
    find(text, |_| true)
}

impl Task {
    fn call(tool: &'static str, arguments: Value) -> Option<Self> {
        let action = Action::Call { tool, arguments };
        Some(Self {
            action,
            is_open: false,
        })
    }

    /// Whether the task is a command without quotation marks, so that more words could belong to it.
    pub(super) fn is_open_command(&self) -> bool {
        self.is_open && self.command().is_some()
    }

    /// Returns the tool that makes the change or finds the answer.
    pub(super) fn tool(&self) -> &'static str {
        match &self.action {
            Action::Call { tool, .. } => tool,
            Action::Read { .. } => "fs_read",
            Action::Append { .. } => "fs_edit",
            Action::Create { .. } => "fs_write",
            Action::Plan { .. } => PLAN,
        }
    }

    /// Returns the command line that the task runs.
    pub(super) fn command(&self) -> Option<&str> {
        match &self.action {
            Action::Call {
                tool: "exec",
                arguments,
            } => arguments["command"].as_str(),
            _ => None,
        }
    }

    /// Whether the task changes or deletes something, or runs a command. The demo does such a task only if it
    /// understood the whole message.
    pub(super) fn has_effect(&self) -> bool {
        const WITH_EFFECT: [&str; 6] = [
            "exec",
            "fs_write",
            "fs_edit",
            "fs_mkdir",
            "fs_delete",
            "memory_forget",
        ];
        WITH_EFFECT.contains(&self.tool())
    }
}

/// Returns the tool and the arguments of a request that names both, such as `use refund {"order": "A-17"}`. It reaches
/// tools that no rule covers.
pub(super) fn explicit_call(text: &str) -> Option<(&str, Value)> {
    let start = text.find('{')?;
    let end = text.rfind('}')?;
    let arguments: Value = serde_json::from_str(text.get(start..=end)?).ok()?;
    let mut words = text[..start].split_whitespace();
    let verb = words.next()?;
    let tool = words.next()?.trim_matches('`');
    let is_name = |c: char| c.is_ascii_alphanumeric() || "_-.".contains(c);
    let is_call = verb.eq_ignore_ascii_case("use") || verb.eq_ignore_ascii_case("call");
    let names_tool = is_call && tool.chars().all(is_name);
    (names_tool && arguments.is_object()).then_some((tool, arguments))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn only_offered_tools_are_called() {
        assert_eq!(find("read a.txt", |tool| tool == "fs_list"), None);
        assert_eq!(find("read a.txt", |_| false), None);
    }

    #[test]
    fn a_request_that_names_tool_and_arguments_calls_it() {
        let arguments = json!({ "order": "A-17" });
        for text in [
            r#"use refund {"order": "A-17"}"#,
            r#"Call refund with these arguments and report the result: {"order": "A-17"}"#,
            r#"use `refund` with {"order": "A-17"}"#,
        ] {
            assert_eq!(
                explicit_call(text),
                Some(("refund", arguments.clone())),
                "{text}"
            );
        }
        for text in [
            "use the shell",
            "use refund {broken",
            "read {\"a\": 1}",
            "use it {1}",
        ] {
            assert_eq!(explicit_call(text), None, "{text}");
        }
    }
}
