//! `lango serve` through the real binary: the banner, the token, a message, and an end in order.

use crate::lango::{Lango, PATIENCE};
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

/// A `lango serve` on a free port, with a home and a workspace of its own.
pub struct Serving {
    pub lango: Lango,
    child: Child,
    address: String,
    banner: String,
    stderr: BufReader<ChildStderr>,
}

impl Serving {
    /// With the built-in model.
    pub fn start() -> Self {
        Self::start_with(Lango::new(), &[])
    }

    /// In this home, with these arguments besides.
    pub fn start_with(lango: Lango, arguments: &[&str]) -> Self {
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
            assert_ne!(read, 0, "it ended: {banner}");
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

    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// What it said when it started.
    pub fn banner(&self) -> &str {
        &self.banner
    }

    pub fn token(&self) -> String {
        let file = self.lango.home().join("server-token");
        fs::read_to_string(file).unwrap().trim().to_owned()
    }

    /// The tasks that were given to it.
    pub fn requests_of_tasks(&self) -> usize {
        self.query("SELECT id FROM tasks").len()
    }

    /// The conversations they were given in.
    pub fn contexts(&self) -> Vec<String> {
        self.query("SELECT DISTINCT context FROM tasks")
    }

    fn query(&self, sql: &str) -> Vec<String> {
        let database = Connection::open(self.lango.database()).unwrap();
        let mut statement = database.prepare(sql).unwrap();
        let rows = statement.query_map([], |row| row.get(0)).unwrap();
        rows.collect::<Result<_, _>>().unwrap()
    }

    /// A JSON-RPC call with the token.
    pub fn rpc(&self, method: &str, params: Value) -> Value {
        let body = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
        let (_, body) = self.post(&body.to_string());
        serde_json::from_str(&body).unwrap()
    }

    /// What it answers to this.
    pub fn say(&self, text: &str) -> String {
        let sent = self.rpc("SendMessage", message(text));
        let said = &sent["result"]["task"]["artifacts"][0]["parts"][0]["text"];
        said.as_str().unwrap_or_else(|| panic!("{sent}")).to_owned()
    }

    pub fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(&self.address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream
    }

    /// Returns a request with the token, after which the connection is closed.
    pub fn request(&self, body: &str) -> String {
        format!(
            "POST / HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {}\r\nA2A-Version: 1.0\r\n\
             Content-Type: application/json\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{body}",
            self.address,
            self.token(),
            body.len()
        )
    }

    /// Returns the head and the body of the answer.
    pub fn post(&self, body: &str) -> (String, String) {
        let mut stream = self.connect();
        stream.write_all(self.request(body).as_bytes()).unwrap();
        let mut reply = String::new();
        stream.read_to_string(&mut reply).unwrap();
        let (head, body) = reply.split_once("\r\n\r\n").unwrap();
        (head.to_owned(), body.to_owned())
    }

    /// Waits until it says this, and gives what it said since it started.
    pub fn until_said(&mut self, words: &str) -> String {
        let _watchdog = Watchdog::of(&self.child);
        let mut said = self.banner.clone();
        while !said.contains(words) {
            let read = self.stderr.read_line(&mut said).unwrap();
            assert_ne!(read, 0, "it ended: {said}");
        }
        said
    }

    /// Sends the signal of a service manager; gives what is said until the end, and the exit code.
    pub fn end(&mut self) -> (String, Option<i32>) {
        let pid = Pid::from_child(&self.child);
        kill_process(pid, Signal::TERM).unwrap();
        self.wait()
    }

    /// Waits until it has ended by itself; gives what is said until then, and the exit code.
    pub fn wait(&mut self) -> (String, Option<i32>) {
        let _watchdog = Watchdog::of(&self.child);
        let mut rest = String::new();
        self.stderr.read_to_string(&mut rest).unwrap();
        (rest, self.child.wait().unwrap().code())
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Kills a process that a test waits for in vain. It is called off when it is dropped.
struct Watchdog(Option<mpsc::Sender<()>>);

impl Watchdog {
    fn of(child: &Child) -> Self {
        let pid = Pid::from_child(child);
        let (sender, called_off) = mpsc::channel();
        thread::spawn(move || {
            if called_off.recv_timeout(PATIENCE) == Err(RecvTimeoutError::Timeout) {
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

/// A message that is said now: the same one again would be the same task.
pub fn message(text: &str) -> Value {
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    let id = format!("m-{}", NUMBER.fetch_add(1, Ordering::Relaxed));
    json!({ "message": { "messageId": id, "role": "ROLE_USER", "parts": [{ "text": text }] } })
}

#[test]
fn a_server_says_where_it_is_and_where_its_token_is_and_nobody_else_can_read_that() {
    let mut serving = Serving::start();
    let file = serving.lango.home().join("server-token");
    assert!(
        serving.banner.contains(&file.display().to_string()),
        "{}",
        serving.banner
    );
    assert!(!serving.banner.contains(&serving.token()));
    assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    assert!(serving.token().len() >= 32);
    let (said, code) = serving.end();
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("stopped"), "{said}");
    let again = Serving::start_with(Lango::with_home(serving.lango.home()), &[]);
    assert_eq!(again.token(), serving.token(), "callers keep their token");
}

#[test]
fn a_message_over_http_is_a_turn_with_real_tools() {
    let serving = Serving::start();
    let sent = serving.rpc("SendMessage", message("what files are here?"));
    let task = &sent["result"]["task"];
    assert_eq!(task["status"]["state"], "TASK_STATE_COMPLETED", "{sent}");
    assert!(
        task["artifacts"][0]["parts"][0]["text"]
            .as_str()
            .unwrap()
            .contains("notes.md")
    );
    // The sessions of callers are not the person's.
    let own = serving.lango.run(&["sessions", "list"]).ok();
    assert!(own.stdout.contains("no sessions yet"), "{}", own.stdout);
    let theirs = serving
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
fn what_a_caller_wants_written_waits_for_the_person_at_this_machine() {
    let serving = Serving::start();
    let sent = serving.rpc("SendMessage", message("create notes/a.md with the word hi"));
    let task = sent["result"]["task"].clone();
    assert_eq!(
        task["status"]["state"], "TASK_STATE_AUTH_REQUIRED",
        "{sent}"
    );
    let listed = serving
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
    let shown = serving.lango.run(&["approvals"]).ok().stdout;
    assert!(shown.contains("asked for by a2a"), "{shown}");
    let session = listed["waiting"][0]["session"].as_str().unwrap();
    serving.lango.run(&["sessions", "show", session]).ok();
    let file = serving.lango.workspace().join("notes/a.md");
    assert!(!file.exists());
    serving.lango.run(&["approvals", "answer", &id, "yes"]).ok();
    assert_eq!(fs::read_to_string(file).unwrap().trim(), "hi");
    let got = serving.rpc("GetTask", json!({ "id": task["id"] }));
    assert_eq!(
        got["result"]["status"]["state"], "TASK_STATE_COMPLETED",
        "{got}"
    );
}

#[test]
fn tasks_survive_the_server() {
    let mut serving = Serving::start();
    let sent = serving.rpc("SendMessage", message("hello"));
    let id = sent["result"]["task"]["id"].clone();
    assert_eq!(serving.end().1, Some(0));
    let again = Serving::start_with(Lango::with_home(serving.lango.home()), &[]);
    let got = again.rpc("GetTask", json!({ "id": id }));
    assert_eq!(
        got["result"]["status"]["state"], "TASK_STATE_COMPLETED",
        "{got}"
    );
}

impl Serving {
    /// Begins a task, and gives its id as soon as it is taken.
    fn begin(&self, text: &str, context: &str) -> Value {
        let mut params = message(text);
        params["message"]["contextId"] = json!(context);
        params["configuration"] = json!({ "returnImmediately": true });
        self.rpc("SendMessage", params)["result"]["task"]["id"].take()
    }

    /// Looks at a task until it is done.
    fn until_done(&self, id: &Value) {
        let before = Instant::now();
        loop {
            let got = self.rpc("GetTask", json!({ "id": id }));
            if got["result"]["status"]["state"] == "TASK_STATE_COMPLETED" {
                return;
            }
            assert!(before.elapsed() < PATIENCE, "{got}");
            thread::sleep(Duration::from_millis(20));
        }
    }
}

#[test]
fn what_a_killed_server_had_taken_is_done_once_by_the_next_or_by_another() {
    let first = Serving::start();
    let here = first.lango.beside();
    let other = Serving::start_with(here.beside(), &[]);
    let mut ids = Vec::new();
    for number in 0..24 {
        // Some conversations have several tasks.
        let context = format!("c-{}", number % 16);
        ids.push(first.begin("hello", &context));
    }
    drop(first);
    // One process is gone, the other stays.
    for id in &ids[..12] {
        other.until_done(id);
    }
    drop(other);
    let next = Serving::start_with(here, &[]);
    for id in &ids {
        next.until_done(id);
    }
    assert_eq!(next.query("SELECT turn FROM turns").len(), 24);
    assert_eq!(next.query("SELECT DISTINCT turn FROM turns").len(), 24);
}

#[test]
fn a_port_that_is_taken_is_said_with_the_way_out() {
    let serving = Serving::start();
    let port = serving.address.rsplit(':').next().unwrap().to_owned();
    let ran = serving.lango.run(&["serve", "--port", &port]);
    assert_eq!(ran.code, Some(3));
    assert!(
        ran.stderr.contains("cannot listen at") && ran.stderr.contains("--port 0"),
        "{}",
        ran.stderr
    );
}

#[test]
fn without_a_token_a_server_stays_on_this_machine() {
    let lango = Lango::new();
    let open = ["-c", "server.requireToken=false"];
    let ran = lango.run(&[&["serve", "--host", "0.0.0.0"], &open[..]].concat());
    assert_eq!(ran.code, Some(3));
    assert!(ran.stderr.contains("server.requireToken"), "{}", ran.stderr);
    let serving = Serving::start_with(lango, &open);
    assert!(
        serving.banner.contains("token   none"),
        "{}",
        serving.banner
    );
}

#[test]
fn a_server_that_is_told_to_stop_ends_soon_with_nothing_to_do() {
    let mut serving = Serving::start();
    let before = Instant::now();
    let (said, code) = serving.end();
    assert_eq!(code, Some(0), "{said}");
    assert!(before.elapsed() < PATIENCE);
}

#[test]
fn a_server_answers_under_the_names_it_is_given_and_its_card_says_where_it_is_reached() {
    let more = [
        "-c",
        "server.hosts=lango.lan",
        "-c",
        "server.publicUrl=https://lango.example/a2a",
    ];
    let serving = Serving::start_with(Lango::new(), &more);
    let status = |host: &str| {
        let mut stream = TcpStream::connect(&serving.address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
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
