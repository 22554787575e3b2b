//! Sends ten thousand malformed requests. The server must answer each one without a server error, must not panic, and
//! must work as before afterwards.

use super::support::{TestServer, message, settings, with_timeout};
use futures_util::StreamExt;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

const REQUESTS: usize = 10_000;
const CONCURRENCY: usize = 16;

/// A random number generator with the same numbers in every run.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % sides as u64) as usize
    }

    fn pick<'a, T>(&mut self, things: &'a [T]) -> &'a T {
        &things[self.roll(things.len())]
    }
}

#[derive(Clone)]
struct Raw {
    method: String,
    path: String,
    headers: Vec<(String, Vec<u8>)>,
    body: Vec<u8>,
}

impl Raw {
    fn new(method: &str, path: &str, body: Option<Value>) -> Self {
        let mut headers = vec![("A2A-Version".to_owned(), b"1.0".to_vec())];
        if body.is_some() {
            headers.push(("Content-Type".to_owned(), b"application/json".to_vec()));
        }
        Self {
            method: method.to_owned(),
            path: path.to_owned(),
            headers,
            body: body
                .map(|body| body.to_string().into_bytes())
                .unwrap_or_default(),
        }
    }

    fn bytes(&self) -> Vec<u8> {
        let mut bytes = format!("{} {} HTTP/1.1\r\n", self.method, self.path).into_bytes();
        bytes.extend(b"Host: agent.test\r\nConnection: close\r\n");
        for (name, value) in &self.headers {
            bytes.extend(name.as_bytes());
            bytes.extend(b": ");
            bytes.extend(value);
            bytes.extend(b"\r\n");
        }
        let has_length = self
            .headers
            .iter()
            .any(|(name, _)| name == "Content-Length");
        if !self.body.is_empty() && !has_length {
            bytes.extend(format!("Content-Length: {}\r\n", self.body.len()).into_bytes());
        }
        bytes.extend(b"\r\n");
        bytes.extend(&self.body);
        bytes
    }
}

/// Returns valid requests.
fn valid_requests(waiting: &str) -> Vec<Raw> {
    let call = |method: &str, params: Value| {
        let call = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
        Raw::new("POST", "/", Some(call))
    };
    let send = || {
        let mut message = message("go");
        message["messageId"] = json!("m-1");
        message["metadata"] = json!({ "a": [1, { "b": null }] });
        json!({
            "message": message,
            "configuration": { "historyLength": 2, "acceptedOutputModes": ["text/plain"] },
        })
    };
    let list = json!({
        "contextId": "c", "status": "TASK_STATE_WORKING", "pageSize": 5,
        "statusTimestampAfter": "2026-01-01T00:00:00.000Z", "includeArtifacts": true,
    });
    let query =
        "/tasks?pageSize=5&status=TASK_STATE_COMPLETED&historyLength=1&includeArtifacts=true";
    vec![
        call("SendMessage", send()),
        call("SendStreamingMessage", send()),
        call("GetTask", json!({ "id": waiting, "historyLength": 3 })),
        call("ListTasks", list),
        call("CancelTask", json!({ "id": "none" })),
        call("SubscribeToTask", json!({ "id": waiting })),
        Raw::new("POST", "/message:send", Some(send())),
        Raw::new("POST", "/message:stream", Some(send())),
        Raw::new("GET", &format!("/tasks/{waiting}?historyLength=0"), None),
        Raw::new("GET", query, None),
        Raw::new(
            "POST",
            "/tasks/none:cancel",
            Some(json!({ "metadata": {} })),
        ),
        Raw::new("GET", &format!("/tasks/{waiting}:subscribe"), None),
        Raw::new("DELETE", "/tasks/t/pushNotificationConfigs/c", None),
        Raw::new("GET", "/.well-known/agent-card.json", None),
    ]
}

fn odd_value(dice: &mut Dice) -> Value {
    match dice.roll(14) {
        0 => Value::Null,
        1 => json!(true),
        2 => json!(-1),
        3 => json!(u64::MAX),
        4 => json!(1e300),
        5 => json!(0.5),
        6 => json!(""),
        7 => json!("\u{0}\u{202e}\u{1f980}\"\\"),
        8 => json!("x".repeat(5000)),
        9 => json!([]),
        10 => json!({}),
        11 => json!([[[[{ "a": [{}] }]]]]),
        12 => json!("TASK_STATE_UNSPECIFIED"),
        _ => json!(vec![json!({ "text": "y" }); 300]),
    }
}

/// Changes one node of a JSON value.
fn disturb(value: &mut Value, dice: &mut Dice) {
    let size = match value {
        Value::Object(map) => map.len(),
        Value::Array(values) => values.len(),
        _ => 0,
    };
    if size == 0 || dice.roll(5) == 0 {
        *value = odd_value(dice);
        return;
    }
    let at = dice.roll(size);
    match value {
        Value::Object(map) if dice.roll(6) == 0 => {
            let key = map.keys().nth(at).unwrap().clone();
            let value = map.remove(&key).unwrap();
            if dice.roll(2) == 0 {
                map.insert(key.to_uppercase(), value);
            }
        }
        Value::Object(map) => disturb(map.values_mut().nth(at).unwrap(), dice),
        Value::Array(values) => disturb(&mut values[at], dice),
        _ => {}
    }
}

fn spoil_body(raw: &mut Raw, dice: &mut Dice) {
    let length = raw.body.len();
    match dice.roll(9) {
        0 => raw.body.truncate(dice.roll(length + 1)),
        1 if length > 0 => {
            let at = dice.roll(length);
            raw.body[at] = dice.roll(256) as u8;
        }
        2 => {
            let at = dice.roll(length + 1);
            let junk: Vec<u8> = (0..dice.roll(40)).map(|_| dice.roll(256) as u8).collect();
            raw.body.splice(at..at, junk);
        }
        3 => {
            let deep = 10 + dice.roll(5000);
            raw.body = ["[".repeat(deep), "]".repeat(deep)].concat().into_bytes();
        }
        4 => {
            let deep = 10 + dice.roll(2000);
            let open = "{\"message\":".repeat(deep);
            raw.body = format!("{open}1{}", "}".repeat(deep)).into_bytes();
        }
        5 => {
            let number = "9".repeat(1 + dice.roll(400));
            let text = String::from_utf8_lossy(&raw.body).replace('2', &number);
            raw.body = text.into_bytes();
        }
        _ => {
            let mut value = serde_json::from_slice(&raw.body).unwrap_or(Value::Object(Map::new()));
            for _ in 0..=dice.roll(3) {
                disturb(&mut value, dice);
            }
            raw.body = value.to_string().into_bytes();
        }
    }
}

fn spoil_headers(raw: &mut Raw, dice: &mut Dice) {
    const NAMES: [&str; 9] = [
        "A2A-Version",
        "Content-Type",
        "Content-Length",
        "A2A-Extensions",
        "Accept",
        "If-None-Match",
        "Transfer-Encoding",
        "Expect",
        "X-Odd",
    ];
    const VALUES: [&[u8]; 13] = [
        b"",
        b"1.0",
        b"0.3",
        b"99",
        b"1.0.1.1",
        b"text/plain",
        b"application/json;;;=",
        b"\xff\xfe\x80",
        b"*/*, ,;q=",
        b"0",
        b"-5",
        b"chunked",
        b"\"unterminated",
    ];
    if dice.roll(3) == 0 && !raw.headers.is_empty() {
        let at = dice.roll(raw.headers.len());
        raw.headers.remove(at);
        return;
    }
    let name = *dice.pick(&NAMES);
    let value = if dice.roll(8) == 0 {
        vec![b'v'; 1 + dice.roll(20_000)]
    } else {
        dice.pick(&VALUES).to_vec()
    };
    raw.headers.push((name.to_owned(), value));
}

fn spoil_line(raw: &mut Raw, dice: &mut Dice) {
    const METHODS: [&str; 9] = [
        "GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS", "TRACE", "FOO",
    ];
    const PIECES: [&str; 18] = [
        "%",
        "%2",
        "%zz",
        "%ff%fe",
        "%00",
        "%2F",
        "..",
        "//",
        ":",
        ":cancel",
        ":subscribe",
        "?",
        "&=&",
        "=%",
        "#",
        "{id}",
        "a%20b",
        "?A2A-Version=9&pageSize=%F0%9F",
    ];
    match dice.roll(4) {
        0 => raw.method = (*dice.pick(&METHODS)).to_owned(),
        1 => {
            let at = 1 + dice.roll(raw.path.len());
            let piece = *dice.pick(&PIECES);
            raw.path.insert_str(at, piece);
        }
        2 => {
            raw.path.truncate(1 + dice.roll(raw.path.len()));
            let piece = *dice.pick(&PIECES);
            raw.path.push_str(piece);
        }
        _ => raw.path.push_str(&"/seg".repeat(dice.roll(300))),
    }
}

/// Sends a request and returns the status of the response, or `None` without a response.
async fn status(address: &str, raw: &Raw) -> Option<u16> {
    let mut stream = TcpStream::connect(address).await.unwrap();
    // The server may answer and close the connection before everything is written.
    let _ = stream.write_all(&raw.bytes()).await;
    let mut head = Vec::new();
    let mut buffer = [0; 256];
    while head.len() < 12 {
        match stream.read(&mut buffer).await {
            Ok(0) | Err(_) => return None,
            Ok(read) => head.extend(&buffer[..read]),
        }
    }
    std::str::from_utf8(&head[9..12]).ok()?.parse().ok()
}

/// Counts panics, except those in the code of the tests.
fn count_panics() -> Arc<AtomicUsize> {
    let count = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&count);
    let before = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        let is_ours = info
            .location()
            .is_some_and(|place| place.file().contains("tests/it"));
        if !is_ours {
            counted.fetch_add(1, Ordering::SeqCst);
        }
        before(info);
    }));
    count
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ten_thousand_malformed_requests_are_answered_without_a_server_error() {
    let panics = count_panics();
    let mut settings = settings();
    // Some requests announce a longer body than they send.
    settings.limits.body_timeout = Duration::from_secs(2);
    let server = TestServer::with(settings).await;
    let waiting = server.send("ask what?").await["id"].clone();
    let valid = valid_requests(waiting.as_str().unwrap());
    let address = server.base.strip_prefix("http://").unwrap();
    for raw in &valid {
        let status = with_timeout(status(address, raw)).await.unwrap();
        assert!(
            [200, 400, 404].contains(&status),
            "{} {} gave {status}",
            raw.method,
            raw.path
        );
    }
    let mut dice = Dice(0x2545_f491_4f6c_dd1d);
    let requests: Vec<Raw> = (0..REQUESTS)
        .map(|_| {
            let mut raw = dice.pick(&valid).clone();
            for _ in 0..=dice.roll(2) {
                match dice.roll(6) {
                    0 => spoil_headers(&mut raw, &mut dice),
                    1 => spoil_line(&mut raw, &mut dice),
                    _ => spoil_body(&mut raw, &mut dice),
                }
            }
            raw
        })
        .collect();
    let answered = futures_util::stream::iter(&requests)
        .map(|raw| async move {
            let answer = tokio::time::timeout(Duration::from_secs(60), status(address, raw));
            (raw, answer.await.unwrap_or(None))
        })
        .buffer_unordered(CONCURRENCY);
    let mut answered = std::pin::pin!(answered);
    let mut statuses: BTreeMap<u16, usize> = BTreeMap::new();
    while let Some((raw, status)) = answered.next().await {
        let shown = String::from_utf8_lossy(&raw.bytes())
            .chars()
            .take(600)
            .collect::<String>();
        let status = status.unwrap_or_else(|| panic!("no answer to\n{shown}"));
        assert!((200..500).contains(&status), "{status} for\n{shown}");
        *statuses.entry(status).or_default() += 1;
    }
    for status in [200, 400, 404, 405] {
        assert!(statuses.contains_key(&status), "{statuses:?}");
    }
    assert_eq!(panics.load(Ordering::SeqCst), 0);
    let task = server.send("still there?").await;
    assert_eq!(task["status"]["state"], "TASK_STATE_COMPLETED");
    assert!(server.task(&waiting).await["status"]["state"].is_string());
    with_timeout(server.server.stop(Duration::from_secs(20))).await;
}
