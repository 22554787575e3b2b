//! Messages on the pipe: reading them one at a time within a size limit, and telling replies from events.

use super::Event;
use serde::Deserialize;
use serde_json::Value;
use std::io;
use tokio::io::{AsyncBufRead, AsyncBufReadExt, AsyncReadExt};

/// The largest message in bytes: a screenshot of a long page in base64 fits.
pub(crate) const MESSAGE_BYTES: u64 = 64 << 20;
/// A larger buffer is not kept for the next message.
const KEPT_BYTES: usize = 1 << 20;

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
    error: Option<Failure>,
}

#[derive(Deserialize)]
struct Failure {
    message: String,
    data: Option<String>,
}

/// The only field of a message whose content is nested too deeply to be read.
#[derive(Deserialize)]
struct Identified {
    id: u64,
}

impl Incoming {
    pub(crate) fn parse(bytes: &[u8]) -> Self {
        let Ok(envelope) = serde_json::from_slice::<Envelope>(bytes) else {
            // Values of pages may be nested without limit. The call that asked for one fails instead of timing out.
            return match serde_json::from_slice::<Identified>(bytes) {
                Ok(Identified { id }) => Self::Reply {
                    id,
                    result: Err("its reply cannot be read".to_owned()),
                },
                Err(_) => Self::Other,
            };
        };
        match (envelope.id, envelope.method) {
            (Some(id), _) => Self::Reply {
                id,
                result: match envelope.error {
                    None => Ok(envelope.result),
                    Some(Failure { message, data }) => Err(match data {
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

/// Reads the next message into `buffer`, without its zero byte. `false` at the end of the stream.
pub(crate) async fn read_message(
    from: &mut (impl AsyncBufRead + Unpin),
    buffer: &mut Vec<u8>,
) -> io::Result<bool> {
    buffer.clear();
    buffer.shrink_to(KEPT_BYTES);
    from.take(MESSAGE_BYTES + 1).read_until(0, buffer).await?;
    match buffer.pop() {
        Some(0) => Ok(true),
        Some(_) if buffer.len() as u64 >= MESSAGE_BYTES => Err(io::Error::new(
            io::ErrorKind::InvalidData,
            "a message of the browser is larger than 64 MiB",
        )),
        Some(_) | None => Ok(false),
    }
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
        let Incoming::Reply { id: 7, result } = Incoming::parse(deep.as_bytes()) else {
            panic!("not a reply");
        };
        assert!(result.is_err());
    }

    #[tokio::test]
    async fn messages_are_parted_at_zero_bytes_and_a_cut_one_ends_the_stream() {
        let mut stream: &[u8] = b"{}\0\0{\"a\":1}\0{\"cut";
        let mut buffer = Vec::new();
        let mut messages = Vec::new();
        while read_message(&mut stream, &mut buffer).await.unwrap() {
            messages.push(String::from_utf8(buffer.clone()).unwrap());
        }
        assert_eq!(messages, ["{}", "", "{\"a\":1}"]);
    }

    #[tokio::test]
    async fn a_message_without_end_is_an_error() {
        let endless = tokio::io::repeat(b'x');
        let mut endless = tokio::io::BufReader::new(endless);
        let read = read_message(&mut endless, &mut Vec::new()).await;
        assert_eq!(read.unwrap_err().kind(), io::ErrorKind::InvalidData);
    }
}
