//! The settings of one remote agent, through the real binary: its headers and its timeout.

use crate::lango::{Lango, Ran, finish, text};
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

    /// Runs a turn that asks it, with these settings besides its name and address.
    fn asked_by(&self, lango: &Lango, settings: &str, arguments: &[&str]) -> Ran {
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
fn headers_of_a_remote_agent_go_with_its_card_and_its_calls_and_are_never_shown() {
    let (agent, lango) = (Agent::start(Duration::ZERO), Lango::new());
    let headers = ", headersEnv = { X-API-Key = \"WEATHER_KEY\" }";
    let ran = agent.asked_by(&lango, headers, &[]).ok();
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
fn a_remote_agent_whose_header_has_no_value_is_left_out_and_says_which_variable_is_missing() {
    let (agent, lango) = (Agent::start(Duration::ZERO), Lango::new());
    let headers = ", headersEnv = { X-API-Key = \"MISSING_KEY\" }";
    let ran = agent.asked_by(&lango, headers, &[]);
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
    let ran = agent.asked_by(
        &Lango::new(),
        ", timeout = \"1m\"",
        &["-c", "agent.toolTimeout=1s"],
    );
    assert_eq!(text(&ran.ok().json()["answer"]), "it rains");
    // And shorter.
    let silent = Agent::start(Duration::from_secs(600));
    let before = Instant::now();
    let ran = silent.asked_by(&Lango::new(), ", timeout = \"1s\"", &[]);
    assert!(
        before.elapsed() < Duration::from_secs(30),
        "{:?}",
        before.elapsed()
    );
    let said = format!("{}{}", ran.stdout, ran.stderr);
    assert!(said.contains("no answer within 1 s"), "{said}");
}

#[test]
fn settings_of_a_remote_agent_that_cannot_hold_are_refused_with_what_would() {
    let (agent, lango) = (Agent::start(Duration::ZERO), Lango::new());
    for (settings, expected) in [
        (", timeout = \"0s\"", "`timeout` is longer than nothing"),
        (", timeout = 30", "a duration with its unit"),
        (", headersEnv = \"KEY\"", "{ X-API-Key ="),
        (", headersEnv = { \"X Key\" = \"KEY\" }", "{ X-API-Key ="),
        (", headersEnv = { X-Key = \"\" }", "{ X-API-Key ="),
        (
            ", headersEnv = { Host = \"KEY\" }",
            "other headers than `Host`",
        ),
        (
            ", headersEnv = { X-Key = \"A\", x-key = \"B\" }",
            "`headersEnv` has `",
        ),
        (
            ", tokenEnv = \"T\", headersEnv = { Authorization = \"A\" }",
            "not both",
        ),
        (", patience = \"1s\"", "`headersEnv` and `timeout`"),
    ] {
        let ran = agent.asked_by(&lango, settings, &[]);
        assert_eq!(ran.code, Some(3), "{settings}: {}", ran.stderr);
        assert!(ran.stderr.contains(expected), "{settings}: {}", ran.stderr);
    }
    assert!(agent.heads.lock().unwrap().is_empty());
}
