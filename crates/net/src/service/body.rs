//! Reads response bodies, with limits on their size and on pauses.

use super::client::root_cause;
use lango_secrets::is_plain_encoding;
use reqwest::Response;
use reqwest::header::{CONTENT_ENCODING, HeaderValue};
use std::time::Duration;
use thiserror::Error;

/// Why a body was not read completely.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum BodyError {
    /// The body is compressed. Secrets in it could not be masked.
    #[error("the response is compressed, although lango did not ask for that")]
    Compressed,
    #[error("the response has more than {limit} bytes")]
    TooLong { limit: usize },
    #[error("the response paused for more than {} s", after.as_secs())]
    TimedOut { after: Duration },
    /// The connection failed, or the caller stopped reading.
    #[error("{detail}")]
    Interrupted { detail: String },
}

/// The limits for reading a body.
#[derive(Debug, Clone, Copy)]
pub struct BodyLimits {
    pub bytes: usize,
    /// The longest pause between two chunks; `None` if the caller limits the time.
    pub idle: Option<Duration>,
}

/// Returns whether a body is not compressed.
pub fn is_plain_body(response: &Response) -> bool {
    let encoding = response.headers().get(CONTENT_ENCODING);
    is_plain_encoding(encoding.map(HeaderValue::as_bytes))
}

/// Waits for the next bytes of a body. Returns `None` at its end. `idle` limits the wait.
pub async fn next_chunk(
    response: &mut Response,
    idle: Option<Duration>,
) -> Result<Option<Vec<u8>>, BodyError> {
    let chunk = match idle {
        None => response.chunk().await,
        Some(after) => match tokio::time::timeout(after, response.chunk()).await {
            Ok(chunk) => chunk,
            Err(_elapsed) => return Err(BodyError::TimedOut { after }),
        },
    };
    match chunk {
        Ok(chunk) => Ok(chunk.map(Vec::from)),
        Err(error) => Err(BodyError::Interrupted {
            detail: root_cause(&error),
        }),
    }
}

/// Reads the rest of a body. Calls `count` with the length of each chunk; an error from it stops the reading.
pub async fn read_body(
    response: &mut Response,
    limits: BodyLimits,
    mut count: impl FnMut(usize) -> Result<(), String>,
) -> Result<Vec<u8>, BodyError> {
    if !is_plain_body(response) {
        return Err(BodyError::Compressed);
    }
    let mut body = Vec::new();
    while let Some(chunk) = next_chunk(response, limits.idle).await? {
        count(chunk.len()).map_err(|detail| BodyError::Interrupted { detail })?;
        if body.len() + chunk.len() > limits.bytes {
            let limit = limits.bytes;
            return Err(BodyError::TooLong { limit });
        }
        body.extend_from_slice(&chunk);
    }
    Ok(body)
}
