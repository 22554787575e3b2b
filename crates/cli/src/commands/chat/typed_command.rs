//! `!command` in a chat: a turn that runs exactly one command of the user, through the same gate, sandbox and log as any
//! other call. No model is asked; the steps that a model would take are fixed here.

use crate::screen::{TYPED_COMMAND_MODEL, fence};
use lango_core::{
    BoxStream, Call, CallId, Message, Model, ModelError, ModelEvent, ModelInfo, ModelReply,
    ModelRequest, Price,
};
use serde_json::{Value, json};

/// The tool that runs commands, and the function with which the orchestrator delegates.
pub(super) const COMMAND_TOOL: &str = "exec";
const DELEGATE: &str = "delegate";

/// Programs that do nothing useful without a terminal.
const FULL_SCREEN: [&str; 14] = [
    "vi", "vim", "nvim", "nano", "pico", "emacs", "micro", "hx", "top", "htop", "btop", "watch",
    "tmux", "screen",
];

/// Programs that read commands from a terminal if they have no arguments.
const READS_COMMANDS: [&str; 15] = [
    "python", "python3", "ipython", "node", "irb", "ghci", "lua", "sqlite3", "psql", "mysql", "sh",
    "bash", "zsh", "fish", "gdb",
];

/// Explains why a command would do nothing useful, and what to do instead; `None` for every other one.
pub(super) fn explain_useless(command: &str) -> Option<String> {
    if command.contains([';', '&', '|', '<', '>', '\n', '(', '`']) {
        return None;
    }
    let mut words = command.split_whitespace();
    let program = words.next()?;
    let arguments: Vec<&str> = words.collect();
    if program == "cd" {
        let text = "each command starts in the folder of the chat, so `cd` alone does nothing: !cd src && ls";
        return Some(text.to_owned());
    }
    let is_file = |word: &&str| !word.starts_with(['-', '+']);
    let needs_terminal = (FULL_SCREEN.contains(&program) && arguments.iter().all(is_file))
        || (READS_COMMANDS.contains(&program) && arguments.is_empty());
    needs_terminal.then(|| {
        format!(
            "`{program}` needs a terminal, and commands of the chat have none: press Ctrl-Z, run it in your shell, and come \
             back with `fg`"
        )
    })
}

/// A stand-in for a model that lets the owner of the command tool run one command and reports its output.
pub(super) struct CommandModel {
    command: String,
    /// The agent that owns the command tool.
    owner: String,
}

impl CommandModel {
    pub(super) fn new(command: &str, owner: &str) -> Self {
        Self {
            command: command.to_owned(),
            owner: owner.to_owned(),
        }
    }

    fn reply(&self, request: &ModelRequest) -> ModelReply {
        // Results of earlier turns come before the message of this one.
        let of_this_turn = request
            .messages
            .iter()
            .rev()
            .take_while(|message| !matches!(message, Message::User { .. }));
        let mut results = of_this_turn.filter_map(|message| match message {
            Message::Result { text, .. } => Some(text),
            _ => None,
        });
        let result = results.next();
        let offers = |name: &str| {
            request
                .functions
                .iter()
                .any(|function| &*function.name == name)
        };
        match result {
            Some(result) if result.starts_with("not run: ") => {
                // What follows the reason is advice for a model.
                let reason = result
                    .split_once("; ")
                    .map_or(&**result, |(reason, _)| reason);
                say(&format!("{reason}."))
            }
            Some(result) => {
                // The line of the call shows the exit code already.
                let (first, output) = result.split_once('\n').unwrap_or((result, ""));
                let output = if first.starts_with("exit code ") {
                    output
                } else {
                    result
                };
                let fence = fence([output]);
                say(&format!("{fence}text\n{}\n{fence}", output.trim_end()))
            }
            None if offers(COMMAND_TOOL) => call(COMMAND_TOOL, json!({ "command": self.command })),
            None if offers(DELEGATE) => call(
                DELEGATE,
                json!({ "agent": self.owner, "task": format!("run `{}`", self.command), "finish": true }),
            ),
            None => say("no agent can run commands here; `lango agents` shows why"),
        }
    }
}

impl Model for CommandModel {
    fn name(&self) -> &str {
        TYPED_COMMAND_MODEL
    }

    fn info(&self) -> ModelInfo {
        ModelInfo {
            price: Some(Price::default()),
            context_tokens: None,
        }
    }

    fn call<'a>(&'a self, request: ModelRequest) -> BoxStream<'a, Result<ModelEvent, ModelError>> {
        let reply = self.reply(&request);
        Box::pin(futures_util::stream::iter([Ok(ModelEvent::Reply(reply))]))
    }
}

fn say(text: &str) -> ModelReply {
    ModelReply {
        text: text.to_owned(),
        cost_micros: Some(0),
        ..ModelReply::default()
    }
}

fn call(name: &str, arguments: Value) -> ModelReply {
    ModelReply {
        calls: vec![Call {
            id: CallId::from(""),
            name: name.into(),
            arguments: arguments.to_string().into(),
        }],
        cost_micros: Some(0),
        ..ModelReply::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_that_need_a_terminal_or_only_change_the_folder_are_explained() {
        for command in ["vim", "vim notes.md", "nano a b", "top", "python3", "bash"] {
            let text = explain_useless(command).unwrap();
            assert!(text.contains("needs a terminal"), "{text}");
        }
        for command in ["cd", "cd src"] {
            let text = explain_useless(command).unwrap();
            assert!(text.contains("`cd` alone"), "{text}");
        }
        for command in [
            "cd src && ls",
            "top -b -n1",
            "vim -es -c q a",
            "python3 a.py",
            "bash < script",
            "echo 1 | python3",
            "ls",
            "",
        ] {
            assert_eq!(explain_useless(command), None, "{command}");
        }
    }
}
