//! The readiness check, for load balancers: fails while the server shuts down or cannot reach its store. The liveness
//! check is [`HEALTH`](crate::HEALTH), which succeeds as long as the process runs.

use crate::READY;
use crate::context::ServerContext;
use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::http::header::RETRY_AFTER;
use axum::response::{IntoResponse as _, Response};
use axum::routing::get;
use lango_a2a::server::AgentServer;
use std::sync::Arc;
use std::time::Duration;

/// How long the store may take to answer.
const TIMEOUT: Duration = Duration::from_secs(5);

#[derive(Clone)]
struct Readiness {
    context: Arc<dyn ServerContext>,
    server: AgentServer,
}

/// Creates the route of the readiness check.
pub fn readiness(context: Arc<dyn ServerContext>, server: AgentServer) -> Router {
    let state = Readiness { context, server };
    Router::new().route(READY, get(answer)).with_state(state)
}

async fn answer(State(Readiness { context, server }): State<Readiness>) -> Response {
    if !server.is_open() {
        return unavailable("the server is stopping\n");
    }
    let catalog = context.catalog();
    let read = catalog.unfinished(None, 1);
    match tokio::time::timeout(TIMEOUT, read).await {
        Ok(Ok(_)) => "ready\n".into_response(),
        // Hide the cause: it may name addresses, and only the operator may see them.
        _ => unavailable("the store does not answer\n"),
    }
}

fn unavailable(text: &'static str) -> Response {
    (StatusCode::SERVICE_UNAVAILABLE, [(RETRY_AFTER, "1")], text).into_response()
}
