//! Detects servers that speak only the HTTP+SSE transport of MCP 2024-11-05, so that lango can report a more helpful
//! error than an HTTP status.

use crate::http::client;
use crate::oauth::ServerAuth;
use lango_net::SseParser;
use reqwest::header::{ACCEPT, CONTENT_TYPE};
use std::time::Duration;

/// How long to wait for the first event.
const TIMEOUT: Duration = Duration::from_secs(3);

/// Maximum number of bytes of the first event.
const MAX_BYTES: usize = 4096;

/// Returns whether a GET of the address starts a stream whose first event is `endpoint`, which only the HTTP+SSE
/// transport sends. Call it after the handshake over streamable HTTP has failed.
pub(crate) async fn is_served(auth: &ServerAuth) -> bool {
    let first_event = tokio::time::timeout(TIMEOUT, first_event(auth)).await;
    first_event.ok().flatten().as_deref() == Some("endpoint")
}

/// Reads the type of the first event.
async fn first_event(auth: &ServerAuth) -> Option<String> {
    let url = &auth.address.url;
    let token = auth.token().await.ok()?;
    let mut request = client(url).ok()?.get(url);
    request = request.header(ACCEPT, "text/event-stream");
    if let Some(token) = token {
        request = request.bearer_auth(token.as_str());
    }
    let mut response = request.send().await.ok()?;
    let kind = response.headers().get(CONTENT_TYPE)?;
    if !response.status().is_success() || !kind.as_bytes().starts_with(b"text/event-stream") {
        return None;
    }
    let mut parser = SseParser::new(MAX_BYTES);
    loop {
        let chunk = response.chunk().await.ok()??;
        let pushed = parser.push(&chunk);
        let mut events = std::iter::from_fn(|| parser.next_event());
        if let Some(kind) = events.find_map(|event| event.kind) {
            return Some(kind.trim().to_owned());
        }
        pushed.ok()?;
    }
}
