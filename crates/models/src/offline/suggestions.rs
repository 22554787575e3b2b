//! Phrases that work in this request, and the refusal that ends with three of them.

use super::clause::{Clause, words};
use super::extract::{address, is_file};
use super::parts::parts;
use super::request::Request;
use super::routing::Table;
use super::rules::{self, Task};
use super::verbatim::{quoted, span};

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

/// How a refusal starts if no rule matches. An agent with a real model could perhaps do it.
pub(super) const NOT_UNDERSTOOD: &str = "The demo does not understand this";

/// Phrases that need no worker.
const ALWAYS: [&str; 3] = ["what can you do?", "who are you?", "what day is it?"];

/// Returns the phrases that [`three`] returns for no message if there are all tools.
pub(super) fn examples() -> [&'static str; 3] {
    [0, 1, 2].map(|index| SUGGESTIONS[index].phrase)
}

/// Returns three phrases that work now: those about the files that the message names, or up to two that fit it, then
/// the usual ones.
pub(super) fn three(message: &str, workers: Workers<'_>) -> [String; 3] {
    let topics = topics(message);
    let fits = |suggestion: &&Suggestion| {
        let mut topics = topics.iter();
        topics.any(|topic| suggestion.topics.contains(&topic.as_str()))
    };
    let available = || {
        SUGGESTIONS
            .iter()
            .filter(|suggestion| workers.have(suggestion.tool))
            // A file that the message names is not to be overwritten.
            .filter(|suggestion| suggestion.tool != "fs_write" || !message.contains("todo.md"))
    };
    let clause = Clause::read(message);
    let command = command_in(message).filter(|_| workers.have("exec"));
    let command = command.map(|command| format!("run `{command}`"));
    let about_files = file_phrases(message, &topics, workers);
    let spaced = rules::spaced_path(&clause).filter(|_| workers.have("fs_read"));
    let spaced = spaced.map(|path| format!("read \"{path}\""));
    let about_files = command.into_iter().chain(spaced).chain(about_files);
    let mut fitting: Vec<String> = about_files.take(3).collect();
    let general = available()
        .filter(fits)
        .map(|suggestion| suggestion.phrase.to_owned());
    let missing = 2_usize.saturating_sub(fitting.len());
    fitting.extend(general.take(missing));
    let usual = available().map(|suggestion| suggestion.phrase);
    let usual = usual.chain(ALWAYS).map(str::to_owned);
    let mut chosen: Vec<String> = Vec::new();
    for phrase in fitting.into_iter().chain(usual) {
        if !chosen.contains(&phrase) {
            chosen.push(phrase);
        }
    }
    let mut chosen = chosen.into_iter();
    [(); 3].map(|()| chosen.next().unwrap_or_else(|| ALWAYS[0].to_owned()))
}

/// Returns the command of a message to run one, if it fits between backticks.
fn command_in(message: &str) -> Option<String> {
    const MAX_BYTES: usize = 80;
    let parts = parts(message, |_| false).ok()?;
    let task = rules::find_any(parts.first()?);
    let command = match task.as_ref().and_then(Task::command) {
        Some(command) => command,
        None => {
            let clause = Clause::read(message);
            rules::command_of(&clause).or_else(|| rules::bare_command(&clause))?
        }
    };
    let fits = command.len() <= MAX_BYTES && !command.contains(['`', '\n']);
    fits.then(|| command.to_owned())
}

/// Returns the words of a message in lower case, without the names of files: `notes.md` is not about notes.
fn topics(message: &str) -> Vec<String> {
    let lower = message.to_ascii_lowercase();
    let plain = lower.split_whitespace().filter(|word| !is_file(bare(word)));
    plain.flat_map(words).map(str::to_owned).collect()
}

/// Returns phrases about the files that a message names.
fn file_phrases(message: &str, topics: &[String], workers: Workers<'_>) -> Vec<String> {
    const CREATES: &[&str] = &[
        "write", "create", "make", "generate", "draft", "compose", "save", "new",
    ];
    const MOVES: &[&str] = &["rename", "move", "mv"];
    const COPIES: &[&str] = &["copy", "duplicate", "cp"];
    const EDITS: &[&str] = &[
        "edit", "change", "update", "extend", "improve", "rewrite", "add", "append",
    ];
    let mut files = message
        .split_whitespace()
        .map(bare)
        .filter(|word| is_in_workspace(word));
    let Some(file) = files.next() else {
        return Vec::new();
    };
    let is_about = |verbs: &[&str]| topics.iter().any(|topic| verbs.contains(&topic.as_str()));
    let read = ("fs_read", format!("read {file}"));
    let mut phrases = Vec::new();
    if let Some(target) = files.next() {
        let programs = [("mv", MOVES), ("cp", COPIES)];
        let program = programs.iter().find(|(_, verbs)| is_about(verbs));
        phrases.extend(program.map(|(name, _)| ("exec", format!("run `{name} {file} {target}`"))));
    }
    if phrases.is_empty() && (is_about(CREATES) || is_about(EDITS)) {
        let change = format!("change \"old words\" to \"new words\" in {file}");
        phrases.push(("fs_edit", change));
        if [".md", ".txt"].iter().any(|end| file.ends_with(end)) {
            phrases.push(("fs_edit", format!("add a line \"call Ada\" to {file}")));
        }
        phrases.push(read);
    } else if phrases.is_empty() && !file.contains('/') {
        // The file may be in any folder.
        phrases.push(("fs_search", format!("find {file}")));
        phrases.push(read);
    } else {
        phrases.push(read);
        phrases.push(("fs_search", format!("search for TODO in {file}")));
        phrases.truncate(2);
    }
    let possible = phrases.into_iter().filter(|(tool, _)| workers.have(tool));
    possible.map(|(_, phrase)| phrase).collect()
}

/// Returns a word without the quotation marks and punctuation around it.
fn bare(word: &str) -> &str {
    let word = word.trim_start_matches(['`', '"', '\'', '“', '‘', '(', '@']);
    word.trim_end_matches(['`', '"', '\'', '”', '’', ')', '.', ',', ';', ':', '?', '!'])
}

/// Returns whether a word is the path of a file that the file tools may reach and that a shell needs no quotation marks
/// for.
fn is_in_workspace(word: &str) -> bool {
    const MAX_BYTES: usize = 60;
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-".contains(c);
    is_file(word)
        && word.len() <= MAX_BYTES
        && word.chars().all(is_plain)
        && !word.starts_with(['/', '-'])
        && !word.split('/').any(|part| part.starts_with('.'))
        && !["e.g", "i.e"].contains(&word)
        && address(word).is_none()
}

/// Says that a request cannot be done and why, then what works: six lines at most.
pub(super) fn refusal(problem: &str, message: &str, workers: Workers<'_>) -> String {
    let [first, second, third] = three(message, workers).map(shown);
    let hint = if workers.have("exec") && rules::names_no_command(&Clause::read(message)) {
        " To run a command, say: run `COMMAND`."
    } else {
        ""
    };
    format!(
        "{problem}{hint} I am lango's demo: fixed rules, not an AI model. These work now:\n- {first}\n- {second}\n- {third}\n\n\
         For anything else, connect a real model with `lango setup`."
    )
}

/// Returns a phrase as Markdown. One with backticks is Markdown already.
fn shown(phrase: String) -> String {
    if phrase.contains('`') {
        phrase
    } else {
        span(&phrase)
    }
}

/// Quotes the beginning of a request on one line.
pub(super) fn excerpt(text: &str) -> String {
    const MAX_CHARACTERS: usize = 80;
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(MAX_CHARACTERS) {
        Some((end, _)) => quoted(&format!("{}…", &line[..end])),
        None => quoted(&line),
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
