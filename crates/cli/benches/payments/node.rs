//! A JSON-RPC proxy between lango and the chain that drops selected calls, to simulate network failures.

use super::chain::post;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

/// The proxy. Its clones share the setting of which calls it drops.
#[derive(Clone)]
pub(crate) struct LossyNode {
    pub port: u16,
    lost: Arc<Mutex<Option<&'static str>>>,
}

impl LossyNode {
    /// Starts a proxy for the chain at a port.
    pub(crate) fn start(chain: u16) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a port");
        let node = Self {
            port: listener.local_addr().expect("an address").port(),
            lost: Arc::default(),
        };
        let serving = node.clone();
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let node = serving.clone();
                thread::spawn(move || node.serve(stream, chain));
            }
        });
        node
    }

    pub(crate) fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// Drops calls of this method from now on, or none.
    pub(crate) fn lose(&self, method: Option<&'static str>) {
        *self.lost.lock().expect("no panic") = method;
    }

    fn serve(&self, mut stream: TcpStream, chain: u16) -> Option<()> {
        let mut request = Vec::new();
        let mut buffer = [0; 16 * 1024];
        let body = loop {
            let count = stream.read(&mut buffer).ok().filter(|count| *count > 0)?;
            request.extend_from_slice(&buffer[..count]);
            let text = String::from_utf8_lossy(&request).into_owned();
            let Some((head, body)) = text.split_once("\r\n\r\n") else {
                continue;
            };
            let length = head.lines().find_map(|line| {
                let (name, value) = line.split_once(": ")?;
                name.eq_ignore_ascii_case("content-length")
                    .then(|| value.parse::<usize>().ok())?
            })?;
            if body.len() >= length {
                break body.to_owned();
            }
        };
        let lost = *self.lost.lock().expect("no panic");
        if lost.is_some_and(|method| body.contains(&format!("\"{method}\""))) {
            return None;
        }
        let answer = post(chain, &body);
        let head = format!(
            "HTTP/1.1 200 OK\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
            answer.len()
        );
        stream.write_all(head.as_bytes()).ok()?;
        stream.write_all(answer.as_bytes()).ok()
    }
}
