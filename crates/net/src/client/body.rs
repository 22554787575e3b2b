//! Reads a response body: counts its bytes, decompresses it, and truncates it at the size limit.

use crate::budget::Budget;
use crate::destination::Destination;
use crate::error::EgressError;
use flate2::write::MultiGzDecoder;
use http_body_util::BodyExt;
use hyper::body::Incoming;
use hyper::header::HeaderValue;
use std::io::{self, Write};
use std::time::Duration;
use tokio::time::timeout;

/// A decoded body.
pub(super) struct Body {
    pub bytes: Vec<u8>,
    pub was_cut: bool,
    pub was_decoded: bool,
}

/// The limits for reading a body.
pub(super) struct BodyReader<'a> {
    pub destination: &'a Destination,
    pub budget: &'a Budget,
    pub idle_time: Duration,
    pub max_bytes: usize,
}

impl BodyReader<'_> {
    pub(super) async fn read(
        &self,
        body: &mut Incoming,
        encoding: Option<HeaderValue>,
    ) -> Result<Body, EgressError> {
        let mut decoder = self.decoder(encoding)?;
        while let Some(frame) = timeout(self.idle_time, body.frame())
            .await
            .map_err(|_| self.idle_error())?
        {
            let frame = frame.map_err(|error| self.unreadable(error))?;
            let Ok(data) = frame.into_data() else {
                continue;
            };
            self.budget
                .take_bytes(data.len(), &self.destination.to_string())?;
            decoder
                .write(&data)
                .map_err(|error| self.unreadable(error))?;
            if decoder.was_cut() {
                break;
            }
        }
        decoder.finish().map_err(|error| self.unreadable(error))
    }

    fn decoder(&self, encoding: Option<HeaderValue>) -> Result<Decoder, EgressError> {
        let buffer = BoundedBuffer {
            bytes: Vec::new(),
            max_bytes: self.max_bytes,
            was_cut: false,
        };
        let encoding = encoding.unwrap_or(HeaderValue::from_static("identity"));
        match encoding.as_bytes().to_ascii_lowercase().as_slice() {
            b"" | b"identity" => Ok(Decoder::Identity(buffer)),
            b"gzip" | b"x-gzip" => Ok(Decoder::Gzip(MultiGzDecoder::new(buffer))),
            // The error does not name the encoding, because it could be an echo of a secret.
            _ => Err(self.unreadable(io::Error::other(
                "it uses an encoding that lango did not ask for",
            ))),
        }
    }

    fn unreadable(&self, source: impl std::error::Error + Send + Sync + 'static) -> EgressError {
        super::http_error(self.destination, source)
    }

    fn idle_error(&self) -> EgressError {
        EgressError::TimedOut {
            destination: self.destination.to_string(),
            action: "continue its response",
            after: self.idle_time,
        }
    }
}

enum Decoder {
    Identity(BoundedBuffer),
    Gzip(MultiGzDecoder<BoundedBuffer>),
}

impl Decoder {
    fn write(&mut self, data: &[u8]) -> io::Result<()> {
        let written = match self {
            Self::Identity(buffer) => buffer.write_all(data),
            Self::Gzip(decoder) => decoder.write_all(data),
        };
        // A full buffer accepts no more bytes, which ends the decompression of a zip bomb early.
        if self.was_cut() { Ok(()) } else { written }
    }

    fn was_cut(&self) -> bool {
        match self {
            Self::Identity(buffer) => buffer.was_cut,
            Self::Gzip(decoder) => decoder.get_ref().was_cut,
        }
    }

    fn finish(self) -> io::Result<Body> {
        let was_cut = self.was_cut();
        let (buffer, was_decoded) = match self {
            Self::Identity(buffer) => (buffer, false),
            Self::Gzip(mut decoder) if was_cut => (std::mem::take(decoder.get_mut()), true),
            Self::Gzip(decoder) => (decoder.finish()?, true),
        };
        Ok(Body {
            was_cut: buffer.was_cut,
            bytes: buffer.bytes,
            was_decoded,
        })
    }
}

/// A writer that stores bytes up to a limit and fails beyond it.
#[derive(Default)]
struct BoundedBuffer {
    bytes: Vec<u8>,
    max_bytes: usize,
    was_cut: bool,
}

impl Write for BoundedBuffer {
    fn write(&mut self, data: &[u8]) -> io::Result<usize> {
        let room = self.max_bytes - self.bytes.len();
        let taken = data.len().min(room);
        self.bytes.extend_from_slice(&data[..taken]);
        if taken < data.len() {
            self.was_cut = true;
            return Err(io::Error::other("the body is longer than allowed"));
        }
        Ok(taken)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
