//! A fake model provider on loopback. It speaks OpenAI's two APIs, Anthropic's and Gemini's over real HTTP, follows a
//! script, records its requests and fails on demand.
//!
//! The script answers each request with a [`ScriptedAnswer`]: a reply, which is encoded in the dialect of the request,
//! or literal bytes. A [`Fault`] can corrupt either. A request that a real provider would refuse as malformed gets
//! status 400, whatever the script says. This module shares no code with the code under test, so that a mistake in how
//! lango reads a provider is not repeated here.

mod anthropic;
mod delivery;
mod fault;
mod gemini;
mod openai;
mod request;
mod responses;
mod rules;

pub use fault::Fault;
pub use request::{Dialect, RecordedRequest, message_text};

use lango_core::ModelReply;
use serde_json::Value;
use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::task::JoinHandle;
use tokio::time::Instant;

type Script = Box<dyn Fn(&RecordedRequest) -> ScriptedAnswer + Send + Sync>;

/// The scripted answer to one request.
#[derive(Debug, Clone, Default)]
pub struct ScriptedAnswer {
    content: Content,
    fault: Option<Fault>,
    delay: Duration,
    /// The pause before each event of a stream.
    pace: Option<Duration>,
}

#[derive(Debug, Clone)]
enum Content {
    /// A reply, to be encoded in the dialect of the request.
    Reply(ModelReply),
    /// The `data` of each event of a stream.
    Frames(Vec<String>),
    /// A literal body.
    Bytes { content_type: String, body: Vec<u8> },
}

impl Default for Content {
    fn default() -> Self {
        Self::Reply(crate::model::say("a reply with a fault"))
    }
}

impl ScriptedAnswer {
    /// Creates a stream of server-sent events, given the `data` of each.
    pub fn frames<T: ToString>(frames: impl IntoIterator<Item = T>) -> Self {
        let frames = frames.into_iter().map(|frame| frame.to_string()).collect();
        Self {
            content: Content::Frames(frames),
            ..Self::default()
        }
    }

    pub fn json(body: &Value) -> Self {
        Self::bytes("application/json", body.to_string())
    }

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

    /// Adds a fault.
    pub fn with(mut self, fault: Fault) -> Self {
        self.fault = Some(fault);
        self
    }

    /// Sends the answer after this delay.
    pub fn after(mut self, delay: Duration) -> Self {
        self.delay = delay;
        self
    }

    /// Pauses this long before each event of a stream, as a model does that writes token by token.
    pub fn paced(mut self, pause: Duration) -> Self {
        self.pace = Some(pause);
        self
    }
}

impl From<ModelReply> for ScriptedAnswer {
    fn from(reply: ModelReply) -> Self {
        Self {
            content: Content::Reply(reply),
            ..Self::default()
        }
    }
}

impl From<Fault> for ScriptedAnswer {
    fn from(fault: Fault) -> Self {
        Self::default().with(fault)
    }
}

/// A fake provider that runs until it is dropped.
pub struct WireServer {
    url: String,
    shared: Arc<Shared>,
    task: JoinHandle<()>,
}

struct Shared {
    script: Script,
    request_count: AtomicUsize,
    is_recording: AtomicBool,
    requests: Mutex<Vec<RecordedRequest>>,
    /// When each event of a paced answer was sent, by the number of the request.
    sent: Mutex<BTreeMap<usize, Vec<Instant>>>,
}

impl WireServer {
    /// Starts a server that computes each answer from the request.
    pub async fn start(
        script: impl Fn(&RecordedRequest) -> ScriptedAnswer + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0))
            .await
            .expect("loopback has a free port");
        let address = listener.local_addr().expect("a listener has an address");
        let shared = Arc::new(Shared {
            script: Box::new(script),
            request_count: AtomicUsize::new(0),
            is_recording: AtomicBool::new(true),
            requests: Mutex::default(),
            sent: Mutex::default(),
        });
        let task = tokio::spawn(serve(listener, Arc::clone(&shared)));
        Self {
            url: format!("http://{address}"),
            shared,
            task,
        }
    }

    /// Starts a server that gives these answers in order. After the last one it answers with status 410, which clients
    /// do not retry.
    pub async fn scripted<T: Into<ScriptedAnswer>>(answers: impl IntoIterator<Item = T>) -> Self {
        let answers: VecDeque<ScriptedAnswer> = answers.into_iter().map(Into::into).collect();
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

    /// Stops recording requests, so that memory stays flat in benchmarks.
    pub fn without_recording(self) -> Self {
        self.shared.is_recording.store(false, Ordering::Relaxed);
        self
    }

    /// Returns the base URL, without a path.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Returns the requests it received, in order.
    pub fn requests(&self) -> Vec<RecordedRequest> {
        self.shared
            .requests
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// Returns when each event of the [paced](ScriptedAnswer::paced) answer to a request was sent so far.
    pub fn sent(&self, number: usize) -> Vec<Instant> {
        let sent = self.shared.sent.lock();
        let sent = sent.unwrap_or_else(PoisonError::into_inner);
        sent.get(&number).cloned().unwrap_or_default()
    }
}

impl Drop for WireServer {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// A port that refuses connections until this value is dropped.
pub struct ClosedPort {
    url: String,
    _socket: TcpSocket,
}

impl ClosedPort {
    /// Binds a free port without listening on it.
    pub fn new() -> Self {
        let socket = TcpSocket::new_v4().expect("a socket can be created");
        let any = ([127, 0, 0, 1], 0).into();
        socket.bind(any).expect("loopback has a free port");
        let address = socket.local_addr().expect("a socket has an address");
        Self {
            url: format!("http://{address}"),
            _socket: socket,
        }
    }

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
    // Dropping the set closes all connections when the server stops.
    let mut connections = tokio::task::JoinSet::new();
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            return;
        };
        connections.spawn(answer(stream, Arc::clone(&shared)));
        while connections.try_join_next().is_some() {}
    }
}

/// Answers one request, then closes the connection.
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
        recorded.number = shared.request_count.fetch_add(1, Ordering::Relaxed);
        recorded.at = Instant::now();
        let answer = match rules::check(&recorded) {
            Ok(()) => (shared.script)(&recorded),
            Err(violation) => Fault::status(400, &violation).into(),
        };
        if shared.is_recording.load(Ordering::Relaxed) {
            requests.push(recorded.clone());
        }
        answer
    };
    if !answer.delay.is_zero() {
        tokio::time::sleep(answer.delay).await;
    }
    // A client that hangs up early does not need the rest of the answer.
    let number = recorded.number;
    let note_event = || {
        let mut sent = shared.sent.lock().unwrap_or_else(PoisonError::into_inner);
        sent.entry(number).or_default().push(Instant::now());
    };
    let _ = delivery::deliver(&mut stream, &recorded, answer, note_event).await;
}
