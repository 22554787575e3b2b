//! Measures the cost of a message over A2A: `cargo bench -p lango-server --bench serve`; with `-- short`, a tenth of
//! the messages.
//!
//! Clients on loopback send one message after another over persistent connections. Each message starts a new
//! conversation and a turn with a model that answers immediately, on SQLite. The clients run in the same process, so
//! the CPU time includes them.

#![allow(
    clippy::unwrap_used,
    reason = "in a measurement, a panic is the report"
)]

#[path = "../tests/it/support.rs"]
#[allow(dead_code, reason = "the tests use all of it")]
mod support;

use lango_testkit::http::read_body;
use lango_testkit::model::{ScriptedModel, say};
use rustix::time::{ClockId, clock_gettime};
use serde_json::json;
use std::net::SocketAddr;
use std::time::{Duration, Instant};
use support::{TOKEN, TestServer, message};
use tokio::io::{AsyncWriteExt, BufReader};
use tokio::net::TcpStream;

const CLIENTS: usize = 16;

fn main() {
    let short = std::env::args().any(|argument| argument == "short");
    let each = if short { 20 } else { 200 };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(measure(each));
}

async fn measure(each: usize) {
    let folder = tempfile::tempdir().unwrap();
    let model = ScriptedModel::from_fn(|_| say("Hello.")).without_recording();
    let server = TestServer::start(folder.path(), model, vec![]).await;
    send_messages(server.address, 0, 20).await;
    let (cpu, started) = (cpu_seconds(), Instant::now());
    let clients =
        (1..=CLIENTS).map(|client| tokio::spawn(send_messages(server.address, client, each)));
    let mut times: Vec<Duration> = Vec::new();
    for client in clients.collect::<Vec<_>>() {
        times.extend(client.await.unwrap());
    }
    let (elapsed, cpu) = (started.elapsed().as_secs_f64(), cpu_seconds() - cpu);
    times.sort();
    let count = times.len();
    let quantile = |share: f64| times[((count - 1) as f64 * share) as usize].as_secs_f64() * 1e3;
    println!(
        "{count} messages from {CLIENTS} clients, SQLite: {:.0} a second, p50 {:.1} ms, p99 {:.1} ms, {:.0} µs of CPU each",
        count as f64 / elapsed,
        quantile(0.5),
        quantile(0.99),
        cpu * 1e6 / count as f64
    );
    server.stop().await;
}

/// Sends messages over one connection, and returns how long each took.
async fn send_messages(address: SocketAddr, client: usize, messages: usize) -> Vec<Duration> {
    let mut stream = BufReader::new(TcpStream::connect(address).await.unwrap());
    let mut times = Vec::with_capacity(messages);
    for number in 0..messages {
        let params = message(&format!("m-{client}-{number}"), "hello");
        let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": params });
        let body = body.to_string();
        let request = format!(
            "POST / HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {TOKEN}\r\nA2A-Version: 1.0\r\n\
             Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        );
        let started = Instant::now();
        stream.write_all(request.as_bytes()).await.unwrap();
        let reply = String::from_utf8(read_body(&mut stream).await).unwrap();
        times.push(started.elapsed());
        assert!(reply.contains("TASK_STATE_COMPLETED"), "{reply}");
    }
    times
}

fn cpu_seconds() -> f64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}
