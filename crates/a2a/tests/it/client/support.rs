//! A server on loopback that answers each request with scripted bytes, pauses and failures, and records the requests.

use serde_json::Value;
use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

/// A received request.
#[derive(Debug, Clone)]
pub(crate) struct ReceivedRequest {
    pub method: String,
    pub path: String,
    pub headers: HashMap<String, String>,
    pub body: Value,
}

impl ReceivedRequest {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(String::as_str)
    }
}

/// An action on a connection. After the last one the connection is closed.
#[derive(Debug, Clone)]
pub(crate) enum Action {
    Write(Vec<u8>),
    /// Writes the bytes one by one, with a pause before each.
    Drip(Vec<u8>, Duration),
    /// Writes the same bytes forever.
    Flood(Vec<u8>),
    Wait(Duration),
    Hang,
}

pub(crate) type Answer = Vec<Action>;

type Script = dyn Fn(&ReceivedRequest) -> Answer + Send + Sync;

pub(crate) struct Server {
    pub url: String,
    requests: Arc<Mutex<Vec<ReceivedRequest>>>,
    accepting: JoinHandle<()>,
}

impl Server {
    pub(crate) async fn start(
        script: impl Fn(&ReceivedRequest) -> Answer + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        Self::on(listener, script)
    }

    /// Starts a server on an existing listener.
    pub(crate) fn on(
        listener: TcpListener,
        script: impl Fn(&ReceivedRequest) -> Answer + Send + Sync + 'static,
    ) -> Self {
        let url = format!("http://{}", listener.local_addr().unwrap());
        let requests = Arc::new(Mutex::new(Vec::new()));
        let script: Arc<Script> = Arc::new(script);
        let accepting = tokio::spawn(accept(listener, script, Arc::clone(&requests)));
        Self {
            url,
            requests,
            accepting,
        }
    }

    /// Returns all requests so far.
    pub(crate) fn requests(&self) -> Vec<ReceivedRequest> {
        self.requests.lock().unwrap().clone()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

async fn accept(
    listener: TcpListener,
    script: Arc<Script>,
    requests: Arc<Mutex<Vec<ReceivedRequest>>>,
) {
    let mut connections = tokio::task::JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        let (script, requests) = (Arc::clone(&script), Arc::clone(&requests));
        connections.spawn(async move {
            // A client that disconnects is not a failure of the server.
            let _ = serve(stream, &*script, &requests).await;
        });
    }
}

async fn serve(
    mut stream: TcpStream,
    script: &Script,
    requests: &Mutex<Vec<ReceivedRequest>>,
) -> std::io::Result<()> {
    let Some(request) = read(&mut stream).await? else {
        return Ok(());
    };
    let answer = script(&request);
    requests.lock().unwrap().push(request);
    for act in answer {
        match act {
            Action::Write(bytes) => {
                stream.write_all(&bytes).await?;
                stream.flush().await?;
            }
            Action::Drip(bytes, pause) => {
                for byte in bytes {
                    tokio::time::sleep(pause).await;
                    stream.write_all(&[byte]).await?;
                }
            }
            Action::Flood(bytes) => loop {
                stream.write_all(&bytes).await?;
            },
            Action::Wait(pause) => tokio::time::sleep(pause).await,
            Action::Hang => std::future::pending().await,
        }
    }
    stream.shutdown().await
}

async fn read(stream: &mut TcpStream) -> std::io::Result<Option<ReceivedRequest>> {
    let mut bytes = Vec::new();
    let mut buffer = [0; 4096];
    let head_end = loop {
        if let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
            break end;
        }
        match stream.read(&mut buffer).await? {
            0 => return Ok(None),
            count => bytes.extend_from_slice(&buffer[..count]),
        }
    };
    let head = String::from_utf8(bytes[..head_end].to_vec()).unwrap();
    let mut lines = head.split("\r\n");
    let mut first = lines.next().unwrap().split(' ');
    let (method, path) = (first.next().unwrap(), first.next().unwrap());
    let headers: HashMap<String, String> = lines
        .filter_map(|line| line.split_once(':'))
        .map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_owned()))
        .collect();
    let length = headers
        .get("content-length")
        .map_or(0, |text| text.parse().unwrap());
    while bytes.len() < head_end + 4 + length {
        match stream.read(&mut buffer).await? {
            0 => return Ok(None),
            count => bytes.extend_from_slice(&buffer[..count]),
        }
    }
    let body = serde_json::from_slice(&bytes[head_end + 4..]).unwrap_or(Value::Null);
    Ok(Some(ReceivedRequest {
        method: method.to_owned(),
        path: path.to_owned(),
        headers,
        body,
    }))
}

/// Returns a complete response.
pub(crate) fn response(status: u16, headers: &[(&str, &str)], body: &str) -> Answer {
    let length = body.len().to_string();
    let mut all = vec![("content-length", length.as_str()), ("connection", "close")];
    all.extend_from_slice(headers);
    vec![Action::Write(
        [head(status, &all).as_slice(), body.as_bytes()].concat(),
    )]
}

pub(crate) fn json(status: u16, body: &Value) -> Answer {
    response(
        status,
        &[("content-type", "application/json")],
        &body.to_string(),
    )
}

/// How a stream ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    /// With the final chunk.
    Clean,
    /// Without the final chunk, as if the connection broke.
    Cut,
    /// Never: the connection stays open, but nothing more is sent.
    Silent,
}

/// Returns a stream of server-sent events with these data fields.
pub(crate) fn sse(frames: &[String], end: End) -> Answer {
    let headers = [
        ("content-type", "text/event-stream; charset=utf-8"),
        ("transfer-encoding", "chunked"),
        ("connection", "close"),
    ];
    let mut acts = vec![Action::Write(head(200, &headers))];
    for frame in frames {
        let text = format!("data: {frame}\n\n");
        acts.push(Action::Write(chunk(text.as_bytes())));
    }
    match end {
        End::Clean => acts.push(Action::Write(b"0\r\n\r\n".to_vec())),
        End::Cut => {}
        End::Silent => acts.push(Action::Hang),
    }
    acts
}

pub(crate) fn chunk(bytes: &[u8]) -> Vec<u8> {
    [format!("{:x}\r\n", bytes.len()).as_bytes(), bytes, b"\r\n"].concat()
}

pub(crate) fn head(status: u16, headers: &[(&str, &str)]) -> Vec<u8> {
    let mut head = format!("HTTP/1.1 {status} Whatever\r\n");
    for (name, value) in headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    head.push_str("\r\n");
    head.into_bytes()
}
