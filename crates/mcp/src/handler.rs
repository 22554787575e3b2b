//! Declares lango's capabilities to a server and answers its requests.
//!
//! lango does not support sampling, because a server could run up model costs for the user, nor roots, because the
//! sandbox decides what a server may access. It supports forms (elicitation) only if the user lets lango answer them
//! with their defaults.

use rmcp::ClientHandler;
use rmcp::model::{
    ClientCapabilities, ClientConfig, ElicitRequestParams, ElicitResult, ElicitationAction,
    ElicitationCapability, ErrorCode, ErrorData, FormElicitationCapability, Implementation,
    ProtocolVersion,
};
use rmcp::service::{RequestContext, RoleClient};
use serde_json::{Map, Value};

#[derive(Debug)]
pub(crate) struct Handler {
    pub(crate) form_defaults: bool,
}

impl ClientHandler for Handler {
    fn get_info(&self) -> ClientConfig {
        let mut capabilities = ClientCapabilities::default();
        if self.form_defaults {
            let forms = ElicitationCapability::new().with_form(FormElicitationCapability::new());
            capabilities.elicitation = Some(forms);
        }
        let name = Implementation::new("lango", env!("CARGO_PKG_VERSION"));
        ClientConfig::new(capabilities, name).with_protocol_version(ProtocolVersion::V_2025_11_25)
    }

    async fn create_elicitation(
        &self,
        request: ElicitRequestParams,
        _: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        if !self.form_defaults {
            return Err(ErrorData::new(
                ErrorCode::METHOD_NOT_FOUND,
                "elicitation/create",
                None,
            ));
        }
        let defaults = match request {
            ElicitRequestParams::FormElicitationParams {
                requested_schema, ..
            } => serde_json::to_value(requested_schema)
                .ok()
                .and_then(|form| defaults(&form)),
            _ => None,
        };
        Ok(match defaults {
            Some(content) => ElicitResult::new(ElicitationAction::Accept).with_content(content),
            None => ElicitResult::new(ElicitationAction::Decline),
        })
    }
}

/// Returns the defaults of a form; `None` if a required field has none.
fn defaults(form: &Value) -> Option<Value> {
    let mut content = Map::new();
    for (name, field) in form.get("properties")?.as_object()? {
        if let Some(default) = field.get("default") {
            content.insert(name.clone(), default.clone());
        }
    }
    let required = form.get("required").and_then(Value::as_array);
    let is_filled = |name: &Value| name.as_str().is_some_and(|name| content.contains_key(name));
    let is_complete = required.is_none_or(|required| required.iter().all(is_filled));
    is_complete.then_some(Value::Object(content))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_form_is_answered_with_its_defaults_unless_a_required_one_is_missing() {
        let form = json!({
            "type": "object",
            "properties": { "name": { "type": "string", "default": "Ada" }, "age": { "type": "integer" } },
        });
        assert_eq!(defaults(&form), Some(json!({ "name": "Ada" })));
        let mut strict = form;
        strict["required"] = json!(["age"]);
        assert_eq!(defaults(&strict), None);
    }
}
