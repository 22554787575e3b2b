//! Model calls: what a model was sent, recomputed from the log, and what it replied.

use super::sessions::find;
use crate::Api;
use crate::access::Reader;
use crate::json::Path;
use crate::model::ModelCallDetails;
use crate::problem::{Problem, Result};
use axum::Json as Body;
use axum::extract::State;
use lango_core::{Event, EventBody, EventRange, Message, ModelRequest, SessionId, SessionStore};
use serde_json::{Value, json};

/// How many events to search for the agent's previous call.
const SEARCHED: u64 = 500;

/// Returns a model call: the reply with this `seq`, and what the model was sent.
#[utoipa::path(get, path = "/api/sessions/{id}/calls/{seq}", params(("id" = String, Path,), ("seq" = u64, Path,)), tag = "events", responses(
    (status = 200, body = ModelCallDetails), (status = 400, body = Problem), (status = 401, body = Problem),
    (status = 403, body = Problem), (status = 404, body = Problem)))]
pub(super) async fn show(
    Reader(caller): Reader,
    State(api): State<Api>,
    Path((id, seq)): Path<(String, u64)>,
) -> Result<Body<ModelCallDetails>> {
    let session = find(&api, &caller, &id).await?.id;
    let no_call = || Problem::not_found(format!("event {seq} is not the reply of a model"));
    let from = seq.saturating_sub(SEARCHED).max(1);
    let limit = usize::try_from(seq.saturating_sub(from).saturating_add(1)).unwrap_or(0);
    let before = events(&api, &session, EventRange { from, limit }).await?;
    let reply = before.last().filter(|last| last.seq == seq);
    let reply = reply.ok_or_else(no_call)?;
    let runner = api.server.runner();
    let call = runner.model_call(&session, &reply.turn, seq).await?;
    let call = call.ok_or_else(no_call)?;
    let is_same = |event: &&Event| event.author == reply.author && is_reply(event);
    let previous = before[..before.len() - 1].iter().rev().find(is_same);
    let (request, unavailable) = match &call.request {
        Ok(request) => (Some(shown(request)), None),
        Err(problem) => (None, Some(problem.to_string())),
    };
    Ok(Body(ModelCallDetails {
        seq,
        agent: reply.author.to_string(),
        model: model_of(reply),
        previous: previous.map(|event| event.seq),
        request,
        unavailable,
        response: call.reply,
    }))
}

async fn events(api: &Api, session: &SessionId, page: EventRange) -> Result<Vec<Event>> {
    Ok(api.store.read(session, page).await?)
}

fn is_reply(event: &Event) -> bool {
    model_of(event).is_some()
}

fn model_of(event: &Event) -> Option<String> {
    match &event.body {
        EventBody::AgentMessage { model, .. } => model.as_deref().map(str::to_owned),
        _ => None,
    }
}

/// Returns a request as JSON, without the bytes of files.
fn shown(request: &ModelRequest) -> Value {
    json!({
        "instruction": request.instruction,
        "messages": request.messages.iter().map(message).collect::<Vec<_>>(),
        "functions": request.functions.iter().map(|function| json!({
            "name": function.name,
            "description": function.description,
            "parameters": function.parameters,
        })).collect::<Vec<_>>(),
        "settings": request.settings,
        "answer_schema": request.answer_schema,
        "raise_output_limit": request.raise_output_limit,
    })
}

fn message(message: &Message) -> Value {
    match message {
        Message::User { text, attachments } => {
            json!({ "role": "user", "text": text, "attachments": attachments })
        }
        Message::Assistant { text, calls, .. } => {
            json!({ "role": "assistant", "text": text, "calls": calls })
        }
        Message::Result {
            call,
            name,
            text,
            failed,
            attachments,
        } => json!({
            "role": "result", "call": call, "name": name, "text": text,
            "failed": failed, "attachments": attachments,
        }),
        Message::Notice { text } => json!({ "role": "notice", "text": text }),
    }
}
