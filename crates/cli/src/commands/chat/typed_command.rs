//! `!command` in a chat: a turn that runs exactly one command of the user, through the same gate, sandbox and log as any
//! other call. No model is asked; the steps that a model would take are fixed here.

use crate::screen::fence;
use lango_core::{
    BoxStream, Call, CallId, Message, Model, ModelError, ModelEvent, ModelInfo, ModelReply,
    ModelRequest, Price,
};
use serde_json::{Value, json};

/// The tool that runs commands, and the function with which the orchestrator delegates.
pub(super) const COMMAND_TOOL: &str = "exec";
const DELEGATE: &str = "delegate";

/// A stand-in for a model that lets the owner of the command tool run one command and reports its output.
pub(super) struct CommandModel {
    command: String,
    /// The agent that owns the command tool.
    owner: String,
}

impl CommandModel {
    pub(super) const NAME: &'static str = "user/command";

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
        Self::NAME
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
