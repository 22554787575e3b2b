//! Recognises servers that speak only the HTTP+SSE transport of MCP 2024-11-05, to say so instead of showing a bare status.

use crate::http::client;
use crate::oauth::Bearer;
use reqwest::header::{ACCEPT, CONTENT_TYPE};
use std::time::Duration;

/// How long to wait for the first event.
const TIMEOUT: Duration = Duration::from_secs(3);

/// How much of the stream is read, in bytes.
const MOST_BYTES: usize = 4096;

/// Returns whether a GET of the address starts a stream whose first event is `endpoint`, which only that transport has. Call
/// it after the handshake over streamable HTTP has failed.
pub(crate) async fn is_served(bearer: &Bearer) -> bool {
    let first_event = tokio::time::timeout(TIMEOUT, first_event(bearer)).await;
    first_event.ok().flatten().as_deref() == Some("endpoint")
}

/// Reads the type of the first event.
async fn first_event(bearer: &Bearer) -> Option<String> {
    let url = &bearer.address.url;
    let token = bearer.token().await.ok()?;
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
    let mut start = Vec::new();
    while start.len() < MOST_BYTES {
        start.extend_from_slice(&response.chunk().await.ok()??);
        if let Some(kind) = event_type(&start) {
            return Some(kind);
        }
    }
    None
}

/// Returns the type of the first event that has one, once its line is complete.
fn event_type(stream: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(stream);
    let mut lines = text.split_inclusive(['\n', '\r']);
    let kind = lines.find_map(|line| {
        let line = line.strip_suffix(['\n', '\r'])?;
        line.strip_prefix("event:")
    })?;
    Some(kind.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::event_type;

    #[test]
    fn the_type_of_an_event_is_read_when_its_line_is_complete() {
        for (text, expected) in [
            ("event: endpoint\ndata: /messages\n\n", Some("endpoint")),
            (": hello\r\nevent:endpoint\r\n", Some("endpoint")),
            ("data: {}\n\nevent: message\n", Some("message")),
            ("event: endpoi", None),
            ("data: event: endpoint\n", None),
        ] {
            assert_eq!(event_type(text.as_bytes()).as_deref(), expected, "{text:?}");
        }
    }
}
