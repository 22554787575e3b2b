//! The events of a stream, one by one, with a bound on every wait and on the whole.

use super::card::Binding;
use super::http::deepest;
use super::refusal::{Kind, Refusal};
use super::sse::Frames;
use super::wire::unwrapped;
use lango_secrets::Masks;
use reqwest::Response;
use serde_json::Value;
use std::time::Duration;

/// The most bytes of one stream. One that is longer has no end.
const STREAM_BYTES: usize = 64 * 1024 * 1024;

/// A stream that is being read.
pub(crate) struct Events {
    response: Response,
    binding: Binding,
    frames: Frames,
    bytes: usize,
    is_over: bool,
    masks: Masks,
}

/// Why a stream gives no more.
pub(crate) enum StreamEnd {
    /// It is over, broken or silent; the task can be asked for.
    Cut(String),
    /// It has no end.
    Endless,
    /// It says that something went wrong.
    Error(Refusal),
}

impl Events {
    pub fn new(response: Response, binding: Binding, masks: Masks) -> Self {
        Self {
            response,
            binding,
            frames: Frames::default(),
            bytes: 0,
            is_over: false,
            masks,
        }
    }

    /// The next event, if there is one before so long a silence.
    pub async fn next(&mut self, patience: Duration) -> Result<Value, StreamEnd> {
        loop {
            if let Some(data) = self.frames.next() {
                if data.trim().is_empty() {
                    continue;
                }
                let mut value: Value = serde_json::from_str(&data)
                    .map_err(|_| StreamEnd::Cut("it sent an event that is not JSON".to_owned()))?;
                self.masks.mask_json(&mut value);
                let is_error = value["error"].is_object();
                match unwrapped(self.binding, value) {
                    Ok(value) => return Ok(value),
                    // An envelope with nothing in it: some servers keep a stream alive so.
                    Err(refusal) if refusal.kind == Kind::Lost && !is_error => continue,
                    Err(refusal) => return Err(StreamEnd::Error(refusal)),
                }
            }
            if self.is_over {
                return Err(StreamEnd::Cut("its stream ended".to_owned()));
            }
            self.read_more(patience).await?;
        }
    }

    async fn read_more(&mut self, patience: Duration) -> Result<(), StreamEnd> {
        let chunk = match tokio::time::timeout(patience, self.response.chunk()).await {
            Ok(chunk) => chunk,
            Err(_elapsed) => {
                let seconds = patience.as_secs();
                return Err(StreamEnd::Cut(format!(
                    "its stream was silent for {seconds} s"
                )));
            }
        };
        let chunk = chunk
            .map_err(|error| StreamEnd::Cut(format!("its stream broke: {}", deepest(&error))))?;
        let Some(chunk) = chunk else {
            self.is_over = true;
            self.frames.finish();
            return Ok(());
        };
        self.bytes += chunk.len();
        if self.bytes > STREAM_BYTES {
            return Err(StreamEnd::Endless);
        }
        let too_long = |_| StreamEnd::Cut("it sent an event of more than 16 MiB".to_owned());
        self.frames.push(&chunk).map_err(too_long)
    }
}
