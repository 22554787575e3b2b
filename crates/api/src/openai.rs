//! OpenAI's protocols: `/v1/models`, `/v1/chat/completions` and `/v1/responses`, for clients that exist already.
//!
//! What a request asks maps to one turn:
//!
//! - **Session.** The header `X-Lango-Session`, or `conversation` and `previous_response_id` of `/v1/responses`, name it. Without one
//!   each request is a session of its own. Every response has the header with the session's id.
//! - **Messages.** The last message of the user starts the turn. What was said before and the client's system messages become
//!   context of the message, see [`crate::protocol`].
//! - **Streams.** Drafts are streamed as they are written. If a draft is withdrawn, the text that follows starts after a blank line,
//!   and the last text is always the answer: the concatenated deltas end with it. With a JSON schema nothing but the answer
//!   is streamed, because its readers parse all of it.
//! - **Approvals.** A turn that waits for approvals ends the response. The text names them, and `lango.approvals` has their ids. In
//!   `/v1/responses` the status is `incomplete`, without a reason: those that OpenAI defines do not fit.
//! - **Limits.** A turn that a limit cut short is a success with `finish_reason` `length`, or `incomplete` with `max_output_tokens`.
//! - **Failures.** A turn that failed or was cancelled is an error with status 424, or an error event in a stream, for chat
//!   completions; a response with status `failed` for responses. The official clients raise an error for the former and do not
//!   repeat it: a second turn would repeat the effects of the first. For the same reason every error but 429 and 503 has
//!   the header `x-should-retry: false`.
//! - **Parameters.** Those that only tune a model are ignored, such as `temperature`. Those that would change the meaning are refused,
//!   such as `tools`: the agents have tools of their own.
//!
//! A turn goes on when its client disconnects.

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
