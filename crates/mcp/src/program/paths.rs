//! Finds paths in the arguments of a command.
//!
//! A path that is a whole argument, or the value of an option, can be pinned. A path deeper inside an argument (`-I/a`,
//! `a=b=/c`, a shell command) cannot be pinned; it is found so that the argument can be refused.

use super::agent_writable::{can_agents_replace, can_agents_write_in};
use lango_sandbox::Policy;
use std::path::Path;

/// Characters that may end a path. A path can contain each of them, so longer paths are tried too.
const SEPARATORS: &str = " \t\r\n'\"`;|&()<>[]{}$,:=?#*\\";
/// Characters that end a path which may contain list separators.
const QUOTES: &str = " \t\r\n'\"`";
/// Characters that end a path which may contain spaces.
const LISTS: &str = ":;,='\"`";
/// Characters that are common in shell commands but rare in folder names.
const LINE_MARKS: &str = " \t\r\n'\"`;|&()<>${},:=";

/// A path in an argument of a command.
pub(super) struct Argument<'a> {
    /// The text before it in the argument.
    pub(super) before: &'a str,
    pub(super) path: &'a str,
}

/// Returns the parts of an argument that may be paths: all of it, the text after `=` as in `--config=x`, and the text
/// after a leading `@`, which many programs read as a file with more arguments.
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

/// Finds paths anywhere in a text, and returns the first one that agents can write. Relative paths start at the private
/// directory.
pub(super) fn writable_path_in<'a>(
    text: &'a str,
    private: &Path,
    agents: &Policy,
) -> Option<&'a str> {
    let mut starts = starts_of_paths(text).into_iter();
    starts.find_map(|start| writable_path_at(&text[start..], private, agents))
}

/// Returns the first path that agents can write but that cannot be pinned, because it is neither the whole argument nor
/// the value of an option.
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

/// Returns whether an argument that looks like a path in an agents' folder may be a shell command. It may be one even
/// if the path exists, since agents could create a folder with this name. The agents' folder itself was named by the
/// user, so its name is ignored.
pub(super) fn may_be_line(path: &str, agents: &Policy) -> bool {
    let mut roots = agents.write.iter().chain([&agents.workspace]);
    let below = roots.find_map(|root| path.strip_prefix(root.to_str()?));
    below.unwrap_or(path).contains(|c| LINE_MARKS.contains(c))
}

fn is_writable(path: &str, private: &Path, agents: &Policy) -> bool {
    let full = private.join(path);
    can_agents_replace(agents, &full) || can_agents_write_in(agents, &full)
}

/// Returns the path at the start of a text if agents can write it. Its end is unknown, so several are tried.
fn writable_path_at<'a>(text: &'a str, private: &Path, agents: &Policy) -> Option<&'a str> {
    let end = |marks: &str| text.find(|c| marks.contains(c)).unwrap_or(text.len());
    let ends = [end(SEPARATORS), end(QUOTES), end(LISTS), text.len()];
    let mut paths = ends.into_iter().map(|end| &text[..end]);
    paths.find(|path| path.contains(['/', '.']) && is_writable(path, private, agents))
}

/// Returns where paths may start: at each run without separators, and after the letters of an option, as in `-I/a`.
fn starts_of_paths(text: &str) -> Vec<usize> {
    let mut starts = Vec::new();
    let mut at = 0;
    for run in text.split(|c| SEPARATORS.contains(c)) {
        if run.starts_with(['-', '@', '+', '!']) {
            let offsets = [run.find('/'), run.find("..")];
            starts.extend(offsets.into_iter().flatten().map(|offset| at + offset));
        } else if !run.is_empty() {
            starts.push(at);
        }
        let end = at + run.len();
        at = end + text[end..].chars().next().map_or(0, char::len_utf8);
    }
    starts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_found_after_an_option_and_after_an_at_sign() {
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
    fn a_path_that_agents_can_write_is_found_anywhere_in_an_argument() {
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
