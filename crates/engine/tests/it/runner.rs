//! The runner with a real store: storing before publishing, drafts, cancelling, time limits, misbehaving tools, and
//! continued sessions.

use crate::bench::{Bench, Shared, finished, local, log, turn};
use lango_core::{
    CallStatus, Effect, Event, EventBody, Limit, Model, ModelError, ModelReply, Outcome,
    StoreError, Tool, ToolError,
};
use lango_engine::{CancelToken, Gate, Runner, TurnUpdate, turn_updates};
use lango_store::Store;
use lango_testkit::model::{
    PacedModel, ScriptedModel, call, calls, delegate, delegate_and_finish, say,
};
use lango_testkit::remote::ScriptedRemote;
use lango_testkit::tool::CountingTool;
use serde_json::json;
use std::sync::Arc;

pub(crate) fn drafts(updates: &[TurnUpdate]) -> String {
    let piece = |item: &TurnUpdate| match item {
        TurnUpdate::Draft { text, .. } => text.clone(),
        TurnUpdate::DraftWithdrawn => "<withdrawn>".to_owned(),
        _ => String::new(),
    };
    updates.iter().map(piece).collect()
}

fn file_tool() -> Vec<Arc<dyn Tool>> {
    vec![Arc::new(CountingTool::new("fs_read"))]
}

#[tokio::test]
async fn updates_contain_exactly_the_stored_events() {
    let bench = Bench::new(file_tool());
    let script = [
        delegate_and_finish("operator", "read a"),
        call("fs_read", json!({"path": "a"})),
        say("It says hi."),
    ];
    let mut conversation = bench.runner(ScriptedModel::replies(script)).start(local());
    let (report, updates) = turn(&mut conversation, "read a").await;
    assert_eq!(
        (
            report.answer.as_deref(),
            report.author.as_ref().unwrap().as_str()
        ),
        (Some("It says hi."), "operator")
    );
    let stored: Vec<Event> = updates
        .iter()
        .filter_map(|item| {
            if let TurnUpdate::Stored(batch) = item {
                Some(batch.to_vec())
            } else {
                None
            }
        })
        .flatten()
        .collect();
    assert_eq!(stored, log(&bench, conversation.session()).await);
    assert_eq!(drafts(&updates), "It says hi.");
}

#[tokio::test]
async fn a_draft_that_becomes_a_rejection_is_never_shown() {
    for piece in [1, 3, 100] {
        let bench = Bench::new(file_tool());
        let script = [
            delegate_and_finish("operator", "x"),
            say(" [REJECT] not mine"),
            say("[RE is not a mark"),
        ];
        let model = ScriptedModel::replies(script).with_chunk_size(piece);
        let (report, updates) = turn(&mut bench.runner(model).start(local()), "x").await;
        assert_eq!(drafts(&updates), "[RE is not a mark");
        assert_eq!(report.answer.as_deref(), Some("[RE is not a mark"));
    }
}

#[tokio::test]
async fn text_before_a_call_is_withdrawn() {
    let bench = Bench::new(file_tool());
    let thinking = ModelReply {
        text: "Let me look.".to_owned(),
        ..delegate("operator", "look")
    };
    let script = [thinking, say("seen"), say("I have seen it.")];
    let model = PacedModel(Arc::new(ScriptedModel::replies(script).with_chunk_size(4)));
    let (_, updates) = turn(&mut bench.runner(model).start(local()), "x").await;
    assert_eq!(
        drafts(&updates),
        "Let me look.<withdrawn>I have seen it.",
        "the sub-agent's own text is not published"
    );
}

#[tokio::test]
async fn a_turn_ends_although_nobody_reads_its_updates() {
    let bench = Bench::new(file_tool());
    let text = "word ".repeat(20_000);
    let model = Arc::new(ScriptedModel::replies([say(&text)]).with_chunk_size(5));
    let runner = bench.runner(Shared(Arc::clone(&model)));
    let mut conversation = runner.start(local());
    let (sender, mut updates) = turn_updates();
    let stop = CancelToken::new();
    let end = conversation.turn("x", &stop, &sender).await.unwrap();
    assert_eq!(finished(end).answer.as_deref(), Some(&*text));
    let unread: Vec<TurnUpdate> = std::iter::from_fn(|| updates.try_recv()).collect();
    let events = log(&bench, conversation.session()).await;
    let [message, reply, end] = &events[..] else {
        panic!("{} events", events.len());
    };
    let (frame, author) = (reply.frame.clone(), reply.author.clone());
    let expected = [
        TurnUpdate::Stored([message.clone()].into()),
        TurnUpdate::ModelStarted {
            frame: frame.clone(),
            agent: author.clone(),
            model: model.name().into(),
        },
        TurnUpdate::Draft {
            frame,
            author,
            text,
        },
        TurnUpdate::Stored([reply.clone(), end.clone()].into()),
    ];
    assert!(
        unread == expected,
        "20,000 pieces are one unread draft, and there is no other update of them: {} updates",
        unread.len()
    );
}

#[tokio::test]
async fn a_cancelled_turn_has_that_outcome_and_the_session_continues() {
    let stop = CancelToken::new();
    let stopper = stop.clone();
    let tool = CountingTool::new("fs_read").with_run(move |_| {
        stopper.cancel();
        Ok("x".to_owned())
    });
    let bench = Bench::new(vec![Arc::new(tool)]);
    let script = [
        delegate("operator", "x"),
        call("fs_read", json!({})),
        say("never"),
        say("Hello again."),
    ];
    let model = ScriptedModel::replies(script);
    let mut conversation = bench.runner(model).start(local());
    let (sender, _shown) = turn_updates();
    let report = finished(conversation.turn("x", &stop, &sender).await.unwrap());
    assert_eq!((report.outcome, report.answer), (Outcome::Cancelled, None));
    let (report, _) = turn(&mut conversation, "still there?").await;
    assert!(matches!(report.outcome, Outcome::Answered { .. }));
}

#[tokio::test(start_paused = true)]
async fn a_turn_ends_at_its_time_limit() {
    struct UnresponsiveModel;
    impl Model for UnresponsiveModel {
        fn name(&self) -> &str {
            "test/silent"
        }
        fn info(&self) -> lango_core::ModelInfo {
            lango_core::ModelInfo::default()
        }
        fn call<'a>(
            &'a self,
            _: lango_core::ModelRequest,
        ) -> lango_core::BoxStream<'a, Result<lango_core::ModelEvent, ModelError>> {
            Box::pin(futures_util::stream::pending())
        }
    }
    let mut bench = Bench::new(file_tool());
    bench.limits.turn_ms = 5_000;
    let (report, _) = turn(&mut bench.runner(UnresponsiveModel).start(local()), "x").await;
    assert_eq!(report.outcome, Outcome::Limited { limit: Limit::Time });
    assert!(report.answer.unwrap().contains("agent.turnTimeout"));
}

/// A tool that never returns.
struct Endless(lango_core::ToolSpec);

impl Tool for Endless {
    fn spec(&self) -> &lango_core::ToolSpec {
        &self.0
    }
    fn run<'a>(
        &'a self,
        _: &'a lango_core::Caller,
        _: Arc<serde_json::Value>,
    ) -> lango_core::BoxFuture<'a, Result<lango_core::ToolOutput, ToolError>> {
        Box::pin(std::future::pending())
    }
}

#[tokio::test(start_paused = true)]
async fn a_tool_that_never_returns_is_stopped_at_its_timeout() {
    let mut bench = Bench::new(vec![Arc::new(Endless(lango_testkit::tool::spec(
        "fs_read",
    )))]);
    bench.limits.tool_ms = 3_000;
    let script = [
        delegate_and_finish("operator", "x"),
        call("fs_read", json!({})),
        say("It took too long."),
    ];
    let mut conversation = bench.runner(ScriptedModel::replies(script)).start(local());
    let (report, _) = turn(&mut conversation, "x").await;
    assert_eq!(report.answer.as_deref(), Some("It took too long."));
    let log = log(&bench, conversation.session()).await;
    assert!(log.iter().any(|event| matches!(&event.body, EventBody::ToolReturned { status: CallStatus::Error, output, .. } if output.contains("3 s"))));
}

#[tokio::test]
async fn a_tool_that_crashes_is_an_error_result() {
    let bench = Bench::new(vec![Arc::new(
        CountingTool::new("fs_read").with_run(|_| panic!("planned")),
    )]);
    let script = [
        delegate_and_finish("operator", "x"),
        call("fs_read", json!({})),
        say("It crashed."),
    ];
    let (report, _) = turn(
        &mut bench.runner(ScriptedModel::replies(script)).start(local()),
        "x",
    )
    .await;
    assert_eq!(report.answer.as_deref(), Some("It crashed."));
}

#[tokio::test]
async fn the_output_of_a_tool_is_truncated() {
    let tool = CountingTool::new("fs_read").with_run(|_| Ok("x".repeat(10_000_000)));
    let bench = Bench::new(vec![Arc::new(tool)]);
    let script = [
        delegate_and_finish("operator", "x"),
        call("fs_read", json!({})),
        say("Long."),
    ];
    let mut conversation = bench.runner(ScriptedModel::replies(script)).start(local());
    turn(&mut conversation, "x").await;
    let log = log(&bench, conversation.session()).await;
    let output = log.iter().find_map(|event| {
        if let EventBody::ToolReturned { output, .. } = &event.body {
            Some(output.clone())
        } else {
            None
        }
    });
    let output = output.unwrap();
    assert!(
        output.len() < Gate::OUTPUT_BYTES + 100 && output.contains("of 10000000 bytes left out")
    );
}

#[tokio::test]
async fn calls_with_effects_run_one_after_the_other_in_order() {
    let order = Arc::new(std::sync::Mutex::new(Vec::new()));
    let tool = |name: &str, effect| {
        let order = Arc::clone(&order);
        let own = name.to_owned();
        let run = move |_: &serde_json::Value| {
            order.lock().unwrap().push(own.clone());
            Ok(String::new())
        };
        Arc::new(CountingTool::new(name).with_effect(effect).with_run(run)) as Arc<dyn Tool>
    };
    let bench = Bench::new(vec![
        tool("fs_write", Effect::NonIdempotent),
        tool("exec_run", Effect::NonIdempotent),
        tool("fs_read", Effect::Pure),
    ]);
    let batch = [
        ("fs_write", json!({})),
        ("exec_run", json!({})),
        ("fs_read", json!({})),
        ("fs_write", json!({})),
    ];
    let script = [
        delegate_and_finish("operator", "x"),
        calls(batch),
        say("Done."),
    ];
    turn(
        &mut bench.runner(ScriptedModel::replies(script)).start(local()),
        "x",
    )
    .await;
    assert_eq!(
        *order.lock().unwrap(),
        ["fs_write", "exec_run", "fs_read", "fs_write"]
    );
}

#[tokio::test]
async fn a_model_that_cannot_be_reached_fails_the_turn_and_says_so() {
    let bench = Bench::new(file_tool());
    let (report, _) = turn(
        &mut bench.runner(ScriptedModel::replies([])).start(local()),
        "x",
    )
    .await;
    assert!(matches!(report.outcome, Outcome::Failed { .. }));
    assert!(report.answer.unwrap().contains("cannot be reached"));
}

#[tokio::test]
async fn a_remote_agent_answers_as_a_sub_agent() {
    let mut bench = Bench::new(file_tool());
    bench.remotes = vec![Arc::new(ScriptedRemote::new("translator", Ok("bonjour")))];
    let mut conversation = bench
        .runner(ScriptedModel::replies([delegate_and_finish(
            "translator",
            "x",
        )]))
        .start(local());
    let (report, _) = turn(&mut conversation, "x").await;
    assert_eq!(
        (report.author.unwrap().as_str(), report.answer.as_deref()),
        ("translator", Some("bonjour"))
    );
    bench.store = Arc::new(Store::in_memory());
    bench.remotes = vec![Arc::new(ScriptedRemote::new("translator", Err("down")))];
    let script = [delegate_and_finish("translator", "x"), say("It is down.")];
    let (report, _) = turn(
        &mut bench.runner(ScriptedModel::replies(script)).start(local()),
        "x",
    )
    .await;
    assert_eq!(report.answer.as_deref(), Some("It is down."));
}

#[tokio::test]
async fn two_writers_of_one_session_do_not_interleave() {
    let bench = Bench::new(file_tool());
    let runner = bench.runner(ScriptedModel::from_fn(|_| say("ok")));
    let mut one = runner.start(local());
    turn(&mut one, "first").await;
    let mut two = runner.open(one.session().clone()).await.unwrap();
    turn(&mut two, "second").await;
    let (report, _) = turn(&mut one, "third").await;
    assert!(matches!(report.outcome, Outcome::Answered { .. }));
    let log = log(&bench, one.session()).await;
    let messages: Vec<&str> = log
        .iter()
        .filter_map(|event| match &event.body {
            EventBody::UserMessage { text, .. } => Some(&**text),
            _ => None,
        })
        .collect();
    assert_eq!(messages, ["first", "second", "third"]);
    assert_eq!(log.len(), 9);
}

#[tokio::test]
async fn input_that_is_empty_or_too_long_starts_no_turn() {
    let bench = Bench::new(file_tool());
    let mut conversation = bench
        .runner(ScriptedModel::from_fn(|_| say("ok")))
        .start(local());
    let (sender, _shown) = turn_updates();
    for input in [
        String::new(),
        " \n".to_owned(),
        "x".repeat(Runner::INPUT_BYTES + 1),
    ] {
        assert!(
            conversation
                .turn(input.as_str(), &CancelToken::new(), &sender)
                .await
                .is_err()
        );
    }
    let found = bench.store.read_head(conversation.session()).await;
    assert!(
        matches!(found, Err(StoreError::NotFound { .. })),
        "nothing was stored"
    );
}

#[tokio::test]
async fn the_orchestrators_requests_start_with_the_same_bytes_for_many_turns() {
    let bench = Bench::new(file_tool());
    let model = Arc::new(ScriptedModel::from_fn(|_| say("ok")));
    let mut conversation = bench.runner(Shared(Arc::clone(&model))).start(local());
    for number in 0..95 {
        turn(&mut conversation, &format!("message {number}")).await;
    }
    let mut reopened = bench
        .runner(Shared(Arc::clone(&model)))
        .open(conversation.session().clone())
        .await
        .unwrap();
    turn(&mut reopened, "after a restart").await;
    let asked = model.requests();
    let mut breaks = 0;
    for pair in asked.windows(2) {
        assert_eq!(pair[0].instruction, pair[1].instruction);
        breaks += usize::from(!pair[1].messages.starts_with(&pair[0].messages));
        assert!(pair[1].messages.len() <= 2 * 40, "what is sent is bounded");
    }
    assert_eq!(
        breaks, 3,
        "the window moves at 40, 60 and 80 turns, and not by a restart"
    );
}

#[tokio::test(start_paused = true)]
async fn a_stopped_tool_with_effects_has_an_unknown_outcome() {
    let spec = lango_core::ToolSpec {
        effect: Effect::NonIdempotent,
        ..lango_testkit::tool::spec("fs_write")
    };
    let bench = Bench::new(vec![Arc::new(Endless(spec))]);
    let script = [
        delegate_and_finish("operator", "x"),
        call("fs_write", json!({})),
        say("Nobody knows."),
    ];
    let mut conversation = bench.runner(ScriptedModel::replies(script)).start(local());
    turn(&mut conversation, "x").await;
    let log = log(&bench, conversation.session()).await;
    let unknown = |event: &Event| matches!(&event.body, EventBody::ToolReturned { status: CallStatus::Unknown, output, .. } if output.contains("do not repeat"));
    assert!(log.iter().any(unknown), "{log:?}");
}

#[tokio::test]
async fn two_limits_of_zero_end_a_turn_only_once() {
    let mut bench = Bench::new(file_tool());
    (bench.limits.turn_ms, bench.limits.model_calls) = (0, 0);
    let model = ScriptedModel::replies([]);
    let (report, _) = turn(&mut bench.runner(model).start(local()), "x").await;
    assert!(matches!(report.outcome, Outcome::Limited { .. }));
    assert!(!report.session.as_str().is_empty());
}
