//! `exec` on a machine where nothing can confine a command: it runs nothing, and each call says why and what to install.
//! So the reason is told when a command is wanted, and not before every turn.

use lango_core::{BoxFuture, Caller, Effect, Risk, Tool, ToolError, ToolOutput, ToolSpec};
use serde_json::Value;
use std::sync::Arc;

/// The name of the tool that stands for all command tools.
const EXEC: &str = "exec";

struct NoCommands {
    spec: ToolSpec,
    why: String,
}

/// `exec` without the ability to run anything, described like the real one of `commands`.
pub(crate) fn exec_without_sandbox(commands: &[Arc<dyn Tool>], why: &str) -> Option<Arc<dyn Tool>> {
    let exec = commands.iter().find(|tool| tool.spec().name == EXEC)?;
    let spec = ToolSpec {
        description:
            "Would run a command. No command can run on this machine now: a call only says why."
                .into(),
        effect: Effect::Pure,
        risk: Risk::Safe,
        escalation: None,
        ..exec.spec().clone()
    };
    let why = why.to_owned();
    Some(Arc::new(NoCommands { spec, why }))
}

impl Tool for NoCommands {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn run<'a>(
        &'a self,
        _: &'a Caller,
        _: Arc<Value>,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        let message = format!("commands cannot run here: {}; tell the user", self.why);
        Box::pin(async move { Err(ToolError::new(message)) })
    }
}
