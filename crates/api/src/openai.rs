//! OpenAI's protocols: `/v1/models`, `/v1/chat/completions` and `/v1/responses`, for existing clients.
//!
//! A request maps to one turn:
//!
//! - **Session.** The header `X-Lango-Session` names the session. In `/v1/responses`, `conversation` and
//!   `previous_response_id` can name it too. Otherwise each request gets a new session. Every response has the header
//!   with the session's id.
//! - **Messages.** The user's last message starts the turn. Earlier messages and the client's system messages become
//!   context of that message, see [`crate::protocol`].
//! - **Streams.** Drafts are streamed as they are written. If a draft is withdrawn, the next text starts after a blank
//!   line. The last text is always the answer, so the concatenated deltas end with it. With a JSON schema, only the
//!   answer is streamed, because clients parse all of the text.
//! - **Approvals.** If a turn waits for approvals, the response ends. Its text names the approvals, and
//!   `lango.approvals` has their ids. In `/v1/responses` the status is `incomplete` without a reason, because none of
//!   OpenAI's reasons fits.
//! - **Limits.** A turn that a limit cut short is a success with `finish_reason` `length`, or `incomplete` with
//!   `max_output_tokens`.
//! - **Failures.** If a turn failed or was cancelled, `/v1/chat/completions` returns an error with status 424, or an
//!   error event in a stream; `/v1/responses` returns a response with status `failed`. The official clients raise an
//!   error for status 424, but do not retry: a second turn would repeat the effects of the first. For the same reason,
//!   every error except 429 and 503 has the header `x-should-retry: false`.
//! - **Parameters.** Parameters that only tune a model, such as `temperature`, are ignored. Parameters that would
//!   change the meaning of a request, such as `tools`, are refused: the agents have their own tools.
//!
//! A turn continues when its client disconnects.

mod chat;
mod chat_stream;
mod completion;
mod content;
mod error;
mod models;
mod params;
mod request;
mod responses;
mod responses_input;
mod responses_stream;

pub(crate) use error::in_openai_shape;

use crate::Api;
use axum::Router;
use axum::routing::{get, post};

/// Returns the routes.
pub(crate) fn router() -> Router<Api> {
    Router::new()
        .route("/v1/models", get(models::list))
        .route("/v1/models/{*model}", get(models::show))
        .route("/v1/chat/completions", post(chat::create))
        .route("/v1/responses", post(responses::create))
}
