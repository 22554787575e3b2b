//! The paths in a word of a command.
//!
//! A path that is a word, or the value of an option, can be pinned. One that lies deeper in a word (`-I/a`, `a=b=/c`, a line
//! for a shell) cannot: it is only found, so that the word is refused.

use super::agent_writable::{can_agents_replace, can_agents_write_in};
use lango_sandbox::Policy;
use std::path::Path;

/// What ends a path, besides the end of the text. A path may contain each of these, so a longer one is looked at too.
const SEPARATORS: &str = " \t\r\n'\"`;|&()<>[]{}$,:=?#*\\";
/// What ends a path that may contain the separators of lists.
const QUOTES: &str = " \t\r\n'\"`";
/// What ends a path that may contain spaces.
const LISTS: &str = ":;,='\"`";
/// What a line for a shell may have and few names of folders do.
const LINE_MARKS: &str = " \t\r\n'\"`;|&()<>${},:=";

/// A path that occurs in a word of a command.
pub(super) struct Argument<'a> {
    /// What stands before it in the word.
    pub(super) before: &'a str,
    pub(super) path: &'a str,
}

/// The parts of a word that may be paths: the word itself, what follows a `=` as in `--config=x`, and what follows a
/// leading `@`, which many programs take for a file of further arguments.
pub(super) fn arguments_of(word: &str) -> Vec<Argument<'_>> {
    let mut arguments = vec![Argument {
        before: "",
        path: word,
    }];
    let after_mark = word.starts_with('@').then_some(1);
    let is_name = |at: &usize| !word[..*at].contains(|c| SEPARATORS.contains(c));
    let after_equals = word.find('=').filter(is_name).map(|at| at + 1);
    for at in after_mark.into_iter().chain(after_equals) {
        let (before, path) = word.split_at(at);
        arguments.push(Argument { before, path });
    }
    arguments
}

/// The first path in a text that agents can write, at whatever place. Relative ones start at this private directory.
pub(super) fn writable_path_in<'a>(
    text: &'a str,
    private: &Path,
    agents: &Policy,
) -> Option<&'a str> {
    let mut starts = starts_of_paths(text).into_iter();
    starts.find_map(|start| writable_path_at(&text[start..], private, agents))
}

/// A path that agents can write and that cannot be pinned, as it is neither the word nor the value of an option.
pub(super) fn hidden_path_in<'a>(
    word: &'a str,
    private: &Path,
    agents: &Policy,
) -> Option<&'a str> {
    let arguments = arguments_of(word);
    let can_be_pinned = |start: &usize| {
        let mut arguments = arguments.iter();
        let found = arguments.find(|argument| argument.before.len() == *start);
        found.is_some_and(|argument| is_writable(argument.path, private, agents))
    };
    let starts = starts_of_paths(word).into_iter();
    let mut hidden = starts.filter(|start| !can_be_pinned(start));
    hidden.find_map(|start| writable_path_at(&word[start..], private, agents))
}

/// Whether a word that looks like a path in a folder of agents may be a line for a shell. Agents could create a folder of
/// that name, so that it exists does not tell. The name of the folder itself is the user's.
pub(super) fn may_be_line(path: &str, agents: &Policy) -> bool {
    let mut roots = agents.write.iter().chain([&agents.workspace]);
    let below = roots.find_map(|root| path.strip_prefix(root.to_str()?));
    below.unwrap_or(path).contains(|c| LINE_MARKS.contains(c))
}

fn is_writable(path: &str, private: &Path, agents: &Policy) -> bool {
    let full = private.join(path);
    can_agents_replace(agents, &full) || can_agents_write_in(agents, &full)
}

/// The path at the start of a text, if agents can write it. Where it ends is not known, so several ends are tried.
fn writable_path_at<'a>(text: &'a str, private: &Path, agents: &Policy) -> Option<&'a str> {
    let end = |marks: &str| text.find(|c| marks.contains(c)).unwrap_or(text.len());
    let ends = [end(SEPARATORS), end(QUOTES), end(LISTS), text.len()];
    let mut paths = ends.into_iter().map(|end| &text[..end]);
    paths.find(|path| path.contains(['/', '.']) && is_writable(path, private, agents))
}

/// Where paths may begin: at each run without separators, and behind the letters of an option in it, as in `-I/a`.
fn starts_of_paths(text: &str) -> Vec<usize> {
    let mut starts = Vec::new();
    let mut at = 0;
    for run in text.split(|c| SEPARATORS.contains(c)) {
        if run.starts_with(['-', '@', '+', '!']) {
            let places = [run.find('/'), run.find("..")];
            starts.extend(places.into_iter().flatten().map(|place| at + place));
        } else if !run.is_empty() {
            starts.push(at);
        }
        let behind = at + run.len();
        at = behind + text[behind..].chars().next().map_or(0, char::len_utf8);
    }
    starts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_found_behind_an_option_and_behind_an_at_sign() {
        let paths = |word| -> Vec<&str> {
            let all = arguments_of(word).into_iter();
            all.map(|argument| argument.path).collect()
        };
        assert_eq!(paths("/a/b"), ["/a/b"]);
        assert_eq!(paths("--require=/a/b"), ["--require=/a/b", "/a/b"]);
        assert_eq!(paths("@/a/b"), ["@/a/b", "/a/b"]);
        assert_eq!(paths("let a = /b"), ["let a = /b"]);
    }

    #[test]
    fn a_path_of_agents_is_found_wherever_it_hides_in_a_word() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        for name in ["my work/lib", "private", "safe"] {
            std::fs::create_dir_all(root.join(name)).unwrap();
        }
        std::os::unix::fs::symlink(root.join("my work"), root.join("safe/link")).unwrap();
        let agents = Policy::of(root.join("my work"));
        let hidden = |word: &str| {
            let word = word.replace("{root}", root.to_str().unwrap());
            let word = word.replace("{workspace}", root.join("my work").to_str().unwrap());
            hidden_path_in(&word, &root.join("private"), &agents).is_some()
        };
        for word in [
            "-I{workspace}/lib",
            "-I../my work/lib",
            "-I{root}/safe/link/lib",
            "--a=b={workspace}/server.py",
            "--node-options=--require={workspace}/x.js",
            "exec python3 {workspace}/server.py",
            "exec python3 '{workspace}/server.py'; true",
            "import sys;sys.path.insert(0,\"{workspace}\");import server",
            "x = {workspace}",
            "/opt:{workspace}",
            "{workspace}:/opt",
            "{root}/safe/link:/opt",
            "-javaagent:{workspace}/x.jar",
            "file://{workspace}/x",
            r#"{"root":"{workspace}"}"#,
            "exec python3 ../my work/server.py",
        ] {
            assert!(hidden(word), "{word}");
        }
        for word in [
            "{workspace}",
            "{workspace}/my file, (1).txt",
            "--root={workspace}/lib",
            "ROOT={workspace}",
            "@{workspace}/arguments",
            "/opt{workspace}/lib",
            "src{workspace}/lib",
            "https://example.com{workspace}",
            "-I/usr/lib",
            "plain text, (with marks); a/b and 1.2.3",
            "",
        ] {
            assert!(!hidden(word), "{word}");
        }
    }
}
