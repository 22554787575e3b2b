//! `lango serve` through the real binary: the banner, the token, messages, restarts and the shutdown.

use crate::lango::{Lango, TIMEOUT};
use rusqlite::Connection;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::process::{Child, ChildStderr, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

/// A `lango serve` on a free port, with its own home and workspace. It is killed when this value is dropped.
pub(crate) struct TestServer {
    pub lango: Lango,
    child: Child,
    address: String,
    banner: String,
    stderr: BufReader<ChildStderr>,
}

impl TestServer {
    /// Starts a server in a new home, with the built-in model.
    pub(crate) fn start() -> Self {
        Self::start_with(Lango::new(), &[])
    }

    /// Starts a server in this home, with additional arguments.
    pub(crate) fn start_with(lango: Lango, arguments: &[&str]) -> Self {
        let all = [
            &["serve", "--port", "0", "-c", "agent.model=offline/rules"],
            arguments,
        ]
        .concat();
        let mut child = lango.command(&all).stderr(Stdio::piped()).spawn().unwrap();
        let mut stderr = BufReader::new(child.stderr.take().unwrap());
        let mut banner = String::new();
        while !banner.contains("ctrl-c stops") {
            let read = stderr.read_line(&mut banner).unwrap();
            assert_ne!(read, 0, "the server exited: {banner}");
        }
        let url = banner
            .split_whitespace()
            .find(|word| word.starts_with("http://"))
            .unwrap();
        Self {
            address: url.trim_start_matches("http://").to_owned(),
            lango,
            child,
            banner,
            stderr,
        }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Returns the output of its start.
    pub(crate) fn banner(&self) -> &str {
        &self.banner
    }

    pub(crate) fn token(&self) -> String {
        let file = self.lango.home().join("server-token");
        fs::read_to_string(file).unwrap().trim().to_owned()
    }

    /// Returns the number of tasks in its database.
    pub(crate) fn task_count(&self) -> usize {
        self.query("SELECT id FROM tasks").len()
    }

    /// Returns the context ids of these tasks.
    pub(crate) fn contexts(&self) -> Vec<String> {
        self.query("SELECT DISTINCT context FROM tasks")
    }

    fn query(&self, sql: &str) -> Vec<String> {
        let database = Connection::open(self.lango.database()).unwrap();
        let mut statement = database.prepare(sql).unwrap();
        let rows = statement.query_map([], |row| row.get(0)).unwrap();
        rows.collect::<Result<_, _>>().unwrap()
    }

    /// Makes a JSON-RPC call with the token.
    pub(crate) fn rpc(&self, method: &str, params: Value) -> Value {
        let body = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
        let (_, body) = self.post(&body.to_string());
        serde_json::from_str(&body).unwrap()
    }

    /// Sends a message and returns the text of the answer.
    pub(crate) fn ask(&self, text: &str) -> String {
        let sent = self.rpc("SendMessage", message(text));
        let answer = &sent["result"]["task"]["artifacts"][0]["parts"][0]["text"];
        answer
            .as_str()
            .unwrap_or_else(|| panic!("{sent}"))
            .to_owned()
    }

    pub(crate) fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(&self.address).unwrap();
        stream.set_read_timeout(Some(TIMEOUT)).unwrap();
        stream
    }

    /// Returns an HTTP request with the token, which closes the connection.
    pub(crate) fn request(&self, body: &str) -> String {
        format!(
            "POST / HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {}\r\nA2A-Version: 1.0\r\n\
             Content-Type: application/json\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{body}",
            self.address,
            self.token(),
            body.len()
        )
    }

    /// Sends a request and returns the head and the body of the response.
    pub(crate) fn post(&self, body: &str) -> (String, String) {
        let mut stream = self.connect();
        stream.write_all(self.request(body).as_bytes()).unwrap();
        let mut reply = String::new();
        stream.read_to_string(&mut reply).unwrap();
        let (head, body) = reply.split_once("\r\n\r\n").unwrap();
        (head.to_owned(), body.to_owned())
    }

    /// Waits until the server prints this text. Returns its whole output so far.
    pub(crate) fn wait_for_output(&mut self, text: &str) -> String {
        let _watchdog = Watchdog::of(&self.child);
        let mut output = self.banner.clone();
        while !output.contains(text) {
            let read = self.stderr.read_line(&mut output).unwrap();
            assert_ne!(read, 0, "the server exited: {output}");
        }
        output
    }

    /// Sends SIGTERM and waits. Returns the output until the exit, and the exit code.
    pub(crate) fn end(&mut self) -> (String, Option<i32>) {
        let pid = Pid::from_child(&self.child);
        kill_process(pid, Signal::TERM).unwrap();
        self.wait()
    }

    /// Waits until the server exits. Returns the output until then, and the exit code.
    pub(crate) fn wait(&mut self) -> (String, Option<i32>) {
        let _watchdog = Watchdog::of(&self.child);
        let mut rest = String::new();
        self.stderr.read_to_string(&mut rest).unwrap();
        (rest, self.child.wait().unwrap().code())
    }
}

impl Drop for TestServer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A guard that kills a process after a timeout. Dropping it disarms it.
struct Watchdog(Option<mpsc::Sender<()>>);

impl Watchdog {
    fn of(child: &Child) -> Self {
        let pid = Pid::from_child(child);
        let (sender, called_off) = mpsc::channel();
        thread::spawn(move || {
            if called_off.recv_timeout(TIMEOUT) == Err(RecvTimeoutError::Timeout) {
                let _ = kill_process(pid, Signal::KILL);
            }
        });
        Self(Some(sender))
    }
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        self.0.take();
    }
}

/// Returns a message with a new id. The same id again would be the same task.
pub(crate) fn message(text: &str) -> Value {
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    let id = format!("m-{}", NUMBER.fetch_add(1, Ordering::Relaxed));
    json!({ "message": { "messageId": id, "role": "ROLE_USER", "parts": [{ "text": text }] } })
}

#[test]
fn a_server_prints_its_address_and_its_token_file_which_only_the_owner_can_read() {
    let mut server = TestServer::start();
    let file = server.lango.home().join("server-token");
    assert!(
        server.banner.contains(&file.display().to_string()),
        "{}",
        server.banner
    );
    assert!(!server.banner.contains(&server.token()));
    assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    assert!(server.token().len() >= 32);
    let (printed, code) = server.end();
    assert_eq!(code, Some(0), "{printed}");
    assert!(printed.contains("stopped"), "{printed}");
    let again = TestServer::start_with(Lango::with_home(server.lango.home()), &[]);
    assert_eq!(again.token(), server.token(), "callers keep their token");
}

#[test]
fn a_message_over_http_is_a_turn_with_real_tools() {
    let server = TestServer::start();
    let sent = server.rpc("SendMessage", message("what files are here?"));
    let task = &sent["result"]["task"];
    assert_eq!(task["status"]["state"], "TASK_STATE_COMPLETED", "{sent}");
    assert!(
        task["artifacts"][0]["parts"][0]["text"]
            .as_str()
            .unwrap()
            .contains("notes.md")
    );
    // The sessions of A2A clients are not among the local user's.
    let own = server.lango.run(&["sessions", "list"]).ok();
    assert!(own.stdout.contains("no sessions yet"), "{}", own.stdout);
    let theirs = server
        .lango
        .run(&["sessions", "list", "-c", "session.user=a2a"])
        .ok();
    assert!(
        theirs.stdout.contains("what files are here?"),
        "{}",
        theirs.stdout
    );
}

#[test]
fn a_write_that_a_client_requests_waits_for_the_local_user() {
    let server = TestServer::start();
    let sent = server.rpc("SendMessage", message("create notes/a.md with the word hi"));
    let task = sent["result"]["task"].clone();
    assert_eq!(
        task["status"]["state"], "TASK_STATE_AUTH_REQUIRED",
        "{sent}"
    );
    let listed = server
        .lango
        .run(&["approvals", "list", "--json"])
        .ok()
        .json();
    let id = listed["waiting"][0]["id"].as_str().unwrap().to_owned();
    assert!(
        task["status"]["message"]["parts"][0]["text"]
            .as_str()
            .unwrap()
            .contains(&id)
    );
    let shown = server.lango.run(&["approvals"]).ok().stdout;
    assert!(shown.contains("requested by a2a"), "{shown}");
    let session = listed["waiting"][0]["session"].as_str().unwrap();
    server.lango.run(&["sessions", "show", session]).ok();
    let file = server.lango.workspace().join("notes/a.md");
    assert!(!file.exists());
    server.lango.run(&["approvals", "answer", &id, "yes"]).ok();
    assert_eq!(fs::read_to_string(file).unwrap().trim(), "hi");
    let got = server.rpc("GetTask", json!({ "id": task["id"] }));
    assert_eq!(
        got["result"]["status"]["state"], "TASK_STATE_COMPLETED",
        "{got}"
    );
}

#[test]
fn tasks_survive_a_restart_of_the_server() {
    let mut server = TestServer::start();
    let sent = server.rpc("SendMessage", message("hello"));
    let id = sent["result"]["task"]["id"].clone();
    assert_eq!(server.end().1, Some(0));
    let again = TestServer::start_with(Lango::with_home(server.lango.home()), &[]);
    let got = again.rpc("GetTask", json!({ "id": id }));
    assert_eq!(
        got["result"]["status"]["state"], "TASK_STATE_COMPLETED",
        "{got}"
    );
}

impl TestServer {
    /// Starts a task and returns its id as soon as it is acknowledged.
    fn start_task(&self, text: &str, context: &str) -> Value {
        let mut params = message(text);
        params["message"]["contextId"] = json!(context);
        params["configuration"] = json!({ "returnImmediately": true });
        self.rpc("SendMessage", params)["result"]["task"]["id"].take()
    }

    /// Polls a task until it is completed.
    fn until_done(&self, id: &Value) {
        let before = Instant::now();
        loop {
            let got = self.rpc("GetTask", json!({ "id": id }));
            if got["result"]["status"]["state"] == "TASK_STATE_COMPLETED" {
                return;
            }
            assert!(before.elapsed() < TIMEOUT, "{got}");
            thread::sleep(Duration::from_millis(20));
        }
    }
}

#[test]
fn tasks_of_a_killed_server_are_done_once_by_another_process() {
    let first = TestServer::start();
    let here = first.lango.sibling();
    let other = TestServer::start_with(here.sibling(), &[]);
    let mut ids = Vec::new();
    for number in 0..24 {
        // Several tasks share a conversation.
        let context = format!("c-{}", number % 16);
        ids.push(first.start_task("hello", &context));
    }
    drop(first);
    // One process was killed, the other keeps running.
    for id in &ids[..12] {
        other.until_done(id);
    }
    drop(other);
    let next = TestServer::start_with(here, &[]);
    for id in &ids {
        next.until_done(id);
    }
    assert_eq!(next.query("SELECT turn FROM turns").len(), 24);
    assert_eq!(next.query("SELECT DISTINCT turn FROM turns").len(), 24);
}

#[test]
fn a_used_port_is_reported_with_a_next_step() {
    let server = TestServer::start();
    let port = server.address.rsplit(':').next().unwrap().to_owned();
    let ran = server.lango.run(&["serve", "--port", &port]);
    assert_eq!(ran.code, Some(3));
    assert!(
        ran.stderr.contains("cannot listen on") && ran.stderr.contains("--port 0"),
        "{}",
        ran.stderr
    );
}

#[test]
fn without_a_token_a_server_listens_only_on_loopback() {
    let lango = Lango::new();
    let open = ["-c", "server.requireToken=false"];
    let ran = lango.run(&[&["serve", "--host", "0.0.0.0"], &open[..]].concat());
    assert_eq!(ran.code, Some(3));
    assert!(ran.stderr.contains("server.requireToken"), "{}", ran.stderr);
    let server = TestServer::start_with(lango, &open);
    assert!(server.banner.contains("token   none"), "{}", server.banner);
}

#[test]
fn an_idle_server_stops_quickly() {
    let mut server = TestServer::start();
    let before = Instant::now();
    let (printed, code) = server.end();
    assert_eq!(code, Some(0), "{printed}");
    assert!(before.elapsed() < TIMEOUT);
}

#[test]
fn a_server_answers_to_its_configured_hosts_and_its_card_has_the_public_url() {
    let more = [
        "-c",
        "server.hosts=lango.lan",
        "-c",
        "server.publicUrl=https://lango.example/a2a",
    ];
    let server = TestServer::start_with(Lango::new(), &more);
    let status = |host: &str| {
        let mut stream = TcpStream::connect(&server.address).unwrap();
        stream.set_read_timeout(Some(TIMEOUT)).unwrap();
        let path = "/.well-known/agent-card.json";
        let request = format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).unwrap();
        let mut reply = String::new();
        stream.read_to_string(&mut reply).unwrap();
        reply
    };
    for host in ["lango.lan", "lango.example", "127.0.0.1"] {
        let reply = status(host);
        assert!(reply.starts_with("HTTP/1.1 200"), "{host}: {reply}");
        assert!(
            reply.contains("\"url\":\"https://lango.example/a2a\""),
            "{reply}"
        );
    }
    assert!(status("other.lan").starts_with("HTTP/1.1 403"));
}
