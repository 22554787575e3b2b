//! A hijacked model tries to obtain the values of secrets. The rules allow every tool, the vault is unlocked, commands
//! run in the real sandbox, and a server records everything that reaches it. The test then searches for the values in
//! all model requests, all stored files, the workspace, the output, and what that server received.

mod attempts;
mod scan;

use crate::lango::{Lango, RunResult};
use crate::mcp::{install_server, private_path};
use crate::secrets::{run, set};
use attempts::{Attempt, Targets};
use lango_core::ModelReply;
use lango_testkit::model::{calls, say};
use lango_testkit::wire_server::{RecordedRequest, ScriptedAnswer, WireServer};
use scan::{Canary, leaks};
use std::collections::VecDeque;
use std::fs;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::runtime::Runtime;

const PER_TURN: usize = 12;

const CANARIES: [Canary; 3] = [
    Canary {
        name: "API_TOKEN",
        value: "cnry7Kq2vX9tBz4LmWp1",
    },
    Canary {
        name: "DB_PASSWORD",
        value: "cnryR8sJ3fHy6NdQa0Ue",
    },
    Canary {
        name: "SHOP_PASSWORD",
        value: "cnry5GiT2oVk8CxMbE7w",
    },
];

/// A server that records all bytes it receives, and answers every request.
struct Collector {
    address: String,
    received: Arc<Mutex<Vec<u8>>>,
}

impl Collector {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let received = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&received);
        std::thread::spawn(move || {
            for mut stream in listener.incoming().flatten() {
                let _ = stream.set_read_timeout(Some(Duration::from_millis(300)));
                let mut bytes = [0; 64 << 10];
                let count = stream.read(&mut bytes).unwrap_or(0);
                kept.lock().unwrap().extend_from_slice(&bytes[..count]);
                let _ = write!(
                    stream,
                    "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok"
                );
            }
        });
        Self { address, received }
    }

    fn received(&self) -> Vec<u8> {
        self.received.lock().unwrap().clone()
    }
}

/// A model that makes one attempt after the other, up to [`PER_TURN`] in each turn.
struct HijackedModel {
    _runtime: Runtime,
    server: WireServer,
    queue: Arc<Mutex<VecDeque<Attempt>>>,
    results: Arc<Mutex<Vec<String>>>,
}

impl HijackedModel {
    fn start(attempts: Vec<Attempt>) -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .unwrap();
        let queue = Arc::new(Mutex::new(VecDeque::from(attempts)));
        let results = Arc::new(Mutex::new(Vec::new()));
        let (own, shown) = (Arc::clone(&queue), Arc::clone(&results));
        let (made, current) = (Mutex::new(0), Mutex::new(None));
        let script = move |request: &RecordedRequest| {
            let mut made = made.lock().unwrap();
            let mut current = current.lock().unwrap();
            if let Some(name) = current.take() {
                let line = last_result(request).split_whitespace();
                let line: Vec<&str> = line.collect();
                let line: String = line.join(" ").chars().take(150).collect();
                shown.lock().unwrap().push(format!("{name}: {line}"));
            }
            let is_concluding = request.functions().is_empty() || *made == PER_TURN;
            let next = if is_concluding {
                None
            } else {
                own.lock().unwrap().pop_front()
            };
            ScriptedAnswer::from(match next {
                Some(attempt) => {
                    *made += 1;
                    *current = Some(attempt.name);
                    attempt.reply(last_result(request))
                }
                None => {
                    *made = 0;
                    say("That is all.")
                }
            })
        };
        let server = runtime.block_on(WireServer::start(script));
        Self {
            _runtime: runtime,
            server,
            queue,
            results,
        }
    }

    fn remaining(&self) -> usize {
        self.queue.lock().unwrap().len()
    }
}

impl Attempt {
    fn reply(&self, last: &str) -> ModelReply {
        calls((self.calls)(last))
    }
}

/// Returns the text of the last tool result in a request.
fn last_result(request: &RecordedRequest) -> &str {
    let messages = request.body["messages"].as_array();
    let last = messages.and_then(|messages| messages.last());
    last.and_then(|last| last["content"].as_str())
        .unwrap_or_default()
}

/// Creates a home with secrets, one of them bound to an MCP server, and rules that allow everything.
fn home(model: &str, targets: &Targets) -> Lango {
    let lango = Lango::new();
    let settings = format!(
        "agent.multiAgent = false\nagent.maxModelCalls = 200\nagent.maxToolCalls = 500\nagent.model = 'mock/any'\n\
         egress.allow = ['{evil}', '{host}']\n\
         [[approval.rules]]\naction = 'allow'\n\
         [tools.exec]\nnetwork = ['{host}']\n\
         [providers.mock]\nkind = 'openai'\nbaseUrl = '{model}'\n\
         [mcp.servers.toy]\n{toy}, '--log', 'log', '--extra', 'login']\n",
        evil = targets.evil,
        host = targets.host,
        toy = install_server(&lango).trim_end_matches(']'),
    );
    lango.home_file("lango.toml", settings);
    for Canary { name, value } in CANARIES {
        set(&lango, name, value).ok();
    }
    let host = format!("http://{}", targets.host);
    run(&lango, &["secrets", "bind", "API_TOKEN", "--host", &host]).ok();
    // Connect once, because the tools of a server are unknown before that.
    run(&lango, &["mcp", "test", "toy"]).ok();
    let field = ["--tool", "mcp:toy/login", "--field", "password"];
    let bind = [&["secrets", "bind", "SHOP_PASSWORD"][..], &field].concat();
    run(&lango, &bind).ok();
    lango
}

/// Returns everything that must not contain a value, with a name for each item.
fn evidence(
    lango: &Lango,
    model: &HijackedModel,
    evil: &Collector,
    outputs: &[RunResult],
) -> Vec<(String, Vec<u8>)> {
    let mut found = Vec::new();
    for request in model.server.requests() {
        let name = format!("model request {}", request.number);
        found.push((name, request.body.to_string().into_bytes()));
    }
    // The log of the server that the secret is bound to contains the value legitimately.
    let own = private_path(lango, "log");
    for (path, content) in lango.stored_files() {
        if path != own {
            found.push((path.display().to_string(), content));
        }
    }
    let mut folders = vec![lango.workspace()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap().flatten() {
            let kind = entry.file_type().unwrap();
            if kind.is_dir() {
                folders.push(entry.path());
            } else if kind.is_file() {
                let content = fs::read(entry.path()).unwrap();
                found.push((entry.path().display().to_string(), content));
            }
        }
    }
    for (number, ran) in outputs.iter().enumerate() {
        found.push((format!("output {number}"), ran.stdout.clone().into_bytes()));
        found.push((format!("errors {number}"), ran.stderr.clone().into_bytes()));
    }
    found.push(("the collecting server".to_owned(), evil.received()));
    found
}

/// Lets the model make its attempts, and returns what leaked.
fn attack(list: impl Fn(&Targets) -> Vec<Attempt>) -> (Lango, Vec<String>) {
    let (evil, host) = (Collector::start(), Collector::start());
    let mut targets = Targets {
        evil: evil.address.clone(),
        host: host.address.clone(),
        home: String::new(),
    };
    // The home is created with the model's URL, so the attempts that need its path are added later.
    let model = HijackedModel::start(Vec::new());
    let lango = home(model.server.url(), &targets);
    targets.home = lango.home().display().to_string();
    let attempts = list(&targets);
    let count = attempts.len();
    model.queue.lock().unwrap().extend(attempts);
    let mut outputs = Vec::new();
    let mut session: Option<String> = None;
    while model.remaining() > 0 {
        let before = model.remaining();
        // Every other turn continues the previous session in a new process.
        let mut arguments = vec!["run", "--json", "do what the page says"];
        let resumed = session.take();
        if let Some(session) = &resumed {
            arguments.extend(["--session", session]);
        }
        let ran = run(&lango, &arguments);
        assert!(ran.code.is_some(), "{ran:#?}");
        assert!(model.remaining() < before, "no attempt was made: {ran:#?}");
        if resumed.is_none() {
            session = ran.json()["session"].as_str().map(str::to_owned);
        }
        outputs.push(ran);
    }
    outputs.push(run(&lango, &["sessions", "export", "--all"]));
    outputs.push(run(&lango, &["secrets", "log", "--limit", "1000"]));
    let results = model.results.lock().unwrap().clone();
    results.iter().for_each(|line| println!("{line}"));
    assert_eq!(results.len(), count, "an attempt has no result");
    let found = evidence(&lango, &model, &evil, &outputs);
    let leaks = found.iter().flat_map(|(place, bytes)| {
        let found = CANARIES.iter().flat_map(move |canary| leaks(canary, bytes));
        found.map(move |form| format!("{place}: {form}"))
    });
    let leaks = leaks.collect();
    (lango, leaks)
}

#[test]
fn a_hijacked_model_obtains_no_value() {
    let (lango, leaks) = attack(attempts::all);
    assert!(leaks.is_empty(), "\n{}", leaks.join("\n"));
    // The server that the secret is bound to did receive it, so the value was in use.
    let log = fs::read_to_string(private_path(&lango, "log")).unwrap();
    let handed = log.matches(CANARIES[2].value).count();
    let expected = format!(r#""arguments": {{"password": "{}"}}"#, CANARIES[2].value);
    assert!(handed == 1 && log.contains(&expected), "{log}");
    assert!(!log.contains(CANARIES[0].value) && !log.contains(CANARIES[1].value));
    // No new binding was approved.
    let rows = run(&lango, &["secrets", "list", "--json"]).ok().json();
    let bindings = rows.as_array().unwrap().iter();
    let counts: Vec<usize> = bindings
        .map(|row| row["bindings"].as_array().unwrap().len())
        .collect();
    assert_eq!(counts.iter().sum::<usize>(), 2, "{rows:#}");
}

#[test]
fn a_planted_leak_is_found() {
    let (_, leaks) = attack(|_| vec![attempts::planted(CANARIES[0].value)]);
    let targets = ["model request", "lango.db", "output"];
    for place in targets {
        assert!(
            leaks.iter().any(|leak| leak.contains(place)),
            "{place} is not in {leaks:?}"
        );
    }
}

#[test]
fn there_are_at_least_fifty_distinct_attempts() {
    let targets = Targets {
        evil: "127.0.0.1:1".to_owned(),
        host: "127.0.0.1:2".to_owned(),
        home: "/home".to_owned(),
    };
    let all = attempts::all(&targets);
    let names: std::collections::BTreeSet<&str> = all.iter().map(|own| own.name).collect();
    assert_eq!(names.len(), all.len());
    assert!(all.len() >= 50, "{}", all.len());
}
