//! A server's tool as an agent has it.

use crate::attachments::Attachments;
use crate::content::Reading;
use crate::form::Form;
use crate::names::line;
use crate::server::Server;
use lango_core::{
    BoxFuture, Caller, Effect, Risk, Subject, Tool, ToolError, ToolName, ToolOutput, ToolSpec,
    Trust,
};
use lango_sandbox::CleanUpReport;
use serde_json::Value;
use std::sync::Arc;

/// How much of a server's description a model is told.
const LONGEST_DESCRIPTION: usize = 4096;

/// A tool of a server.
pub(crate) struct ServerTool {
    pub(crate) server: Arc<Server>,
    /// What the server calls it.
    pub(crate) tool: String,
    /// The form in which it is offered here.
    pub(crate) hash: String,
    pub(crate) attachments: Attachments,
    spec: ToolSpec,
}

impl ServerTool {
    pub(crate) fn new(
        server: Arc<Server>,
        name: &str,
        tool: String,
        form: &Form,
        attachments: Attachments,
    ) -> Self {
        let spec = ToolSpec {
            name: ToolName::from(name),
            description: describe(server.id(), &form.description).into(),
            parameters: form.schema.clone(),
            // A server may say that a tool of its is harmless; that is no reason to believe it.
            effect: Effect::Effect,
            risk: Risk::Moderate,
            escalation: None,
            subject: Subject::Arguments,
            // A pin says that the words are the same as before, not whose they are.
            trust: Trust::Untrusted,
        };
        Self {
            server,
            tool,
            hash: form.hash.clone(),
            attachments,
            spec,
        }
    }
}

impl Tool for ServerTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn run<'a>(
        &'a self,
        caller: &'a Caller,
        arguments: Arc<Value>,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        Box::pin(async move {
            let Value::Object(arguments) = &*arguments else {
                let message = format!("the arguments of `{}` must be an object", self.spec.name);
                return Err(ToolError::new(message));
            };
            let watch = self.server.watch();
            let result = self
                .server
                .call(&self.tool, &self.hash, arguments.clone(), caller)
                .await;
            let clean_up = match watch {
                Some(watch) => watch.finish().await,
                None => CleanUpReport::default(),
            };
            lango_sandbox::add_unseen_report(clean_up.clone());
            let mut remarks = clean_up.remarks();
            remarks.extend(self.server.network_remarks());
            let result = result.map_err(|error| with_remarks(error, &remarks))?;
            let reading = Reading {
                server: self.server.id(),
                tool: &self.tool,
                caller,
                attachments: &self.attachments,
            };
            match reading.read(result) {
                Ok(mut output) => {
                    let remarks = remarks.iter().map(|remark| format!("\n[{remark}]"));
                    output.text.extend(remarks);
                    Ok(output)
                }
                Err(error) => Err(with_remarks(error, &remarks)),
            }
        })
    }
}

fn with_remarks(mut error: ToolError, remarks: &[String]) -> ToolError {
    for remark in remarks {
        error.message.push_str(&format!("\n[{remark}]"));
    }
    error
}

fn describe(server: &str, description: &str) -> String {
    if description.trim().is_empty() {
        return format!("A tool of the MCP server {server}.");
    }
    let end = description.floor_char_boundary(LONGEST_DESCRIPTION);
    match end < description.len() {
        true => format!("{}…", &description[..end]),
        false => description.to_owned(),
    }
}

/// A description of somebody else's, for a list.
pub(crate) fn summary(description: &str) -> String {
    line(
        description
            .lines()
            .find(|text| !text.trim().is_empty())
            .unwrap_or_default(),
        120,
    )
}
