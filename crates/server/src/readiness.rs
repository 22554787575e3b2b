//! The readiness check: whether the store answers. Liveness is another path, which answers as long as the process does.

use crate::READY;
use crate::context::ServerContext;
use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::http::header::RETRY_AFTER;
use axum::response::{IntoResponse as _, Response};
use axum::routing::get;
use std::sync::Arc;
use std::time::Duration;

/// How long the store may take to answer.
const TIMEOUT: Duration = Duration::from_secs(5);

/// Creates the route of the check.
pub fn readiness(context: Arc<dyn ServerContext>) -> Router {
    Router::new().route(READY, get(answer)).with_state(context)
}

async fn answer(State(context): State<Arc<dyn ServerContext>>) -> Response {
    let catalog = context.catalog();
    let read = catalog.unfinished(None, 1);
    match tokio::time::timeout(TIMEOUT, read).await {
        Ok(Ok(_)) => "ready\n".into_response(),
        // The cause names addresses, and is for the operator.
        _ => {
            let text = "the store does not answer\n";
            (StatusCode::SERVICE_UNAVAILABLE, [(RETRY_AFTER, "1")], text).into_response()
        }
    }
}
