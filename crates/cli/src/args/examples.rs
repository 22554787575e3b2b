//! Examples in the help of nested commands.

use super::Arguments;
use clap::{Command, CommandFactory};

/// The path of a command, and its example lines.
const EXAMPLES: &[(&[&str], &[&str])] = &[
    (&["agents", "new"], &["lango agents new reviewer"]),
    (
        &["tokens"],
        &[
            "lango tokens",
            "lango tokens create laptop",
            "lango tokens link",
        ],
    ),
    (
        &["tokens", "create"],
        &[
            "lango tokens create laptop",
            "lango tokens create phone --scope read --scope approve",
            "lango tokens create ci --scope read --scope run --expires 30d",
        ],
    ),
    (&["tokens", "list"], &["lango tokens list --json"]),
    (&["tokens", "revoke"], &["lango tokens revoke k_1f2e"]),
    (
        &["tokens", "link"],
        &[
            "lango tokens link",
            "lango tokens link --url https://lango.example",
        ],
    ),
    (&["sessions", "list"], &["lango sessions list --limit 5"]),
    (
        &["sessions", "show"],
        &[
            "lango sessions show s_1k2m",
            "lango sessions show s_1k2m --jsonl",
        ],
    ),
    (
        &["sessions", "search"],
        &["lango sessions search \"deploy key\" --limit 5"],
    ),
    (
        &["sessions", "rename"],
        &["lango sessions rename s_1k2m \"Deploy to staging\""],
    ),
    (&["sessions", "resume"], &["lango sessions resume s_1k2m"]),
    (&["sessions", "close"], &["lango sessions close s_1k2m"]),
    (
        &["store", "backup"],
        &["lango store backup lango-backup.db"],
    ),
    (
        &["store", "restore"],
        &["lango store restore lango-backup.db", "lango store restore"],
    ),
    (&["store", "compact"], &["lango store compact"]),
    (
        &["store", "move"],
        &["lango store move sqlite:old.db postgres://lango@127.0.0.1/lango"],
    ),
    (
        &["secrets", "init"],
        &[
            "lango secrets init",
            "lango secrets init --key-file /etc/lango/vault.key",
        ],
    ),
    (
        &["secrets", "set"],
        &[
            "lango secrets set OPENAI_API_KEY",
            "lango secrets set DEPLOY_TOKEN --expires 90d",
            "pass show openai | lango secrets set OPENAI_API_KEY",
        ],
    ),
    (&["secrets", "list"], &["lango secrets list --json"]),
    (
        &["secrets", "describe"],
        &["lango secrets describe GITHUB_TOKEN"],
    ),
    (
        &["secrets", "unbind"],
        &[
            "lango secrets unbind GITHUB_TOKEN 1",
            "lango secrets unbind GITHUB_TOKEN --all",
        ],
    ),
    (
        &["secrets", "rotate"],
        &[
            "lango secrets rotate OPENAI_API_KEY",
            "lango secrets rotate --master",
        ],
    ),
    (&["secrets", "rm"], &["lango secrets rm OPENAI_API_KEY"]),
    (&["secrets", "unlock"], &["lango secrets unlock"]),
    (&["secrets", "lock"], &["lango secrets lock"]),
    (
        &["secrets", "import-env"],
        &[
            "lango secrets import-env",
            "lango secrets import-env OPENAI_API_KEY",
        ],
    ),
    (&["secrets", "methods"], &["lango secrets methods"]),
    (
        &["secrets", "methods", "list"],
        &["lango secrets methods list --json"],
    ),
    (
        &["secrets", "methods", "add"],
        &[
            "lango secrets methods add --key-file /etc/lango/vault.key",
            "lango secrets methods add --keyring",
        ],
    ),
    (
        &["secrets", "methods", "remove"],
        &["lango secrets methods remove 2"],
    ),
    (
        &["payments", "history"],
        &["lango payments history --limit 50"],
    ),
    (&["payments", "balance"], &["lango payments balance --json"]),
    (&["payments", "reconcile"], &["lango payments reconcile"]),
    (
        &["payments", "wallet"],
        &[
            "lango payments wallet create",
            "lango payments wallet address",
        ],
    ),
    (
        &["payments", "wallet", "create"],
        &["lango payments wallet create"],
    ),
    (
        &["payments", "wallet", "import"],
        &["pass show wallet | lango payments wallet import"],
    ),
    (
        &["payments", "wallet", "address"],
        &["lango payments wallet address"],
    ),
    (&["secrets", "log"], &["lango secrets log --limit 100"]),
    (&["secrets", "destroy"], &["lango secrets destroy --yes"]),
    (
        &["config", "show"],
        &["lango config show", "lango config show --origin"],
    ),
    (
        &["config", "get"],
        &[
            "lango config get agent.model",
            "lango config get agent.model --json",
        ],
    ),
    (
        &["config", "set"],
        &[
            "lango config set agent.model anthropic/claude-sonnet-5-5",
            "lango config set agent.fallback '[\"openai/gpt-6.1-sol\"]'",
            "lango config set agent.maxCost 0.5 --project",
        ],
    ),
    (
        &["config", "unset"],
        &[
            "lango config unset agent.model",
            "lango config unset mcp.servers.git",
        ],
    ),
    (
        &["config", "edit"],
        &[
            "lango config edit",
            "EDITOR=nano lango config edit --project",
        ],
    ),
    (&["config", "path"], &["lango config path"]),
    (&["config", "check"], &["lango config check"]),
    (
        &["config", "trust"],
        &[
            "lango config trust",
            "lango config trust --yes",
            "lango config trust --revoke",
        ],
    ),
    (&["approvals", "list"], &["lango approvals list --json"]),
    (&["approvals", "show"], &["lango approvals show p_1a2b"]),
    (
        &["approvals", "answer"],
        &[
            "lango approvals answer p_1a2b yes",
            "lango approvals answer p_1a2b no --because \"not on Fridays\"",
            "lango approvals answer p_1a2b retry",
            "lango approvals answer p_1a2b happened --because \"it is deployed\"",
        ],
    ),
    (&["approvals", "revoke"], &["lango approvals revoke p_1a2b"]),
    (
        &["knowledge", "add"],
        &["lango knowledge add docs/ notes.md --trust"],
    ),
    (
        &["knowledge", "search"],
        &["lango knowledge search \"how is it deployed\""],
    ),
    (&["knowledge", "list"], &["lango knowledge list"]),
    (
        &["knowledge", "forget"],
        &["lango knowledge forget docs/old.md"],
    ),
    (&["knowledge", "reindex"], &["lango knowledge reindex"]),
    (&["memory", "list"], &["lango memory list --limit 10"]),
    (&["memory", "search"], &["lango memory search tea"]),
    (
        &["memory", "forget"],
        &["lango memory forget m_3", "lango memory forget --all"],
    ),
    (&["mcp", "remove"], &["lango mcp remove git"]),
    (&["mcp", "list"], &["lango mcp list"]),
    (&["mcp", "test"], &["lango mcp test", "lango mcp test git"]),
    (&["mcp", "login"], &["lango mcp login tracker"]),
    (&["mcp", "logout"], &["lango mcp logout tracker"]),
    (&["mcp", "trust"], &["lango mcp trust git"]),
    (&["skills"], &["lango skills", "lango skills --json"]),
    (
        &["undo"],
        &[
            "lango undo",
            "lango undo --list",
            "lango undo t_8fk2 --partial",
        ],
    ),
    (&["trash", "list"], &["lango trash list"]),
    (&["trash", "restore"], &["lango trash restore zfb5dq"]),
    (&["trash", "empty"], &["lango trash empty"]),
    (
        &["models"],
        &[
            "lango models",
            "lango models --json",
            "lango -c agent.model=openai/gpt-6.1-sol models",
        ],
    ),
    (
        &["doctor"],
        &["lango doctor", "lango doctor --offline --json"],
    ),
    (&["paths"], &["lango paths", "lango paths --json"]),
    (
        &["completions"],
        &[
            "source <(lango completions bash)",
            "lango completions zsh > ~/.zfunc/_lango",
            "lango completions fish > ~/.config/fish/completions/lango.fish",
        ],
    ),
    (
        &["man"],
        &["lango man | man -l -", "lango man ~/.local/share/man/man1"],
    ),
];

/// Builds the commands with their flags and examples.
pub fn command() -> Command {
    let mut command = Arguments::command();
    for (path, lines) in EXAMPLES {
        let help = format!("Examples:\n  {}", lines.join("\n  "));
        command = with_help(command, path, &help);
    }
    command
}

fn with_help(command: Command, path: &[&str], help: &str) -> Command {
    match path {
        [] => command.after_help(help.to_owned()),
        [name, rest @ ..] => command.mut_subcommand(*name, |below| with_help(below, rest, help)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::read;
    use std::ffi::OsString;

    /// Splits a line as a shell would, as far as the examples need it.
    fn split_words(line: &str) -> Vec<OsString> {
        let (mut words, mut word, mut quote) = (Vec::new(), String::new(), None);
        for letter in line.chars() {
            match (letter, quote) {
                (_, Some(open)) if letter == open => quote = None,
                ('"' | '\'', None) => quote = Some(letter),
                (' ', None) => words.push(std::mem::take(&mut word).into()),
                _ => word.push(letter),
            }
        }
        words.push(word.into());
        words.retain(|word: &OsString| !word.is_empty());
        words
    }

    fn check(command: &Command, name: &str) {
        let help = command.get_after_help().map(ToString::to_string);
        let help = help.unwrap_or_default();
        assert!(help.contains("Examples:\n  "), "`{name}` has no examples");
        for line in help.lines().filter(|line| line.starts_with("  lango")) {
            // The description of an example follows after several spaces.
            let typed = line.trim_start().split("   ").next().unwrap();
            let is_piped = typed.contains([';', '|', '<', '>', '&']);
            if !is_piped {
                let typed = crate::args::with_flags_first(split_words(typed));
                let read = read(typed);
                assert!(read.is_ok(), "`{name}`: {line}: {:?}", read.err());
            }
            assert!(line.len() < 78, "`{name}`: {line} breaks on a small screen");
        }
        for below in command.get_subcommands() {
            if below.get_name() != "help" {
                check(below, &format!("{name} {}", below.get_name()));
            }
        }
    }

    #[test]
    fn every_command_has_examples_that_can_be_typed() {
        check(&command(), "lango");
    }
}
