//! Reads the events of a stream, with a timeout for every wait and a limit on the total size.

use super::card::Binding;
use super::http::root_cause;
use super::refusal::{Refusal, RefusalKind};
use super::wire::unwrap_envelope;
use lango_net::SseParser;
use lango_secrets::Masks;
use reqwest::Response;
use serde_json::Value;
use std::time::Duration;

/// The maximum size of a stream, in bytes. A longer one is treated as endless.
const STREAM_BYTES: usize = 64 * 1024 * 1024;

/// The maximum size of one event, in bytes: the largest file fits in it as base64.
const EVENT_BYTES: usize = 16 * 1024 * 1024;

/// A stream of events, each as JSON without the envelope of its binding.
pub(crate) struct EventStream {
    response: Response,
    binding: Binding,
    parser: SseParser,
    bytes: usize,
    is_over: bool,
    masks: Masks,
}

/// Why a stream has no more events.
pub(crate) enum StreamEnd {
    /// The stream ended, broke or was silent for too long. The task can still be polled.
    Interrupted(String),
    /// The stream is too long.
    Endless,
    /// The server sent an error.
    Error(Refusal),
}

impl EventStream {
    pub(crate) fn new(response: Response, binding: Binding, masks: Masks) -> Self {
        Self {
            response,
            binding,
            parser: SseParser::new(EVENT_BYTES),
            bytes: 0,
            is_over: false,
            masks,
        }
    }

    /// Waits for the next event. `timeout` limits the wait for each chunk of bytes.
    pub(crate) async fn next(&mut self, timeout: Duration) -> Result<Value, StreamEnd> {
        loop {
            if let Some(data) = self.parser.next_data() {
                if data.trim().is_empty() {
                    continue;
                }
                let mut value: Value = serde_json::from_str(&data).map_err(|_| {
                    StreamEnd::Interrupted("it sent an event that is not JSON".to_owned())
                })?;
                self.masks.mask_json(&mut value);
                let is_error = value["error"].is_object();
                match unwrap_envelope(self.binding, value) {
                    Ok(value) => return Ok(value),
                    // An empty envelope: some servers use it as a keep-alive.
                    Err(refusal) if refusal.kind == RefusalKind::Lost && !is_error => continue,
                    Err(refusal) => return Err(StreamEnd::Error(refusal)),
                }
            }
            if self.is_over {
                return Err(StreamEnd::Interrupted("its stream ended".to_owned()));
            }
            self.read_more(timeout).await?;
        }
    }

    async fn read_more(&mut self, timeout: Duration) -> Result<(), StreamEnd> {
        let chunk = match tokio::time::timeout(timeout, self.response.chunk()).await {
            Ok(chunk) => chunk,
            Err(_elapsed) => {
                let seconds = timeout.as_secs();
                return Err(StreamEnd::Interrupted(format!(
                    "its stream was silent for {seconds} s"
                )));
            }
        };
        let chunk = chunk.map_err(|error| {
            StreamEnd::Interrupted(format!("its stream broke: {}", root_cause(&error)))
        })?;
        let Some(chunk) = chunk else {
            self.is_over = true;
            self.parser.finish();
            return Ok(());
        };
        self.bytes += chunk.len();
        if self.bytes > STREAM_BYTES {
            return Err(StreamEnd::Endless);
        }
        let too_long =
            |_| StreamEnd::Interrupted("it sent an event of more than 16 MiB".to_owned());
        self.parser.push(&chunk).map_err(too_long)
    }
}
