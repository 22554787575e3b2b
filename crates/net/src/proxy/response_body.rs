//! The body of a response to a program with credentials: decodes it, and masks echoed secret values.
//!
//! The body is sent in chunks of a fixed size. Otherwise a program could tell from the size of a chunk how well a value
//! was compressed together with a guess, or how long a masked value is. Only an uncompressed body is sent in smaller
//! chunks, when its server pauses.

use super::body::{Meter, MeteredBody};
use flate2::write::{DeflateDecoder, MultiGzDecoder, ZlibDecoder};
use hyper::body::{Body, Bytes, Frame, Incoming, SizeHint};
use lango_secrets::{MaskStream, Masks};
use std::collections::VecDeque;
use std::io::{self, Write};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::time::Sleep;

type BodyError = Box<dyn std::error::Error + Send + Sync>;

/// How many compressed bytes to decode at a time. Decoding can produce up to a thousand times as many.
const DECODE_BYTES: usize = 4 * 1024;

/// The size of the chunks that a program receives, except for the last one.
const CHUNK_BYTES: usize = 16 * 1024;

/// How long a server must pause before the bytes so far are sent as a smaller chunk.
const FLUSH_DELAY: Duration = Duration::from_millis(25);

/// A response body for a sandboxed program.
pub(super) struct ResponseBody {
    body: MeteredBody,
    decoder: Decoder,
    masks: Option<MaskStream>,
    /// Received bytes that are not decoded yet.
    compressed: VecDeque<u8>,
    /// Masked bytes that are not sent yet.
    masked: VecDeque<u8>,
    flush_timer: Option<Pin<Box<Sleep>>>,
    is_done: bool,
}

impl ResponseBody {
    /// Wraps a body. Its decoded length counts towards the budget: the compressed length would reveal how well a value
    /// was compressed together with a guess.
    pub(super) fn new(meter: Meter, body: Incoming, decoder: Decoder, masks: &Masks) -> Self {
        let body = match decoder {
            Decoder::Identity => meter.attach(body),
            _ => meter.attach_uncounted(body),
        };
        Self {
            decoder,
            masks: (!masks.is_empty()).then(|| masks.stream()),
            compressed: VecDeque::new(),
            masked: VecDeque::new(),
            flush_timer: None,
            is_done: body.is_end_stream(),
            body,
        }
    }

    fn is_unchanged(&self) -> bool {
        matches!(self.decoder, Decoder::Identity) && self.masks.is_none()
    }

    fn mask(&mut self, decoded: &[u8]) {
        let Some(masks) = &mut self.masks else {
            self.masked.extend(decoded);
            return;
        };
        self.masked.extend(masks.push(decoded));
        if self.is_done {
            self.masked.extend(masks.finish());
        }
    }

    /// Returns the next chunk, if a full one or the last one is ready.
    fn next_chunk(&mut self) -> Option<Bytes> {
        let length = match self.masked.len() {
            0 => return None,
            length if length < CHUNK_BYTES && !self.is_done => return None,
            length => length.min(CHUNK_BYTES),
        };
        Some(self.masked.drain(..length).collect())
    }

    /// Returns the bytes so far of an uncompressed body, once its server has paused.
    fn poll_flush(&mut self, context: &mut Context<'_>) -> Poll<Bytes> {
        if self.masked.is_empty() || !matches!(self.decoder, Decoder::Identity) {
            return Poll::Pending;
        }
        let timer = self
            .flush_timer
            .get_or_insert_with(|| Box::pin(tokio::time::sleep(FLUSH_DELAY)));
        ready!(timer.as_mut().poll(context));
        self.flush_timer = None;
        Poll::Ready(self.masked.drain(..).collect())
    }

    /// Reads, decodes and masks the next bytes.
    fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Result<(), BodyError>> {
        let decoded = if self.compressed.is_empty() {
            match ready!(Pin::new(&mut self.body).poll_frame(context)).transpose()? {
                // Trailers are dropped.
                Some(frame) => match (frame.into_data(), &self.decoder) {
                    (Ok(data), Decoder::Identity) => data.to_vec(),
                    (Ok(data), _) => {
                        self.compressed.extend(data);
                        return Poll::Ready(Ok(()));
                    }
                    (Err(_), _) => return Poll::Ready(Ok(())),
                },
                None => {
                    self.is_done = true;
                    self.decoder.finish()?
                }
            }
        } else {
            self.decode_some()?
        };
        self.flush_timer = None;
        self.body.count_decoded(decoded.len())?;
        self.mask(&decoded);
        Poll::Ready(Ok(()))
    }

    fn decode_some(&mut self) -> io::Result<Vec<u8>> {
        let length = self.compressed.len().min(DECODE_BYTES);
        let part: Vec<u8> = self.compressed.drain(..length).collect();
        self.decoder.push(&part)
    }
}

impl Body for ResponseBody {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        let this = &mut *self;
        if this.is_unchanged() {
            return Pin::new(&mut this.body).poll_frame(context);
        }
        loop {
            if let Some(chunk) = this.next_chunk() {
                return Poll::Ready(Some(Ok(Frame::data(chunk))));
            }
            if this.is_done {
                return Poll::Ready(None);
            }
            if this.poll_next(context)?.is_pending() {
                return this
                    .poll_flush(context)
                    .map(|chunk| Some(Ok(Frame::data(chunk))));
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        if self.is_unchanged() {
            self.body.is_end_stream()
        } else {
            self.is_done && self.masked.is_empty()
        }
    }

    fn size_hint(&self) -> SizeHint {
        if self.is_unchanged() {
            self.body.size_hint()
        } else {
            SizeHint::default()
        }
    }
}

/// The decoder of a body's content coding.
pub(super) enum Decoder {
    Identity,
    Gzip(Box<MultiGzDecoder<Vec<u8>>>),
    /// `deflate` before its first byte, which distinguishes zlib from raw deflate.
    Deflate,
    Zlib(Box<ZlibDecoder<Vec<u8>>>),
    Raw(Box<DeflateDecoder<Vec<u8>>>),
}

impl Decoder {
    /// Creates the decoder of a coding, whose name must be in lower case.
    pub(super) fn new(coding: &str) -> io::Result<Self> {
        match coding {
            "gzip" | "x-gzip" => Ok(Self::Gzip(Box::new(MultiGzDecoder::new(Vec::new())))),
            "deflate" => Ok(Self::Deflate),
            _ => Err(unexpected_coding()),
        }
    }

    fn push(&mut self, bytes: &[u8]) -> io::Result<Vec<u8>> {
        if let (Self::Deflate, Some(first)) = (&self, bytes.first()) {
            // The low bits of the first zlib byte are the compression method, which is always 8.
            *self = if first & 0x0f == 8 {
                Self::Zlib(Box::new(ZlibDecoder::new(Vec::new())))
            } else {
                Self::Raw(Box::new(DeflateDecoder::new(Vec::new())))
            };
        }
        let decoded = match self {
            Self::Identity => return Ok(bytes.to_vec()),
            Self::Deflate => return Ok(Vec::new()),
            Self::Gzip(decoder) => {
                decoder.write_all(bytes)?;
                decoder.get_mut()
            }
            Self::Zlib(decoder) => {
                decoder.write_all(bytes)?;
                decoder.get_mut()
            }
            Self::Raw(decoder) => {
                decoder.write_all(bytes)?;
                decoder.get_mut()
            }
        };
        Ok(std::mem::take(decoded))
    }

    fn finish(&mut self) -> io::Result<Vec<u8>> {
        let decoded = match self {
            Self::Identity | Self::Deflate => return Ok(Vec::new()),
            Self::Gzip(decoder) => {
                decoder.try_finish()?;
                decoder.get_mut()
            }
            Self::Zlib(decoder) => {
                decoder.try_finish()?;
                decoder.get_mut()
            }
            Self::Raw(decoder) => {
                decoder.try_finish()?;
                decoder.get_mut()
            }
        };
        Ok(std::mem::take(decoded))
    }
}

/// Returns the error for a response whose coding cannot be decoded. It does not name the coding, which could be an echo
/// of a secret.
pub(super) fn unexpected_coding() -> io::Error {
    io::Error::other("it uses an encoding that lango did not ask for")
}
