//! The JSON-RPC binding: one path, with the method in the body. It supports neither batches, because an answer can be a
//! stream, nor notifications, because every method of the protocol has an answer.

use super::operations::{self, OperationAnswer};
use super::refusal::{Refusal, RefusalKind};
use super::request::{self, MessageRules};
use super::shared::Shared;
use super::wire;
use axum::extract::{Request, State};
use axum::http::{Method, StatusCode};
use axum::response::Response;
use serde_json::{Map, Value, json};
use std::sync::Arc;

const MEDIA_TYPE: &str = "application/json";

/// Answers a request to the JSON-RPC path.
pub(super) async fn answer(State(shared): State<Arc<Shared>>, request: Request) -> Response {
    let mut id = Value::Null;
    match respond(&shared, request, &mut id).await {
        Ok(OperationAnswer::Whole(result)) => {
            let body = wrap(&id, &result);
            wire::json(StatusCode::OK, MEDIA_TYPE, body)
        }
        Ok(OperationAnswer::Stream(updates)) => {
            wire::events(&shared, updates, move |update| wrap(&id, &update))
        }
        Err(refusal) => {
            let error = refusal.rpc_error(shared.clock.now());
            let body = json!({ "jsonrpc": "2.0", "id": id, "error": error });
            wire::json(refusal.rpc_status(), MEDIA_TYPE, body.to_string())
        }
    }
}

fn wrap(id: &Value, result: &str) -> String {
    format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{result}}}")
}

async fn respond(
    shared: &Arc<Shared>,
    request: Request,
    id: &mut Value,
) -> Result<OperationAnswer, Refusal> {
    let (head, body) = request.into_parts();
    if head.method != Method::POST {
        return Err(Refusal::new(
            RefusalKind::MethodNotAllowed,
            "send JSON-RPC calls with `POST`",
        ));
    }
    let user = wire::user(shared, &head.extensions)?;
    wire::check_content_type(&head.headers)?;
    let body = wire::body(shared, &head.headers, body).await?;
    let call: Value = serde_json::from_slice(&body.bytes).map_err(|error| {
        Refusal::new(
            RefusalKind::ParseError,
            format!("the body is not JSON: {error}"),
        )
    })?;
    drop(body.bytes);
    let (method, params) = read_call(call, id)?;
    wire::check_version(&head.headers, &wire::query_pairs(&head.uri))?;
    let rules = MessageRules {
        backend: &*shared.backend,
        input_modes: &shared.settings.input_modes,
    };
    let operation = request::read(&method, &params, &rules)?;
    drop(params);
    operations::perform(shared, user, operation, body.large).await
}

/// Reads the method and its parameters. Sets the id first, so that an error response can contain it.
fn read_call(call: Value, id: &mut Value) -> Result<(String, Map<String, Value>), Refusal> {
    let invalid = |problem: &str| Refusal::new(RefusalKind::InvalidRequest, problem);
    let mut call = match call {
        Value::Object(call) => call,
        Value::Array(_) => {
            return Err(invalid(
                "batches are not supported; send one call at a time",
            ));
        }
        _ => return Err(invalid("a call must be an object")),
    };
    match call.remove("id") {
        Some(known @ (Value::String(_) | Value::Number(_) | Value::Null)) => *id = known,
        Some(_) => return Err(invalid("`id` must be a string or a number")),
        None => return Err(invalid("`id` is required: every method has an answer")),
    }
    if call.get("jsonrpc").and_then(Value::as_str) != Some("2.0") {
        return Err(invalid("`jsonrpc` must be \"2.0\""));
    }
    let Some(Value::String(method)) = call.remove("method") else {
        return Err(invalid("`method` must be a string"));
    };
    match call.remove("params") {
        None | Some(Value::Null) => Ok((method, Map::new())),
        Some(Value::Object(params)) => Ok((method, params)),
        Some(_) => Err(Refusal::field("params", "must be an object")),
    }
}
