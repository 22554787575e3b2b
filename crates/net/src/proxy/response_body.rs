//! The body of a response behind credentials: decoded, and without echoes of values.
//!
//! It leaves in pieces of one size, so that a program cannot tell from a piece how well a value was compressed together with a
//! guess, nor how long a masked value is. Only a body that was not compressed is sent on in smaller pieces when its server pauses.

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

/// Compressed bytes to decode at a time: they become up to a thousand times as many.
const DECODED_AT_ONCE: usize = 4 * 1024;

/// Size of the pieces that a program receives, but for the last one.
const PIECE: usize = 16 * 1024;

/// How long a server pauses before what it sent so far is sent on.
const PAUSE: Duration = Duration::from_millis(25);

/// A response body for a sandboxed program.
pub(super) struct ResponseBody {
    body: MeteredBody,
    decoder: Decoder,
    masks: Option<MaskStream>,
    /// Compressed bytes that are not decoded yet.
    waiting: VecDeque<u8>,
    /// Masked bytes that are not sent yet.
    masked: VecDeque<u8>,
    pause: Option<Pin<Box<Sleep>>>,
    is_done: bool,
}

impl ResponseBody {
    /// Wraps a body. What counts is its decoded length: the other one tells how well a value was compressed with a guess.
    pub fn new(meter: Meter, body: Incoming, decoder: Decoder, masks: &Masks) -> Self {
        let body = match decoder {
            Decoder::Identity => meter.attach(body),
            _ => meter.attach_uncounted(body),
        };
        Self {
            decoder,
            masks: (!masks.is_empty()).then(|| masks.stream()),
            waiting: VecDeque::new(),
            masked: VecDeque::new(),
            pause: None,
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

    /// Returns the next piece, if there is one of full size or the last one.
    fn piece(&mut self) -> Option<Bytes> {
        let length = match self.masked.len() {
            0 => return None,
            length if length < PIECE && !self.is_done => return None,
            length => length.min(PIECE),
        };
        Some(self.masked.drain(..length).collect())
    }

    /// Returns what is there of a body that was not compressed, after a pause of its server.
    fn poll_pause(&mut self, context: &mut Context<'_>) -> Poll<Bytes> {
        if self.masked.is_empty() || !matches!(self.decoder, Decoder::Identity) {
            return Poll::Pending;
        }
        let pause = self
            .pause
            .get_or_insert_with(|| Box::pin(tokio::time::sleep(PAUSE)));
        ready!(pause.as_mut().poll(context));
        self.pause = None;
        Poll::Ready(self.masked.drain(..).collect())
    }

    /// Reads and masks the next part.
    fn poll_part(&mut self, context: &mut Context<'_>) -> Poll<Result<(), BodyError>> {
        let decoded = if self.waiting.is_empty() {
            match ready!(Pin::new(&mut self.body).poll_frame(context)).transpose()? {
                // Trailers are left out.
                Some(frame) => match (frame.into_data(), &self.decoder) {
                    (Ok(data), Decoder::Identity) => data.to_vec(),
                    (Ok(data), _) => {
                        self.waiting.extend(data);
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
            self.decode_waiting()?
        };
        self.pause = None;
        self.body.count_decoded(decoded.len())?;
        self.mask(&decoded);
        Poll::Ready(Ok(()))
    }

    fn decode_waiting(&mut self) -> io::Result<Vec<u8>> {
        let length = self.waiting.len().min(DECODED_AT_ONCE);
        let part: Vec<u8> = self.waiting.drain(..length).collect();
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
            if let Some(piece) = this.piece() {
                return Poll::Ready(Some(Ok(Frame::data(piece))));
            }
            if this.is_done {
                return Poll::Ready(None);
            }
            if this.poll_part(context)?.is_pending() {
                return this
                    .poll_pause(context)
                    .map(|sent| Some(Ok(Frame::data(sent))));
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
    /// `deflate` before its first byte, which tells zlib from raw deflate.
    Deflate,
    Zlib(Box<ZlibDecoder<Vec<u8>>>),
    Raw(Box<DeflateDecoder<Vec<u8>>>),
}

impl Decoder {
    /// Returns the decoder of a coding, which is given in lower case.
    pub fn new(coding: &str) -> io::Result<Self> {
        match coding {
            "gzip" | "x-gzip" => Ok(Self::Gzip(Box::new(MultiGzDecoder::new(Vec::new())))),
            "deflate" => Ok(Self::Deflate),
            _ => Err(not_asked_for()),
        }
    }

    fn push(&mut self, bytes: &[u8]) -> io::Result<Vec<u8>> {
        if let (Self::Deflate, Some(first)) = (&self, bytes.first()) {
            // The low bits of the first byte of zlib name its only method.
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

/// The error for a response in a coding that cannot be decoded. It does not name the coding, which could be an echo.
pub(super) fn not_asked_for() -> io::Error {
    io::Error::other("it is encoded in a way that was not asked for")
}
