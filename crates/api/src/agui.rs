//! AG-UI, a protocol between agents and user interfaces: `POST /agui` runs an agent and streams events.
//!
//! A run starts or continues one turn of the session that `threadId` names:
//!
//! - **Texts.** Each draft is a text message. A withdrawn draft stays where it is, and the answer is a separate
//!   message.
//! - **Delegations.** A delegation is a step with the agent's name, and an activity `lango.delegation` with the task.
//!   Protocol 1.0 also has events for sub-agents, but clients of earlier versions refuse them. All clients accept steps
//!   and activities.
//! - **Tool calls.** The calls of all agents, with their results. The client cannot provide its own tools.
//! - **Approvals.** If a turn waits for approvals, its run ends with an interrupt for each of them. The next run
//!   answers all of them in `resume`, which requires the scope `approve`. The payload is `{"approved": true}`, or
//!   `{"answer", "pattern", "reason"}` as in `POST /api/approvals/{id}`. A run with `resume` reads no messages.
//! - **Errors.** A problem with a run is a `RUN_ERROR` event, as the protocol requires. Malformed requests, missing
//!   scopes and limits of the server are HTTP errors.
//!
//! `context` and system messages become context of the message; `state` and `forwardedProps` are ignored. A turn
//! continues when its client disconnects.

mod events;
mod interrupt;
mod outline;
mod render;
mod resume;
mod run_input;

use crate::Api;
use crate::access::{Caller, Runs};
use crate::json::Json;
use crate::problem::{Problem, Result};
use crate::protocol::{ClientSession, Frames, TurnFollower, input, respond, stream_permit};
use crate::turns::NewTurn;
use axum::Router;
use axum::extract::State;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::http::{HeaderName, HeaderValue};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use lango_core::{Scope, SessionId, TurnId};
use outline::Outline;
use render::RunRenderer;
use resume::Resumption;
use run_input::RunInput;
use serde_json::Value;

const SESSION: HeaderName = HeaderName::from_static("x-lango-session");

/// Returns the route.
pub(crate) fn router() -> Router<Api> {
    let other = || async { Problem::method_not_allowed() };
    let methods = post(run).get(other).put(other).patch(other).delete(other);
    Router::new().route("/agui", methods)
}

/// Starts a turn, or answers the approvals that a turn waits for and continues it.
async fn run(
    Runs(caller): Runs,
    State(api): State<Api>,
    Json(body): Json<Value>,
) -> Result<Response> {
    let run = RunInput::read(body)?;
    if !run.resume.is_empty() && !caller.scopes.contains(Scope::Approve) {
        return Err(Problem::missing_scope(Scope::Approve));
    }
    match start(&api, caller, &run).await {
        Err(problem) if is_of_http(&problem) => Err(problem),
        Err(problem) => Ok(failed(&run, &problem)),
        started => started,
    }
}

/// Returns whether a problem is about the connection or the server, not about the run.
fn is_of_http(problem: &Problem) -> bool {
    matches!(problem.status, 401 | 403 | 429 | 500..)
}

async fn start(api: &Api, caller: Caller, run: &RunInput) -> Result<Response> {
    if run.has_tools {
        return Err(Problem::unprocessable(
            "lango's agents have their own tools; remove tools from the request",
        ));
    }
    let session = ClientSession::choose(api, &caller, Some(&run.thread)).await?;
    let id = session.id.clone();
    let response = if run.resume.is_empty() {
        new_turn(api, caller, run, session).await?
    } else {
        resume(api, caller, run, &session).await?
    };
    Ok(marked(response, &id))
}

async fn new_turn(
    api: &Api,
    caller: Caller,
    run: &RunInput,
    session: ClientSession,
) -> Result<Response> {
    let new = NewTurn {
        input: input(run.messages.clone(), session.head.as_ref())?,
        user: session.user,
        session: session.id,
        turn: TurnId::new(api.ids.fresh("t_")),
    };
    let renderer = RunRenderer::new(run, new.turn.clone(), Outline::default());
    let permit = stream_permit(api)?;
    let handle = api.turns.run(new).await?;
    let follower = TurnFollower::new(api.clone(), caller, handle);
    respond(permit, follower, renderer).await
}

async fn resume(
    api: &Api,
    caller: Caller,
    run: &RunInput,
    session: &ClientSession,
) -> Result<Response> {
    match Resumption::of(api, session, &run.resume).await? {
        Resumption::Answers(mut answers) => {
            let Some((waiting, answer)) = answers.pop_front() else {
                return Err(Problem::bad_request("`resume` answers nothing"));
            };
            let outline = Outline::read(api, &waiting).await?;
            let renderer = RunRenderer::new(run, waiting.turn.clone(), outline);
            let permit = stream_permit(api)?;
            let handle = api.turns.resume(&waiting, answer).await?;
            let follower = TurnFollower::new(api.clone(), caller, handle).with_answers(answers);
            respond(permit, follower, renderer).await
        }
        Resumption::AnsweredElsewhere => {
            let mut frames = Frames::default();
            frames.push(None, &events::run_started(run));
            frames.push(None, &events::run_finished(run, events::success()));
            Ok(streamed(frames))
        }
    }
}

/// Returns the response for a run that consists only of an error.
fn failed(run: &RunInput, problem: &Problem) -> Response {
    let mut frames = Frames::default();
    frames.push(None, &events::run_started(run));
    frames.push(None, &events::problem(problem));
    streamed(frames)
}

fn streamed(frames: Frames) -> Response {
    let headers = [
        (CONTENT_TYPE, "text/event-stream"),
        (CACHE_CONTROL, "no-store"),
    ];
    (headers, frames.into_bytes()).into_response()
}

fn marked(mut response: Response, session: &SessionId) -> Response {
    if let Ok(session) = HeaderValue::from_str(session.as_str()) {
        response.headers_mut().insert(SESSION, session);
    }
    response
}
