//! The settings of a single remote agent, through the real binary: its headers and its timeout.

use crate::lango::{Lango, RunResult, finish, text};
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

/// A remote agent that answers each task after a while, and records the heads of its requests.
struct Agent {
    address: SocketAddr,
    heads: Arc<Mutex<Vec<String>>>,
}

impl Agent {
    fn start(answers_after: Duration) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let heads = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&heads);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let seen = Arc::clone(&seen);
                thread::spawn(move || serve(stream, address, answers_after, &seen));
            }
        });
        Self { address, heads }
    }

    /// Runs a turn that delegates to it, with additional settings besides its name and URL.
    fn delegate_from(&self, lango: &Lango, settings: &str, arguments: &[&str]) -> RunResult {
        lango.home_file(
            "lango.toml",
            format!(
                "[a2a]\nremoteAgents = [{{ name = \"weather\", agentCardUrl = \"http://{}\"{settings} }}]\n",
                self.address
            ),
        );
        let arguments = [&["run", "--json", "ask weather: is it raining?"], arguments].concat();
        let mut command = lango.command(&arguments);
        command.env("WEATHER_KEY", "k3y-of-the-weather");
        finish(&mut command, b"")
    }
}

fn serve(
    mut stream: TcpStream,
    address: SocketAddr,
    answers_after: Duration,
    seen: &Mutex<Vec<String>>,
) {
    let mut request = Vec::new();
    let mut buffer = [0; 4096];
    let head = loop {
        let read = stream.read(&mut buffer).unwrap_or(0);
        if read == 0 {
            return;
        }
        request.extend_from_slice(&buffer[..read]);
        let whole = String::from_utf8_lossy(&request).into_owned();
        if let Some((head, _)) = whole.split_once("\r\n\r\n") {
            break head.to_lowercase();
        }
    };
    seen.lock().unwrap().push(head.clone());
    let body: Value = if head.starts_with("get ") {
        json!({
            "name": "weather", "description": "Knows the weather",
            "supportedInterfaces": [{ "url": format!("http://{address}/"), "protocolBinding": "JSONRPC" }],
        })
    } else {
        thread::sleep(answers_after);
        let parts = json!([{ "text": "it rains" }]);
        let message = json!({ "messageId": "1", "role": "ROLE_AGENT", "parts": parts });
        json!({ "jsonrpc": "2.0", "id": 1, "result": { "message": message } })
    };
    let body = body.to_string();
    let answer = format!(
        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    );
    let _ = stream.write_all(answer.as_bytes());
}

#[test]
fn headers_of_a_remote_agent_are_sent_with_all_requests_and_never_shown() {
    let (agent, lango) = (Agent::start(Duration::ZERO), Lango::new());
    let headers = ", headersEnv = { X-API-Key = \"WEATHER_KEY\" }";
    let ran = agent.delegate_from(&lango, headers, &[]).ok();
    assert_eq!(text(&ran.json()["answer"]), "it rains");
    let heads = agent.heads.lock().unwrap().clone();
    assert!(
        heads.iter().any(|head| head.starts_with("post ")),
        "{heads:?}"
    );
    for head in &heads {
        assert!(head.contains("x-api-key: k3y-of-the-weather"), "{head}");
        assert!(!head.contains("authorization"), "{head}");
    }
    let shown = lango.run(&["config", "show"]).ok().stdout;
    assert!(
        shown.contains("x-api-key") && shown.contains("WEATHER_KEY"),
        "{shown}"
    );
    assert!(!shown.contains("k3y-of"), "{shown}");
}

#[test]
fn a_remote_agent_with_a_missing_header_variable_is_left_out_with_a_warning() {
    let (agent, lango) = (Agent::start(Duration::ZERO), Lango::new());
    let headers = ", headersEnv = { X-API-Key = \"MISSING_KEY\" }";
    let ran = agent.delegate_from(&lango, headers, &[]);
    let warning =
        "its header `x-api-key` cannot be used: the environment variable `MISSING_KEY` is not set";
    assert!(ran.stderr.contains(warning), "{}", ran.stderr);
    assert!(
        agent.heads.lock().unwrap().is_empty(),
        "nothing is sent without it"
    );
}

#[test]
fn the_timeout_of_a_remote_agent_replaces_the_tool_timeout() {
    let agent = Agent::start(Duration::from_secs(3));
    // Longer than a tool call.
    let ran = agent.delegate_from(
        &Lango::new(),
        ", timeout = \"1m\"",
        &["-c", "agent.toolTimeout=1s"],
    );
    assert_eq!(text(&ran.ok().json()["answer"]), "it rains");
    // Shorter than a tool call.
    let silent = Agent::start(Duration::from_secs(600));
    let before = Instant::now();
    let ran = silent.delegate_from(&Lango::new(), ", timeout = \"1s\"", &[]);
    assert!(
        before.elapsed() < Duration::from_secs(30),
        "{:?}",
        before.elapsed()
    );
    let printed = format!("{}{}", ran.stdout, ran.stderr);
    assert!(printed.contains("no answer within 1 s"), "{printed}");
}

#[test]
fn invalid_settings_of_a_remote_agent_are_refused_with_the_valid_form() {
    let (agent, lango) = (Agent::start(Duration::ZERO), Lango::new());
    for (settings, expected) in [
        (", timeout = \"0s\"", "`timeout` is greater than zero"),
        (", timeout = 30", "a duration with its unit"),
        (", headersEnv = \"KEY\"", "{ X-API-Key ="),
        (", headersEnv = { \"X Key\" = \"KEY\" }", "{ X-API-Key ="),
        (", headersEnv = { X-Key = \"\" }", "{ X-API-Key ="),
        (
            ", headersEnv = { Host = \"KEY\" }",
            "does not contain `Host`",
        ),
        (
            ", headersEnv = { X-Key = \"A\", x-key = \"B\" }",
            "`headersEnv` contains `",
        ),
        (
            ", tokenEnv = \"T\", headersEnv = { Authorization = \"A\" }",
            "not both",
        ),
        (", patience = \"1s\"", "`headersEnv` and `timeout`"),
    ] {
        let ran = agent.delegate_from(&lango, settings, &[]);
        assert_eq!(ran.code, Some(3), "{settings}: {}", ran.stderr);
        assert!(ran.stderr.contains(expected), "{settings}: {}", ran.stderr);
    }
    assert!(agent.heads.lock().unwrap().is_empty());
}
