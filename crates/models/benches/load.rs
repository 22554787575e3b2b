//! Measures many concurrent sessions on SQLite with a model on loopback that takes 50 ms for each reply:
//! `cargo bench -p lango-models --bench load`, or `-- short` for a tenth of the load.
//!
//! The model is a separate process, so that only lango is measured.

use lango_core::{
    AgentName, EventBody, EventRange, Outcome, SessionId, SessionStore, Tool, UserId,
};
use lango_engine::{
    CancelToken, Gate, Runner, RunnerParts, Topology, Tree, TreeSettings, turn_updates,
};
use lango_models::{Provider, ProviderFamily, ProviderSettings, ProviderTimeouts, ResilientModel};
use lango_store::Store;
use lango_testkit::tool::CountingTool;
use rustix::time::{ClockId, clock_gettime};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

const LATENCY: Duration = Duration::from_millis(50);
const TURNS: usize = 5;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .expect("a runtime");
    if arguments.iter().any(|argument| argument == "serve") {
        runtime.block_on(serve());
    } else {
        let sessions = if arguments.iter().any(|argument| argument == "short") {
            20
        } else {
            200
        };
        runtime.block_on(measure(sessions));
    }
}

async fn measure(sessions: usize) {
    let (mut server, address) = start_server();
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("load.db");
    let store = Arc::new(
        Store::open_sqlite(&path, AgentName::from("lango-orchestrator")).expect("a database"),
    );
    let runner = runner(Arc::clone(&store) as Arc<dyn SessionStore>, &address);

    let cpu = cpu_seconds();
    let began = Instant::now();
    let tasks: Vec<_> = (0..sessions)
        .map(|number| tokio::spawn(talk(runner.clone(), number)))
        .collect();
    let mut times = Vec::new();
    let mut ids = Vec::new();
    for task in tasks {
        let (session, own) = task.await.expect("no session breaks");
        times.extend(own);
        ids.push(session);
    }
    let elapsed = began.elapsed().as_secs_f64();
    let cpu = cpu_seconds() - cpu;
    for (number, session) in ids.iter().enumerate() {
        check(&*store, session, number).await;
    }
    let _ = server.kill();
    let _ = server.wait();

    times.sort();
    let turns = times.len();
    let at = |share: f64| times[((turns - 1) as f64 * share) as usize].as_secs_f64() * 1e3;
    println!(
        "{sessions} sessions × {TURNS} one-tool turns, model latency {} ms, SQLite",
        LATENCY.as_millis()
    );
    println!(
        "  {:.0} turns/s (the latency allows {:.0})",
        turns as f64 / elapsed,
        sessions as f64 / 0.15
    );
    println!("  p50 {:.0} ms, p99 {:.0} ms", at(0.5), at(0.99));
    println!("  {:.2} ms of CPU per turn", cpu * 1e3 / turns as f64);
    println!("  peak memory {} MB", peak_kilobytes() / 1024);
    println!("  no error, every author right, no event lost ({turns} turns checked in the log)");
}

/// Runs the turns of one session and returns their durations.
async fn talk(runner: Runner, number: usize) -> (SessionId, Vec<Duration>) {
    let mut conversation = runner.start(UserId::from("local"));
    let (sender, mut shown) = turn_updates();
    let watching = tokio::spawn(async move { while shown.recv().await.is_some() {} });
    let mut times = Vec::new();
    for turn in 0..TURNS {
        let began = Instant::now();
        let question = format!("session {number}, turn {turn}: what does a.txt say?");
        let report = conversation
            .turn(question.as_str(), &CancelToken::new(), &sender)
            .await
            .expect("the turn is stored")
            .finished()
            .expect("nothing is asked for");
        assert!(
            matches!(report.outcome, Outcome::Answered { limit: None }),
            "{report:?}"
        );
        assert_eq!(
            report.answer.as_deref(),
            Some(format!("answer for session {number}").as_str())
        );
        times.push(began.elapsed());
    }
    drop(sender);
    let _ = watching.await;
    (conversation.session().clone(), times)
}

/// Checks that every event of this session exists, in order and with the right author.
async fn check(store: &dyn SessionStore, session: &SessionId, number: usize) {
    let events = store
        .read(
            session,
            EventRange {
                from: 1,
                limit: 10_000,
            },
        )
        .await
        .expect("the log");
    assert_eq!(events.len(), TURNS * 8, "no event lost");
    for (at, event) in events.iter().enumerate() {
        assert_eq!(event.seq, at as u64 + 1);
        let expected = [
            "user",
            "lango-orchestrator",
            "lango-orchestrator",
            "operator",
            "operator",
            "operator",
            "operator",
            "lango-orchestrator",
        ];
        assert_eq!(event.author, expected[at % 8]);
        if let EventBody::UserMessage { text, .. } = &event.body {
            assert!(text.starts_with(&format!("session {number},")));
        }
    }
}

fn runner(store: Arc<dyn SessionStore>, address: &str) -> Runner {
    let tools: Vec<Arc<dyn Tool>> = vec![Arc::new(CountingTool::new("fs_read"))];
    let specs = tools
        .iter()
        .map(|tool| Arc::new(tool.spec().clone()))
        .collect();
    let topology = Topology::built_in("specialists").expect("built in");
    let tree = Arc::new(
        Tree::multi(&topology, specs, Vec::new(), &TreeSettings::default()).expect("a tree"),
    );
    let provider = Provider::new(ProviderSettings {
        id: "load".to_owned(),
        kind: ProviderFamily::OpenAi,
        api: None,
        base_url: format!("http://{address}/v1"),
        api_key: None,
        plain_http: lango_net::PlainHttp::LocalOnly,
        masks: lango_secrets::Masks::default(),
        key_source: String::new(),
        stream: true,
        context_tokens: None,
        default_context_tokens: None,
        timeouts: ProviderTimeouts::default(),
    });
    let gate = Gate::new(&tree, tools).expect("a gate");
    let model = ResilientModel::new(Arc::new(provider.model("any")), Vec::new());
    Runner::new(RunnerParts::new(tree, gate, Arc::new(model), store))
}

fn start_server() -> (Child, String) {
    let program = std::env::current_exe().expect("our own path");
    let mut child = Command::new(program)
        .arg("serve")
        .stdout(Stdio::piped())
        .spawn()
        .expect("the model starts");
    let mut line = String::new();
    let output = child.stdout.take().expect("its output");
    BufReader::new(output)
        .read_line(&mut line)
        .expect("its address");
    (child, line.trim().to_owned())
}

async fn serve() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    println!("{}", listener.local_addr().expect("an address"));
    while let Ok((stream, _)) = listener.accept().await {
        tokio::spawn(answer_requests(stream));
    }
}

async fn answer_requests(mut stream: TcpStream) -> Option<()> {
    let mut buffer = Vec::new();
    stream.set_nodelay(true).ok()?;
    loop {
        let body = read_body(&mut stream, &mut buffer).await?;
        tokio::time::sleep(LATENCY).await;
        let reply = reply_to(&body);
        let head = format!(
            "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: {}\r\n\r\n",
            reply.len()
        );
        stream
            .write_all(format!("{head}{reply}").as_bytes())
            .await
            .ok()?;
    }
}

async fn read_body(stream: &mut TcpStream, buffer: &mut Vec<u8>) -> Option<Value> {
    loop {
        if let Some(end) = buffer.windows(4).position(|window| window == b"\r\n\r\n") {
            let head = String::from_utf8_lossy(&buffer[..end]).to_lowercase();
            let length: usize = head
                .split("content-length: ")
                .nth(1)?
                .lines()
                .next()?
                .trim()
                .parse()
                .ok()?;
            if buffer.len() >= end + 4 + length {
                let body = serde_json::from_slice(&buffer[end + 4..end + 4 + length]).ok();
                buffer.drain(..end + 4 + length);
                return body;
            }
        }
        if stream.read_buf(buffer).await.ok()? == 0 {
            return None;
        }
    }
}

/// Returns the model's replies: delegate, call the tool, answer.
fn reply_to(body: &Value) -> String {
    let messages = body["messages"]
        .as_array()
        .map(Vec::as_slice)
        .unwrap_or_default();
    let last = messages.last().cloned().unwrap_or_default();
    let text = last["content"].as_str().unwrap_or_default();
    let call = |name: &str, arguments: Value| json!({ "tool_calls": [{ "index": 0, "id": "c", "function": { "name": name, "arguments": arguments.to_string() } }] });
    let delta = if last["role"] == "tool" {
        let brief = messages[1]["content"].as_str().unwrap_or_default();
        let number = brief
            .rsplit("session ")
            .next()
            .and_then(|rest| rest.split(',').next())
            .unwrap_or_default();
        json!({ "content": format!("answer for session {number}") })
    } else if text.contains("## Task") {
        call("fs_read", json!({ "path": "a.txt" }))
    } else {
        call(
            "delegate",
            json!({ "agent": "operator", "task": text, "finish": true }),
        )
    };
    let frames = [
        json!({ "choices": [{ "delta": delta }] }),
        json!({ "choices": [{ "delta": {}, "finish_reason": "stop" }] }),
        json!({ "choices": [], "usage": { "prompt_tokens": 500, "completion_tokens": 20 } }),
    ];
    let frames: String = frames
        .iter()
        .map(|frame| format!("data: {frame}\n\n"))
        .collect();
    format!("{frames}data: [DONE]\n\n")
}

fn cpu_seconds() -> f64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

fn peak_kilobytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status
        .lines()
        .find(|line| line.starts_with("VmHWM"))
        .unwrap_or_default();
    line.split_whitespace()
        .nth(1)
        .and_then(|number| number.parse().ok())
        .unwrap_or(0)
}
