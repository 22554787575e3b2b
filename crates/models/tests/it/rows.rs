//! Scripts of misbehaving models and providers.

use lango_core::ModelReply;
use lango_testkit::model::{call, delegate, delegate_and_finish, raw_call, say};
use lango_testkit::wire_server::{Fault, RecordedRequest, ScriptedAnswer};
use serde_json::json;

/// What the provider does in one turn, and the expected result.
pub(crate) struct Row {
    pub name: &'static str,
    pub script: Script,
    /// The name of the outcome.
    pub outcome: &'static str,
    /// The number of model calls that the work itself needs.
    pub work: u32,
    /// The number of tool calls that run.
    pub tools: usize,
    /// The number of requests that reach the provider.
    pub attempts: usize,
    /// A part of the text that the user sees.
    pub says: &'static str,
}

pub(crate) enum Script {
    /// Answers in order.
    List(Vec<ScriptedAnswer>),
    /// The same function of the request for every request.
    Always(fn(&RecordedRequest) -> ScriptedAnswer),
}

fn row(
    name: &'static str,
    answers: Vec<ScriptedAnswer>,
    outcome: &'static str,
    says: &'static str,
) -> Row {
    Row {
        name,
        attempts: answers.len(),
        script: Script::List(answers),
        outcome,
        work: 1,
        tools: 0,
        says,
    }
}

/// Returns a row in which only the model misbehaves.
fn model(
    name: &'static str,
    work: u32,
    tools: usize,
    replies: Vec<ModelReply>,
    says: &'static str,
) -> Row {
    let answers = replies.into_iter().map(ScriptedAnswer::from).collect();
    Row {
        work,
        tools,
        ..row(name, answers, "answered", says)
    }
}

/// Returns a row in which the provider fails once and then answers.
fn once(name: &'static str, fault: Fault) -> Row {
    let long = || ScriptedAnswer::from(say(&"It is done, and it was done well. ".repeat(40)));
    row(
        name,
        vec![long().with(fault), long()],
        "answered",
        "It is done",
    )
}

fn read(path: &str) -> ModelReply {
    call("fs_read", json!({ "path": path }))
}

fn list() -> ModelReply {
    call("exec_shell", json!({ "command": "ls" }))
}

fn raw(name: &str, arguments: &str) -> ModelReply {
    ModelReply {
        calls: vec![raw_call("", name, arguments)],
        ..say("")
    }
}

fn operator() -> ModelReply {
    delegate_and_finish("operator", "the task")
}

/// Delegates whenever it can and never finishes.
fn never_done(request: &RecordedRequest) -> ScriptedAnswer {
    let offered = request.functions();
    match offered.first().map(String::as_str) {
        Some("delegate") => delegate("operator", &format!("go on, {}", request.number)).into(),
        Some(_) => say("one more step").into(),
        None => say("the best I have").into(),
    }
}

pub(crate) fn rows() -> Vec<Row> {
    let mut rows = misbehaving_models();
    rows.extend(misbehaving_providers());
    rows
}

fn misbehaving_models() -> Vec<Row> {
    let nothing = || say("");
    let mut rows = vec![
        model(
            "behaves",
            3,
            1,
            vec![operator(), read("a"), say("Read.")],
            "Read.",
        ),
        model(
            "unknown agent",
            1,
            0,
            vec![
                delegate("navi", "x"),
                delegate("oper", "x"),
                say("I could not."),
            ],
            "I could not.",
        ),
        model(
            "orchestrator calls tool",
            4,
            1,
            vec![read("a"), read("a"), say("hi"), say("It says hi.")],
            "It says hi.",
        ),
        model(
            "wrong agent's tool",
            2,
            0,
            vec![
                operator(),
                call("browser_navigate", json!({})),
                say("I have no browser."),
            ],
            "no browser",
        ),
        model(
            "truncated arguments",
            3,
            1,
            vec![
                operator(),
                raw("fs_read", "{\"path\": \"/et"),
                read("/etc"),
                say("Read."),
            ],
            "Read.",
        ),
        model(
            "repetition A-A-A",
            3,
            3,
            vec![operator(), read("a"), read("a"), read("a"), say("Enough.")],
            "Enough.",
        ),
        model(
            "repetition A-B-A-B",
            4,
            4,
            vec![
                operator(),
                read("a"),
                list(),
                read("a"),
                list(),
                say("Enough."),
            ],
            "Enough.",
        ),
        model(
            "[REJECT]",
            3,
            0,
            vec![
                operator(),
                say("[REJECT] not mine"),
                delegate_and_finish("librarian", "x"),
                say("Found."),
            ],
            "Found.",
        ),
        model(
            "[REJECT] by the root",
            1,
            0,
            vec![say("[REJECT] no"), say("I cannot.")],
            "I cannot.",
        ),
        model(
            "empty, then not",
            1,
            0,
            vec![nothing(), say("Now.")],
            "Now.",
        ),
        Row {
            outcome: "failed",
            ..model("empty twice", 1, 0, vec![nothing(), nothing()], "no answer")
        },
        model(
            "sub-agent empty twice",
            3,
            0,
            vec![operator(), nothing(), nothing(), say("It said nothing.")],
            "It said nothing.",
        ),
    ];
    rows.push(Row {
        script: Script::Always(never_done),
        attempts: 7,
        ..model("endless delegation", 7, 0, vec![], "the best I have")
    });
    rows
}

fn misbehaving_providers() -> Vec<Row> {
    let fails = |name, fault: Fault, says| {
        row(
            name,
            vec![fault.clone().into(), fault.into()],
            "failed",
            says,
        )
    };
    let server_error = || ScriptedAnswer::from(Fault::status(500, "oops"));
    let six: Vec<ScriptedAnswer> = (0..6).map(|_| server_error()).collect();
    let mut at_the_agent = six.clone();
    at_the_agent.insert(0, operator().into());
    at_the_agent.push(say("The operator has no model.").into());
    let mut four: Vec<ScriptedAnswer> = (0..3).map(|_| server_error()).collect();
    four.push(say("I step in.").into());
    let cut = ScriptedAnswer::from(say(&"It is read. ".repeat(90))).with(Fault::CutAfter(900));
    let after_a_tool = vec![
        operator().into(),
        read("a").into(),
        cut,
        say("Read.").into(),
    ];
    vec![
        once("429 with Retry-After", Fault::rate_limited("0.05")),
        once("500, then ok", Fault::status(500, "oops")),
        once("503, then ok", Fault::status(503, "later")),
        once("529, then ok", Fault::status(529, "overloaded")),
        once("hung up, then ok", Fault::HangUp),
        once("cut stream, then ok", Fault::CutAfter(900)),
        once("silent head, then ok", Fault::SilentBeforeHead),
        once("silent body, then ok", Fault::SilentBeforeBody),
        once("silence inside, then ok", Fault::SilentAfter(900)),
        once("garbage, then ok", Fault::Garbage),
        once("error inside, then ok", Fault::ErrorInside),
        once("huge frame, then ok", Fault::HugeFrame),
        once("HTML, then ok", Fault::Html),
        once("empty body, then ok", Fault::EmptyBody),
        once("empty JSON, then ok", Fault::EmptyJson),
        Row {
            tools: 1,
            work: 3,
            ..row("cut after a tool ran", after_a_tool, "answered", "Read.")
        },
        row("500 thrice, understudy", four, "answered", "I step in."),
        fails("bad key", Fault::BadKey, "key is not accepted"),
        fails("unknown model", Fault::UnknownModel, "no such model"),
        fails("context too long", Fault::ContextTooLong, "too long"),
        fails(
            "told to wait an hour",
            Fault::rate_limited("3600"),
            "too many requests",
        ),
        row("all failing", six, "failed", "cannot serve"),
        Row {
            work: 2,
            ..row(
                "all failing at an agent",
                at_the_agent,
                "answered",
                "The operator has no model.",
            )
        },
    ]
}
