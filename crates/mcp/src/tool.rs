//! A server's tool as agents call it.

use crate::attachments::Attachments;
use crate::content::ResultReader;
use crate::names::one_line;
use crate::server::Server;
use crate::tool_definition::ToolDefinition;
use lango_core::{
    BoxFuture, Caller, Effect, Inspection, Risk, RuleSubject, Tool, ToolError, ToolName,
    ToolOutput, ToolSpec, Trust,
};
use lango_sandbox::CleanUpReport;
use serde_json::Value;
use std::sync::Arc;

/// Maximum length of a description for models.
const MAX_DESCRIPTION_BYTES: usize = 4096;

pub(crate) struct ServerTool {
    pub(crate) server: Arc<Server>,
    /// The server's name for it.
    pub(crate) tool: String,
    /// The hash of the offered definition.
    pub(crate) hash: String,
    pub(crate) attachments: Attachments,
    spec: ToolSpec,
}

impl ServerTool {
    pub(crate) fn new(
        server: Arc<Server>,
        name: &str,
        tool: String,
        definition: &ToolDefinition,
        attachments: Attachments,
    ) -> Self {
        let spec = ToolSpec {
            name: ToolName::from(name),
            description: describe(server.id(), &definition.description).into(),
            parameters: definition.schema.clone(),
            // A server may claim that its tool is harmless, but lango does not rely on that.
            effect: Effect::NonIdempotent,
            risk: Risk::Moderate,
            escalation: None,
            subject: RuleSubject::Arguments,
            // A pin only proves that the description is unchanged, not that it can be trusted.
            trust: Trust::Untrusted,
        };
        Self {
            server,
            tool,
            hash: definition.hash.clone(),
            attachments,
            spec,
        }
    }
}

impl Tool for ServerTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    /// Tells the user that the tool is not one of lango's.
    fn inspect<'a>(
        &'a self,
        _caller: &'a Caller,
        _arguments: Arc<Value>,
    ) -> BoxFuture<'a, Inspection> {
        let note = format!("from: the MCP server `{}`", self.server.id());
        let inspection = Inspection {
            notes: vec![note.into()],
            ..Inspection::default()
        };
        Box::pin(std::future::ready(inspection))
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
            let reader = ResultReader {
                server: self.server.id(),
                tool: &self.tool,
                caller,
                attachments: &self.attachments,
            };
            match reader.read(result) {
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
    let end = description.floor_char_boundary(MAX_DESCRIPTION_BYTES);
    if end < description.len() {
        format!("{}…", &description[..end])
    } else {
        description.to_owned()
    }
}

/// Returns the first line of a server's description, shortened for a list.
pub(crate) fn summary(description: &str) -> String {
    one_line(
        description
            .lines()
            .find(|text| !text.trim().is_empty())
            .unwrap_or_default(),
        120,
    )
}
