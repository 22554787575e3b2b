//! The commands of a chat that start with `/`.

use crate::terminal::{ScreenMode, wrap, wrap_prefixed};

/// A command of the chat.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::commands) enum SlashCommand {
    Model,
    Agents,
    Sessions,
    New,
    Resume,
    Approvals,
    Cost,
    Undo,
    Diff,
    Attach,
    Config,
    Mode,
    Help,
    Quit,
}

/// Every command with its name and what it does, in the order of the menu.
const COMMANDS: &[(SlashCommand, &str, &str)] = &[
    (
        SlashCommand::Model,
        "/model",
        "show the models, or use another one: /model NAME",
    ),
    (
        SlashCommand::Agents,
        "/agents",
        "show the agents and their tools",
    ),
    (SlashCommand::Sessions, "/sessions", "list your sessions"),
    (SlashCommand::New, "/new", "start a new session"),
    (
        SlashCommand::Resume,
        "/resume",
        "continue another session: /resume [ID]",
    ),
    (
        SlashCommand::Approvals,
        "/approvals",
        "list pending approvals and grants, or take one back: /approvals [revoke ID]",
    ),
    (
        SlashCommand::Cost,
        "/cost",
        "show the tokens and the cost of this session",
    ),
    (
        SlashCommand::Undo,
        "/undo",
        "show what the last turn changed in files, and take it back: /undo [TURN], /undo list",
    ),
    (
        SlashCommand::Diff,
        "/diff",
        "show what this session changed in files",
    ),
    (
        SlashCommand::Attach,
        "/attach",
        "attach a file to the next message: /attach PATH",
    ),
    (
        SlashCommand::Config,
        "/config",
        "show the configuration, or what contains a text: /config [TEXT]",
    ),
    (
        SlashCommand::Mode,
        "/mode",
        "switch the mode: /mode ask|accept-edits|read-only|plan",
    ),
    (SlashCommand::Help, "/help", "show commands and keys"),
    (SlashCommand::Quit, "/quit", "leave (or ctrl-d)"),
];

impl SlashCommand {
    /// Returns every command, in the order of the menu.
    pub(in crate::commands) fn all() -> impl Iterator<Item = Self> {
        COMMANDS.iter().map(|(command, ..)| *command)
    }

    pub(in crate::commands) fn name(self) -> &'static str {
        self.row().1
    }

    pub(in crate::commands) fn summary(self) -> &'static str {
        self.row().2
    }

    /// Whether only a person may use the command, and not text that comes through a pipe.
    pub(super) fn needs_terminal(self) -> bool {
        matches!(self, Self::Mode | Self::Undo | Self::Attach | Self::Model)
    }

    /// Whether something may follow the name.
    fn takes_argument(self) -> bool {
        matches!(
            self,
            Self::Model
                | Self::Resume
                | Self::Approvals
                | Self::Undo
                | Self::Attach
                | Self::Config
                | Self::Mode
        )
    }

    /// Returns the name that a mistyped one is probably meant to be.
    fn nearest(name: &str) -> Option<&'static str> {
        let distance = |command: &Self| strsim::damerau_levenshtein(name, command.name());
        let nearest = Self::all().min_by_key(distance)?;
        let most = if name.len() <= 6 { 1 } else { 2 };
        (distance(&nearest) <= most).then(|| nearest.name())
    }

    fn row(self) -> &'static (Self, &'static str, &'static str) {
        let mut rows = COMMANDS.iter();
        // Every command has a row; a test checks it.
        rows.find(|(command, ..)| *command == self)
            .unwrap_or(&COMMANDS[0])
    }

    /// Parses a line into a command and its argument. Returns `None` if the line is a message, and an error if it looks
    /// like a command that does not exist or has an argument too many.
    pub(super) fn parse(line: &str) -> Option<Result<(Self, &str), String>> {
        let line = line.trim();
        if !line.starts_with('/') {
            return None;
        }
        let (name, argument) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        // A path at the start of a message is not a command.
        if name[1..].contains('/') {
            return None;
        }
        let name = if name == "/exit" { "/quit" } else { name };
        let found = Self::all().find(|command| command.name() == name);
        Some(match found {
            Some(command) if !argument.trim().is_empty() && !command.takes_argument() => {
                Err(format!("{name} takes nothing after it; nothing was done"))
            }
            Some(command) => Ok((command, argument.trim())),
            None => Err(match Self::nearest(name) {
                Some(near) => format!("there is no command {name}; did you mean {near}?"),
                None => format!("there is no command {name}; /help lists them"),
            }),
        })
    }
}

/// The keys of a live screen.
const KEYS: [(&str, &str); 8] = [
    ("Alt-Enter", "new line; so do Ctrl-J, and \\ before Enter"),
    ("Ctrl-G", "write the message in $EDITOR"),
    ("Ctrl-R", "search earlier messages"),
    (
        "Ctrl-O",
        "full output of the last tool; again: the one before",
    ),
    ("Ctrl-L", "clear the screen"),
    ("Shift-Tab", "switch the mode"),
    ("Esc", "stop the turn that is running; so does Ctrl-C"),
    (
        "↑",
        "take back a message that waits, or show an earlier one",
    ),
];

/// Returns the text of `/help` for a screen of this width.
pub(super) fn help(screen: ScreenMode, columns: usize) -> String {
    let row = |(name, summary): &(&str, &str)| {
        wrap_prefixed(summary, &format!("  {name:<11} "), &" ".repeat(14), columns)
    };
    let commands = COMMANDS.iter().map(|(_, name, summary)| (*name, *summary));
    let commands: Vec<(&str, &str)> = commands.collect();
    let marks = [
        (
            "@path",
            "attach a file: an image, text, HTML or PDF (tab completes)",
        ),
        (
            "!command",
            "run a command yourself, in the sandbox; agents see its output",
        ),
    ];
    let plain_keys = [("Ctrl-C", "stop the turn that is running")];
    let keys: &[(&str, &str)] = match screen {
        ScreenMode::Live => &KEYS,
        ScreenMode::Plain => &plain_keys,
    };
    let mut lines = wrap("Say what you need; the agents do the rest.", columns);
    for rows in [&commands, &marks[..], keys] {
        lines.push(String::new());
        lines.extend(rows.iter().flat_map(row));
    }
    lines.push(String::new());
    let queue = match screen {
        ScreenMode::Live => "What you send during a turn waits for its end.",
        // The terminal itself discards it.
        ScreenMode::Plain => {
            "What you type during a turn is sent after it, but Ctrl-C discards it."
        }
    };
    lines.extend(wrap(queue, columns));
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_has_a_row_of_its_own() {
        for command in SlashCommand::all() {
            assert_eq!(command.row().0, command);
            assert_eq!(SlashCommand::parse(command.name()), Some(Ok((command, ""))));
        }
    }

    #[test]
    fn paths_are_messages_and_unknown_names_are_errors() {
        assert_eq!(SlashCommand::parse("/etc/hosts has an error"), None);
        assert_eq!(SlashCommand::parse("hello /help"), None);
        assert_eq!(
            SlashCommand::parse("/model openai/x"),
            Some(Ok((SlashCommand::Model, "openai/x")))
        );
        let mistyped = SlashCommand::parse("/sesions").and_then(Result::err);
        assert!(mistyped.is_some_and(|error| error.contains("did you mean /sessions?")));
        for wrong in ["/nope", "/new session", "/quit now"] {
            assert!(
                SlashCommand::parse(wrong).is_some_and(|parsed| parsed.is_err()),
                "{wrong}"
            );
        }
    }
}
