//! A minimal JSON-RPC client for a server that may be killed at any moment.

use super::test_env::TestEnv;
use serde_json::{Value, json};
use std::fs;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

/// A JSON-RPC client with the address and token of a server.
#[derive(Debug, Clone)]
pub(crate) struct RpcClient {
    address: SocketAddr,
    token: String,
}

/// Why a request has no result.
#[derive(Debug)]
pub(crate) enum RpcError {
    /// The response is missing or incomplete.
    Disconnected,
    /// The server refused the request with this code and text.
    Refused(i64, String),
}

impl RpcClient {
    pub(crate) fn new(test_env: &TestEnv, home: &std::path::Path, port: u16) -> Self {
        let file = home.join("server-token");
        let mut tries = 0;
        let token = loop {
            // The server creates the file at its first start.
            match fs::read_to_string(&file) {
                Ok(token) if !token.trim().is_empty() => break token.trim().to_owned(),
                _ if tries < 500 => tries += 1,
                other => panic!("no token in {}: {other:?}", test_env.home().display()),
            }
            thread::sleep(Duration::from_millis(20));
        };
        let address = SocketAddr::from(([127, 0, 0, 1], port));
        Self { address, token }
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    pub(crate) fn token(&self) -> &str {
        &self.token
    }

    pub(crate) fn rpc(
        &self,
        method: &str,
        params: Value,
        timeout: Duration,
    ) -> Result<Value, RpcError> {
        let body = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
        let reply = self.post(&body.to_string(), timeout);
        let reply = reply.map_err(|_| RpcError::Disconnected)?;
        let (head, body) = reply.split_once("\r\n\r\n").ok_or(RpcError::Disconnected)?;
        let status = head
            .split(' ')
            .nth(1)
            .and_then(|status| status.parse().ok());
        let body: Value = match serde_json::from_str(body) {
            Ok(body) => body,
            // An incomplete body is not JSON, and neither is a refusal by the auth middleware.
            Err(_) if status == Some(200) => return Err(RpcError::Disconnected),
            Err(_) => return Err(RpcError::Refused(status.unwrap_or(0), body.to_owned())),
        };
        match body.get("result") {
            Some(result) => Ok(result.clone()),
            None => {
                let code = body["error"]["code"].as_i64().or(status);
                Err(RpcError::Refused(code.unwrap_or(0), body.to_string()))
            }
        }
    }

    fn post(&self, body: &str, timeout: Duration) -> io::Result<String> {
        let deadline = Instant::now() + timeout;
        let mut stream = TcpStream::connect_timeout(&self.address, timeout)?;
        let request = format!(
            "POST / HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {}\r\nA2A-Version: 1.0\r\n\
             Content-Type: application/json\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{body}",
            self.address,
            self.token,
            body.len()
        );
        stream.write_all(request.as_bytes())?;
        let (mut reply, mut buffer) = (Vec::new(), [0; 16 * 1024]);
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(io::ErrorKind::TimedOut.into());
            }
            stream.set_read_timeout(Some(left))?;
            match stream.read(&mut buffer)? {
                0 => break,
                count => reply.extend_from_slice(&buffer[..count]),
            }
        }
        String::from_utf8(reply).map_err(|_| io::ErrorKind::InvalidData.into())
    }

    /// Returns the current state of a task, or `None` if the server does not answer.
    pub(crate) fn task(&self, id: &str) -> Option<Value> {
        let task = self.rpc("GetTask", json!({ "id": id }), Duration::from_secs(10));
        task.ok()
    }
}

/// Returns the state of a task, without the protocol's prefix.
pub(crate) fn state(task: &Value) -> &str {
    let word = task["status"]["state"].as_str().unwrap_or_default();
    word.strip_prefix("TASK_STATE_").unwrap_or(word)
}

/// Returns whether a task has ended.
pub(crate) fn is_over(task: &Value) -> bool {
    ["COMPLETED", "FAILED", "CANCELED", "REJECTED"].contains(&state(task))
}
