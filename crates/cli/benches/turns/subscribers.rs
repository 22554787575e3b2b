//! Measures many readers of live events while turns run. Each must receive every event of its session once and in
//! order.

use super::server::{Server, Setup, own_process};
use lango_testkit::http::read_body;
use serde_json::{Value, json};
use std::io::{BufRead, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpStream;

/// Number of concurrent turns.
const RUNNING: usize = 50;

/// Number of rounds. Every session runs one turn per round.
const ROUNDS: usize = 3;

/// How long readers may take to receive the last event after the last turn.
const TIMEOUT: Duration = Duration::from_secs(60);

/// Measures this many readers on this many sessions.
pub(crate) fn run(readers: usize, sessions: usize) {
    let mut setup = Setup::new(Duration::from_millis(20));
    setup.max_streams = Some(2 * readers);
    let server = Server::start(&setup, None);
    let (address, token) = (server.address(), server.api_token());
    let numbers = [readers.to_string(), sessions.to_string()];
    let arguments = ["watch", &address, &token, &numbers[0], &numbers[1]];
    let mut client = own_process(None, &arguments);
    let mut output = std::io::BufReader::new(client.stdout.take().unwrap()).lines();
    let mut input = client.stdin.take().unwrap();
    let mut phase = |name: &str| {
        let line = output.next().expect("the client is running").unwrap();
        let value: Value = serde_json::from_str(&line).unwrap();
        assert_eq!(value["phase"], name, "{line}");
        let state = (server.resources().0, server.cpu_time());
        writeln!(input, "go on").unwrap();
        (value, state)
    };
    let (_, (_, before)) = phase("ready");
    let (_, (idle, alone)) = phase("alone");
    let (_, (open, opened)) = phase("open");
    let (result, (_, watched)) = phase("watched");
    assert!(client.wait().unwrap().success());
    let number = |name: &str| result[name].as_u64().unwrap();
    let (events, seen) = (number("events"), number("seen"));
    let wrong = number("repeated") + number("missing");
    let cpu = (watched - opened).saturating_sub(alone - before);
    println!("{readers} readers on {sessions} sessions, {RUNNING} concurrent turns");
    println!(
        "events stored {events}, received {seen}, missing {}, repeated or out of order {}",
        number("missing"),
        number("repeated")
    );
    println!(
        "memory {:.1} MB without readers, {:.1} MB with all of them: {:.1} KB each",
        idle as f64 / 1024.0,
        open as f64 / 1024.0,
        open.saturating_sub(idle) as f64 / readers as f64
    );
    println!(
        "CPU of the server for {} turns: {:.2} s alone, {:.2} s with readers: {:.1} µs more per received event",
        ROUNDS * sessions,
        (alone - before).as_secs_f64(),
        (watched - opened).as_secs_f64(),
        cpu.as_secs_f64() * 1e6 / seen.max(1) as f64
    );
    assert_eq!(wrong, 0, "events are missing or repeated");
}

/// Runs the client: address, token, readers, sessions.
pub(crate) fn watch(arguments: &[String]) {
    let [address, token, readers, sessions] = arguments else {
        panic!("watch ADDRESS TOKEN READERS SESSIONS");
    };
    let (readers, sessions): (usize, usize) = (readers.parse().unwrap(), sessions.parse().unwrap());
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let api = Arc::new(Client {
            address: address.clone(),
            token: token.clone(),
        });
        let ids = turns(&api, &vec![None; sessions]).await;
        report(&json!({ "phase": "ready" }));
        let known: Vec<Option<String>> = ids.iter().cloned().map(Some).collect();
        for _ in 0..ROUNDS {
            turns(&api, &known).await;
        }
        report(&json!({ "phase": "alone" }));
        let mut watching = Vec::new();
        for number in 0..readers {
            let id = ids[number % sessions].clone();
            watching.push((id.clone(), Reader::open(&api, &id).await));
        }
        report(&json!({ "phase": "open" }));
        for _ in 0..ROUNDS {
            turns(&api, &known).await;
        }
        let (mut events, mut seen, mut repeated, mut missing) = (0, 0, 0, 0);
        let deadline = tokio::time::Instant::now() + TIMEOUT;
        for (id, reader) in &watching {
            let last = api.session(id).await["events"].as_u64().unwrap();
            while reader.last.load(Ordering::Relaxed) < last && tokio::time::Instant::now() < deadline {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
            let read = reader.last.load(Ordering::Relaxed);
            missing += last.saturating_sub(read);
            repeated += reader.repeated.load(Ordering::Relaxed);
            seen += reader.seen.load(Ordering::Relaxed);
            events += last;
        }
        let result = json!({
            "phase": "watched", "events": events, "seen": seen, "repeated": repeated, "missing": missing
        });
        report(&result);
    });
}

/// Reports the end of a phase, and waits until the parent has measured it.
fn report(phase: &Value) {
    println!("{phase}");
    let mut line = String::new();
    std::io::stdin().lock().read_line(&mut line).unwrap();
}

/// Runs one turn in each session, at most [`RUNNING`] concurrently. Returns the ids of the sessions.
async fn turns(api: &Arc<Client>, sessions: &[Option<String>]) -> Vec<String> {
    let slots = Arc::new(tokio::sync::Semaphore::new(RUNNING));
    let turns = sessions.iter().cloned().map(|session| {
        let (api, slots) = (Arc::clone(api), Arc::clone(&slots));
        tokio::spawn(async move {
            let _slot = slots.acquire_owned().await.unwrap();
            api.turn(session).await
        })
    });
    let turns: Vec<_> = turns.collect();
    let mut ids = Vec::new();
    for turn in turns {
        ids.push(turn.await.unwrap());
    }
    ids
}

struct Client {
    address: String,
    token: String,
}

impl Client {
    async fn turn(&self, session: Option<String>) -> String {
        let body = json!({ "session": session, "text": "what is in the notes?" });
        let started = self.request("POST", "/api/turns", &body.to_string()).await;
        let id = started["session"].as_str();
        let id = id.unwrap_or_else(|| panic!("{started}")).to_owned();
        while self.session(&id).await["status"] != "idle" {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        id
    }

    async fn session(&self, id: &str) -> Value {
        self.request("GET", &format!("/api/sessions/{id}"), "")
            .await
    }

    async fn request(&self, method: &str, path: &str, body: &str) -> Value {
        let mut stream = BufReader::new(TcpStream::connect(&self.address).await.unwrap());
        let (address, token, length) = (&self.address, &self.token, body.len());
        let request = format!(
            "{method} {path} HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {token}\r\n\
             Content-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}"
        );
        stream.write_all(request.as_bytes()).await.unwrap();
        serde_json::from_slice(&read_body(&mut stream).await).unwrap()
    }
}

/// A reader of all events of a session.
#[derive(Default)]
struct Reader {
    last: AtomicU64,
    seen: AtomicU64,
    repeated: AtomicU64,
}

impl Reader {
    async fn open(api: &Client, session: &str) -> Arc<Self> {
        let mut stream = BufReader::new(TcpStream::connect(&api.address).await.unwrap());
        let (address, token) = (&api.address, &api.token);
        // With HTTP/1.0 the body is not chunked.
        let request = format!(
            "GET /api/sessions/{session}/events HTTP/1.0\r\nHost: {address}\r\nAuthorization: Bearer {token}\r\n\
             Accept: text/event-stream\r\n\r\n"
        );
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut line = String::new();
        stream.read_line(&mut line).await.unwrap();
        assert!(line.contains(" 200 "), "{line}");
        let reader = Arc::new(Self::default());
        let counts = Arc::clone(&reader);
        tokio::spawn(async move {
            let mut lines = stream.lines();
            while let Ok(Some(line)) = lines.next_line().await {
                if let Some(seq) = line.strip_prefix("id: ") {
                    counts.record(seq.parse().unwrap());
                }
            }
        });
        reader
    }

    fn record(&self, seq: u64) {
        let last = self.last.swap(seq, Ordering::Relaxed);
        self.seen.fetch_add(1, Ordering::Relaxed);
        if seq != last + 1 {
            self.repeated.fetch_add(1, Ordering::Relaxed);
        }
    }
}
