//! A connection to a server that stays open, and what is said over it.

use super::common::caller::Caller;
use lango_testkit::http::read_body;
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::time::Duration;
use tokio::io::{AsyncWriteExt as _, BufReader};
use tokio::net::TcpStream;

/// How long somebody waits who was told that too much is at work.
const PAUSE: Duration = Duration::from_millis(5);

/// How often: half a minute together.
const TRIES: usize = 6_000;

/// Whether the answer is that the message was taken, or what came of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wanted {
    Acknowledgement,
    End,
}

/// A connection.
pub struct Line {
    stream: BufReader<TcpStream>,
    address: SocketAddr,
    token: String,
}

impl Line {
    pub async fn to(server: &Caller) -> Self {
        let address = server.address();
        let stream = TcpStream::connect(address).await.unwrap();
        stream.set_nodelay(true).unwrap();
        Self {
            stream: BufReader::new(stream),
            address,
            token: server.token().to_owned(),
        }
    }

    /// Says hello in a conversation; gives the task, and how long the answer took.
    pub async fn hello(
        &mut self,
        conversation: &str,
        message: &str,
        wanted: Wanted,
    ) -> (Value, Duration) {
        let params = json!({
            "message": {
                "messageId": message,
                "contextId": conversation,
                "role": "ROLE_USER",
                "parts": [{ "text": "hello" }],
            },
            "configuration": { "returnImmediately": wanted == Wanted::Acknowledgement },
        });
        for _ in 0..TRIES {
            let began = tokio::time::Instant::now();
            let answer = self.call("SendMessage", &params).await;
            let took = began.elapsed();
            if answer["error"]["code"] == -32000 {
                // Too much is at work.
                tokio::time::sleep(PAUSE).await;
                continue;
            }
            let task = &answer["result"]["task"];
            assert!(task["id"].is_string(), "{answer}");
            return (task.clone(), took);
        }
        panic!("{message} was never taken");
    }

    /// How a task stands.
    pub async fn task(&mut self, id: &str) -> Value {
        let answer = self.call("GetTask", &json!({ "id": id })).await;
        assert!(answer["result"]["id"].is_string(), "{answer}");
        answer["result"].clone()
    }

    async fn call(&mut self, method: &str, params: &Value) -> Value {
        let body = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
        let body = body.to_string();
        let request = format!(
            "POST / HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {}\r\nA2A-Version: 1.0\r\n\
             Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            self.address,
            self.token,
            body.len()
        );
        self.stream.write_all(request.as_bytes()).await.unwrap();
        serde_json::from_slice(&read_body(&mut self.stream).await).unwrap()
    }
}
