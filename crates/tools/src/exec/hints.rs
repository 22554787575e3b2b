//! Explains what the sandbox did to a command. Programs only report what they see: a file that does not exist, a disk that
//! is read-only, a host without an address.

use super::request::CommandLine;
use lango_sandbox::{Access, Network, Policy};
use std::path::Path;

/// The folder for temporary files, which is also the home of a command. Each command gets an empty one.
const PRIVATE_FOLDER: &str = "/tmp";

/// Other names of the home in a shell.
const HOME: [&str; 3] = ["~", "$HOME", "${HOME}"];

/// What programs print if they may not write, and if a name has no address.
const READ_ONLY: &str = "Read-only file system";
const NO_ADDRESS: [&str; 8] = [
    "Could not resolve",
    "could not resolve",
    "Name or service not known",
    "emporary failure in name resolution",
    "etwork is unreachable",
    "EAI_AGAIN",
    "ENOTFOUND",
    "failed to lookup address",
];

/// Returns what the user and the model should know about a command that has ended.
pub(super) fn hints(
    command: &CommandLine,
    policy: &Policy,
    has_failed: bool,
    output: &str,
) -> Vec<&'static str> {
    let mut hints = Vec::new();
    if names_private_folder(command, policy) {
        hints.push(
            "in the sandbox, ~ and /tmp are one empty folder, which is deleted when the command ends",
        );
    }
    if has_failed && output.contains(READ_ONLY) {
        hints.push(if output.contains(".git/") {
            "the sandbox keeps .git read-only; the user can run this command in a shell of their own"
        } else {
            "the sandbox lets commands write only in the folders of the workspace, and there not to .git, .env and other \
             protected files"
        });
    }
    let has_no_address = || NO_ADDRESS.iter().any(|text| output.contains(text));
    if has_failed && policy.network == Network::None && has_no_address() {
        hints.push(
            "commands have no network; the user can open hosts with `lango config set tools.exec.network '[\"HOST\"]'`",
        );
    }
    hints
}

/// Whether a command names its home or a path for temporary files that is not a part of the workspace.
fn names_private_folder(command: &CommandLine, policy: &Policy) -> bool {
    let is_separator = |letter: char| letter.is_whitespace() || "\"'=:;,|&<>()`".contains(letter);
    let is_home = |word: &str| HOME.contains(&word.split('/').next().unwrap_or_default());
    let names_home = match command {
        // A shell expands nothing between single quotes.
        CommandLine::Shell(line) => {
            let unescaped = line.replace("\\'", "");
            let expanded = unescaped.split('\'').step_by(2);
            let mut words = expanded.flat_map(|part| part.split(is_separator));
            words.any(is_home)
        }
        CommandLine::Argv(_) => false,
    };
    let is_private = |word: &str| {
        let path = Path::new(word);
        path.starts_with(PRIVATE_FOLDER) && policy.access(path) == Access::None
    };
    names_home || command.display().split(is_separator).any(is_private)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hinted(command: &str, output: &str) -> Vec<&'static str> {
        let policy = Policy::of("/tmp/work".into());
        hints(&CommandLine::Shell(command.into()), &policy, true, output)
    }

    #[test]
    fn a_command_that_names_its_home_or_temporary_files_is_told_that_they_are_deleted() {
        for command in [
            "echo a > ~/todo.txt",
            "echo a>~/todo.txt",
            "cp a \"$HOME/b\"",
            "ls ~",
            "touch /tmp/x",
            "tool --out=/tmp/x",
            "cat ${HOME}/x",
        ] {
            assert_eq!(hinted(command, "").len(), 1, "{command}");
        }
        let words = ["echo", "$HOME", "~"].map(str::to_owned).to_vec();
        let policy = Policy::of("/work".into());
        let unexpanded = hints(&CommandLine::Argv(words), &policy, false, "");
        assert!(unexpanded.is_empty(), "{unexpanded:?}");
        for command in [
            "ls",
            "cat /tmp/work/a",
            "echo a~ b/~ $HOMES",
            "ls x/tmp/y",
            "echo '~' '$HOME'",
        ] {
            assert_eq!(hinted(command, ""), [""; 0], "{command}");
        }
    }

    #[test]
    fn a_refusal_is_explained_only_if_the_command_failed() {
        let output = "fatal: Unable to create '/w/.git/index.lock': Read-only file system";
        assert!(hinted("git add -A", output)[0].contains(".git"));
        assert!(hinted("touch /etc/x", "touch: Read-only file system")[0].contains("protected"));
        let unresolved = "curl: (6) Could not resolve host: example.com";
        assert!(hinted("curl example.com", unresolved)[0].contains("tools.exec.network"));
        let command = CommandLine::Shell("cat log".into());
        let mut policy = Policy::of("/work".into());
        assert!(hints(&command, &policy, false, unresolved).is_empty());
        policy.network = Network::Host;
        assert!(hints(&command, &policy, true, unresolved).is_empty());
    }
}
