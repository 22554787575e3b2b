//! Clients of the server, each with its own connection and conversation.

use lango_testkit::http::read_body;
use serde_json::{Value, json};
use std::time::{Duration, Instant};
use tokio::io::{AsyncWriteExt as _, BufReader};
use tokio::net::TcpStream;

/// The prefix of conversations whose messages need an approval.
pub(crate) const ASKING: &str = "asking";

/// How many clients send how many messages each, one after the other.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Load {
    pub clients: usize,
    pub turns: usize,
}

/// The measurements that a client process prints.
pub(crate) struct LoadResult {
    pub refused: usize,
    /// Turns that wait for an approval.
    pub waiting: usize,
    pub per_second: f64,
    /// In milliseconds, as is `p99`.
    pub p50: f64,
    pub p99: f64,
}

impl LoadResult {
    pub(crate) fn parse(line: &str) -> Self {
        let value: Value = serde_json::from_str(line).unwrap();
        let number = |name: &str| value[name].as_f64().unwrap();
        Self {
            refused: number("refused") as usize,
            waiting: number("waiting") as usize,
            per_second: number("perSecond"),
            p50: number("p50"),
            p99: number("p99"),
        }
    }
}

/// Sends the load: address, token, name of the conversations, clients, turns. Prints one line of JSON.
pub(crate) fn run(arguments: &[String]) {
    let [address, token, name, clients, turns] = arguments else {
        panic!("client ADDRESS TOKEN NAME CLIENTS TURNS");
    };
    let (clients, turns): (usize, usize) = (clients.parse().unwrap(), turns.parse().unwrap());
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let mut connections = Vec::new();
        for number in 0..clients {
            connections.push(Connection::open(address, token, format!("{name}-{number}")).await);
        }
        let started = Instant::now();
        let clients: Vec<_> = connections
            .into_iter()
            .map(|connection| tokio::spawn(connection.send_all(turns)))
            .collect();
        let (mut times, mut refused, mut waiting) = (Vec::new(), 0, 0);
        for client in clients {
            let result = client.await.unwrap();
            times.extend(result.times);
            refused += result.refused;
            waiting += result.waiting;
        }
        let elapsed = started.elapsed().as_secs_f64();
        times.sort_unstable();
        let at = |percent: usize| {
            let time = times.get(times.len().saturating_sub(1) * percent / 100);
            time.map_or(0.0, |time: &Duration| time.as_secs_f64() * 1e3)
        };
        let per_second = times.len() as f64 / elapsed;
        let result = json!({
            "refused": refused, "waiting": waiting, "perSecond": per_second, "p50": at(50), "p99": at(99)
        });
        println!("{result}");
    });
}

/// The results of one client's messages.
#[derive(Default)]
struct ClientResult {
    /// Durations of completed turns.
    times: Vec<Duration>,
    refused: usize,
    waiting: usize,
}

struct Connection {
    stream: BufReader<TcpStream>,
    head: String,
    conversation: String,
}

impl Connection {
    async fn open(address: &str, token: &str, conversation: String) -> Self {
        let stream = TcpStream::connect(address).await.unwrap();
        stream.set_nodelay(true).unwrap();
        Self {
            stream: BufReader::new(stream),
            head: format!(
                "POST / HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {token}\r\nA2A-Version: 1.0\r\n\
                 Content-Type: application/json\r\n"
            ),
            conversation,
        }
    }

    /// Sends messages one after the other.
    async fn send_all(mut self, turns: usize) -> ClientResult {
        let mut result = ClientResult::default();
        for turn in 0..turns {
            let started = Instant::now();
            let answer = self.send(turn).await;
            match answer["result"]["task"]["status"]["state"].as_str() {
                Some("TASK_STATE_COMPLETED") => result.times.push(started.elapsed()),
                Some("TASK_STATE_AUTH_REQUIRED") => result.waiting += 1,
                _ if answer["error"]["code"] == -32000 => result.refused += 1,
                _ => panic!("{answer}"),
            }
        }
        result
    }

    async fn send(&mut self, turn: usize) -> Value {
        let conversation = &self.conversation;
        let text = if conversation.starts_with(ASKING) {
            "write to the notes"
        } else {
            "what is in the notes?"
        };
        let message = json!({
            "messageId": format!("{conversation}-{turn}"),
            "contextId": conversation,
            "role": "ROLE_USER",
            "parts": [{ "text": text }],
        });
        let params = json!({ "message": message });
        let call = json!({ "jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": params });
        let body = call.to_string();
        let request = format!("{}Content-Length: {}\r\n\r\n{body}", self.head, body.len());
        self.stream.write_all(request.as_bytes()).await.unwrap();
        serde_json::from_slice(&read_body(&mut self.stream).await).unwrap()
    }
}
