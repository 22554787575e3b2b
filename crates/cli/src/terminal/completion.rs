//! Completion of `@path` while the user types.

use lango_core::text::is_disruptive;
use std::path::{Path, PathBuf};

/// The number of entries of a folder that are read, and the number of suggestions.
const MAX_READ: usize = 5000;
const MAX_SUGGESTIONS: usize = 8;

/// Suggestions for the word before the cursor.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Completion {
    /// The length of the text that a suggestion replaces, in bytes before the cursor.
    pub replaced: usize,
    /// The texts that can replace it.
    pub suggestions: Vec<String>,
}

/// Returns the files and folders that complete the word `@path` before the cursor. Hidden files only appear if the
/// name starts with a dot.
pub fn complete_path(folder: &Path, before_cursor: &str) -> Option<Completion> {
    let mut words = before_cursor.rsplit(char::is_whitespace);
    let word = words.next()?;
    let typed = word.strip_prefix('@')?;
    let (parent, name) = typed.rsplit_once('/').unwrap_or(("", typed));
    let shown_parent = &typed[..typed.len() - name.len()];
    let listed = match parent {
        "" if typed.starts_with('/') => PathBuf::from("/"),
        parent => folder.join(parent),
    };
    let wanted = name.to_lowercase();
    let mut names: Vec<String> = std::fs::read_dir(&listed)
        .ok()?
        .take(MAX_READ)
        .filter_map(|entry| {
            let entry = entry.ok()?;
            let found = entry.file_name().into_string().ok()?;
            let is_hidden = found.starts_with('.') && !name.starts_with('.');
            let fits = found.to_lowercase().starts_with(&wanted)
                && !found.contains(|letter: char| letter.is_whitespace() || is_disruptive(letter));
            (fits && !is_hidden).then_some(found)
        })
        .collect();
    names.sort();
    names.truncate(MAX_SUGGESTIONS);
    // Only those that are shown are looked up, because each can wait for a network.
    let suggestion = |name: &String| {
        let is_folder = listed.join(name).is_dir();
        let end = if is_folder { "/" } else { "" };
        format!("@{shown_parent}{name}{end}")
    };
    Some(Completion {
        replaced: word.len(),
        suggestions: names.iter().map(suggestion).collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_word_before_the_cursor_is_completed_in_its_folder() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("src")).unwrap();
        for file in ["src/main.rs", "src/Map.rs", "setup.sh", ".secret", "a b"] {
            std::fs::write(folder.path().join(file), "").unwrap();
        }
        let complete =
            |typed: &str| complete_path(folder.path(), typed).map(|found| found.suggestions);
        assert_eq!(complete("look at @s").unwrap(), ["@setup.sh", "@src/"]);
        assert_eq!(
            complete("@src/ma").unwrap(),
            ["@src/Map.rs", "@src/main.rs"]
        );
        assert_eq!(complete("@.s").unwrap(), ["@.secret"]);
        assert_eq!(complete("mail me@s"), None);
        assert_eq!(complete("@nowhere/x"), None);
    }

    #[test]
    fn spaces_of_other_scripts_separate_words() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("a.txt"), "").unwrap();
        for space in ['\u{a0}', '\u{3000}', '\u{2028}'] {
            let typed = format!("read{space}@a");
            let completion = complete_path(folder.path(), &typed).unwrap();
            assert_eq!(completion.suggestions, ["@a.txt"]);
            assert_eq!(complete_path(folder.path(), &format!("a{space}")), None);
        }
    }
}
