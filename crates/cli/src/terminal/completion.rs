//! Completion of `@path` while the user types.

use lango_core::text::is_disruptive;
use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The number of entries that are read, and the number of suggestions.
const MAX_READ: usize = 5000;
const MAX_SUGGESTIONS: usize = 8;

/// How long to search folders below, and from which length of a name on.
const MAX_SEARCH: Duration = Duration::from_millis(20);
const MIN_SEARCHED: usize = 2;

/// Folders with files of others, in which nothing is searched.
const SKIPPED: [&str; 4] = ["node_modules", "target", "vendor", "__pycache__"];

/// Suggestions for the word before the cursor.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Completion {
    /// The length of the text that a suggestion replaces, in bytes before the cursor.
    pub replaced: usize,
    /// The texts that can replace it.
    pub suggestions: Vec<String>,
}

/// Returns the files and folders that complete the word `@path` before the cursor. If there is none in the folder, those
/// in folders below whose names start with the word. Hidden files only appear if the name starts with a dot.
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
    let wanted = WantedName::new(name);
    let entries = std::fs::read_dir(&listed).ok()?.take(MAX_READ);
    let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let mut names: Vec<String> = names.filter(|found| wanted.fits(found)).collect();
    names.sort();
    names.truncate(MAX_SUGGESTIONS);
    // Only those that are shown are looked up, because each can wait for a network.
    let suggestion = |name: &String| {
        let is_folder = listed.join(name).is_dir();
        let end = if is_folder { "/" } else { "" };
        format!("@{shown_parent}{name}{end}")
    };
    let mut suggestions: Vec<String> = names.iter().map(suggestion).collect();
    if suggestions.is_empty() && shown_parent.is_empty() && name.len() >= MIN_SEARCHED {
        let found = find_below(folder, &wanted).into_iter();
        suggestions = found.map(|path| format!("@{path}")).collect();
    }
    Some(Completion {
        replaced: word.len(),
        suggestions,
    })
}

/// The beginning of a name; case does not matter.
struct WantedName {
    start: String,
    is_hidden: bool,
}

impl WantedName {
    fn new(start: &str) -> Self {
        Self {
            start: start.to_lowercase(),
            is_hidden: start.starts_with('.'),
        }
    }

    fn fits(&self, name: &str) -> bool {
        name.to_lowercase().starts_with(&self.start)
            && (self.is_hidden || !name.starts_with('.'))
            && is_writable(name)
    }
}

/// Whether a name can be a part of `@path`.
fn is_writable(name: &str) -> bool {
    !name.contains(|letter: char| letter.is_whitespace() || is_disruptive(letter))
}

/// Searches the folders below for files, level by level.
fn find_below(folder: &Path, wanted: &WantedName) -> Vec<String> {
    let (started, mut read) = (Instant::now(), 0);
    let (mut folders, mut found) = (VecDeque::from([String::new()]), Vec::new());
    'search: while let Some(parent) = folders.pop_front() {
        let Ok(entries) = std::fs::read_dir(folder.join(&parent)) else {
            continue;
        };
        for entry in entries.flatten() {
            read += 1;
            if read > MAX_READ || found.len() >= MAX_SUGGESTIONS || started.elapsed() > MAX_SEARCH {
                break 'search;
            }
            let name = entry.file_name().into_string();
            let (Ok(name), Ok(kind)) = (name, entry.file_type()) else {
                continue;
            };
            let is_searched = !name.starts_with('.') && !SKIPPED.contains(&&*name);
            if kind.is_dir() && is_searched && is_writable(&name) {
                folders.push_back(format!("{parent}{name}/"));
            } else if kind.is_file() && wanted.fits(&name) {
                found.push(format!("{parent}{name}"));
            }
        }
    }
    found.sort();
    found
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
        // A file of a folder below is found by its name.
        assert_eq!(complete("@mai").unwrap(), ["@src/main.rs"]);
        assert_eq!(complete("@m").unwrap(), [""; 0]);
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
