//! The requests that the fake provider receives.

use serde_json::Value;
use std::io;
use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;
use tokio::time::Instant;

/// The API that a request uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dialect {
    /// OpenAI's chat completions.
    OpenAi,
    /// OpenAI's Responses.
    Responses,
    /// Anthropic's Messages.
    Anthropic,
    Gemini,
}

/// A request that the fake provider received.
#[derive(Debug, Clone)]
pub struct RecordedRequest {
    /// The number of the request, counted from 0 for each server.
    pub number: usize,
    /// When the request had arrived completely.
    pub at: Instant,
    /// `GET` or `POST`.
    pub method: String,
    /// Includes the query.
    pub path: String,
    /// The names are in lower case.
    pub headers: Vec<(String, String)>,
    /// Null if there is no body, or it is not JSON.
    pub body: Value,
}

impl RecordedRequest {
    pub fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(own, _)| own == name);
        found.map(|(_, value)| value.as_str())
    }

    /// Returns the API that the request's path belongs to.
    pub fn dialect(&self) -> Dialect {
        let gemini_methods = [
            ":generateContent",
            ":streamGenerateContent",
            ":batchEmbedContents",
        ];
        if gemini_methods
            .iter()
            .any(|method| self.path.contains(method))
        {
            Dialect::Gemini
        } else if self.path.ends_with("/messages") {
            Dialect::Anthropic
        } else if self
            .path
            .split('?')
            .next()
            .is_some_and(|path| path.ends_with("/responses"))
        {
            Dialect::Responses
        } else {
            Dialect::OpenAi
        }
    }

    /// Returns the texts to embed, or `None` if this is not an embedding request.
    pub fn texts_to_embed(&self) -> Option<Vec<String>> {
        let has_input_list = ["/embeddings", "/api/embed"]
            .iter()
            .any(|end| self.path.ends_with(end));
        let (list, text) = if has_input_list {
            (&self.body["input"], "")
        } else if self.path.ends_with(":batchEmbedContents") {
            (&self.body["requests"], "/content/parts/0/text")
        } else {
            return None;
        };
        let texts = list.as_array().into_iter().flatten();
        let text = |item: &Value| item.pointer(text)?.as_str().map(str::to_owned);
        Some(texts.filter_map(text).collect())
    }

    pub fn is_streaming(&self) -> bool {
        self.body["stream"] == true || self.path.contains(":streamGenerateContent")
    }

    /// Returns the names of the functions that the model may call.
    pub fn functions(&self) -> Vec<String> {
        if self.body["tool_choice"]["type"] == "none" {
            return Vec::new();
        }
        self.declared()
    }

    /// Returns the names of the functions that the request declares, even if `tool_choice` forbids calls.
    pub(super) fn declared(&self) -> Vec<String> {
        let list = match self.dialect() {
            Dialect::OpenAi | Dialect::Responses | Dialect::Anthropic => &self.body["tools"],
            Dialect::Gemini => &self.body["tools"][0]["functionDeclarations"],
        };
        let name = |function: &Value| {
            let name = function.pointer("/function/name");
            name.or_else(|| function.get("name"))?
                .as_str()
                .map(str::to_owned)
        };
        list.as_array()
            .into_iter()
            .flatten()
            .filter_map(name)
            .collect()
    }
}

/// Reads one request. Returns `None` if the client hung up before the request was complete.
pub(super) async fn read(stream: &mut TcpStream) -> io::Result<Option<RecordedRequest>> {
    let mut bytes = Vec::new();
    let head_end = loop {
        if let Some(at) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
            break at;
        }
        if stream.read_buf(&mut bytes).await? == 0 {
            return Ok(None);
        }
    };
    let head = String::from_utf8_lossy(&bytes[..head_end]).into_owned();
    let mut lines = head.split("\r\n");
    let mut first = lines.next().unwrap_or_default().split(' ');
    let mut word = || first.next().unwrap_or_default().to_owned();
    let (method, path) = (word(), word());
    let headers: Vec<(String, String)> = lines
        .filter_map(|line| line.split_once(':'))
        .map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_owned()))
        .collect();
    let length = headers.iter().find(|(name, _)| name == "content-length");
    let length = length
        .and_then(|(_, value)| value.parse().ok())
        .unwrap_or(0);
    let mut body = bytes.split_off(head_end + 4);
    while body.len() < length {
        if stream.read_buf(&mut body).await? == 0 {
            return Ok(None);
        }
    }
    Ok(Some(RecordedRequest {
        number: 0,
        at: Instant::now(),
        method,
        path,
        headers,
        body: serde_json::from_slice(&body).unwrap_or_default(),
    }))
}

/// Returns the text of a message of OpenAI's chat completions.
pub fn message_text(message: &Value) -> String {
    match &message["content"] {
        Value::String(text) => text.clone(),
        Value::Array(parts) => {
            let texts = parts.iter().filter_map(|part| part["text"].as_str());
            texts.collect()
        }
        _ => String::new(),
    }
}
