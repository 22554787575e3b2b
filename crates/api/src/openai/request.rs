//! What requests of both protocols have in common: the model, the session, tools and schemas.

use super::error::{ApiError, Result};
use super::models;
use super::params::Params;
use crate::Api;
use crate::access::Caller;
use crate::protocol::{ClientMessage, ClientSession, TurnFollower, input};
use crate::turns::NewTurn;
use axum::http::{HeaderMap, HeaderName, HeaderValue};
use axum::response::Response;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use lango_core::{SessionId, TurnId};
use lango_engine::AnswerSchema;
use serde::Serialize;
use serde_json::{Value, json};
use std::sync::Arc;

/// The header with the session of a request or a response.
const SESSION: HeaderName = HeaderName::from_static("x-lango-session");

const TOOLS: &str = "lango's agents have their own tools; remove tools from the request";

/// The input of a turn, apart from its session.
pub(super) struct Question {
    pub messages: Vec<ClientMessage>,
    pub schema: Option<Arc<Value>>,
}

/// The details that every response of a turn contains.
#[derive(Debug, Clone)]
pub(super) struct Subject {
    /// The name that the client used.
    pub model: String,
    /// In seconds since 1970.
    pub created: u64,
    pub session: SessionId,
    pub turn: TurnId,
}

/// The details that lango adds to responses.
#[derive(Debug, Serialize)]
pub(super) struct LangoDetails<'a> {
    pub session: &'a SessionId,
    pub turn: &'a TurnId,
    /// The ids of pending approvals.
    pub approvals: Vec<String>,
}

/// Returns the model that the client names, if it is served.
pub(super) fn model(api: &Api, params: &Params) -> Result<String> {
    let model = params.text("model")?.unwrap_or(models::LANGO);
    models::check(api, model)?;
    Ok(model.to_owned())
}

/// Fails if the client provides tools.
pub(super) fn refuse_tools(params: &Params) -> Result<()> {
    for name in ["tools", "functions"] {
        params.refuse_list(name, TOOLS)?;
    }
    for name in ["tool_choice", "function_call"] {
        match params.get(name) {
            None => {}
            Some(Value::String(choice)) if choice == "none" || choice == "auto" => {}
            Some(_) => return Err(ApiError::unsupported(name, TOOLS)),
        }
    }
    Ok(())
}

/// Returns the name of the session in the header.
pub(super) fn session_header(headers: &HeaderMap) -> Result<Option<&str>> {
    let Some(name) = headers.get(SESSION) else {
        return Ok(None);
    };
    let name = name.to_str().unwrap_or_default();
    check_session_name(name, "X-Lango-Session").map(Some)
}

/// Fails if a session cannot have this name.
pub(super) fn check_session_name<'a>(name: &'a str, param: &'static str) -> Result<&'a str> {
    let is_letter = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
    if (1..=64).contains(&name.len()) && name.bytes().all(is_letter) {
        Ok(name)
    } else {
        Err(ApiError::invalid(
            param,
            format!("`{param}` must have 1 to 64 letters, digits, `_` and `-`"),
        ))
    }
}

/// Returns the JSON schema of a format: `text`, `json_object`, or `json_schema` with a schema in `schema`.
pub(super) fn answer_schema(
    format: Option<&Value>,
    schema: Option<&Value>,
    param: &'static str,
) -> Result<Option<Arc<Value>>> {
    let Some(format) = format else {
        return Ok(None);
    };
    let schema = match format["type"].as_str() {
        Some("text") => return Ok(None),
        Some("json_object") => json!({ "type": "object" }),
        Some("json_schema") => schema.cloned().unwrap_or_default(),
        _ => {
            let message = format!("the type of `{param}` must be text, json_object or json_schema");
            return Err(ApiError::invalid(param, message));
        }
    };
    let schema = AnswerSchema::parse(&schema.to_string())
        .map_err(|error| ApiError::invalid(param, format!("the schema cannot be used: {error}")))?;
    Ok(Some(Arc::clone(schema.value())))
}

/// Starts a turn.
pub(super) async fn start(
    api: &Api,
    caller: Caller,
    session: ClientSession,
    question: Question,
    model: String,
) -> Result<(TurnFollower, Subject)> {
    let mut input = input(question.messages, session.head.as_ref())?;
    if let Some(schema) = question.schema {
        input = input.with_answer_schema(schema);
    }
    let subject = Subject {
        model,
        created: api.clock.now().0 / 1000,
        session: session.id.clone(),
        turn: TurnId::new(api.ids.fresh("t_")),
    };
    let handle = api
        .turns
        .run(NewTurn {
            user: session.user,
            session: session.id,
            turn: subject.turn.clone(),
            input,
        })
        .await?;
    let follower = TurnFollower::new(api.clone(), caller, handle);
    Ok((follower, subject))
}

impl Subject {
    /// Returns an id for the response. It contains the session, so that a later request can name the session without
    /// stored state.
    pub(super) fn id(&self, prefix: &str) -> String {
        let parts = format!("{}\n{}", self.session, self.turn);
        format!("{prefix}{}", URL_SAFE_NO_PAD.encode(parts))
    }

    pub(super) fn details(&self, approvals: Vec<String>) -> LangoDetails<'_> {
        LangoDetails {
            session: &self.session,
            turn: &self.turn,
            approvals,
        }
    }

    /// Adds the header with the session.
    pub(super) fn mark(&self, mut response: Response) -> Response {
        if let Ok(session) = HeaderValue::from_str(self.session.as_str()) {
            response.headers_mut().insert(SESSION, session);
        }
        response
    }
}

/// Returns the session in the id of a response.
pub(super) fn session_of(id: &str, prefix: &str) -> Option<String> {
    let parts = URL_SAFE_NO_PAD.decode(id.strip_prefix(prefix)?).ok()?;
    let parts = String::from_utf8(parts).ok()?;
    let (session, _) = parts.split_once('\n')?;
    Some(session.to_owned())
}
