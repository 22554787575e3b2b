//! The stdio transport: one message per line over a program's stdin and stdout. Unlike the MCP library's own transport,
//! it closes the connection when a line is too long, so that waiting calls fail, and drops notifications before parsing
//! them.

use crate::names::one_line;
use crate::task_support::move_execution;
use crate::traffic::{Traffic, TrafficCheck};
use lango_secrets::Masks;
use rmcp::RoleClient;
use rmcp::model::{
    ClientJsonRpcMessage, ErrorData, JsonRpcMessage, RequestId, ServerJsonRpcMessage,
};
use rmcp::transport::Transport;
use serde::Deserialize;
use std::borrow::Cow;
use std::io;
use std::ops::Range;
use std::sync::Arc;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::sync::mpsc;

/// Maximum length of a message.
pub(crate) const MAX_MESSAGE_BYTES: usize = 8 << 20;
/// Maximum number of messages in the queue to the program.
const QUEUE: usize = 64;

/// The transport over a program's pipes.
pub(crate) struct StdioTransport<R> {
    input: R,
    buffer: Vec<u8>,
    /// The start of the next line in the buffer.
    start: usize,
    /// The position up to which the buffer was searched for a line end.
    searched: usize,
    outgoing: Option<mpsc::Sender<Vec<u8>>>,
    traffic: Arc<Traffic>,
    masks: Masks,
}

impl<R: AsyncRead + Unpin + Send> StdioTransport<R> {
    /// Creates the transport. A separate task writes to `output` until the transport is closed or dropped.
    pub(crate) fn new(
        input: R,
        output: impl AsyncWrite + Unpin + Send + 'static,
        traffic: Arc<Traffic>,
        masks: Masks,
    ) -> Self {
        let (outgoing, waiting) = mpsc::channel(QUEUE);
        tokio::spawn(write(output, waiting));
        Self {
            input,
            buffer: Vec::new(),
            start: 0,
            searched: 0,
            outgoing: Some(outgoing),
            traffic,
            masks,
        }
    }

    /// Returns the next line as a range of the buffer. It is cancel safe: what was read stays in the buffer.
    async fn next_line(&mut self) -> Option<Range<usize>> {
        loop {
            let end = self.buffer[self.searched..]
                .iter()
                .position(|byte| *byte == b'\n');
            if let Some(end) = end {
                let line = self.start..self.searched + end;
                self.start = line.end + 1;
                self.searched = self.start;
                return Some(line);
            }
            // Lines that were returned are no longer needed.
            self.buffer.drain(..self.start);
            self.start = 0;
            self.searched = self.buffer.len();
            if self.searched > MAX_MESSAGE_BYTES {
                let most = MAX_MESSAGE_BYTES >> 20;
                self.traffic
                    .close(format!("it sent a message of more than {most} MiB"));
                return None;
            }
            self.buffer.reserve(32 << 10);
            match self.input.read_buf(&mut self.buffer).await {
                Ok(0) | Err(_) => return None,
                Ok(_) => {}
            }
        }
    }
}

async fn write(mut output: impl AsyncWrite + Unpin, mut waiting: mpsc::Receiver<Vec<u8>>) {
    while let Some(message) = waiting.recv().await {
        if output.write_all(&message).await.is_err() || output.flush().await.is_err() {
            return;
        }
    }
}

impl<R: AsyncRead + Unpin + Send> Transport<RoleClient> for StdioTransport<R> {
    type Error = io::Error;

    fn name() -> Cow<'static, str> {
        "stdio".into()
    }

    fn send(
        &mut self,
        message: ClientJsonRpcMessage,
    ) -> impl Future<Output = Result<(), io::Error>> + Send + 'static {
        if matches!(
            message,
            JsonRpcMessage::Response(_) | JsonRpcMessage::Error(_)
        ) {
            self.traffic.count_answer();
        }
        let outgoing = self.outgoing.clone();
        async move {
            let closed = || io::Error::from(io::ErrorKind::BrokenPipe);
            let mut bytes = serde_json::to_vec(&message)?;
            bytes.push(b'\n');
            let outgoing = outgoing.ok_or_else(closed)?;
            outgoing.send(bytes).await.map_err(|_| closed())
        }
    }

    async fn receive(&mut self) -> Option<ServerJsonRpcMessage> {
        loop {
            let line = self.next_line().await?;
            let line = self.masks.mask_json_bytes(self.buffer[line].trim_ascii());
            match read(&line, &self.traffic) {
                Line::Message(message) => return Some(*message),
                Line::Nothing => {}
                Line::End => return None,
            }
        }
    }

    async fn close(&mut self) -> Result<(), io::Error> {
        self.outgoing = None;
        Ok(())
    }
}

/// The meaning of a line.
enum Line {
    Message(Box<ServerJsonRpcMessage>),
    /// To be skipped.
    Nothing,
    /// The connection must be closed.
    End,
}

/// The fields of a message that tell its kind.
#[derive(Deserialize)]
struct Head {
    method: Option<String>,
    id: Option<RequestId>,
}

fn read(line: &[u8], traffic: &Traffic) -> Line {
    if line.is_empty() {
        return Line::Nothing;
    }
    let Ok(head) = serde_json::from_slice::<Head>(line) else {
        return skip_line(traffic.count_garbage(line));
    };
    match (head.method, head.id) {
        (None, None) => skip_line(traffic.count_garbage(line)),
        (Some(method), None) => {
            if method == "notifications/tools/list_changed" {
                traffic.count_tool_list_change();
            }
            skip_line(traffic.count_notification())
        }
        (Some(_), Some(id)) => match traffic.count_request() {
            TrafficCheck::Close => Line::End,
            TrafficCheck::Continue => parsed(line, id),
        },
        (None, Some(id)) => parsed(line, id),
    }
}

fn skip_line(check: TrafficCheck) -> Line {
    match check {
        TrafficCheck::Continue => Line::Nothing,
        TrafficCheck::Close => Line::End,
    }
}

/// Parses a message. An invalid one becomes an error with the same id, so that its call does not wait forever.
fn parsed(text: &[u8], id: RequestId) -> Line {
    let message = serde_json::from_slice(&move_execution(text)).unwrap_or_else(|error| {
        let what = one_line(&error.to_string(), 200);
        let error = ErrorData::internal_error(format!("its answer is invalid: {what}"), None);
        ServerJsonRpcMessage::error(error, Some(id))
    });
    Line::Message(Box::new(message))
}
