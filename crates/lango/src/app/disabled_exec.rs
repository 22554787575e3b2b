//! `exec` on a machine without a sandbox: it runs nothing, and each call explains why and what to install. This way
//! the user learns the reason when a command is needed, not before every turn.

use lango_core::{BoxFuture, Caller, Effect, Risk, Tool, ToolError, ToolOutput, ToolSpec};
use serde_json::Value;
use std::sync::Arc;

/// The tool that represents all command tools.
const EXEC: &str = "exec";

struct DisabledExec {
    spec: ToolSpec,
    why: String,
}

/// Returns an `exec` that runs nothing, described like the real one in `commands`.
pub(crate) fn exec_without_sandbox(commands: &[Arc<dyn Tool>], why: &str) -> Option<Arc<dyn Tool>> {
    let exec = commands.iter().find(|tool| tool.spec().name == EXEC)?;
    let spec = ToolSpec {
        description:
            "Runs a command. Commands cannot run on this machine now; a call only returns the reason."
                .into(),
        effect: Effect::Pure,
        risk: Risk::Safe,
        escalation: None,
        ..exec.spec().clone()
    };
    let why = why.to_owned();
    Some(Arc::new(DisabledExec { spec, why }))
}

impl Tool for DisabledExec {
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
