//! The limits of `lango serve`, set by their keys, through the real binary.

use crate::lango::Lango;
use crate::models::flags;
use crate::serve::{TestServer, message};
use serde_json::{Value, json};
use std::io::{ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread;
use std::time::Duration;

/// Starts a server with these settings, whose model never answers.
fn start_server(settings: &[&str]) -> TestServer {
    let model = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/v1", model.local_addr().unwrap());
    thread::spawn(move || {
        let mut open = Vec::new();
        while let Ok((connection, _)) = model.accept() {
            open.push(connection);
        }
    });
    let model = flags("openai", &url);
    let settings = settings.iter().flat_map(|setting| ["-c", setting]);
    let arguments: Vec<&str> = model.iter().map(String::as_str).chain(settings).collect();
    TestServer::start_with(Lango::new(), &arguments)
}

fn call(method: &str, context: &str, more: Value) -> String {
    let mut params = message("hello");
    params["message"]["contextId"] = context.into();
    params["configuration"] = more;
    json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params }).to_string()
}

fn assert_refused(answer: &(String, String), reason: &str) {
    let (head, body) = answer;
    assert!(head.starts_with("HTTP/1.1 429"), "{head}\n{body}");
    assert!(head.to_lowercase().contains("retry-after:"), "{head}");
    assert!(body.contains(reason), "{body}");
}

#[test]
fn a_message_waits_for_a_slot_and_one_too_many_is_refused_immediately() {
    let server = start_server(&[
        "server.maxRunningTasks=1",
        "server.queueLimit=1",
        "server.queueTimeout=2s",
    ]);
    let at_once = json!({ "returnImmediately": true });
    let (head, body) = server.post(&call("SendMessage", "running", at_once));
    assert!(head.starts_with("HTTP/1.1 200"), "{body}");
    thread::scope(|scope| {
        let waiting = scope.spawn(|| server.post(&call("SendMessage", "waiting", json!({}))));
        thread::sleep(Duration::from_millis(500));
        let refused = server.post(&call("SendMessage", "refused", json!({})));
        assert_refused(&refused, "1 running and 1 waiting tasks");
        assert!(!waiting.is_finished(), "it waits for two seconds");
        assert_refused(&waiting.join().unwrap(), "no slot became free within 2 s");
    });
}

#[test]
fn one_stream_too_many_is_refused() {
    let server = start_server(&["server.maxStreams=1"]);
    let mut stream = server.connect();
    let body = call("SendStreamingMessage", "first", json!({}));
    stream.write_all(server.request(&body).as_bytes()).unwrap();
    let mut first = [0; 12];
    stream.read_exact(&mut first).unwrap();
    assert_eq!(&first, b"HTTP/1.1 200");
    let refused = server.post(&call("SendStreamingMessage", "second", json!({})));
    assert_refused(&refused, "limit of open streams");
}

#[test]
fn one_connection_too_many_waits_until_another_is_closed() {
    let server = start_server(&["server.maxConnections=2"]);
    let is_answered = |connection: &mut TcpStream| {
        let timeout = Duration::from_millis(700);
        connection.set_read_timeout(Some(timeout)).unwrap();
        let mut answer = [0; 12];
        match connection.read_exact(&mut answer) {
            Ok(()) => answer == *b"HTTP/1.1 200",
            Err(error) if error.kind() == ErrorKind::WouldBlock => false,
            Err(error) => panic!("{error}"),
        }
    };
    let open = || {
        let mut connection = server.connect();
        let request = "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n";
        connection.write_all(request.as_bytes()).unwrap();
        connection
    };
    let (mut first, mut second) = (open(), open());
    assert!(is_answered(&mut first) && is_answered(&mut second));
    let mut third = open();
    assert!(!is_answered(&mut third));
    drop(first);
    assert!(is_answered(&mut third));
}
