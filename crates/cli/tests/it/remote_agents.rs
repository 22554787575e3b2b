//! Remote agents through the real binary: another lango, and agent cards that are broken in many ways.

use crate::lango::{Lango, text};
use crate::serve::TestServer;
use serde_json::json;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

/// More than twice the timeout of a card, for a busy machine.
const WITHIN: Duration = Duration::from_secs(8);

/// Starts a server that answers every connection with this function, which gets the path.
fn serve_with(answer: impl Fn(&str, &mut TcpStream) + Send + Sync + 'static) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let answer = std::sync::Arc::new(answer);
    thread::spawn(move || {
        for stream in listener.incoming() {
            let (Ok(mut stream), answer) = (stream, std::sync::Arc::clone(&answer)) else {
                return;
            };
            thread::spawn(move || {
                let mut request = [0; 4096];
                let read = stream.read(&mut request).unwrap_or(0);
                let request = String::from_utf8_lossy(&request[..read]);
                let path = request.split(' ').nth(1).unwrap_or("/").to_owned();
                answer(&path, &mut stream);
            });
        }
    });
    address
}

fn serve_response(status: &'static str, kind: &'static str, body: impl Into<String>) -> SocketAddr {
    let body = body.into();
    serve_with(move |_, stream| {
        let head = format!(
            "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
            body.len()
        );
        let _ = stream.write_all(format!("{head}{body}").as_bytes());
    })
}

fn card(version: &str, binding: &str) -> String {
    json!({
        "name": "weather", "description": "Knows the weather", "version": "1",
        "supportedInterfaces": [{
            "url": "http://127.0.0.1:9/", "protocolBinding": binding, "protocolVersion": version
        }],
        "capabilities": {}, "defaultInputModes": ["text/plain"], "defaultOutputModes": ["text/plain"],
        "skills": [{ "id": "w", "name": "weather", "description": "tells it", "tags": ["weather"] }]
    })
    .to_string()
}

fn configure(lango: &Lango, agents: &[(&str, String)]) {
    let entry = |(name, url): &(&str, String)| {
        format!("{{ name = \"{name}\", agentCardUrl = \"{url}\", tokenEnv = \"TOKEN\" }}")
    };
    let entries: Vec<String> = agents.iter().map(entry).collect();
    let config = format!("[a2a]\nremoteAgents = [{}]\n", entries.join(", "));
    lango.home_file("lango.toml", config);
}

#[test]
fn r01_remote_agents_come_after_the_local_ones_in_the_order_of_the_configuration() {
    let (other, lango) = (TestServer::start(), Lango::new());
    let agents = [("zebra", other.url()), ("alpha", other.url())];
    configure(&lango, &agents);
    let tree = lango.run(&["agents", "--json"]).ok().json();
    let names: Vec<&str> = tree["agents"]
        .as_array()
        .unwrap()
        .iter()
        .map(|agent| text(&agent["name"]))
        .collect();
    assert_eq!(&names[names.len() - 2..], ["zebra", "alpha"]);
    let shown = lango.run(&["agents"]).ok().stdout;
    assert!(shown.contains("zebra (remote)"), "{shown}");
    assert_eq!(other.task_count(), 0, "only the card was requested");
}

#[test]
fn r03_an_orchestrator_delegates_to_another_lango_whose_answer_has_its_name() {
    let (other, lango) = (TestServer::start(), Lango::new());
    configure(&lango, &[("neighbour", other.url())]);
    let asked = &["run", "--json", "ask neighbour: what files are here?"];
    let mut command = lango.command(asked);
    command.env("TOKEN", other.token());
    let ran = crate::lango::finish(&mut command, b"").ok();
    let report = ran.json();
    assert_eq!(report["author"], "neighbour", "{report}");
    assert!(text(&report["answer"]).contains("notes.md"), "{report}");
    assert_eq!(report["rounds"], 1);
    let session = text(&report["session"]).to_owned();
    let events = lango.events(&session);
    let kinds: Vec<&str> = events.iter().map(|event| text(&event["type"])).collect();
    assert!(kinds.contains(&"remote.accepted"), "{kinds:?}");
    // The next turn continues the same conversation with the remote agent.
    let again = &[
        "run",
        "--json",
        "--session",
        &session,
        "ask neighbour: what files are here?",
    ];
    let mut command = lango.command(again);
    command.env("TOKEN", other.token());
    crate::lango::finish(&mut command, b"").ok();
    assert_eq!(other.contexts().len(), 1, "{:?}", other.contexts());
    assert_eq!(other.task_count(), 2);
}

#[test]
fn a_missing_token_for_a_remote_agent_is_reported_with_its_setting() {
    let (other, lango) = (TestServer::start(), Lango::new());
    configure(&lango, &[("neighbour", other.url())]);
    let ran = lango.run(&["run", "ask neighbour: what files are here?"]);
    let printed = format!("{}{}", ran.stdout, ran.stderr);
    assert!(printed.contains("TOKEN"), "{printed}");
}

#[test]
fn r02_each_broken_card_is_skipped_with_its_reason_and_other_agents_work() {
    let (other, lango) = (TestServer::start(), Lango::new());
    let unreachable = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    let redirecting = serve_with(|path, stream| {
        let head = format!(
            "HTTP/1.1 302 Found\r\nLocation: {path}x\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
        );
        let _ = stream.write_all(head.as_bytes());
    });
    let whole = card("1.0", "JSONRPC");
    let cut = whole[..whole.len() / 2].to_owned();
    let silent = serve_with(|_, _| thread::sleep(Duration::from_secs(30)));
    let dripping = serve_with(|_, stream| {
        let head =
            "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 100000\r\n\r\n{";
        let _ = stream.write_all(head.as_bytes());
        while stream.write_all(b" ").is_ok() {
            thread::sleep(Duration::from_millis(100));
        }
    });
    let json = "application/json";
    let broken = [
        ("unreachable", unreachable, "cannot be reached"),
        (
            "missing",
            serve_response("404 Not Found", json, "{}"),
            "404",
        ),
        (
            "failing",
            serve_response("500 Internal Server Error", json, "{}"),
            "500",
        ),
        (
            "page",
            serve_response("200 OK", "text/html", "<!doctype html><p>Hi"),
            "web page",
        ),
        (
            "truncated",
            serve_response("200 OK", json, cut),
            "in the middle",
        ),
        (
            "old",
            serve_response("200 OK", json, card("0.3", "JSONRPC")),
            "0.3",
        ),
        (
            "grpc-only",
            serve_response("200 OK", json, card("1.0", "GRPC")),
            "GRPC",
        ),
        ("turning", redirecting, "moved more than 5 times"),
        (
            "huge",
            serve_response(
                "200 OK",
                json,
                format!("{{\"name\": \"{}\"}}", "x".repeat(2_000_000)),
            ),
            "longer than",
        ),
        ("silent", silent, "within 3000 ms"),
        ("dripping", dripping, "within 3000 ms"),
    ];
    let mut agents: Vec<(&str, String)> = broken
        .iter()
        .map(|(name, address, _)| (*name, format!("http://{address}")))
        .collect();
    agents.push(("neighbour", other.url()));
    configure(&lango, &agents);
    let before = Instant::now();
    let ran = lango.run(&["run", "what files are here?"]).ok();
    assert!(before.elapsed() < WITHIN, "{:?}", before.elapsed());
    assert!(ran.stdout.contains("notes.md"));
    for (name, _, reason) in broken {
        let warnings: Vec<&str> = ran
            .stderr
            .lines()
            .filter(|line| line.contains(&format!("`{name}`")))
            .collect();
        let [warning] = warnings[..] else {
            panic!("{name}: {warnings:?} in {}", ran.stderr);
        };
        println!("{warning}");
        assert!(warning.contains(reason), "{warning}");
    }
    assert!(!ran.stderr.contains("`neighbour`"), "{}", ran.stderr);
}

#[test]
fn r04_without_a2a_no_card_is_fetched_and_no_remote_agent_exists() {
    let lango = Lango::new();
    let (asked, was_asked) = std::sync::mpsc::channel();
    let address = serve_with(move |path, _| {
        let _ = asked.send(path.to_owned());
    });
    configure(&lango, &[("weather", format!("http://{address}"))]);
    for arguments in [["run", "hello"], ["agents", "--json"]] {
        let arguments = [&arguments[..], &["-c", "a2a.enabled=false"]].concat();
        let ran = lango.run(&arguments).ok();
        assert!(!ran.stdout.contains("weather") && !ran.stderr.contains("weather"));
    }
    let single = lango
        .run(&["run", "hello", "-c", "agent.multiAgent=false"])
        .ok();
    assert!(!single.stderr.contains("weather"));
    assert!(was_asked.try_recv().is_err());
    let enabled = lango.run(&["run", "hello"]).ok();
    assert!(enabled.stderr.contains("`weather`"), "{}", enabled.stderr);
    assert!(was_asked.try_recv().is_ok(), "the card is requested");
}

#[test]
fn r05_a_remote_agent_whose_name_is_taken_is_skipped_with_a_warning() {
    let (other, lango) = (TestServer::start(), Lango::new());
    let taken = ["operator", "navigator", "lango-orchestrator", "user"];
    let mut agents: Vec<(&str, String)> = taken.iter().map(|name| (*name, other.url())).collect();
    agents.push(("neighbour", other.url()));
    agents.push(("neighbour", other.url()));
    configure(&lango, &agents);
    let ran = lango.run(&["run", "what files are here?"]).ok();
    assert!(ran.stdout.contains("notes.md"));
    for name in taken {
        let warning = format!("the remote agent `{name}` is left out: ");
        assert!(ran.stderr.contains(&warning), "{name}: {}", ran.stderr);
    }
    let tree = lango.run(&["agents", "--json"]).ok().json();
    let remote = |agent: &&serde_json::Value| agent["remote"] == true;
    let agents = tree["agents"].as_array().unwrap();
    assert_eq!(agents.iter().filter(remote).count(), 1);
}

#[test]
fn remote_agents_of_an_untrusted_project_are_not_contacted() {
    let lango = Lango::new();
    let (asked, was_asked) = std::sync::mpsc::channel();
    let address = serve_with(move |path, _| {
        let _ = asked.send(path.to_owned());
    });
    let config = format!(
        "[a2a]\nremoteAgents = [{{ name = \"spy\", agentCardUrl = \"http://{address}\" }}]\n"
    );
    lango.file("lango.toml", config);
    let ran = lango.run(&["run", "hello"]).ok();
    assert!(
        ran.stderr.contains("a2a.remoteAgents") && ran.stderr.contains("not trusted"),
        "{}",
        ran.stderr
    );
    assert!(was_asked.try_recv().is_err());
}

#[test]
fn a_remote_agent_that_starts_later_is_available_to_the_next_turn_of_a_server() {
    use std::sync::atomic::{AtomicBool, Ordering};
    let is_up = std::sync::Arc::new(AtomicBool::new(false));
    let now = std::sync::Arc::clone(&is_up);
    let address = serve_with(move |_, stream| {
        let (status, body) = if now.load(Ordering::SeqCst) {
            ("200 OK", card("1.0", "JSONRPC"))
        } else {
            ("503 Service Unavailable", String::new())
        };
        let head = format!(
            "HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
            body.len()
        );
        let _ = stream.write_all(format!("{head}{body}").as_bytes());
    });
    let lango = Lango::new();
    configure(&lango, &[("weather", format!("http://{address}"))]);
    let server = TestServer::start_with(lango, &[]);
    assert!(!server.ask("hello").contains("weather"));
    is_up.store(true, Ordering::SeqCst);
    let before = Instant::now();
    while !server.ask("hello").contains("weather") {
        assert!(
            before.elapsed() < crate::lango::TIMEOUT,
            "the agent is missing"
        );
        thread::sleep(Duration::from_millis(200));
    }
}

#[test]
fn later_runs_do_not_wait_for_a_card_that_hung_until_it_answers_again() {
    use std::sync::atomic::{AtomicBool, Ordering};
    let is_up = std::sync::Arc::new(AtomicBool::new(false));
    let now = std::sync::Arc::clone(&is_up);
    let address = serve_with(move |_, stream| {
        if !now.load(Ordering::SeqCst) {
            thread::sleep(Duration::from_secs(30));
            return;
        }
        let body = card("1.0", "JSONRPC");
        let head = format!(
            "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
            body.len()
        );
        let _ = stream.write_all(format!("{head}{body}").as_bytes());
    });
    let lango = Lango::new();
    configure(&lango, &[("weather", format!("http://{address}"))]);
    let memory = lango.home().join("slow-cards");
    let remembered = || std::fs::read_dir(&memory).map_or(0, |entries| entries.count());

    let before = Instant::now();
    let first = lango.run(&["run", "hello"]).ok();
    let waited = before.elapsed();
    assert!(first.stderr.contains("within 3000 ms"), "{}", first.stderr);
    assert_eq!(remembered(), 1);
    let before = Instant::now();
    let second = lango.run(&["run", "hello"]).ok();
    assert!(
        second.stderr.contains("tries again in the background"),
        "{}",
        second.stderr
    );
    assert!(
        before.elapsed() < waited,
        "{:?} {waited:?}",
        before.elapsed()
    );

    // A server retries in the background. Once the card has answered, all processes wait for it again.
    is_up.store(true, Ordering::SeqCst);
    let server = TestServer::start_with(lango, &[]);
    let before = Instant::now();
    while !server.ask("hello").contains("weather") {
        assert!(
            before.elapsed() < crate::lango::TIMEOUT,
            "the agent is missing"
        );
        thread::sleep(Duration::from_millis(200));
    }
    assert_eq!(remembered(), 0);
    let agents = server.lango.run(&["agents"]).ok();
    assert!(
        agents.stdout.contains("weather (remote)"),
        "{}",
        agents.stdout
    );
}
