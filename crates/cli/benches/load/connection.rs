//! A keep-alive connection to a server, with the requests that are sent over it.

use super::common::rpc_client::RpcClient;
use lango_testkit::http::read_body;
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::time::Duration;
use tokio::io::{AsyncWriteExt as _, BufReader};
use tokio::net::TcpStream;

/// How long to wait before a retry when the server is at its task limit.
const RETRY_PAUSE: Duration = Duration::from_millis(5);

/// Maximum number of attempts: half a minute in total.
const MAX_ATTEMPTS: usize = 6_000;

/// What the response to a message waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WaitFor {
    Acknowledgement,
    Completion,
}

pub(crate) struct Connection {
    stream: BufReader<TcpStream>,
    address: SocketAddr,
    token: String,
}

impl Connection {
    pub(crate) async fn open(server: &RpcClient) -> Self {
        let address = server.address();
        let stream = TcpStream::connect(address).await.unwrap();
        stream.set_nodelay(true).unwrap();
        Self {
            stream: BufReader::new(stream),
            address,
            token: server.token().to_owned(),
        }
    }

    /// Sends "hello" in a conversation. Returns the task, and how long the response took.
    pub(crate) async fn send_hello(
        &mut self,
        conversation: &str,
        message: &str,
        wait_for: WaitFor,
    ) -> (Value, Duration) {
        let params = json!({
            "message": {
                "messageId": message,
                "contextId": conversation,
                "role": "ROLE_USER",
                "parts": [{ "text": "hello" }],
            },
            "configuration": { "returnImmediately": wait_for == WaitFor::Acknowledgement },
        });
        for _ in 0..MAX_ATTEMPTS {
            let started = tokio::time::Instant::now();
            let answer = self.call("SendMessage", &params).await;
            let took = started.elapsed();
            if answer["error"]["code"] == -32000 {
                // The server is at its task limit.
                tokio::time::sleep(RETRY_PAUSE).await;
                continue;
            }
            let task = &answer["result"]["task"];
            assert!(task["id"].is_string(), "{answer}");
            return (task.clone(), took);
        }
        panic!("{message} was never acknowledged");
    }

    pub(crate) async fn task(&mut self, id: &str) -> Value {
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
