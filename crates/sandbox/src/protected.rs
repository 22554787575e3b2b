//! Protected names: files and directories in a workspace that other programs act on. Git runs hooks, editors run tasks,
//! shells load environments, and other agents follow instructions. The list is in `protected_names.txt`.
//!
//! A git directory can have any name: git recognizes it by its entries, so [`GitEntries`] checks those.

use crate::name_list::NameList;
use std::ffi::OsStr;
use std::path::Path;
use std::sync::LazyLock;

/// How a name is protected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Protection {
    /// Commands cannot change it; the file tools ask the user each time.
    Guarded,
    /// Neither commands nor file tools can change it.
    Locked,
}

static NAMES: LazyLock<Names> = LazyLock::new(|| Names::parse(include_str!("protected_names.txt")));

/// Returns the protection of a path relative to a writable directory: the strongest of all its components.
pub fn protection_of_path(inside: &Path) -> Option<Protection> {
    let mut parent = ParentDirectory::default();
    let mut strongest = None;
    for name in inside {
        strongest = strongest.max(parent.protection_of(name));
        parent.enter(name);
    }
    strongest
}

/// The properties of a directory that affect the protection of its entries.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct ParentDirectory<'a> {
    name: Option<&'a OsStr>,
    is_vendored: bool,
}

impl<'a> ParentDirectory<'a> {
    /// Returns the directory at a path relative to a writable directory.
    #[cfg(target_os = "linux")]
    pub(crate) fn of(inside: &'a Path) -> Self {
        let mut parent = Self::default();
        inside.iter().for_each(|name| parent.enter(name));
        parent
    }

    /// Returns the protection of one of its entries.
    pub(crate) fn protection_of(&self, name: &OsStr) -> Option<Protection> {
        let found = NAMES.protected.find(self.name, name)?;
        let is_free = self.is_vendored && found == Protection::Guarded;
        (!is_free).then_some(found)
    }

    fn enter(&mut self, name: &'a OsStr) {
        self.name = Some(name);
        self.is_vendored |= NAMES
            .vendored
            .iter()
            .any(|vendored| name == vendored.as_str());
    }
}

/// Returns a regular expression for each name, which matches it as a whole path component in any letter case. For a
/// sandbox whose rules match paths.
#[cfg(any(target_os = "macos", test))]
pub(crate) fn path_expressions() -> Vec<String> {
    let letter = |letter: char| match letter {
        letter if letter.is_ascii_alphabetic() => {
            format!(
                "[{}{}]",
                letter.to_ascii_lowercase(),
                letter.to_ascii_uppercase()
            )
        }
        '/' => "/".to_string(),
        '*' => "[^/]*".to_string(),
        other => format!("[{other}]"),
    };
    let text = include_str!("protected_names.txt").lines();
    text.filter(|line| line.starts_with("locked") || line.starts_with("guarded"))
        .filter_map(|line| line.split_whitespace().nth(1))
        .map(|name| format!("{}(/|$)", name.chars().map(letter).collect::<String>()))
        .collect()
}

/// Whether this is the name of a git directory.
#[cfg(target_os = "linux")]
pub(crate) fn is_git_name(name: &OsStr) -> bool {
    name.eq_ignore_ascii_case(".git")
}

/// The entries of a directory by which git recognizes a repository.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct GitEntries {
    head: bool,
    objects: bool,
    refs: bool,
    common_directory: bool,
}

impl GitEntries {
    /// Records one entry of the directory.
    pub fn add(&mut self, name: &OsStr) {
        let is = |wanted: &str| name.eq_ignore_ascii_case(wanted);
        self.head |= is("HEAD");
        self.objects |= is("objects");
        self.refs |= is("refs");
        self.common_directory |= is("commondir");
    }

    /// Whether git recognizes the directory as a repository: it has `HEAD`, and either objects and refs or a link to
    /// those of another repository.
    pub fn is_repository(self) -> bool {
        self.head && (self.common_directory || (self.objects && self.refs))
    }
}

/// The protected names and the names of vendored directories.
struct Names {
    protected: NameList<Protection>,
    vendored: Vec<String>,
}

impl Names {
    fn parse(text: &str) -> Self {
        let mut names = Self {
            protected: NameList::default(),
            vendored: Vec::new(),
        };
        for line in text.lines() {
            let Some((level, name)) = line.split_once(char::is_whitespace) else {
                continue;
            };
            let name = name.trim();
            match level {
                "locked" => names.protected.add(name, Protection::Locked),
                "guarded" => names.protected.add(name, Protection::Guarded),
                "vendored" => names.vendored.push(name.to_owned()),
                _ => {}
            }
        }
        names
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn protection(path: &str) -> Option<Protection> {
        protection_of_path(Path::new(path))
    }

    #[test]
    fn every_line_of_the_list_is_a_level_and_a_name() {
        for line in include_str!("protected_names.txt").lines() {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let words: Vec<&str> = line.split_whitespace().collect();
            assert!(
                words.len() == 2 && ["locked", "guarded", "vendored"].contains(&words[0]),
                "{line}"
            );
            if words[0] == "vendored" {
                continue;
            }
            assert!(words[1].matches('/').count() <= 1, "{line}");
            assert!(protection(&words[1].replace('*', "x")).is_some(), "{line}");
        }
    }

    #[test]
    fn names_are_found_in_any_directory_and_in_any_case() {
        use Protection::{Guarded, Locked};
        for (path, expected) in [
            (".git", Some(Locked)),
            ("sub/.GIT/hooks/pre-commit", Some(Locked)),
            (".env", Some(Locked)),
            ("a/.envrc", Some(Locked)),
            ("lango.toml", Some(Locked)),
            (".vscode/tasks.json", Some(Guarded)),
            ("docs/agents.md", Some(Guarded)),
            ("team.code-workspace", Some(Guarded)),
            (".cargo/config.toml", Some(Guarded)),
            ("x/.Cargo/Config", Some(Guarded)),
            (".vscode/.git/config", Some(Locked)),
            ("node_modules/x/.vscode/tasks.json", None),
            ("node_modules/x/.git/config", Some(Locked)),
            (".cargo/registry", None),
            ("config.toml", None),
            (".gitignore", None),
            ("environment", None),
            ("src/main.rs", None),
        ] {
            assert_eq!(protection(path), expected, "{path}");
        }
    }

    #[test]
    fn a_directory_is_a_repository_by_its_entries() {
        let of = |names: &[&str]| {
            let mut entries = GitEntries::default();
            names.iter().for_each(|name| entries.add(OsStr::new(name)));
            entries.is_repository()
        };
        assert!(of(&["HEAD", "config", "objects", "refs"]));
        assert!(of(&["head", "commondir"]));
        assert!(!of(&["objects", "refs", "config"]));
        assert!(!of(&["HEAD", "objects"]));
    }
}
