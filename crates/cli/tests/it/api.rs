//! The HTTP API and sign-in through the real binary: tokens, other processes and replicas, approvals of A2A tasks.

use crate::approvals::CREATE;
use crate::lango::{Lango, TIMEOUT, text};
use crate::serve::{TestServer, message};
use lango_testkit::postgres;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Maximum time from storing an event to its arrival at a reader.
const MAX_DELAY: Duration = Duration::from_millis(500);

fn token(lango: &Lango, scopes: &[&str]) -> String {
    let mut arguments = vec!["tokens", "create", "test"];
    for scope in scopes {
        arguments.extend(["--scope", scope]);
    }
    lango.run(&arguments).ok().stdout.trim().to_owned()
}

/// Sends a request with these headers. Returns the status, the head and the body.
fn send(
    server: &TestServer,
    first: &str,
    headers: &[(&str, &str)],
    body: &str,
) -> (u16, String, String) {
    let mut stream = server.connect();
    let host = server.url().trim_start_matches("http://").to_owned();
    let mut request = format!("{first} HTTP/1.0\r\nContent-Length: {}\r\n", body.len());
    if !headers.iter().any(|(name, _)| *name == "Host") {
        request += &format!("Host: {host}\r\n");
    }
    for (name, value) in headers {
        request += &format!("{name}: {value}\r\n");
    }
    stream
        .write_all(format!("{request}\r\n{body}").as_bytes())
        .unwrap();
    let mut reply = String::new();
    stream.read_to_string(&mut reply).unwrap();
    let (head, body) = reply.split_once("\r\n\r\n").unwrap();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    (status, head.to_owned(), body.to_owned())
}

/// Sends a request with a token. Returns the JSON of the response.
fn call(server: &TestServer, token: &str, first: &str, body: &Value) -> Value {
    let bearer = format!("Bearer {token}");
    let headers = [
        ("Authorization", bearer.as_str()),
        ("Content-Type", "application/json"),
    ];
    let (status, _, reply) = send(server, first, &headers, &body.to_string());
    assert!(status < 300, "{first}: {status} {reply}");
    serde_json::from_str(&reply).unwrap_or(Value::Null)
}

/// A reader of the event stream that the page uses.
struct Reader(BufReader<TcpStream>);

impl Reader {
    fn open(server: &TestServer, token: &str, query: &str) -> Self {
        let mut stream = server.connect();
        let host = server.url().trim_start_matches("http://").to_owned();
        let request = format!(
            "GET /api/events{query} HTTP/1.0\r\nHost: {host}\r\nAuthorization: Bearer {token}\r\n\r\n"
        );
        stream.write_all(request.as_bytes()).unwrap();
        Self(BufReader::new(stream))
    }

    /// Waits for the next frame with this name for which `fits` is true.
    fn until(&mut self, name: &str, fits: impl Fn(&Value) -> bool) -> Value {
        let (started, mut is_named) = (Instant::now(), false);
        loop {
            assert!(started.elapsed() < TIMEOUT, "no `{name}` that fits");
            let mut line = String::new();
            assert_ne!(self.0.read_line(&mut line).unwrap(), 0, "the stream ended");
            if let Some(found) = line.strip_prefix("event: ") {
                is_named = found.trim() == name;
            } else if let Some(data) = line.strip_prefix("data: ").filter(|_| is_named) {
                let data: Value = serde_json::from_str(data).unwrap();
                if fits(&data) {
                    return data;
                }
            }
        }
    }
}

fn now_ms() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    u64::try_from(now.as_millis()).unwrap()
}

/// Asserts that a turn of another process arrives at a reader in time. Takes the fastest of three, because the machine
/// may be busy.
fn assert_live(server: &TestServer, token: &str, ask: impl Fn(&str)) {
    let mut fastest = Duration::MAX;
    let session = {
        let mut lists = Reader::open(server, token, "");
        lists.until("approvals", |_| true);
        ask("");
        text(&lists.until("session", |_| true)["id"]).to_owned()
    };
    for _ in 0..3 {
        let last = call(
            server,
            token,
            &format!("GET /api/sessions/{session}"),
            &Value::Null,
        );
        let after = last["events"].as_u64().unwrap();
        let mut reader = Reader::open(server, token, &format!("?session={session}&after={after}"));
        ask(&session);
        let event = reader.until("event", |event| event["type"] == "user.message");
        let delay = now_ms().saturating_sub(event["time"].as_u64().unwrap());
        fastest = fastest.min(Duration::from_millis(delay));
    }
    assert!(fastest < MAX_DELAY, "{fastest:?}");
}

fn ask_in(lango: &Lango, session: &str, more: &[&str]) {
    let mut arguments = vec!["run", "-c", "agent.model=offline/rules"];
    arguments.extend(more);
    if !session.is_empty() {
        arguments.extend(["--session", session]);
    }
    arguments.push("hello");
    lango.run(&arguments).ok();
}

#[test]
fn a_turn_in_the_terminal_appears_within_half_a_second() {
    let server = TestServer::start();
    let token = token(&server.lango, &["read"]);
    assert_live(&server, &token, |session| {
        ask_in(&server.lango, session, &[])
    });
}

#[test]
fn a_turn_of_another_replica_appears_within_half_a_second() {
    let store = format!("session.store={}", postgres::fresh_schema());
    let settings = ["-c", store.as_str()];
    let here = TestServer::start_with(Lango::new(), &settings);
    let there = TestServer::start_with(Lango::new(), &settings);
    let created = here
        .lango
        .run(&["-c", &store, "tokens", "create", "test"])
        .ok();
    let token = created.stdout.trim().to_owned();
    let known = call(&there, &token, "GET /api/me", &Value::Null);
    assert_eq!(
        known["store"], "postgres",
        "a token is valid on every replica"
    );
    assert_live(&here, &token, |session| {
        let body = match session {
            "" => json!({ "text": "hello" }),
            session => json!({ "text": "hello", "session": session }),
        };
        call(&there, &token, "POST /api/turns", &body);
    });
}

#[test]
fn an_approval_that_is_answered_in_the_terminal_disappears_from_the_page() {
    let server = TestServer::start();
    let token = token(&server.lango, &["read", "run"]);
    let mut reader = Reader::open(&server, &token, "");
    reader.until("approvals", |list| list["count"] == 0);
    call(
        &server,
        &token,
        "POST /api/turns",
        &json!({ "text": CREATE }),
    );
    let list = reader.until("approvals", |list| list["count"] == 1);
    let id = text(&list["pending"][0]["id"]).to_owned();
    let answered = [
        "approvals",
        "answer",
        &id,
        "no",
        "-c",
        "agent.model=offline/rules",
    ];
    server.lango.run(&answered);
    reader.until("approvals", |list| list["count"] == 0);
}

#[test]
fn an_approval_of_an_a2a_task_is_answered_over_the_api_and_the_task_continues() {
    let server = TestServer::start();
    let token = token(&server.lango, &["read", "approve"]);
    let sent = server.rpc("SendMessage", message(CREATE));
    let task = &sent["result"]["task"];
    assert_eq!(
        task["status"]["state"], "TASK_STATE_AUTH_REQUIRED",
        "{sent}"
    );
    let listed = call(&server, &token, "GET /api/approvals", &Value::Null);
    let id = text(&listed["pending"][0]["id"]).to_owned();
    assert_eq!(listed["pending"][0]["user"], "a2a");
    let details = call(
        &server,
        &token,
        &format!("GET /api/approvals/{id}"),
        &Value::Null,
    );
    assert!(text(&details["preview"]).contains("+hi"), "{details}");
    let first = format!("POST /api/approvals/{id}");
    call(&server, &token, &first, &json!({ "answer": "once" }));
    let started = Instant::now();
    loop {
        let got = server.rpc("GetTask", json!({ "id": task["id"] }));
        if got["result"]["status"]["state"] == "TASK_STATE_COMPLETED" {
            break;
        }
        assert!(started.elapsed() < TIMEOUT, "{got}");
        thread::sleep(Duration::from_millis(50));
    }
    let written = server.lango.workspace().join("notes/a.md");
    assert_eq!(std::fs::read_to_string(written).unwrap(), "hi\n");
}

#[test]
fn a_deleted_session_disappears_from_the_page_however_it_was_deleted() {
    let server = TestServer::start();
    let token = token(&server.lango, &["read", "run"]);
    for is_here in [true, false] {
        let mut reader = Reader::open(&server, &token, "");
        reader.until("approvals", |_| true);
        let session = server.lango.session("hello");
        reader.until("session", |summary| summary["id"] == session.as_str());
        if is_here {
            call(
                &server,
                &token,
                &format!("DELETE /api/sessions/{session}"),
                &Value::Null,
            );
        } else {
            server
                .lango
                .run(&["sessions", "delete", "--yes", &session])
                .ok();
        }
        reader.until("deleted", |deleted| deleted["id"] == session.as_str());
    }
}

#[test]
fn a_server_with_open_streams_stops_immediately() {
    let mut server = TestServer::start();
    let token = token(&server.lango, &["read"]);
    let mut reader = Reader::open(&server, &token, "");
    reader.until("approvals", |_| true);
    let started = Instant::now();
    let (printed, code) = server.end();
    assert_eq!(code, Some(0), "{printed}");
    assert!(
        started.elapsed() < Duration::from_secs(2),
        "{:?}",
        started.elapsed()
    );
}

#[test]
fn foreign_hosts_and_origins_are_refused_before_the_token_is_checked() {
    let server = TestServer::start();
    let token = format!("Bearer {}", token(&server.lango, &["read"]));
    let own = server.url();
    for path in [
        "/api/me",
        "/v1/models",
        "/agui",
        "/",
        "/page/js/main.js",
        "/sign-in?code=x",
    ] {
        let first = format!("GET {path}");
        for headers in [
            &[("Host", "evil.example")][..],
            &[("Host", "127.0.0.1:1@evil.example")],
            &[("Origin", "http://evil.example")],
            &[("Origin", "null")],
        ] {
            let headers = [headers, &[("Authorization", token.as_str())]].concat();
            let (status, _, body) = send(&server, &first, &headers, "");
            assert_eq!(status, 403, "{path} {headers:?}: {body}");
        }
    }
    let headers = [("Origin", own.as_str()), ("Authorization", &token)];
    assert_eq!(send(&server, "GET /api/me", &headers, "").0, 200);
}

#[test]
fn api_tokens_and_the_a2a_token_are_not_interchangeable() {
    let server = TestServer::start();
    let a2a = format!("Bearer {}", server.token());
    let (status, _, body) = send(&server, "GET /api/sessions", &[("Authorization", &a2a)], "");
    assert_eq!(status, 403, "{body}");
    let api = format!(
        "Bearer {}",
        token(&server.lango, &["read", "run", "approve"])
    );
    for (first, headers) in [
        ("GET /tasks", vec![]),
        ("GET /tasks", vec![("Authorization", api.as_str())]),
        ("GET //tasks", vec![]),
        ("GET /api/../tasks", vec![]),
        ("GET /tenant/tasks", vec![]),
        ("POST /", vec![]),
    ] {
        let (status, _, body) = send(&server, first, &headers, "");
        assert!(
            matches!(status, 401 | 404),
            "{first} {headers:?}: {status} {body}"
        );
        assert!(!body.contains("\"tasks\""), "{first}: {body}");
    }
}

#[test]
fn a_link_signs_one_browser_in_and_revoking_it_signs_it_out() {
    let server = TestServer::start();
    let url = server.url();
    let link = server.lango.run(&["tokens", "link", "--url", &url]).ok();
    let path = link.stdout.trim().strip_prefix(&url).unwrap().to_owned();
    let (status, head, _) = send(&server, &format!("GET {path}"), &[], "");
    assert_eq!(status, 200);
    let cookie = head
        .lines()
        .find_map(|line| line.strip_prefix("set-cookie: "))
        .unwrap();
    let cookie = cookie.split(';').next().unwrap();
    assert_eq!(
        send(&server, "GET /api/me", &[("Cookie", cookie)], "").0,
        200
    );
    assert_eq!(
        send(&server, &format!("GET {path}"), &[], "").0,
        401,
        "the link was used"
    );
    let tokens = server.lango.run(&["tokens", "list", "--json"]).ok().json();
    let id = text(&tokens[0]["id"]).to_owned();
    assert_eq!(tokens[0]["kind"], "browser");
    server.lango.run(&["tokens", "revoke", &id]).ok();
    assert_eq!(
        send(&server, "GET /api/me", &[("Cookie", cookie)], "").0,
        401
    );
    server
        .lango
        .run(&["tokens", "revoke", &id])
        .refused(2, &["lango tokens list"]);
}

#[test]
fn an_export_of_the_api_can_be_imported() {
    let server = TestServer::start();
    let token = token(&server.lango, &["read", "run"]);
    let started = call(
        &server,
        &token,
        "POST /api/turns",
        &json!({ "text": "hello" }),
    );
    let session = text(&started["session"]).to_owned();
    let path = format!("GET /api/sessions/{session}");
    let waiting = Instant::now();
    while call(&server, &token, &path, &Value::Null)["status"] != "idle" {
        assert!(waiting.elapsed() < TIMEOUT);
        thread::sleep(Duration::from_millis(20));
    }
    let bearer = format!("Bearer {token}");
    let (_, _, lines) = send(
        &server,
        &format!("{path}/export"),
        &[("Authorization", &bearer)],
        "",
    );
    let other = Lango::new();
    other.file("export.jsonl", &lines);
    other.run(&["sessions", "import", "export.jsonl"]).ok();
    assert_eq!(other.events(&session), server.lango.events(&session));
}
