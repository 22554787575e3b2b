//! Parses the routing table in an orchestrator's instruction and chooses an agent from it.

use super::words::{has_phrase, words};

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
    keywords: Vec<&'a str>,
    capabilities: &'a str,
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
                    "keywords" => entry.keywords = value.split(", ").collect(),
                    "capabilities" => entry.capabilities = value,
                    _ => {}
                }
            }
        }
        Some(Self {
            entries,
            has_unowned_tools: instruction.contains("no agent holds"),
        })
    }

    /// Returns the agent with the best score that is not in `tried`; `None` if no agent scores above zero.
    pub(super) fn choose(&self, part: &str, tried: &[&str]) -> Option<&Entry<'a>> {
        let part = words(part);
        let candidates = self
            .entries
            .iter()
            .filter(|entry| !tried.contains(&entry.name));
        let mut best: Option<(usize, &Entry<'a>)> = None;
        for entry in candidates {
            let score = entry.score(&part);
            if score > best.map_or(0, |(score, _)| score) {
                best = Some((score, entry));
            }
        }
        best.map(|(_, entry)| entry)
    }
}

impl Entry<'_> {
    /// Scores how well the agent fits a request: its name counts most, then keywords, then words of its description.
    fn score(&self, part: &[String]) -> usize {
        let name = if has_phrase(part, self.name) { 20 } else { 0 };
        let keywords = self
            .keywords
            .iter()
            .filter(|keyword| has_phrase(part, keyword));
        let keywords: usize = keywords.map(|keyword| 3 * words(keyword).len()).sum();
        let described = words(self.capabilities).into_iter().chain(words(self.role));
        let described = described
            .filter(|word| word.len() > 4 && part.contains(word))
            .count();
        name + keywords + described
    }
}
