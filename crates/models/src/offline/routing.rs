//! Parses the routing table in an orchestrator's instruction and chooses an agent from it.

use super::clause::words;
use super::extract::{address, is_path};
use super::rules::{PLAN, Task};

const HEADING: &str = "## Routing table";

pub(super) struct Table<'a> {
    pub entries: Vec<Entry<'a>>,
    /// Whether the instruction mentions tools that no agent may call.
    pub has_unowned_tools: bool,
}

#[derive(Default)]
pub(super) struct Entry<'a> {
    pub name: &'a str,
    pub role: &'a str,
    keywords: &'a str,
    capabilities: &'a str,
    returns: &'a str,
}

impl<'a> Table<'a> {
    /// Parses the table; `None` if this is not an orchestrator's instruction.
    pub(super) fn read(instruction: &'a str) -> Option<Self> {
        let (_, table) = instruction.split_once(HEADING)?;
        let mut entries: Vec<Entry<'_>> = Vec::new();
        for line in table
            .lines()
            .take_while(|line| !line.starts_with("## Decision"))
        {
            if let Some(name) = line.strip_prefix("### ") {
                entries.push(Entry {
                    name: name.trim(),
                    ..Entry::default()
                });
            } else if let Some(entry) = entries.last_mut()
                && let Some((field, value)) = line
                    .strip_prefix("- ")
                    .and_then(|line| line.split_once(": "))
            {
                match field {
                    "role" => entry.role = value,
                    "keywords" => entry.keywords = value,
                    "capabilities" => entry.capabilities = value,
                    "returns" => entry.returns = value,
                    _ => {}
                }
            }
        }
        Some(Self {
            entries,
            has_unowned_tools: instruction.contains("no agent holds"),
        })
    }

    /// Returns the agent with the best score that is not in `tried`; `None` if no agent scores above zero. `task` is
    /// what the rules read in the request.
    pub(super) fn choose(
        &self,
        part: &str,
        task: Option<&Task>,
        tried: &[&str],
    ) -> Option<&Entry<'a>> {
        let tool = task.map(Task::tool);
        // The words of a command must not select an agent.
        let command = task.and_then(Task::command);
        let spoken = command.and_then(|command| part.find(command));
        let part = Words::read(spoken.map_or(part, |end| &part[..end]));
        let candidates = self
            .entries
            .iter()
            .filter(|entry| !tried.contains(&entry.name));
        let mut best: Option<(usize, &Entry<'a>)> = None;
        for entry in candidates {
            let score = entry.score(&part, tool);
            if score > best.map_or(0, |(score, _)| score) {
                best = Some((score, entry));
            }
        }
        best.map(|(_, entry)| entry)
    }
}

impl Entry<'_> {
    /// Returns whether the agent has the tool, as far as its entry says.
    pub(super) fn has(&self, tool: &str) -> bool {
        match capability(tool) {
            Some(capability) => self.capabilities.contains(capability),
            None => tool == PLAN && self.returns.contains("plan"),
        }
    }

    /// Scores how well the agent fits a request: its name counts most, then the capability that the request needs, then
    /// keywords, then words of its description.
    fn score(&self, part: &Words, tool: Option<&str>) -> usize {
        let name = if part.has(&part.spoken, self.name) {
            40
        } else {
            0
        };
        let capability = if tool.is_some_and(|tool| self.has(tool)) {
            20
        } else {
            0
        };
        let keywords = self
            .keywords
            .split(", ")
            .filter(|keyword| part.has(&part.all, keyword));
        let keywords: usize = keywords.map(|keyword| 3 * words(keyword).count()).sum();
        let described = words(self.capabilities).chain(words(self.role));
        let described = described.filter(|word| {
            word.len() > 4
                && part
                    .spoken
                    .iter()
                    .any(|other| other.eq_ignore_ascii_case(word))
        });
        name + capability + keywords + described.count()
    }
}

/// Returns the capability that lango's topologies give an agent with this tool.
fn capability(tool: &str) -> Option<&'static str> {
    const CAPABILITIES: [(&str, &str); 13] = [
        ("exec", "command execution"),
        ("fs_", "file operations"),
        ("browser_", "web browsing"),
        ("crypto_", "cryptography"),
        ("secrets_", "secret management"),
        ("search_", "information search"),
        ("rag_", "document retrieval"),
        ("graph_", "knowledge graph queries"),
        ("save_knowledge", "knowledge keeping"),
        ("list_skills", "skill listing"),
        ("memory_list_observations", "observation"),
        ("memory_list_reflections", "reflection"),
        ("memory_", "memory keeping and recall"),
    ];
    let mut found = CAPABILITIES
        .iter()
        .filter(|(prefix, _)| tool.starts_with(prefix));
    found.next().map(|(_, capability)| *capability)
}

/// The words of a request in lower case.
struct Words {
    /// Words that the user wrote as words, without paths and commands.
    spoken: Vec<String>,
    /// These and the words of paths, and "path", "web page" or "web address url" for what the request contains.
    all: Vec<String>,
}

impl Words {
    fn read(text: &str) -> Self {
        let text = without_command(text);
        let trimmed = |token: &str| token.trim_end_matches(['.', ',', '?', '!', ';', ':']).len();
        let is_path_token = |token: &str| is_path(&token[..trimmed(token)]);
        let lower = |word: &str| word.to_lowercase();
        let spoken: Vec<String> = text
            .split_whitespace()
            .filter(|token| !is_path_token(token) && !token.contains("://"))
            .flat_map(|token| words(token).map(lower))
            .collect();
        let mut all: Vec<String> = words(&text).map(lower).collect();
        let mut add = |extra: &[&str]| all.extend(extra.iter().map(|word| (*word).to_owned()));
        if text.split_whitespace().any(is_path_token) {
            add(&["path"]);
        }
        let opens = spoken.iter().any(|word| word == "open");
        if opens && text.contains(".htm") {
            add(&["web", "page"]);
        }
        if address(&text).is_some() {
            add(&["web", "address", "url"]);
        }
        Self { spoken, all }
    }

    /// Returns whether the phrase occurs in these words, in singular or plural.
    fn has(&self, text: &[String], phrase: &str) -> bool {
        let length = words(phrase).count();
        length > 0
            && text.windows(length).any(|window| {
                let pairs = window.iter().zip(words(phrase));
                pairs.into_iter().all(|(a, b)| is_same(a, b))
            })
    }
}

fn is_same(word: &str, other: &str) -> bool {
    let stem = |word: &str| word.strip_suffix('s').map_or(word.len(), str::len);
    word.eq_ignore_ascii_case(other)
        || (word.len() > 3
            && other.len() > 3
            && word[..stem(word)].eq_ignore_ascii_case(&other[..stem(other)]))
}

/// Removes a command between backticks. Its words must not select an agent: `curl https://…` is not a request to read
/// that page.
fn without_command(text: &str) -> String {
    let is_command = |before: &str| {
        words(before)
            .any(|word| word.eq_ignore_ascii_case("run") || word.eq_ignore_ascii_case("execute"))
    };
    let parts = text
        .split_once('`')
        .and_then(|(before, rest)| Some((before, rest.split_once('`')?.1)));
    match parts {
        Some((before, after)) if is_command(before) => format!("{before} {after}"),
        _ => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn phrases_match_whole_words_in_singular_or_plural() {
        let text = Words::read("What FILES are here?");
        let has = |phrase: &str| text.has(&text.all, phrase);
        assert!(has("file") && has("are here"));
        assert!(!has("fil") && !has("her"));
    }

    #[test]
    fn the_words_of_a_path_name_no_agent() {
        let text = Words::read("read vault.md, please");
        assert_eq!(text.spoken, ["read", "please"]);
        assert!(text.has(&text.all, "path"));
    }
}
