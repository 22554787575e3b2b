//! The README and the pages in `docs/`.

use super::blocks::{self, Block, Mark};
use super::root;
use std::fs;
use std::sync::Mutex;

pub(super) struct Page {
    /// The path from the root of the project, such as `docs/vault.md`.
    pub name: String,
    pub text: String,
    pub blocks: Vec<Block>,
}

/// Returns all pages, sorted by name.
pub(super) fn all() -> Vec<Page> {
    let entries = fs::read_dir(root().join("docs")).unwrap();
    let files = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<String> = files
        .filter(|name| name.ends_with(".md"))
        .map(|name| format!("docs/{name}"))
        .collect();
    names.push("README.md".to_owned());
    names.sort();
    names
        .into_iter()
        .map(|name| {
            let text = fs::read_to_string(root().join(&name)).unwrap();
            let blocks = blocks::parse(&text);
            Page { name, text, blocks }
        })
        .collect()
}

impl Page {
    /// Returns the output of a block of commands: the `text` block that follows it with only empty lines between them.
    pub(super) fn sample_after(&self, index: usize) -> Option<&Block> {
        let sample = self.blocks.get(index + 1)?;
        let lines = self.text.lines();
        let between = lines
            .skip(self.blocks[index].last_line())
            .take(sample.line - self.blocks[index].last_line() - 1);
        let is_adjacent = between.into_iter().all(|line| line.trim().is_empty());
        (sample.language == "text" && sample.mark == Mark::None && is_adjacent).then_some(sample)
    }

    /// Returns whether a block is the output of the commands before it.
    pub(super) fn is_sample(&self, index: usize) -> bool {
        index > 0
            && self.blocks[index - 1].language == "sh"
            && self.sample_after(index - 1).is_some()
    }

    /// Writes the page with other texts in the blocks with these indexes, which are in order.
    pub(super) fn replace(&self, replacements: &[(usize, String)]) {
        if replacements.is_empty() {
            return;
        }
        rewrite(&self.name, |page| {
            let blocks = blocks::parse(page);
            let mut lines: Vec<&str> = page.lines().collect();
            for (index, text) in replacements.iter().rev() {
                let block = &blocks[*index];
                lines.splice(block.line..block.last_line() - 1, text.lines());
            }
            lines.join("\n") + "\n"
        });
    }

    /// Returns the page without its blocks.
    pub(super) fn prose(&self) -> String {
        let parts = self.text.split("```");
        parts.step_by(2).collect()
    }
}

/// Returns the targets of a page's links to other files and headings of the project.
pub(super) fn links(page: &str) -> impl Iterator<Item = &str> {
    let targets = page.split("](").skip(1);
    let targets = targets.filter_map(|rest| rest.split_once(')').map(|(target, _)| target));
    targets.filter(|target| !target.contains("://"))
}

/// Changes a page. Two tests may change different parts of it at the same time.
pub(super) fn rewrite(name: &str, change: impl FnOnce(&str) -> String) {
    static WRITER: Mutex<()> = Mutex::new(());
    let _guard = WRITER.lock().unwrap();
    let path = root().join(name);
    let page = fs::read_to_string(&path).unwrap();
    fs::write(path, change(&page)).unwrap();
}

/// Returns the anchors of a page's headings, as GitHub makes them.
pub(super) fn anchors(text: &str) -> impl Iterator<Item = String> {
    let headings = text.lines().filter(|line| line.starts_with('#'));
    headings.map(|heading| {
        let title = heading.trim_start_matches('#').trim().to_lowercase();
        let kept = title
            .chars()
            .filter(|c| c.is_alphanumeric() || " -_".contains(*c));
        kept.map(|c| if c == ' ' { '-' } else { c }).collect()
    })
}
