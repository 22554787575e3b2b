//! Reads messages from the pipe one at a time, up to a size limit, and distinguishes replies from events.

use super::Event;
use serde::Deserialize;
use serde_json::Value;
use std::io;
use tokio::io::{AsyncBufRead, AsyncBufReadExt, AsyncReadExt};

/// Maximum size of a message in bytes; a base64 screenshot of a long page fits.
pub(crate) const MESSAGE_BYTES: u64 = 64 << 20;
/// Maximum size of a skipped message: the browser's own memory limit.
const SKIPPED_BYTES: u64 = 4 << 30;
/// A buffer larger than this is not reused for the next message.
const BUFFER_BYTES: usize = 1 << 20;
/// Number of bytes of a skipped message to keep, enough to contain its id.
const HEAD_BYTES: usize = 64;

/// Whether a message was read completely.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MessageSize {
    Whole,
    /// Too large: only its start was read.
    Skipped,
}

/// A message from the browser.
#[derive(Debug)]
pub(crate) enum Incoming {
    Reply {
        id: u64,
        result: Result<Value, String>,
    },
    Event(Event),
    /// Neither a reply nor an event.
    Other,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Envelope {
    id: Option<u64>,
    method: Option<String>,
    session_id: Option<String>,
    #[serde(default)]
    params: Value,
    #[serde(default)]
    result: Value,
    error: Option<CdpError>,
}

#[derive(Deserialize)]
struct CdpError {
    message: String,
    data: Option<String>,
}

/// The id of a reply whose content is nested too deeply to be parsed.
#[derive(Deserialize)]
struct ReplyId {
    id: u64,
}

impl Incoming {
    /// Parses a message. A skipped message fails the call whose id it starts with. Skipped events are ignored: pages
    /// can cause events of any size, for example with console output.
    pub(crate) fn parse(bytes: &[u8], size: MessageSize) -> Self {
        if size == MessageSize::Skipped {
            return match id_of_head(bytes) {
                Some(id) => Self::Reply {
                    id,
                    result: Err("the reply is larger than 64 MiB".to_owned()),
                },
                None => Self::Other,
            };
        }
        let Ok(envelope) = serde_json::from_slice::<Envelope>(bytes) else {
            // Pages can nest values without limit. A call for such a value fails immediately instead of timing out.
            return match serde_json::from_slice::<ReplyId>(bytes) {
                Ok(ReplyId { id }) => Self::Reply {
                    id,
                    result: Err("the reply cannot be parsed".to_owned()),
                },
                Err(_) => Self::Other,
            };
        };
        match (envelope.id, envelope.method) {
            (Some(id), _) => Self::Reply {
                id,
                result: match envelope.error {
                    None => Ok(envelope.result),
                    Some(CdpError { message, data }) => Err(match data {
                        None => message,
                        Some(data) => format!("{message}: {data}"),
                    }),
                },
            },
            (None, Some(method)) => Self::Event(Event {
                method,
                session: envelope.session_id.map(Into::into),
                params: envelope.params,
            }),
            (None, None) => Self::Other,
        }
    }
}

/// Returns the id at the start of a reply; the browser writes it first.
fn id_of_head(head: &[u8]) -> Option<u64> {
    let digits = head.strip_prefix(br#"{"id":"#)?;
    let end = digits.iter().position(|byte| !byte.is_ascii_digit())?;
    std::str::from_utf8(&digits[..end]).ok()?.parse().ok()
}

/// Reads the next message into `buffer`, without its zero byte. Keeps only the start of a message that is too large.
/// Returns `None` at the end of the stream.
pub(crate) async fn read_message(
    from: &mut (impl AsyncBufRead + Unpin),
    buffer: &mut Vec<u8>,
) -> io::Result<Option<MessageSize>> {
    buffer.clear();
    buffer.shrink_to(BUFFER_BYTES);
    from.take(MESSAGE_BYTES + 1).read_until(0, buffer).await?;
    match buffer.pop() {
        Some(0) => Ok(Some(MessageSize::Whole)),
        Some(_) if buffer.len() as u64 >= MESSAGE_BYTES => {
            buffer.truncate(HEAD_BYTES);
            skip_message(from).await?;
            Ok(Some(MessageSize::Skipped))
        }
        Some(_) | None => Ok(None),
    }
}

async fn skip_message(from: &mut (impl AsyncBufRead + Unpin)) -> io::Result<()> {
    let mut left = SKIPPED_BYTES;
    while left > 0 {
        let bytes = from.fill_buf().await?;
        let end = bytes.iter().position(|byte| *byte == 0);
        let count = end.map_or(bytes.len(), |end| end + 1);
        if count == 0 {
            return Ok(());
        }
        from.consume(count);
        if end.is_some() {
            return Ok(());
        }
        left = left.saturating_sub(count as u64);
    }
    Err(io::Error::new(
        io::ErrorKind::InvalidData,
        "a message from the browser is larger than 4 GiB",
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reply_that_is_nested_too_deeply_fails_its_call() {
        let deep = format!(
            r#"{{"id":7,"result":{}1{}}}"#,
            "[".repeat(500),
            "]".repeat(500)
        );
        let Incoming::Reply { id: 7, result } =
            Incoming::parse(deep.as_bytes(), MessageSize::Whole)
        else {
            panic!("not a reply");
        };
        assert!(result.is_err());
    }

    #[tokio::test]
    async fn messages_are_split_at_zero_bytes_and_a_truncated_one_ends_the_stream() {
        let mut stream: &[u8] = b"{}\0\0{\"a\":1}\0{\"cut";
        let mut buffer = Vec::new();
        let mut messages = Vec::new();
        while let Some(MessageSize::Whole) = read_message(&mut stream, &mut buffer).await.unwrap() {
            messages.push(String::from_utf8(buffer.clone()).unwrap());
        }
        assert_eq!(messages, ["{}", "", "{\"a\":1}"]);
    }

    #[tokio::test]
    async fn a_message_that_is_too_large_is_skipped_and_fails_its_call() {
        let large = tokio::io::repeat(b'x').take(MESSAGE_BYTES + 5);
        let (head, tail): (&[u8], &[u8]) = (b"{\"id\":12,\"result\":\"", b"\0{}\0");
        let mut stream = tokio::io::BufReader::new(head.chain(large).chain(tail));
        let mut buffer = Vec::new();
        let size = read_message(&mut stream, &mut buffer).await.unwrap();
        let message = Incoming::parse(&buffer, size.unwrap());
        assert!(
            matches!(
                message,
                Incoming::Reply {
                    id: 12,
                    result: Err(_)
                }
            ),
            "{message:?}"
        );
        let size = read_message(&mut stream, &mut buffer).await.unwrap();
        assert_eq!((size, &*buffer), (Some(MessageSize::Whole), &b"{}"[..]));
    }
}
