//! A provider on loopback: it speaks both forms of OpenAI's, Anthropic's and Gemini's over real HTTP, follows a script,
//! keeps what it was asked, and fails on demand.
//!
//! The script answers each request with an [`Answer`]: a reply, which is put into the form of whoever asks, or bytes as
//! they are; either can be spoiled by a [`Fault`]. A request that a real provider would refuse for its form is refused here
//! with status 400, whatever the script says. Nothing here is shared with the code under test, so that a mistake in
//! how lango reads a provider is not made twice.

mod anthropic;
mod delivery;
mod fault;
mod gemini;
mod openai;
mod request;
mod responses;
mod rules;

pub use fault::Fault;
pub use request::{Dialect, Recorded, text_of};

use lango_core::ModelReply;
use serde_json::Value;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::task::JoinHandle;
use tokio::time::Instant;

type Script = Box<dyn Fn(&Recorded) -> Answer + Send + Sync>;

/// What one request is answered with.
#[derive(Debug, Clone, Default)]
pub struct Answer {
    content: Content,
    fault: Option<Fault>,
    delay: Duration,
}

#[derive(Debug, Clone)]
enum Content {
    /// A reply, in the form of whoever asks.
    Reply(ModelReply),
    /// Frames of a stream, each as it goes after `data: `.
    Frames(Vec<String>),
    /// A body as it is.
    Bytes { content_type: String, body: Vec<u8> },
}

impl Default for Content {
    fn default() -> Self {
        Self::Reply(crate::model::say("never to be seen whole"))
    }
}

impl Answer {
    /// A stream of these frames, each as it goes after `data: `.
    pub fn frames<T: ToString>(frames: impl IntoIterator<Item = T>) -> Self {
        let frames = frames.into_iter().map(|frame| frame.to_string()).collect();
        Self {
            content: Content::Frames(frames),
            ..Self::default()
        }
    }

    /// A JSON body.
    pub fn json(body: &Value) -> Self {
        Self::bytes("application/json", body.to_string())
    }

    /// A body under a content type.
    pub fn bytes(content_type: &str, body: impl Into<Vec<u8>>) -> Self {
        let content = Content::Bytes {
            content_type: content_type.to_owned(),
            body: body.into(),
        };
        Self {
            content,
            ..Self::default()
        }
    }

    /// The same, spoiled.
    pub fn with(mut self, fault: Fault) -> Self {
        self.fault = Some(fault);
        self
    }

    /// The same, given after this time.
    pub fn after(mut self, delay: Duration) -> Self {
        self.delay = delay;
        self
    }
}

impl From<ModelReply> for Answer {
    fn from(reply: ModelReply) -> Self {
        Self {
            content: Content::Reply(reply),
            ..Self::default()
        }
    }
}

impl From<Fault> for Answer {
    fn from(fault: Fault) -> Self {
        Self::default().with(fault)
    }
}

/// A server that is there until it is dropped.
pub struct WireServer {
    url: String,
    shared: Arc<Shared>,
    task: JoinHandle<()>,
}

struct Shared {
    script: Script,
    asked: AtomicUsize,
    keeps: AtomicBool,
    requests: Mutex<Vec<Recorded>>,
}

impl WireServer {
    /// Answers as a function of the request.
    pub async fn start(script: impl Fn(&Recorded) -> Answer + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0))
            .await
            .expect("loopback has a free port");
        let address = listener.local_addr().expect("a listener has an address");
        let shared = Arc::new(Shared {
            script: Box::new(script),
            asked: AtomicUsize::new(0),
            keeps: AtomicBool::new(true),
            requests: Mutex::default(),
        });
        let task = tokio::spawn(serve(listener, Arc::clone(&shared)));
        Self {
            url: format!("http://{address}"),
            shared,
            task,
        }
    }

    /// Gives these answers in order; after the last, status 410, which nobody asks again after.
    pub async fn scripted<T: Into<Answer>>(answers: impl IntoIterator<Item = T>) -> Self {
        let answers: VecDeque<Answer> = answers.into_iter().map(Into::into).collect();
        let answers = Mutex::new(answers);
        Self::start(move |_| {
            let next = answers
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .pop_front();
            next.unwrap_or_else(|| Fault::status(410, "the script is over").into())
        })
        .await
    }

    /// The same, without keeping what it is asked.
    pub fn forgetful(self) -> Self {
        self.shared.keeps.store(false, Ordering::Relaxed);
        self
    }

    /// Where it is, without a path.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// What it was asked, in order.
    pub fn requests(&self) -> Vec<Recorded> {
        self.shared
            .requests
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }
}

impl Drop for WireServer {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// A port that refuses connections for as long as this lives.
pub struct ClosedPort {
    url: String,
    _socket: TcpSocket,
}

impl ClosedPort {
    /// Takes a port and does not listen on it.
    pub fn new() -> Self {
        let socket = TcpSocket::new_v4().expect("there are sockets");
        let any = ([127, 0, 0, 1], 0).into();
        socket.bind(any).expect("loopback has a free port");
        let address = socket.local_addr().expect("a socket has an address");
        Self {
            url: format!("http://{address}"),
            _socket: socket,
        }
    }

    /// Where nobody is.
    pub fn url(&self) -> &str {
        &self.url
    }
}

impl Default for ClosedPort {
    fn default() -> Self {
        Self::new()
    }
}

async fn serve(listener: TcpListener, shared: Arc<Shared>) {
    // Connections end with the server.
    let mut connections = tokio::task::JoinSet::new();
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            return;
        };
        connections.spawn(answer(stream, Arc::clone(&shared)));
        while connections.try_join_next().is_some() {}
    }
}

/// One request per connection.
async fn answer(mut stream: TcpStream, shared: Arc<Shared>) {
    let _ = stream.set_nodelay(true);
    let Ok(Some(mut recorded)) = request::read(&mut stream).await else {
        return;
    };
    let answer = {
        let mut requests = shared
            .requests
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        recorded.number = shared.asked.fetch_add(1, Ordering::Relaxed);
        recorded.at = Instant::now();
        let answer = match rules::broken_by(&recorded) {
            Ok(()) => (shared.script)(&recorded),
            Err(broken) => Fault::status(400, &broken).into(),
        };
        if shared.keeps.load(Ordering::Relaxed) {
            requests.push(recorded.clone());
        }
        answer
    };
    if !answer.delay.is_zero() {
        tokio::time::sleep(answer.delay).await;
    }
    // Whoever hangs up early is not interested in the rest.
    let _ = delivery::deliver(&mut stream, &recorded, answer).await;
}
