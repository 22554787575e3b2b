//! The body of a response behind credentials: decoded, and without echoes of values.

use super::body::MeteredBody;
use flate2::write::{DeflateDecoder, MultiGzDecoder, ZlibDecoder};
use hyper::body::{Body, Bytes, Frame, SizeHint};
use hyper::header::HeaderValue;
use lango_secrets::{MaskStream, Masks};
use std::collections::VecDeque;
use std::io::{self, Write};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

/// Compressed bytes to decode at a time: they become up to a thousand times as many.
const DECODED_AT_ONCE: usize = 4 * 1024;

/// A response body for a sandboxed program.
pub(super) struct ResponseBody {
    body: MeteredBody,
    decoder: Decoder,
    masks: Option<MaskStream>,
    /// Compressed bytes that are not decoded yet.
    waiting: VecDeque<u8>,
    is_done: bool,
}

impl ResponseBody {
    /// Wraps a body; fails if the encoding is one that cannot be decoded.
    pub fn new(
        body: MeteredBody,
        encoding: Option<HeaderValue>,
        masks: &Masks,
    ) -> io::Result<Self> {
        Ok(Self {
            decoder: Decoder::new(encoding)?,
            masks: (!masks.is_empty()).then(|| masks.stream()),
            waiting: VecDeque::new(),
            is_done: body.is_end_stream(),
            body,
        })
    }

    fn is_unchanged(&self) -> bool {
        matches!(self.decoder, Decoder::Identity) && self.masks.is_none()
    }

    fn mask(&mut self, decoded: Vec<u8>, is_end: bool) -> Vec<u8> {
        let Some(masks) = &mut self.masks else {
            return decoded;
        };
        let mut masked = masks.push(&decoded);
        if is_end {
            masked.extend(masks.finish());
        }
        masked
    }

    fn decode_waiting(&mut self) -> io::Result<Vec<u8>> {
        let length = self.waiting.len().min(DECODED_AT_ONCE);
        let part: Vec<u8> = self.waiting.drain(..length).collect();
        self.decoder.push(&part)
    }
}

impl Body for ResponseBody {
    type Data = Bytes;
    type Error = Box<dyn std::error::Error + Send + Sync>;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        let this = &mut *self;
        if this.is_unchanged() {
            return Pin::new(&mut this.body).poll_frame(context);
        }
        while !this.is_done {
            let decoded = if this.waiting.is_empty() {
                match ready!(Pin::new(&mut this.body).poll_frame(context)).transpose()? {
                    // Trailers are left out.
                    Some(frame) => match (frame.into_data(), &this.decoder) {
                        (Ok(data), Decoder::Identity) => data.to_vec(),
                        (Ok(data), _) => {
                            this.waiting.extend(data);
                            continue;
                        }
                        (Err(_), _) => continue,
                    },
                    None => {
                        this.is_done = true;
                        this.decoder.finish()?
                    }
                }
            } else {
                this.decode_waiting()?
            };
            let is_end = this.is_done;
            let passed = this.mask(decoded, is_end);
            if !passed.is_empty() {
                return Poll::Ready(Some(Ok(Frame::data(passed.into()))));
            }
        }
        Poll::Ready(None)
    }

    fn is_end_stream(&self) -> bool {
        if self.is_unchanged() {
            self.body.is_end_stream()
        } else {
            self.is_done
        }
    }

    fn size_hint(&self) -> SizeHint {
        if self.is_unchanged() || self.is_done {
            self.body.size_hint()
        } else {
            SizeHint::default()
        }
    }
}

enum Decoder {
    Identity,
    Gzip(Box<MultiGzDecoder<Vec<u8>>>),
    /// `deflate` before its first byte, which tells zlib from raw deflate.
    Deflate,
    Zlib(Box<ZlibDecoder<Vec<u8>>>),
    Raw(Box<DeflateDecoder<Vec<u8>>>),
}

impl Decoder {
    fn new(encoding: Option<HeaderValue>) -> io::Result<Self> {
        let encoding = encoding.unwrap_or(HeaderValue::from_static("identity"));
        match encoding.as_bytes().to_ascii_lowercase().as_slice() {
            b"" | b"identity" => Ok(Self::Identity),
            b"gzip" | b"x-gzip" => Ok(Self::Gzip(Box::new(MultiGzDecoder::new(Vec::new())))),
            b"deflate" => Ok(Self::Deflate),
            other => {
                let other = String::from_utf8_lossy(other);
                let text = format!("it is encoded as `{other}`, which was not asked for");
                Err(io::Error::other(text))
            }
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
