//! Messages over a program's input and output, a line each. Unlike a library's ready-made reader this one ends the
//! connection when a line is too long, so that whoever waits for it is told, and drops notifications before they cost
//! anything.

use crate::names::line;
use crate::task_support::move_execution;
use crate::traffic::{Traffic, Verdict};
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

/// The longest message that is taken.
pub(crate) const LONGEST_MESSAGE: usize = 8 << 20;
/// How many messages may wait to be written.
const WAITING: usize = 64;

/// The two ends of a program's pipes.
pub(crate) struct Frames<R> {
    input: R,
    buffer: Vec<u8>,
    /// Where in the buffer the next line begins, and up to where no end of it was found.
    start: usize,
    looked: usize,
    outgoing: Option<mpsc::Sender<Vec<u8>>>,
    traffic: Arc<Traffic>,
    masks: Masks,
}

impl<R: AsyncRead + Unpin + Send> Frames<R> {
    /// Reads from the one end and writes to the other, in a task of its own, until it is closed or dropped.
    pub(crate) fn new(
        input: R,
        output: impl AsyncWrite + Unpin + Send + 'static,
        traffic: Arc<Traffic>,
        masks: Masks,
    ) -> Self {
        let (outgoing, waiting) = mpsc::channel(WAITING);
        tokio::spawn(write(output, waiting));
        Self {
            input,
            buffer: Vec::new(),
            start: 0,
            looked: 0,
            outgoing: Some(outgoing),
            traffic,
            masks,
        }
    }

    /// The next line, as a range of the buffer. It may be dropped and called again: what was read stays in the buffer.
    async fn line(&mut self) -> Option<Range<usize>> {
        loop {
            let end = self.buffer[self.looked..]
                .iter()
                .position(|byte| *byte == b'\n');
            if let Some(end) = end {
                let line = self.start..self.looked + end;
                self.start = line.end + 1;
                self.looked = self.start;
                return Some(line);
            }
            // What was given out is not needed any more.
            self.buffer.drain(..self.start);
            self.start = 0;
            self.looked = self.buffer.len();
            if self.looked > LONGEST_MESSAGE {
                let most = LONGEST_MESSAGE >> 20;
                self.traffic
                    .cut(format!("it sent a message of more than {most} MiB"));
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

impl<R: AsyncRead + Unpin + Send> Transport<RoleClient> for Frames<R> {
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
            self.traffic.answered();
        }
        let outgoing = self.outgoing.clone();
        async move {
            let gone = || io::Error::from(io::ErrorKind::BrokenPipe);
            let mut bytes = serde_json::to_vec(&message)?;
            bytes.push(b'\n');
            let outgoing = outgoing.ok_or_else(gone)?;
            outgoing.send(bytes).await.map_err(|_| gone())
        }
    }

    async fn receive(&mut self) -> Option<ServerJsonRpcMessage> {
        loop {
            let line = self.line().await?;
            let line = self.masks.mask_json_bytes(self.buffer[line].trim_ascii());
            match read(&line, &self.traffic) {
                Read::Message(message) => return Some(*message),
                Read::Nothing => {}
                Read::End => return None,
            }
        }
    }

    async fn close(&mut self) -> Result<(), io::Error> {
        self.outgoing = None;
        Ok(())
    }
}

/// What a line is.
enum Read {
    Message(Box<ServerJsonRpcMessage>),
    Nothing,
    End,
}

/// As much of a message as tells what kind it is.
#[derive(Deserialize)]
struct Head {
    method: Option<String>,
    id: Option<RequestId>,
}

fn read(line: &[u8], traffic: &Traffic) -> Read {
    if line.is_empty() {
        return Read::Nothing;
    }
    let Ok(head) = serde_json::from_slice::<Head>(line) else {
        return go_on(traffic.garbage(line));
    };
    match (head.method, head.id) {
        (None, None) => go_on(traffic.garbage(line)),
        (Some(method), None) => {
            if method == "notifications/tools/list_changed" {
                traffic.note_new_tools();
            }
            go_on(traffic.unasked())
        }
        (Some(_), Some(id)) => match traffic.asked() {
            Verdict::IsCut => Read::End,
            Verdict::GoesOn => parsed(line, id),
        },
        (None, Some(id)) => parsed(line, id),
    }
}

fn go_on(verdict: Verdict) -> Read {
    match verdict {
        Verdict::GoesOn => Read::Nothing,
        Verdict::IsCut => Read::End,
    }
}

/// The message; one that makes no sense becomes an error under its id, so that nobody waits for it in vain.
fn parsed(text: &[u8], id: RequestId) -> Read {
    let message = serde_json::from_slice(&move_execution(text)).unwrap_or_else(|error| {
        let what = line(&error.to_string(), 200);
        let error =
            ErrorData::internal_error(format!("an answer that makes no sense: {what}"), None);
        ServerJsonRpcMessage::error(error, Some(id))
    });
    Read::Message(Box::new(message))
}
