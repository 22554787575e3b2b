//! Phrases that work in this request, and the refusal that ends with three of them.

use super::clause::words;
use super::request::Request;
use super::routing::Table;
use super::rules;

/// Who would do what a phrase asks for.
#[derive(Clone, Copy)]
pub(super) enum Workers<'a> {
    /// The agents to which an orchestrator can delegate.
    Team(&'a Table<'a>),
    /// The agent itself, with its tools.
    Own(&'a Request<'a>),
}

impl Workers<'_> {
    /// Returns whether there is a worker with this tool. A task that first goes to another agent is rejected there, and
    /// then reaches it.
    pub(super) fn have(&self, tool: &str) -> bool {
        match self {
            Self::Team(table) => table.entries.iter().any(|entry| entry.has(tool)),
            Self::Own(request) => tool == rules::PLAN || request.offers(tool),
        }
    }
}

/// A phrase, and words of a message that show that the user may want it.
struct Suggestion {
    phrase: &'static str,
    /// The tool that the phrase needs.
    tool: &'static str,
    topics: &'static [&'static str],
}

/// The phrases in the order of preference. All of them work in any folder, and the first ones without an approval.
const SUGGESTIONS: &[Suggestion] = &[
    suggestion(
        "what files are here?",
        "fs_list",
        &["files", "folder", "directory", "project"],
    ),
    suggestion(
        "remember that my editor is helix",
        "memory_save",
        &["remember", "memory", "know", "my", "name"],
    ),
    suggestion(
        "plan a release",
        rules::PLAN,
        &["plan", "steps", "how", "should", "idea", "ideas"],
    ),
    suggestion(
        "note that deploys: happen on Monday",
        "save_knowledge",
        &["note", "notes", "knowledge", "learn"],
    ),
    suggestion(
        "search for TODO",
        "fs_search",
        &["search", "find", "where", "grep", "code", "look"],
    ),
    suggestion(
        "write todo.md with the text buy milk",
        "fs_write",
        &["write", "create", "file", "make", "save", "generate"],
    ),
    suggestion(
        "add a line \"call Ada\" to todo.md",
        "fs_edit",
        &["add", "append", "edit", "change", "insert", "update"],
    ),
    suggestion(
        "run `ls -la`",
        "exec",
        &[
            "run", "execute", "command", "shell", "test", "tests", "build", "install",
        ],
    ),
    suggestion(
        "hash the text hello",
        "crypto_hash",
        &["hash", "encrypt", "key", "password"],
    ),
    suggestion(
        "relate Ada knows Babbage",
        "graph_relate",
        &["relate", "graph", "fact"],
    ),
];

const fn suggestion(
    phrase: &'static str,
    tool: &'static str,
    topics: &'static [&'static str],
) -> Suggestion {
    Suggestion {
        phrase,
        tool,
        topics,
    }
}

/// Phrases that need no worker.
const ALWAYS: [&str; 3] = ["what can you do?", "who are you?", "what day is it?"];

/// Returns three phrases that work now: up to two that fit the message, then the usual ones.
pub(super) fn three(message: &str, workers: Workers<'_>) -> [&'static str; 3] {
    let message = message.to_ascii_lowercase();
    let fits =
        |suggestion: &&Suggestion| words(&message).any(|word| suggestion.topics.contains(&word));
    let available = || {
        SUGGESTIONS
            .iter()
            .filter(|suggestion| workers.have(suggestion.tool))
    };
    let fitting = available().filter(fits).take(2);
    let mut chosen: Vec<&'static str> = fitting.map(|suggestion| suggestion.phrase).collect();
    for phrase in available()
        .map(|suggestion| suggestion.phrase)
        .chain(ALWAYS)
    {
        if chosen.len() == 3 {
            break;
        }
        if !chosen.contains(&phrase) {
            chosen.push(phrase);
        }
    }
    chosen.resize(3, ALWAYS[0]);
    [chosen[0], chosen[1], chosen[2]]
}

/// Says that a request cannot be done and why, then what works: six lines at most.
pub(super) fn refusal(problem: &str, message: &str, workers: Workers<'_>) -> String {
    let [first, second, third] = three(message, workers);
    format!(
        "{problem} I am lango's demo: fixed rules, not an AI model. These work now:\n- {first}\n- {second}\n- {third}\n\n\
         For anything else, connect a real model with `lango setup`."
    )
}

/// Quotes the beginning of a request on one line.
pub(super) fn excerpt(text: &str) -> String {
    const MAX_CHARACTERS: usize = 80;
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(MAX_CHARACTERS) {
        Some((end, _)) => format!("\"{}…\"", &line[..end]),
        None => format!("\"{line}\""),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_suggestion_names_its_tool() {
        for Suggestion { phrase, tool, .. } in SUGGESTIONS {
            let task = rules::find_any(phrase).unwrap();
            assert_eq!(task.tool(), *tool, "{phrase}");
        }
    }

    #[test]
    fn an_excerpt_is_one_short_line() {
        assert_eq!(excerpt("a\n  b"), "\"a b\"");
        assert_eq!(excerpt(&"ä".repeat(200)).chars().count(), 83);
    }
}
