//! Real models through the real binary: providers on loopback, their keys, their faults, budgets, and how a model is chosen.

use crate::lango::{Lango, Ran, of_type, text};
use lango_core::ModelReply;
use lango_testkit::model::{call, delegate_and_finish, say};
use lango_testkit::wire_server::{Answer, ClosedPort, Fault, WireServer};
use serde_json::json;
use tokio::runtime::Runtime;

const KINDS: [&str; 3] = ["openai", "anthropic", "gemini"];

/// A provider that answers these in order, on threads of its own while the binary runs.
pub struct Provider {
    _runtime: Runtime,
    pub server: WireServer,
}

impl Provider {
    pub fn new<T: Into<Answer>>(answers: Vec<T>) -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .unwrap();
        let server = runtime.block_on(WireServer::scripted(answers));
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

/// Flags that make `mock/any` the model.
pub fn flags(kind: &str, url: &str) -> Vec<String> {
    [
        format!("providers.mock.kind={kind}"),
        format!("providers.mock.baseUrl={url}"),
        "agent.model=mock/any".to_owned(),
    ]
    .into_iter()
    .flat_map(|flag| ["-c".to_owned(), flag])
    .collect()
}

pub fn run(lango: &Lango, flags: &[String], more: &[&str]) -> Ran {
    let arguments: Vec<&str> = ["run"]
        .into_iter()
        .chain(flags.iter().map(String::as_str))
        .chain(more.iter().copied())
        .collect();
    lango.run(&arguments)
}

#[test]
fn every_kind_of_provider_runs_a_turn_streamed_and_whole() {
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
fn a_key_is_sent_from_the_variable_that_is_named_and_from_no_other() {
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
fn a_key_that_is_not_accepted_and_a_model_that_is_not_there_are_said_at_once() {
    for kind in KINDS {
        for (fault, says) in [
            (Fault::BadKey, "key is not accepted"),
            (Fault::UnknownModel, "no such model"),
        ] {
            let provider = Provider::new(vec![fault]);
            let ran = run(
                &Lango::new(),
                &flags(kind, provider.server.url()),
                &["hello"],
            );
            assert_eq!(ran.code, Some(3), "{kind}: {}", ran.stderr);
            assert!(ran.stderr.contains("next: `lango models`"));
            assert!(
                ran.stderr.contains(says) && ran.stderr.contains("mock/any"),
                "{}",
                ran.stderr
            );
            assert_eq!(provider.server.requests().len(), 1, "not asked again");
        }
    }
}

#[test]
fn a_provider_that_fails_is_asked_again_and_then_the_fallback() {
    let broken = Provider::new((0..3).map(|_| Fault::status(503, "busy")).collect());
    let other = Provider::new(vec![say("from the other")]);
    let mut flags = flags("openai", broken.server.url());
    for flag in [
        "providers.other.kind=anthropic".to_owned(),
        format!("providers.other.baseUrl={}", other.server.url()),
        "agent.fallback=other/understudy".to_owned(),
    ] {
        flags.extend(["-c".to_owned(), flag]);
    }
    let lango = Lango::new();
    let ran = run(&lango, &flags, &["--json", "hello"]).ok();
    let summary = ran.json();
    assert_eq!(summary["answer"], "from the other");
    assert_eq!(summary["model_calls"], 1, "only the accepted reply counts");
    assert_eq!(broken.server.requests().len(), 3);
    assert!(ran.stderr.contains("again in") && ran.stderr.contains("now `other/understudy`"));
    let events = lango.events(text(&summary["session"]));
    assert_eq!(events[1]["model"], "other/understudy");
}

#[test]
fn nobody_there_fails_the_turn_and_nothing_replaces_the_model() {
    let nobody = ClosedPort::new();
    let lango = Lango::new();
    let ran = run(&lango, &flags("openai", nobody.url()), &["--json", "hello"]);
    assert_eq!(ran.code, Some(1));
    assert_eq!(ran.json()["outcome"], "failed");
    assert!(text(&ran.json()["error"]).contains("cannot be reached"));
}

#[test]
fn silence_ends_at_the_idle_time_out() {
    let provider = Provider::new(vec![
        Answer::from(Fault::SilentBeforeHead),
        Answer::from(say("awake")),
    ]);
    let ran = run(
        &Lango::new(),
        &flags("openai", provider.server.url()),
        &["-c", "agent.idleTimeout=300ms", "hello"],
    )
    .ok();
    assert_eq!(ran.stdout, "awake\n");
    assert!(ran.stderr.contains("silent"), "{}", ran.stderr);
}

#[test]
fn tokens_and_money_bound_a_turn() {
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
fn a_key_in_the_environment_chooses_its_provider() {
    let lango = Lango::new();
    let nobody = ClosedPort::new();
    for (variable, provider) in [
        ("ANTHROPIC_API_KEY", "anthropic"),
        ("GOOGLE_API_KEY", "gemini"),
        ("DEEPSEEK_API_KEY", "deepseek"),
        ("XAI_API_KEY", "xai"),
    ] {
        let address = format!("providers.{provider}.baseUrl={}", nobody.url());
        let mut command = lango.command(&["config", "check", "-c", &address]);
        let output = command.env(variable, "x").output().unwrap();
        let told = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(told.contains(&format!(" {provider}/")), "{told}");
    }
}

#[test]
fn models_lists_what_can_be_reached_and_marks_the_one_that_answers() {
    let list = json!({ "data": [{ "id": "small" }, { "id": "gpt-6.1-sol" }] });
    let provider = Provider::new(vec![Answer::json(&list)]);
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
fn setup_writes_the_smallest_file_after_a_call_that_worked() {
    let provider = Provider::new(vec![
        Answer::from(Fault::BadKey),
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
    lango
        .run(&arguments)
        .refused(2, &["is there already", "--force"]);
    let ran = lango.run(&["run", "hello"]).ok();
    assert_eq!(ran.stdout, "hi\n", "the file alone selects the model");
    lango.run(&["setup"]).refused(2, &["--force"]);
}

#[test]
fn flags_count_on_both_sides_of_the_command() {
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
fn a_key_that_a_provider_repeats_is_told_to_nobody() {
    let fault = Fault::status(401, "wrong key: Bearer sk-very-secret");
    let provider = Provider::new(vec![fault]);
    let lango = Lango::new();
    let mut command = lango.command(&["run", "-c", "providers.mock.apiKeyEnv=MY_KEY"]);
    command
        .args(flags("openai", provider.server.url()))
        .arg("hello")
        .env("MY_KEY", "sk-very-secret");
    let output = command.output().unwrap();
    assert_eq!(output.status.code(), Some(3));
    let told = format!(
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    assert!(
        told.contains("[secret MY_KEY]") && !told.contains("very-secret"),
        "{told}"
    );
    let stored = lango
        .stored_files()
        .into_iter()
        .flat_map(|(_, content)| content)
        .collect::<Vec<u8>>();
    assert!(!stored.windows(11).any(|window| window == b"very-secret"));
}

#[test]
fn the_rules_that_step_in_as_fallback_are_named_as_what_they_are() {
    let provider = Provider::new(vec![Fault::BadKey]);
    let flags = flags("openai", provider.server.url());
    let ran = run(
        &Lango::new(),
        &flags,
        &["-c", "agent.fallback=offline/rules", "--json", "hello"],
    )
    .ok();
    assert_eq!(
        (&ran.json()["model"], &ran.json()["offline"]),
        (&json!("offline/rules"), &json!(true))
    );
    assert!(ran.stderr.contains("not an AI model"));
}

#[test]
fn a_second_process_waits_in_line_or_is_refused_and_harms_no_running_turn() {
    let provider = Provider::new(vec![
        say("one").into(),
        Answer::from(say("slow and whole")).with(Fault::Drip(std::time::Duration::from_millis(4))),
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
        ran.refused(1, &["is busy with another turn", "wait for it"]);
    }
    let waited = lango.run(&["run", "--session", &session, "third"]).ok();
    assert!(waited.stderr.contains("waiting in line"), "{waited:#?}");
    let output = slow.wait_with_output().unwrap();
    assert!(output.status.success());
    assert_eq!(String::from_utf8_lossy(&output.stdout), "slow and whole\n");
    let events = lango.events(&session);
    let questions = of_type(&events, "user.message").into_iter();
    let questions: Vec<&str> = questions.map(|event| text(&event["text"])).collect();
    assert_eq!(questions, ["first", "second", "third"]);
}

#[test]
fn what_is_sent_is_cut_to_the_window_of_the_provider() {
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
fn setup_writes_anew_when_it_is_told_to() {
    let lango = Lango::new();
    lango.home_file("lango.toml", "agent.maxToolCalls = 3\n");
    lango
        .run(&["setup", "--model", "offline/rules", "--force"])
        .ok();
    let written = std::fs::read_to_string(lango.home().join("lango.toml")).unwrap();
    assert_eq!(written, "agent.model = \"offline/rules\"\n");
}

#[test]
fn a_service_that_is_told_to_end_stores_its_turn_as_cancelled() {
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
    assert_eq!(output.status.code(), Some(130));
    let summary: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(summary["outcome"], "cancelled");
}
