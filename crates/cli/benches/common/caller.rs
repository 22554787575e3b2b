//! Plain JSON-RPC over HTTP to a server that may be gone at any moment.

use super::place::Place;
use serde_json::{Value, json};
use std::fs;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

/// Somebody who knows where a server is and has its token.
#[derive(Debug, Clone)]
pub struct Caller {
    address: SocketAddr,
    token: String,
}

/// Why there is no result.
#[derive(Debug)]
pub enum Unanswered {
    /// Nothing came back, or not all of it.
    Broken,
    /// The server says no, with this code and these words.
    Refused(i64, String),
}

impl Caller {
    pub fn new(place: &Place, home: &std::path::Path, port: u16) -> Self {
        let file = home.join("server-token");
        let mut tries = 0;
        let token = loop {
            // The first start makes it.
            match fs::read_to_string(&file) {
                Ok(token) if !token.trim().is_empty() => break token.trim().to_owned(),
                _ if tries < 500 => tries += 1,
                other => panic!("no token in {}: {other:?}", place.home().display()),
            }
            thread::sleep(Duration::from_millis(20));
        };
        let address = SocketAddr::from(([127, 0, 0, 1], port));
        Self { address, token }
    }

    /// Where the server is.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// What it lets in with.
    pub fn token(&self) -> &str {
        &self.token
    }

    pub fn rpc(
        &self,
        method: &str,
        params: Value,
        patience: Duration,
    ) -> Result<Value, Unanswered> {
        let body = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
        let reply = self.post(&body.to_string(), patience);
        let reply = reply.map_err(|_| Unanswered::Broken)?;
        let (head, body) = reply.split_once("\r\n\r\n").ok_or(Unanswered::Broken)?;
        let status = head
            .split(' ')
            .nth(1)
            .and_then(|status| status.parse().ok());
        let body: Value = match serde_json::from_str(body) {
            Ok(body) => body,
            // A refusal of the door is no JSON-RPC; half a body is none either.
            Err(_) if status == Some(200) => return Err(Unanswered::Broken),
            Err(_) => return Err(Unanswered::Refused(status.unwrap_or(0), body.to_owned())),
        };
        match body.get("result") {
            Some(result) => Ok(result.clone()),
            None => {
                let code = body["error"]["code"].as_i64().or(status);
                Err(Unanswered::Refused(code.unwrap_or(0), body.to_string()))
            }
        }
    }

    fn post(&self, body: &str, patience: Duration) -> io::Result<String> {
        let give_up = Instant::now() + patience;
        let mut stream = TcpStream::connect_timeout(&self.address, patience)?;
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
            let left = give_up.saturating_duration_since(Instant::now());
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

    /// A task as it is now; none if the server gives no answer.
    pub fn task(&self, id: &str) -> Option<Value> {
        let task = self.rpc("GetTask", json!({ "id": id }), Duration::from_secs(10));
        task.ok()
    }
}

/// The protocol's word for how a task stands.
pub fn state(task: &Value) -> &str {
    let word = task["status"]["state"].as_str().unwrap_or_default();
    word.strip_prefix("TASK_STATE_").unwrap_or(word)
}

/// Whether it has ended.
pub fn is_over(task: &Value) -> bool {
    ["COMPLETED", "FAILED", "CANCELED", "REJECTED"].contains(&state(task))
}
