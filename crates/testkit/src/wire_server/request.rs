//! What the server was asked.

use serde_json::Value;
use std::io;
use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;
use tokio::time::Instant;

/// Whose form a request is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dialect {
    /// OpenAI's chat completions.
    OpenAi,
    /// OpenAI's Responses.
    Responses,
    /// Anthropic's messages.
    Anthropic,
    /// Gemini.
    Gemini,
}

/// One request.
#[derive(Debug, Clone)]
pub struct Recorded {
    /// Its place among the requests, from 0.
    pub number: usize,
    /// When it was whole.
    pub at: Instant,
    /// `GET` or `POST`.
    pub method: String,
    /// The path with its query.
    pub path: String,
    /// The headers, names in lower case.
    pub headers: Vec<(String, String)>,
    /// The body; null if there is none.
    pub body: Value,
}

impl Recorded {
    /// The value of a header.
    pub fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(own, _)| own == name);
        found.map(|(_, value)| value.as_str())
    }

    /// Whose form it is in, by its path.
    pub fn dialect(&self) -> Dialect {
        let of_gemini = [
            ":generateContent",
            ":streamGenerateContent",
            ":batchEmbedContents",
        ];
        if of_gemini.iter().any(|method| self.path.contains(method)) {
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

    /// The texts whose vectors it asks for; nothing if it asks for something else.
    pub fn texts_to_embed(&self) -> Option<Vec<String>> {
        let is_listed = ["/embeddings", "/api/embed"]
            .iter()
            .any(|end| self.path.ends_with(end));
        let (list, text) = if is_listed {
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

    /// Whether it asks for a stream.
    pub fn is_streaming(&self) -> bool {
        self.body["stream"] == true || self.path.contains(":streamGenerateContent")
    }

    /// The names of the functions that may be called.
    pub fn functions(&self) -> Vec<String> {
        if self.body["tool_choice"]["type"] == "none" {
            return Vec::new();
        }
        self.declared()
    }

    /// The names of the functions that it speaks of.
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

/// Reads one request; nothing if the caller hung up before it was whole.
pub(super) async fn read(stream: &mut TcpStream) -> io::Result<Option<Recorded>> {
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
    Ok(Some(Recorded {
        number: 0,
        at: Instant::now(),
        method,
        path,
        headers,
        body: serde_json::from_slice(&body).unwrap_or_default(),
    }))
}

/// Returns the text of a message in OpenAI's chat form.
pub fn text_of(message: &Value) -> String {
    match &message["content"] {
        Value::String(text) => text.clone(),
        Value::Array(parts) => {
            let texts = parts.iter().filter_map(|part| part["text"].as_str());
            texts.collect()
        }
        _ => String::new(),
    }
}
