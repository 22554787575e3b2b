//! `/v1/chat/completions`.

use super::chat_stream::ChatStream;
use super::completion::{Completion, Ending};
use super::content::{parts, role};
use super::error::{ApiError, Result};
use super::params::Params;
use super::request::{
    Question, Subject, answer_schema, model, refuse_tools, session_header, start,
};
use crate::Api;
use crate::access::Runs;
use crate::json::Json;
use crate::protocol::{ClientMessage, ClientSession, respond, stream_permit};
use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};

/// The prefix of ids.
const PREFIX: &str = "chatcmpl-";

/// Runs a turn, and answers with a completion or a stream of chunks.
pub(super) async fn create(
    Runs(caller): Runs,
    State(api): State<Api>,
    headers: HeaderMap,
    Json(body): Json<Value>,
) -> Result<Response> {
    let params = Params::new(body)?;
    let model = model(&api, &params)?;
    let is_streamed = params.flag("stream")?;
    let question = question(&params)?;
    let has_schema = question.schema.is_some();
    let with_usage = includes_usage(&params)?;
    let session = ClientSession::choose(&api, &caller, session_header(&headers)?).await?;
    let permit = is_streamed.then(|| stream_permit(&api)).transpose()?;
    let (mut follower, subject) = start(&api, caller, session, question, model).await?;
    if let Some(permit) = permit {
        let stream = ChatStream::new(subject.clone(), with_usage, has_schema);
        return Ok(match respond(permit, follower, stream).await {
            Ok(response) => subject.mark(response),
            Err(problem) => subject.mark(ApiError::of_turn(problem).into_response()),
        });
    }
    let end = follower.end().await.map_err(ApiError::of_turn);
    let completion = end.and_then(|end| Completion::of(end, follower.usage()));
    Ok(subject.mark(match completion {
        Ok(completion) => axum::Json(whole(&subject, &completion)).into_response(),
        Err(error) => error.into_response(),
    }))
}

fn question(params: &Params) -> Result<Question> {
    refuse_tools(params)?;
    params.refuse_flag(
        "logprobs",
        "log probabilities are not available; remove `logprobs`",
    )?;
    if params.get("n").is_some_and(|n| n.as_u64() != Some(1)) {
        let message = "a request runs one turn and has one answer; remove `n`";
        return Err(ApiError::unsupported("n", message));
    }
    let audio = json!("audio");
    let modalities = params.get("modalities").and_then(Value::as_array);
    if modalities.is_some_and(|list| list.contains(&audio)) || params.get("audio").is_some() {
        let message = "answers are text; remove `audio` and the modality `audio`";
        return Err(ApiError::unsupported("modalities", message));
    }
    if params.get("web_search_options").is_some() {
        let message = "lango's agents search the web by themselves; remove `web_search_options`";
        return Err(ApiError::unsupported("web_search_options", message));
    }
    let format = params.get("response_format");
    let schema = format.map(|format| &format["json_schema"]["schema"]);
    Ok(Question {
        messages: messages(params)?,
        schema: answer_schema(format, schema, "response_format")?,
    })
}

fn messages(params: &Params) -> Result<Vec<ClientMessage>> {
    let messages = params.get("messages").and_then(Value::as_array);
    let messages = messages.filter(|messages| !messages.is_empty());
    let messages = messages.ok_or_else(|| {
        ApiError::invalid(
            "messages",
            "`messages` must be a list with at least one message",
        )
    })?;
    let mut read = Vec::with_capacity(messages.len());
    for message in messages {
        if let Some(role) = role(message, "messages")? {
            let parts = parts(&message["content"], "messages")?;
            read.push(ClientMessage { role, parts });
        }
    }
    Ok(read)
}

fn includes_usage(params: &Params) -> Result<bool> {
    match params.get("stream_options") {
        None => Ok(false),
        Some(Value::Object(options)) => {
            let include = options.get("include_usage");
            Ok(include.and_then(Value::as_bool).unwrap_or(false))
        }
        Some(_) => Err(ApiError::invalid(
            "stream_options",
            "`stream_options` must be an object",
        )),
    }
}

/// Returns the completion of a turn as one object.
fn whole(subject: &Subject, completion: &Completion) -> Value {
    json!({
        "id": id(subject),
        "object": "chat.completion",
        "created": subject.created,
        "model": subject.model,
        "choices": [{
            "index": 0,
            "message": {
                "role": "assistant",
                "content": completion.text,
                "refusal": null,
                "annotations": [],
            },
            "logprobs": null,
            "finish_reason": finish_reason(&completion.ending),
        }],
        "usage": completion.chat_usage(),
        "lango": subject.details(completion.approvals()),
    })
}

pub(super) fn id(subject: &Subject) -> String {
    subject.id(PREFIX)
}

pub(super) fn finish_reason(ending: &Ending) -> &'static str {
    match ending {
        Ending::Answered | Ending::Waiting(_) => "stop",
        Ending::Limited => "length",
    }
}
