//! `/v1/responses`.

use super::completion::{Completion, Ending};
use super::error::{ApiError, Result};
use super::params::Params;
use super::request::{Subject, model, session_header, start};
use super::responses_input::{PREFIX, question, session_name};
use super::responses_stream::ResponseStream;
use crate::Api;
use crate::access::Runs;
use crate::json::Json;
use crate::problem::Problem;
use crate::protocol::{ClientSession, respond, stream_permit};
use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::{IntoResponse, Response};
use lango_core::Usage;
use lango_engine::TurnEnd;
use serde_json::{Map, Value, json};

/// Runs a turn, and answers with a response object or a stream of events.
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
    let name = session_name(&params, session_header(&headers)?)?;
    let echo = Echo::of(&params);
    let session = ClientSession::choose(&api, &caller, name.as_deref()).await?;
    if session.head.is_none() && params.get("previous_response_id").is_some() {
        return Err(
            ApiError::from(Problem::not_found("the previous response does not exist"))
                .of_param("previous_response_id"),
        );
    }
    let permit = is_streamed.then(|| stream_permit(&api)).transpose()?;
    let (mut follower, subject) = start(&api, caller, session, question, model).await?;
    let objects = Objects {
        subject: subject.clone(),
        echo,
    };
    if let Some(permit) = permit {
        let stream = ResponseStream::new(objects, has_schema);
        return Ok(match respond(permit, follower, stream).await {
            Ok(response) => subject.mark(response),
            Err(problem) => subject.mark(ApiError::of_turn(problem).into_response()),
        });
    }
    let response = match follower.end().await {
        // The turn could not start or be recorded.
        Err(problem) => ApiError::of_turn(problem).into_response(),
        Ok(end) => axum::Json(objects.ended(Ok(end), follower.usage()).0).into_response(),
    };
    Ok(subject.mark(response))
}

/// Parameters that the response repeats.
struct Echo {
    instructions: Value,
    metadata: Map<String, Value>,
    previous: Value,
}

impl Echo {
    /// The maximum number of metadata pairs, which is also OpenAI's limit.
    const MAX_METADATA: usize = 16;

    fn of(params: &Params) -> Self {
        let value = |name: &str| params.get(name).cloned().unwrap_or_default();
        let metadata = params.get("metadata").and_then(Value::as_object);
        let metadata = metadata.into_iter().flatten();
        let metadata = metadata.filter(|(_, value)| value.is_string());
        Self {
            instructions: value("instructions"),
            metadata: metadata
                .take(Self::MAX_METADATA)
                .map(|(key, value)| (key.clone(), value.clone()))
                .collect(),
            previous: value("previous_response_id"),
        }
    }
}

/// A builder for the response objects of a turn.
pub(super) struct Objects {
    subject: Subject,
    echo: Echo,
}

/// The number of the answer among the messages of a response.
pub(super) struct AnswerNumber(pub usize);

impl Objects {
    /// Returns the response of a running turn.
    pub(super) fn running(&self) -> Value {
        self.response("in_progress", json!([]))
    }

    /// Returns the response of a turn that ended, and its text if it has one.
    pub(super) fn ended(
        &self,
        end: std::result::Result<TurnEnd, Problem>,
        usage: Usage,
    ) -> (Value, Option<Completion>) {
        let end = end.map_err(ApiError::from);
        match end.and_then(|end| Completion::of(end, usage)) {
            Ok(completion) => {
                let object = self.completed(&completion, &AnswerNumber(0));
                (object, Some(completion))
            }
            Err(error) => {
                let mut object = self.response("failed", json!([]));
                // The codes that OpenAI defines are about other causes.
                object["error"] = json!({ "code": "server_error", "message": error.body.message });
                object["lango"]["code"] = json!(error.body.code);
                (object, None)
            }
        }
    }

    /// Returns the response of a turn that ended with this completion.
    pub(super) fn completed(&self, completion: &Completion, number: &AnswerNumber) -> Value {
        let message = self.message(number, "completed", &completion.text);
        let mut object = match &completion.ending {
            Ending::Answered => self.response("completed", json!([message])),
            Ending::Limited | Ending::Waiting(_) => self.response("incomplete", json!([message])),
        };
        match &completion.ending {
            Ending::Answered => object["completed_at"] = json!(self.subject.created),
            Ending::Limited => {
                object["incomplete_details"] = json!({ "reason": "max_output_tokens" })
            }
            Ending::Waiting(ids) => {
                object["incomplete_details"] = json!({});
                object["metadata"]["lango_approvals"] = json!(ids.join(","));
            }
        }
        object["usage"] = completion.response_usage();
        object["lango"] = json!(self.subject.details(completion.approvals()));
        object
    }

    /// Returns a message of the response.
    pub(super) fn message(&self, number: &AnswerNumber, status: &str, text: &str) -> Value {
        let content = match status {
            "in_progress" => json!([]),
            _ => json!([text_part(text)]),
        };
        json!({
            "id": self.message_id(number),
            "type": "message",
            "role": "assistant",
            "status": status,
            "content": content,
        })
    }

    pub(super) fn message_id(&self, AnswerNumber(number): &AnswerNumber) -> String {
        format!("{}_{number}", self.subject.id("msg_"))
    }

    fn response(&self, status: &str, output: Value) -> Value {
        json!({
            "id": self.subject.id(PREFIX),
            "object": "response",
            "created_at": self.subject.created,
            "status": status,
            "background": false,
            "error": null,
            "incomplete_details": null,
            "instructions": self.echo.instructions,
            "max_output_tokens": null,
            "metadata": self.echo.metadata,
            "model": self.subject.model,
            "output": output,
            "parallel_tool_calls": true,
            "previous_response_id": self.echo.previous,
            "store": true,
            "temperature": null,
            "tool_choice": "auto",
            "tools": [],
            "top_p": null,
            "truncation": "disabled",
            "usage": null,
            "user": null,
            "conversation": { "id": self.subject.session },
            "lango": self.subject.details(Vec::new()),
        })
    }
}

/// Returns a part of a message.
pub(super) fn text_part(text: &str) -> Value {
    json!({ "type": "output_text", "text": text, "annotations": [], "logprobs": [] })
}
