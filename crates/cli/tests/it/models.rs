//! Models through the real binary: providers on loopback, their keys, budgets, and the choice of a model.

use crate::lango::{Lango, RunResult, of_type, text};
use lango_core::ModelReply;
use lango_testkit::model::{call, delegate_and_finish, say};
use lango_testkit::wire_server::{ClosedPort, Fault, RecordedRequest, ScriptedAnswer, WireServer};
use serde_json::json;
use tokio::runtime::Runtime;

pub(crate) const KINDS: [&str; 3] = ["openai", "anthropic", "gemini"];

/// A scripted provider that runs on its own threads while the binary runs.
pub(crate) struct Provider {
    _runtime: Runtime,
    pub server: WireServer,
}

impl Provider {
    /// Starts a provider that gives these answers in order.
    pub(crate) fn new<T: Into<ScriptedAnswer>>(answers: Vec<T>) -> Self {
        Self::start(WireServer::scripted(answers))
    }

    /// Starts a provider that computes each answer from the request.
    pub(crate) fn answering(
        script: impl Fn(&RecordedRequest) -> ScriptedAnswer + Send + Sync + 'static,
    ) -> Self {
        Self::start(WireServer::start(script))
    }

    fn start(server: impl Future<Output = WireServer>) -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .unwrap();
        let server = runtime.block_on(server);
        Self {
            _runtime: runtime,
            server,
        }
    }
}

fn one_tool() -> Vec<ModelReply> {
    vec![
        delegate_and_finish("operator", "list the files"),
        call("fs_list", json!({})),
        say("There are notes."),
    ]
}

/// Returns flags that make `mock/any` the model.
pub(crate) fn flags(kind: &str, url: &str) -> Vec<String> {
    [
        format!("providers.mock.kind={kind}"),
        format!("providers.mock.baseUrl={url}"),
        "agent.model=mock/any".to_owned(),
    ]
    .into_iter()
    .flat_map(|flag| ["-c".to_owned(), flag])
    .collect()
}

pub(crate) fn run(lango: &Lango, flags: &[String], more: &[&str]) -> RunResult {
    let arguments: Vec<&str> = ["run"]
        .into_iter()
        .chain(flags.iter().map(String::as_str))
        .chain(more.iter().copied())
        .collect();
    lango.run(&arguments)
}

#[test]
fn every_kind_of_provider_runs_a_turn_with_and_without_streaming() {
    for kind in KINDS {
        for stream in ["true", "false"] {
            let provider = Provider::new(one_tool());
            let lango = Lango::new();
            let stream = format!("providers.mock.stream={stream}");
            let more = ["-c", &stream, "--json", "what files are here?"];
            let ran = run(&lango, &flags(kind, provider.server.url()), &more).ok();
            let summary = ran.json();
            assert_eq!(summary["answer"], "There are notes.", "{kind} {stream}");
            assert_eq!(summary["author"], "operator");
            assert_eq!(
                (&summary["model_calls"], &summary["tool_calls"]),
                (&json!(3), &json!(1))
            );
            assert_eq!(summary["usage"]["input_tokens"], 30, "{kind}");
            assert_eq!(summary["usage"]["output_tokens"], 15);
            assert_eq!(
                (&summary["offline"], &summary["cost_usd"]),
                (&json!(false), &json!(null))
            );
            assert!(
                ran.stderr.contains("30 tokens in, 15 out · cost unknown"),
                "{}",
                ran.stderr
            );
        }
    }
}

#[test]
fn a_key_is_read_only_from_the_configured_variable() {
    let provider = Provider::new(vec![say("hi"), say("hi")]);
    let lango = Lango::new();
    let mut with_key = flags("openai", provider.server.url());
    let without = run(&lango, &with_key, &["hello"]);
    without.ok();
    with_key.extend([
        "-c".to_owned(),
        "providers.mock.apiKeyEnv=MY_KEY".to_owned(),
    ]);
    run(&lango, &with_key, &["hello"]).refused(3, &["MY_KEY (not set)", "export MY_KEY=…"]);
    let mut command = lango.command(&["run"]);
    command
        .args(&with_key)
        .arg("hello")
        .env("MY_KEY", "secret-1")
        .env("OPENAI_API_KEY", "secret-2");
    let output = command.output().unwrap();
    assert!(output.status.success());
    let requests = provider.server.requests();
    assert_eq!(requests[0].header("authorization"), None);
    assert_eq!(requests[1].header("authorization"), Some("Bearer secret-1"));
    assert!(!String::from_utf8_lossy(&output.stderr).contains("secret"));
}

#[test]
fn a_turn_is_limited_by_tokens_and_cost() {
    let provider = Provider::new(one_tool());
    let lango = Lango::new();
    let flags = flags("openai", provider.server.url());
    for (limit, word) in [
        ("agent.maxTokens=0", "tokens"),
        ("agent.maxTokens=100", "tokens"),
    ] {
        let ran = run(
            &lango,
            &flags,
            &["-c", limit, "--json", "what files are here?"],
        );
        assert_eq!(ran.code, Some(5), "{limit}");
        assert_eq!(ran.json()["limit"], word);
        assert_eq!(ran.json()["model_calls"], 0);
    }
    run(&lango, &flags, &["-c", "agent.maxCost=1", "hello"])
        .refused(3, &["price", "not known", "agent.maxTokens"]);
    assert_eq!(provider.server.requests().len(), 0);
    let priced = [
        "-c".to_owned(),
        format!("providers.groq.baseUrl={}", provider.server.url()),
        "-c".to_owned(),
        "agent.model=groq/openai/gpt-oss-120b".to_owned(),
    ];
    let ran = run(
        &lango,
        &priced,
        &["-c", "agent.maxCost=1", "--json", "what files are here?"],
    )
    .ok();
    assert!(ran.json()["cost_usd"].as_f64().unwrap() > 0.0);
    let ran = run(
        &lango,
        &priced,
        &["-c", "agent.maxCost=0", "--json", "hello"],
    );
    assert_eq!((ran.code, &ran.json()["limit"]), (Some(5), &json!("cost")));
}

#[test]
fn a_key_in_the_environment_selects_its_provider() {
    let lango = Lango::new();
    let unreachable = ClosedPort::new();
    for (variable, provider) in [
        ("ANTHROPIC_API_KEY", "anthropic"),
        ("GOOGLE_API_KEY", "gemini"),
        ("DEEPSEEK_API_KEY", "deepseek"),
        ("XAI_API_KEY", "xai"),
    ] {
        let address = format!("providers.{provider}.baseUrl={}", unreachable.url());
        let mut command = lango.command(&["config", "check", "-c", &address]);
        let output = command.env(variable, "x").output().unwrap();
        let shown = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(shown.contains(&format!(" {provider}/")), "{shown}");
    }
}

#[test]
fn models_lists_reachable_models_and_marks_the_selected_one() {
    let list = json!({ "data": [{ "id": "small" }, { "id": "gpt-6.1-sol" }] });
    let provider = Provider::new(vec![ScriptedAnswer::json(&list)]);
    let mut arguments = flags("openai", provider.server.url());
    arguments.push("models".to_owned());
    let arguments: Vec<String> = arguments
        .iter()
        .map(|flag| flag.replace("mock/any", "mock/small"))
        .collect();
    let lango = Lango::new();
    let ran = lango
        .run(&arguments.iter().map(String::as_str).collect::<Vec<_>>())
        .ok();
    assert!(
        ran.stdout.contains("● mock/small  price unknown"),
        "{}",
        ran.stdout
    );
    assert!(
        ran.stdout.contains("  mock/gpt-6.1-sol  price unknown\n"),
        "what it costs elsewhere says nothing: {}",
        ran.stdout
    );
    assert!(ran.stderr.contains("list of mock: live"), "{}", ran.stderr);
    assert!(
        ran.stdout
            .contains("offline/rules  built-in rules, not an AI model")
    );
    assert_eq!(provider.server.requests()[0].path, "/v1/models");
}

#[test]
fn setup_writes_a_minimal_file_after_a_successful_call() {
    let provider = Provider::new(vec![
        ScriptedAnswer::from(Fault::BadKey),
        say("ok").into(),
        say("hi").into(),
    ]);
    let lango = Lango::new();
    let mut arguments = flags("openai", provider.server.url());
    arguments.truncate(4);
    arguments.extend(["setup", "--model", "mock/any"].map(str::to_owned));
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    lango
        .run(&arguments)
        .refused(3, &["key is not accepted", "nothing was written"]);
    assert!(!lango.home().join("lango.toml").exists());
    lango.run(&arguments).ok();
    let ran = lango.run(&["run", "hello"]).ok();
    assert_eq!(ran.stdout, "hi\n", "the file alone selects the model");
}

#[test]
fn flags_work_before_and_after_the_command() {
    let lango = Lango::new();
    let ran = lango
        .run(&[
            "-c",
            "agent.maxModelCalls=7",
            "config",
            "show",
            "-c",
            "agent.maxToolCalls=9",
        ])
        .ok();
    assert!(
        ran.stdout.contains("agent.maxModelCalls = 7"),
        "{}",
        ran.stdout
    );
    assert!(ran.stdout.contains("agent.maxToolCalls = 9"));
}

#[test]
fn a_second_process_is_queued_or_refused_and_does_not_harm_the_running_turn() {
    let provider = Provider::new(vec![
        say("one").into(),
        ScriptedAnswer::from(say("slow and whole"))
            .with(Fault::Drip(std::time::Duration::from_millis(4))),
    ]);
    let lango = Lango::new();
    let flags = flags("openai", provider.server.url());
    let session =
        text(&run(&lango, &flags, &["--json", "first"]).ok().json()["session"]).to_owned();
    let mut command = lango.command(&["run", "--session", &session]);
    let slow = command
        .args(&flags)
        .arg("second")
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    while provider.server.requests().len() < 2 {
        std::thread::yield_now();
    }
    for refusing in ["session.whenBusy=refuse", "session.queueLimit=0"] {
        let ran = lango.run(&["run", "-c", refusing, "--session", &session, "third"]);
        ran.refused(
            1,
            &["is busy with another turn", "wait for the running turn"],
        );
    }
    let waited = lango.run(&["run", "--session", &session, "third"]).ok();
    assert!(waited.stderr.contains("waiting · ctrl-c"), "{waited:#?}");
    let output = slow.wait_with_output().unwrap();
    assert!(output.status.success());
    assert_eq!(String::from_utf8_lossy(&output.stdout), "slow and whole\n");
    let events = lango.events(&session);
    let questions = of_type(&events, "user.message").into_iter();
    let questions: Vec<&str> = questions.map(|event| text(&event["text"])).collect();
    assert_eq!(questions, ["first", "second", "third"]);
}

#[test]
fn requests_are_cut_to_the_providers_context_window() {
    let lango = Lango::new();
    lango.file("long.txt", "word ".repeat(8_000));
    let sent = |context: &str| {
        let provider = Provider::new(vec![
            delegate_and_finish("operator", "read it"),
            call("fs_read", json!({ "path": "long.txt" })),
            say("Read."),
        ]);
        let key = format!("providers.mock.contextTokens={context}");
        let flags = flags("openai", provider.server.url());
        run(&lango, &flags, &["-c", &key, "read long.txt"]).ok();
        provider.server.requests()[2].body.to_string()
    };
    assert!(sent("100000").len() > 40_000);
    let cut = sent("4000");
    assert!(cut.len() < 12_000, "{} bytes", cut.len());
    assert!(cut.contains("bytes left out to make room"));
}

#[test]
fn a_service_that_gets_sigterm_stores_its_turn_as_cancelled() {
    let provider = Provider::new(vec![Fault::SilentBeforeHead]);
    let lango = Lango::new();
    let mut command = lango.command(&["run", "--json"]);
    command
        .args(flags("openai", provider.server.url()))
        .arg("hello");
    let child = command
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    while provider.server.requests().is_empty() {
        std::thread::yield_now();
    }
    let id = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(id, rustix::process::Signal::TERM).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(143));
    let summary: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(summary["outcome"], "cancelled");
}
