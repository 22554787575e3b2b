//! Where bound secrets can be used: the tools, fields and MCP servers that exist, and the hosts that the settings
//! open to them.

use crate::app::egress;
use lango_config::{NetworkAccess, Settings};
use lango_core::Text;
use lango_mcp::Servers;
use lango_net::{Egress, Url};
use lango_secrets::{Binding, BindingTarget, Origin, ServerToolId};
use lango_vault::{FieldPlace, SecretField, describe_choice};
use serde_json::Value;
use std::collections::BTreeMap;

/// The prefix of a binding's tool if the tool is an MCP server's program.
const SERVER: &str = "mcp:";

/// The places where bound secrets can be used.
#[derive(Debug, Clone)]
pub struct BindingPlaces {
    fields: Vec<SecretField>,
    commands: NetworkAccess,
    servers: BTreeMap<String, NetworkAccess>,
    egress: Egress,
}

impl BindingPlaces {
    /// Collects the places where a secret can be used: from the configuration, and from the fields of tools.
    pub fn new(settings: &Settings, egress: &Egress, fields: Vec<SecretField>) -> Self {
        let servers = settings.mcp.servers.iter();
        Self {
            fields,
            commands: settings.tools.exec.network.clone(),
            servers: servers
                .map(|(id, server)| (id.clone(), server.network.clone()))
                .collect(),
            egress: egress.clone(),
        }
    }

    /// Returns the tool arguments that can be bound.
    pub fn fields(&self) -> &[SecretField] {
        &self.fields
    }

    /// Fails if the place of a binding does not exist. Returns which settings keep the binding from working and how
    /// to change them; `None` if it works.
    pub fn check(&self, binding: &Binding) -> Result<Option<String>, String> {
        let server = binding.tool.strip_prefix(SERVER);
        if let Some(id) = server
            && !self.servers.contains_key(id)
        {
            return Err(no_server(id, self.servers.keys()));
        }
        match &binding.target {
            BindingTarget::Program { .. } => Ok(None),
            BindingTarget::Header { origin, .. } => {
                let (access, key) = match server.and_then(|id| self.servers.get_key_value(id)) {
                    Some((id, access)) => (access, format!("mcp.servers.{id}.network")),
                    None => (&self.commands, "tools.exec.network".to_owned()),
                };
                let missing = egress::missing_access(access, &key, origin);
                let missing = missing.into_iter().chain(self.refusal(origin));
                let missing: Vec<String> = missing.collect();
                Ok((!missing.is_empty()).then(|| missing.join("; ")))
            }
            BindingTarget::ServerField { .. } => {
                SecretField::check(&self.fields, binding)?;
                Ok(None)
            }
            BindingTarget::Field { origin, .. } => {
                SecretField::check(&self.fields, binding)?;
                Ok(origin.as_ref().and_then(|origin| self.refusal(origin)))
            }
        }
    }

    /// Returns why the egress guard refuses an origin, and which setting would permit it.
    pub fn refusal(&self, origin: &Origin) -> Option<String> {
        let url = Url::parse(&origin.to_string()).ok()?;
        let refusal = self.egress.check(&url).err()?;
        Some(refusal.to_string())
    }
}

/// Formats the error for an unknown MCP server, with the known ones.
pub fn no_server<'a>(id: &str, ids: impl Iterator<Item = &'a String>) -> String {
    let ids: Vec<&str> = ids.map(String::as_str).collect();
    let choice = describe_choice(id, &ids, "`mcp.servers` is empty");
    format!("there is no MCP server `{id}` in the configuration; {choice}")
}

/// Returns the bindable fields of MCP tools: their arguments that can be text.
pub fn server_fields(servers: &Servers) -> impl Iterator<Item = SecretField> {
    servers.overview().iter().flat_map(move |server| {
        server.tools.iter().map(move |tool| {
            let mut offered = servers.tools().iter();
            let own = offered.find(|own| own.spec().name == tool.name);
            SecretField {
                tool: tool.name.as_str().into(),
                place: FieldPlace::Server(ServerToolId {
                    server: server.id.as_str().into(),
                    tool: tool.tool.as_str().into(),
                }),
                arguments: own.and_then(|own| text_arguments(&own.spec().parameters)),
            }
        })
    })
}

/// Returns the arguments of a schema that can be text; `None` if the schema lists none or allows additional ones.
fn text_arguments(schema: &Value) -> Option<Vec<Text>> {
    let listed = schema["properties"].as_object()?;
    let others = &schema["additionalProperties"];
    let allows_others = !matches!(others, Value::Null | Value::Bool(false));
    if allows_others || listed.is_empty() {
        return None;
    }
    let can_be_text = |schema: &Value| match &schema["type"] {
        Value::String(name) => name == "string",
        Value::Array(names) => names.iter().any(|name| name == "string"),
        _ => true,
    };
    let names = listed.iter().filter(|(_, schema)| can_be_text(schema));
    Some(names.map(|(name, _)| name.as_str().into()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_arguments_of_a_schema_that_can_be_text_are_bindable() {
        let schema = json!({ "properties": {
            "password": { "type": "string" },
            "count": { "type": "integer" },
            "maybe": { "type": ["string", "null"] },
            "any": {},
        } });
        let names = text_arguments(&schema).unwrap();
        let names: Vec<&str> = names.iter().map(|name| &**name).collect();
        assert_eq!(names, ["any", "maybe", "password"]);
        assert_eq!(text_arguments(&json!({ "type": "object" })), None);
        let open = json!({ "properties": { "a": {} }, "additionalProperties": true });
        assert_eq!(text_arguments(&open), None);
    }
}
