//! Sends an answer, with or without a fault.

use super::fault::{Fault, error_body, error_frame, provider_error};
use super::request::{Dialect, RecordedRequest};
use super::{Content, ScriptedAnswer, anthropic, gemini, openai, responses};
use std::fmt::Write;
use std::io;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::Instant;

/// A response before transport faults are applied. A stream is sent piece by piece, with chunked encoding.
struct Response {
    status: u16,
    headers: Vec<(String, String)>,
    content_type: String,
    pieces: Vec<Vec<u8>>,
    is_streamed: bool,
}

/// How a response is sent.
enum SendMode {
    Whole,
    CutAfter(usize),
    SilentAfter(usize),
    Drip(Duration),
    /// Each event after this pause.
    Paced(Duration),
    /// The whole response, then these bytes again and again.
    Endless(Vec<u8>),
}

pub(super) async fn deliver(
    stream: &mut TcpStream,
    request: &RecordedRequest,
    answer: ScriptedAnswer,
    note_event: impl Fn(),
) -> io::Result<()> {
    let mut response = build_response(request, answer.content);
    let mode = match answer.fault {
        None => answer.pace.map_or(SendMode::Whole, SendMode::Paced),
        Some(Fault::HangUp) => return Ok(()),
        Some(Fault::SilentBeforeHead) => return wait_for_hangup(stream).await,
        Some(fault) => apply_fault(&mut response, request, fault),
    };
    send(stream, &response, &mode, note_event).await
}

fn build_response(request: &RecordedRequest, content: Content) -> Response {
    let (content_type, pieces, is_streamed) = match content {
        Content::Bytes { content_type, body } => (content_type, vec![body], false),
        Content::Frames(frames) => {
            let frames = frames.iter().map(|data| format!("data: {data}\n\n"));
            (
                stream_type(),
                frames.map(String::into_bytes).collect(),
                true,
            )
        }
        Content::Reply(reply) if request.is_streaming() => {
            let frames = match request.dialect() {
                Dialect::OpenAi => openai::stream(&reply, request.number),
                Dialect::Responses => responses::stream(&reply, request.number),
                Dialect::Anthropic => anthropic::stream(&reply, request.number),
                Dialect::Gemini => gemini::stream(&reply),
            };
            let frames = frames.into_iter().map(String::into_bytes);
            (stream_type(), frames.collect(), true)
        }
        Content::Reply(reply) => {
            let body = match request.dialect() {
                Dialect::OpenAi => openai::body(&reply, request.number),
                Dialect::Responses => responses::body(&reply, request.number),
                Dialect::Anthropic => anthropic::body(&reply, request.number),
                Dialect::Gemini => gemini::body(&reply),
            };
            let body = body.to_string().into_bytes();
            ("application/json".to_owned(), vec![body], false)
        }
    };
    Response {
        status: 200,
        headers: Vec::new(),
        content_type,
        pieces,
        is_streamed,
    }
}

fn stream_type() -> String {
    "text/event-stream; charset=utf-8".to_owned()
}

/// Changes the response as the fault requires, and returns how to send it.
fn apply_fault(response: &mut Response, request: &RecordedRequest, fault: Fault) -> SendMode {
    let dialect = request.dialect();
    if let Some((status, body)) = provider_error(dialect, &fault) {
        response.become_json(status, &body.to_string());
        return SendMode::Whole;
    }
    match fault {
        Fault::Status {
            status,
            message,
            headers,
            body,
        } => {
            let body = body.unwrap_or_else(|| error_body(dialect, status, &message).to_string());
            response.become_json(status, &body);
            response.headers = headers;
        }
        Fault::CutAfter(bytes) => return SendMode::CutAfter(bytes),
        Fault::SilentBeforeBody => return SendMode::SilentAfter(0),
        Fault::SilentAfter(bytes) => return SendMode::SilentAfter(bytes),
        Fault::Drip(pause) => return SendMode::Drip(pause),
        Fault::Garbage => response.insert(b"data: {\"oops\": \xff\xfe<<<\n\n".to_vec()),
        Fault::ErrorInside if response.is_streamed => {
            response.insert(error_frame(dialect).into_bytes());
        }
        Fault::ErrorInside => {
            let body = error_body(dialect, 503, "overloaded").to_string();
            response.become_json(200, &body);
        }
        Fault::HugeFrame => {
            let mut huge = b"data: ".to_vec();
            huge.resize(5 * 1024 * 1024, b'x');
            huge.extend(b"\n\n");
            response.insert(huge);
        }
        Fault::Endless => {
            response.become_stream();
            return SendMode::Endless(endless(dialect).into_bytes());
        }
        Fault::EndlessComments => {
            response.become_stream();
            response.pieces.clear();
            return SendMode::Endless(b": still here\n\n".to_vec());
        }
        Fault::Html => {
            response.content_type = "text/html; charset=utf-8".to_owned();
            let page = b"<!doctype html><title>Welcome</title><p>Please sign in.".to_vec();
            (response.pieces, response.is_streamed) = (vec![page], false);
        }
        Fault::Redirect(to) => {
            response.become_json(307, "");
            response.headers.push(("location".to_owned(), to));
        }
        Fault::EmptyBody => response.pieces.clear(),
        Fault::EmptyJson => response.become_json(200, "{}"),
        Fault::ContextTooLong
        | Fault::BadKey
        | Fault::UnknownModel
        | Fault::HangUp
        | Fault::SilentBeforeHead => {}
    }
    SendMode::Whole
}

/// Returns an event with text that may be repeated any number of times.
fn endless(dialect: Dialect) -> String {
    let text = "and so on and on ".repeat(64);
    let data = match dialect {
        Dialect::OpenAi => openai::text_chunk(&text),
        Dialect::Responses => responses::text_chunk(&text),
        Dialect::Anthropic => anthropic::text_chunk(&text),
        Dialect::Gemini => gemini::text_chunk(&text),
    };
    format!("data: {data}\n\n")
}

impl Response {
    fn become_json(&mut self, status: u16, body: &str) {
        self.status = status;
        self.content_type = "application/json".to_owned();
        (self.pieces, self.is_streamed) = (vec![body.as_bytes().to_vec()], false);
    }

    /// Turns the response into the first two pieces of a stream, without an end.
    fn become_stream(&mut self) {
        self.content_type = stream_type();
        self.is_streamed = true;
        self.pieces.truncate(2);
    }

    /// Inserts a piece into the middle of a stream. Replaces a body that is not streamed.
    fn insert(&mut self, piece: Vec<u8>) {
        if self.is_streamed {
            self.pieces.insert(self.pieces.len() / 2, piece);
        } else {
            self.pieces = vec![piece];
        }
    }

    fn head(&self) -> String {
        let length: usize = self.pieces.iter().map(Vec::len).sum();
        let mut head = format!(
            "HTTP/1.1 {} as asked\r\ncontent-type: {}\r\nconnection: close\r\n",
            self.status, self.content_type
        );
        for (name, value) in &self.headers {
            let _ = write!(head, "{name}: {value}\r\n");
        }
        if self.is_streamed {
            head.push_str("transfer-encoding: chunked\r\n\r\n");
        } else {
            let _ = write!(head, "content-length: {length}\r\n\r\n");
        }
        head
    }
}

/// Sends a response. Calls `note_event` before each event of a paced one.
async fn send(
    stream: &mut TcpStream,
    response: &Response,
    mode: &SendMode,
    note_event: impl Fn(),
) -> io::Result<()> {
    stream.write_all(response.head().as_bytes()).await?;
    let mut remaining = match mode {
        SendMode::CutAfter(bytes) | SendMode::SilentAfter(bytes) => *bytes,
        _ => usize::MAX,
    };
    let mut due = Instant::now();
    for piece in &response.pieces {
        let piece = &piece[..piece.len().min(remaining)];
        remaining -= piece.len();
        if let SendMode::Paced(pause) = mode {
            // Not a sleep of this length each, so that the rate does not depend on how long sending takes.
            due += *pause;
            tokio::time::sleep_until(due).await;
            note_event();
        }
        if let SendMode::Drip(pause) = mode {
            for byte in piece.chunks(1) {
                tokio::time::sleep(*pause).await;
                send_piece(stream, response, byte).await?;
            }
        } else if !piece.is_empty() {
            send_piece(stream, response, piece).await?;
        }
    }
    match mode {
        SendMode::CutAfter(_) => return Ok(()),
        SendMode::SilentAfter(_) => return wait_for_hangup(stream).await,
        SendMode::Endless(again) => loop {
            send_piece(stream, response, again).await?;
        },
        SendMode::Whole | SendMode::Drip(_) | SendMode::Paced(_) => {}
    }
    if response.is_streamed {
        stream.write_all(b"0\r\n\r\n").await?;
    }
    stream.shutdown().await
}

async fn send_piece(stream: &mut TcpStream, response: &Response, piece: &[u8]) -> io::Result<()> {
    if !response.is_streamed {
        return stream.write_all(piece).await;
    }
    let mut chunk = format!("{:x}\r\n", piece.len()).into_bytes();
    chunk.extend(piece);
    chunk.extend(b"\r\n");
    stream.write_all(&chunk).await
}

/// Sends nothing until the client hangs up.
async fn wait_for_hangup(stream: &mut TcpStream) -> io::Result<()> {
    let mut rest = [0; 64];
    while stream.read(&mut rest).await? > 0 {}
    Ok(())
}
