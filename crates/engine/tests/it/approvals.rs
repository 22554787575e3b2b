//! Calls that need the user's approval: when the user is asked, about what, and what an answer does.

use crate::bench::{Bench, finished, local, log, turn};
use crate::support::rule;
use lango_core::{
    AnswerSource, ApprovalAnswer, CallStatus, Effect, Event, EventBody, ModelReply, Outcome,
    PendingApproval, Risk, SessionCatalog,
};
use lango_engine::{
    ApprovalRules, CancelToken, Conversation, RuleAction, RunnerError, TurnEnd, turn_updates,
};
use lango_store::Store;
use lango_testkit::model::{ScriptedModel, call, calls, delegate_and_finish, say};
use lango_testkit::tool::CountingTool;
use serde_json::json;
use std::sync::Arc;

/// A bench with a tool that changes something.
pub(crate) fn writing_bench() -> (Bench, Arc<CountingTool>) {
    let tool = CountingTool::new("fs_write")
        .with_effect(Effect::NonIdempotent)
        .with_risk(Risk::Moderate);
    let tool = Arc::new(tool);
    let bench = Bench::new(vec![
        Arc::clone(&tool) as Arc<dyn lango_core::Tool>,
        Arc::new(CountingTool::new("search_web")),
    ]);
    (bench, tool)
}

fn write(path: &str) -> ModelReply {
    call("fs_write", json!({ "path": path }))
}

/// The replies of a turn in which the operator makes one call.
pub(crate) fn one_write(path: &str) -> [ModelReply; 3] {
    [
        delegate_and_finish("operator", "write"),
        write(path),
        say("Written."),
    ]
}

pub(crate) async fn ask(conversation: &mut Conversation, question: &str) -> TurnEnd {
    let (sender, _shown) = turn_updates();
    conversation
        .turn(question, &CancelToken::new(), &sender)
        .await
        .unwrap()
}

pub(crate) async fn answer(conversation: &mut Conversation, answer: ApprovalAnswer) -> TurnEnd {
    let request = conversation.waiting()[0].request.id.clone();
    let (sender, _shown) = turn_updates();
    let stop = CancelToken::new();
    conversation
        .answer(&request, answer, AnswerSource::Person, &stop, &sender)
        .await
        .unwrap()
}

#[track_caller]
pub(crate) fn waiting(end: TurnEnd) -> Vec<PendingApproval> {
    match end {
        TurnEnd::Waiting(waiting) => waiting,
        TurnEnd::Finished(report) => panic!("it ended: {report:?}"),
    }
}

pub(crate) fn kinds(events: &[Event]) -> Vec<&str> {
    events.iter().map(|event| event.body.kind()).collect()
}

fn no(reason: &str) -> ApprovalAnswer {
    ApprovalAnswer::No {
        reason: Some(reason.into()),
    }
}

pub(crate) fn in_session(pattern: &str) -> ApprovalAnswer {
    ApprovalAnswer::Session {
        pattern: pattern.into(),
    }
}

#[tokio::test]
async fn a_call_that_changes_something_waits_in_the_log_until_it_is_approved() {
    let (bench, tool) = writing_bench();
    let model = ScriptedModel::replies(one_write("a"));
    let mut conversation = bench.runner(model).start(local());
    let waiting = waiting(ask(&mut conversation, "write").await);
    let request = &waiting[0].request;
    assert_eq!(
        (request.agent.as_str(), request.tool.as_str()),
        ("operator", "fs_write")
    );
    assert_eq!((request.risk, tool.runs()), (Risk::Moderate, 0));
    let report = finished(answer(&mut conversation, ApprovalAnswer::Once).await);
    assert_eq!(report.answer.as_deref(), Some("Written."));
    assert_eq!(tool.runs(), 1);
    let log = log(&bench, conversation.session()).await;
    assert_eq!(
        kinds(&log)[4..9],
        [
            "approval.requested",
            "approval.answered",
            "tool.called",
            "tool.returned",
            "agent.message"
        ]
    );
    assert_eq!(
        (log[4].author.as_str(), log[5].author.as_str()),
        ("lango-orchestrator", "user")
    );
}

#[tokio::test]
async fn a_denial_and_its_reason_go_to_the_model_and_nothing_runs() {
    let (bench, tool) = writing_bench();
    let model = ScriptedModel::new(|request| {
        let last = request
            .messages
            .last()
            .map(|message| format!("{message:?}"));
        Ok(match request.messages.len() {
            1 if request.functions.iter().any(|f| &*f.name == "delegate") => {
                delegate_and_finish("operator", "write")
            }
            1 => write("a"),
            _ => say(last.as_deref().unwrap_or("")),
        })
    });
    let mut conversation = bench.runner(model).start(local());
    waiting(ask(&mut conversation, "write").await);
    let report = finished(answer(&mut conversation, no("use b instead")).await);
    assert!(report.answer.unwrap().contains("use b instead"));
    assert_eq!((tool.runs(), report.tool_calls), (0, 0));
    let log = log(&bench, conversation.session()).await;
    let denied = |event: &Event| {
        matches!(
            event.body,
            EventBody::ToolReturned {
                status: CallStatus::Denied,
                ..
            }
        )
    };
    assert!(log.iter().any(denied));
}

#[tokio::test]
async fn a_waiting_turn_continues_in_another_process_and_the_tool_runs_once() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("lango.db");
    let open = || Arc::new(Store::open_sqlite(&path, "lango-orchestrator".into()).unwrap());
    let (mut bench, tool) = writing_bench();
    bench.store = open();
    let session = {
        let [first, second, _] = one_write("a");
        let mut conversation = bench
            .runner(ScriptedModel::replies([first, second]))
            .start(local());
        waiting(ask(&mut conversation, "write").await);
        conversation.session().clone()
    };
    bench.store = open();
    let mut conversation = bench
        .runner(ScriptedModel::replies([say("Written.")]))
        .open(session.clone())
        .await
        .unwrap();
    assert_eq!(conversation.waiting().len(), 1);
    let (sender, _shown) = turn_updates();
    let behind = conversation
        .turn("and?", &CancelToken::new(), &sender)
        .await;
    assert!(
        matches!(behind, Err(RunnerError::ApprovalPending { .. })),
        "new input waits behind it"
    );
    let report = finished(answer(&mut conversation, ApprovalAnswer::Once).await);
    assert_eq!(
        (report.answer.as_deref(), tool.runs()),
        (Some("Written."), 1)
    );
    assert_eq!(report.model_calls, 3, "those before the restart count");
    drop(conversation);
    bench.store = open();
    let again = bench
        .runner(ScriptedModel::replies([]))
        .open(session)
        .await
        .unwrap();
    assert!(again.waiting().is_empty());
}

#[tokio::test]
async fn a_new_rule_that_denies_wins_over_the_answer() {
    let (mut bench, tool) = writing_bench();
    let [first, second, _] = one_write("a");
    let mut conversation = bench
        .runner(ScriptedModel::replies([first, second]))
        .start(local());
    waiting(ask(&mut conversation, "write").await);
    bench.rules = ApprovalRules::new(vec![rule(RuleAction::Deny, "fs_write")]);
    let runner = bench.runner(ScriptedModel::replies([say("I may not.")]));
    let mut again = runner.open(conversation.session().clone()).await.unwrap();
    let report = finished(answer(&mut again, ApprovalAnswer::Once).await);
    assert_eq!(
        (report.answer.as_deref(), tool.runs()),
        (Some("I may not."), 0)
    );
}

#[tokio::test]
async fn the_same_call_is_not_asked_for_twice_in_a_turn() {
    for (given, runs) in [(ApprovalAnswer::Once, 2), (no("never"), 0)] {
        let (bench, tool) = writing_bench();
        let script = [
            delegate_and_finish("operator", "write"),
            write("a"),
            write("a"),
            say("Done."),
        ];
        let mut conversation = bench.runner(ScriptedModel::replies(script)).start(local());
        waiting(ask(&mut conversation, "write").await);
        finished(answer(&mut conversation, given).await);
        assert_eq!(tool.runs(), runs);
    }
}

#[tokio::test]
async fn an_approval_ends_with_the_next_change() {
    let (mut bench, tool) = writing_bench();
    let other = CountingTool::new("fs_mkdir").with_effect(Effect::Idempotent);
    bench.tools.push(Arc::new(other));
    let script = [
        delegate_and_finish("operator", "write"),
        write("a"),
        call("fs_mkdir", json!({})),
        write("a"),
        say("Done."),
    ];
    let mut conversation = bench.runner(ScriptedModel::replies(script)).start(local());
    waiting(ask(&mut conversation, "write").await);
    waiting(answer(&mut conversation, ApprovalAnswer::Once).await);
    assert_eq!(tool.runs(), 1, "what it does may be another thing now");
}

#[tokio::test]
async fn a_call_with_other_arguments_needs_its_own_approval() {
    let (bench, tool) = writing_bench();
    let script = [
        delegate_and_finish("operator", "write"),
        write("a"),
        write("b"),
        say("Done."),
    ];
    let mut conversation = bench.runner(ScriptedModel::replies(script)).start(local());
    waiting(ask(&mut conversation, "write").await);
    let again = waiting(answer(&mut conversation, ApprovalAnswer::Once).await);
    assert_eq!(again[0].request.arguments["path"], "b");
    finished(answer(&mut conversation, ApprovalAnswer::No { reason: None }).await);
    assert_eq!(tool.runs(), 1);
}

#[tokio::test]
async fn requests_of_several_agents_queue_while_the_other_agents_continue() {
    let note = Arc::new(CountingTool::new("save_knowledge").with_risk(Risk::Moderate));
    let (mut bench, write_tool) = writing_bench();
    let seen = Arc::new(CountingTool::new("memory_recall"));
    bench.tools.push(Arc::clone(&note) as _);
    bench.tools.push(Arc::clone(&seen) as _);
    let delegations = ["operator", "librarian", "chronicler"]
        .map(|agent| ("delegate", json!({ "agent": agent, "task": "go" })));
    let model = ScriptedModel::new(move |request| {
        let offers = |name: &str| request.functions.iter().any(|f| &*f.name == name);
        let has_result = request.messages.len() > 1;
        Ok(match () {
            () if offers("delegate") && !has_result => calls(delegations.clone()),
            () if has_result => say("Done."),
            () if offers("fs_write") => write("a"),
            () if offers("save_knowledge") => call("save_knowledge", json!({})),
            () => call("memory_recall", json!({})),
        })
    });
    let mut conversation = bench.runner(model).start(local());
    let queue = waiting(ask(&mut conversation, "all three").await);
    let agents: Vec<&str> = queue.iter().map(|one| one.request.agent.as_str()).collect();
    assert_eq!(agents, ["operator", "librarian"]);
    assert_eq!(seen.runs(), 1, "the chronicler was not held up");
    let left = waiting(answer(&mut conversation, ApprovalAnswer::Once).await);
    assert_eq!((left.len(), write_tool.runs(), note.runs()), (1, 1, 0));
    finished(answer(&mut conversation, ApprovalAnswer::Once).await);
    assert_eq!(note.runs(), 1);
}

#[tokio::test]
async fn an_answer_for_the_session_applies_to_later_turns_until_it_is_revoked() {
    let (mut bench, tool) = writing_bench();
    let store = Arc::new(Store::in_memory());
    bench.store = Arc::clone(&store) as _;
    let script = one_write("notes/a")
        .into_iter()
        .chain(one_write("notes/b"))
        .chain(one_write("other"))
        .chain(one_write("notes/c"));
    let mut conversation = bench.runner(ScriptedModel::replies(script)).start(local());
    waiting(ask(&mut conversation, "1").await);
    finished(answer(&mut conversation, in_session(r#"{"path":"notes/*"}"#)).await);
    let (report, _) = turn(&mut conversation, "2").await;
    assert_eq!((report.tool_calls, tool.runs()), (1, 2));
    let log = log(&bench, conversation.session()).await;
    let by_grant = |event: &Event| {
        matches!(
            &event.body,
            EventBody::ApprovalAnswered {
                by: AnswerSource::Grant { .. },
                ..
            }
        )
    };
    assert!(
        log.iter().any(by_grant),
        "the log names the grant that allowed it"
    );
    waiting(ask(&mut conversation, "3").await);
    finished(answer(&mut conversation, ApprovalAnswer::No { reason: None }).await);
    let grant = store.approvals(&local()).await.unwrap().granted.remove(0);
    store.revoke(&local(), &grant.id).await.unwrap();
    waiting(ask(&mut conversation, "4").await);
}

#[tokio::test]
async fn an_answer_for_a_folder_applies_to_other_sessions_there() {
    let (bench, tool) = writing_bench();
    let script = one_write("a")
        .into_iter()
        .chain(one_write("a"))
        .chain(one_write("a"));
    let runner = bench.runner(ScriptedModel::replies(script));
    let mut first = runner.start(local());
    waiting(ask(&mut first, "1").await);
    let always = |folder: &str| ApprovalAnswer::Always {
        pattern: "*".into(),
        folder: folder.into(),
    };
    finished(answer(&mut first, always("/work")).await);
    turn(&mut runner.start(local()), "2").await;
    assert_eq!(tool.runs(), 2);
    let stranger = lango_core::UserId::from("bob");
    waiting(ask(&mut runner.start(stranger), "3").await);
}

#[tokio::test]
async fn one_grant_answers_all_pending_calls_that_match() {
    let (bench, tool) = writing_bench();
    let two = calls([
        ("fs_write", json!({ "path": "a" })),
        ("fs_write", json!({ "path": "b" })),
    ]);
    let script = [delegate_and_finish("operator", "write"), two, say("Done.")];
    let mut conversation = bench.runner(ScriptedModel::replies(script)).start(local());
    assert_eq!(waiting(ask(&mut conversation, "both").await).len(), 2);
    finished(answer(&mut conversation, in_session("*")).await);
    assert_eq!(tool.runs(), 2);
}

#[tokio::test]
async fn cancelling_a_waiting_turn_denies_its_requests() {
    let (bench, tool) = writing_bench();
    let script = one_write("a").into_iter().take(2).chain([say("Hello.")]);
    let mut conversation = bench.runner(ScriptedModel::replies(script)).start(local());
    waiting(ask(&mut conversation, "write").await);
    let (sender, _shown) = turn_updates();
    let report = finished(conversation.cancel_waiting(&sender).await.unwrap());
    assert_eq!((report.outcome, tool.runs()), (Outcome::Cancelled, 0));
    let (report, _) = turn(&mut conversation, "hello").await;
    assert_eq!(report.answer.as_deref(), Some("Hello."));
    let late = conversation.cancel_waiting(&sender).await;
    assert!(matches!(late, Err(RunnerError::NothingPending)));
}

#[tokio::test]
async fn an_agent_that_is_denied_repeatedly_must_finish() {
    let (mut bench, _) = writing_bench();
    bench.rules = ApprovalRules::new(vec![rule(RuleAction::Deny, "fs_write")]);
    let model = ScriptedModel::new(|request| {
        let offers = |name: &str| request.functions.iter().any(|f| &*f.name == name);
        Ok(match () {
            () if offers("delegate") => delegate_and_finish("operator", "write"),
            () if offers("fs_write") => write(&request.messages.len().to_string()),
            () => say("I may not."),
        })
    });
    let mut conversation = bench.runner(model).start(local());
    let (report, _) = turn(&mut conversation, "write").await;
    assert_eq!(
        (report.answer.as_deref(), report.model_calls),
        (Some("I may not."), 5)
    );
}

#[tokio::test]
async fn pending_calls_count_towards_the_tool_call_limit() {
    let (mut bench, tool) = writing_bench();
    bench.limits.tool_calls = 1;
    let two = calls([
        ("fs_write", json!({ "path": "a" })),
        ("fs_write", json!({ "path": "b" })),
    ]);
    let script = [delegate_and_finish("operator", "write"), two, say("Done.")];
    let mut conversation = bench.runner(ScriptedModel::replies(script)).start(local());
    assert_eq!(waiting(ask(&mut conversation, "both").await).len(), 1);
    let report = finished(answer(&mut conversation, ApprovalAnswer::Once).await);
    assert_eq!((tool.runs(), report.tool_calls), (1, 1));
}

#[tokio::test]
async fn more_than_a_hundred_pending_calls_are_denied() {
    let (mut bench, tool) = writing_bench();
    bench.limits.tool_calls = 1000;
    let model = ScriptedModel::from_fn(|request| {
        if request
            .functions
            .iter()
            .any(|function| &*function.name == "delegate")
        {
            let task = |_| ("delegate", json!({ "agent": "operator", "task": "write" }));
            return calls((0..4).map(task));
        }
        let path = |number: usize| ("fs_write", json!({ "path": format!("{number}.md") }));
        calls((0..32).map(path))
    });
    let mut conversation = bench.runner(model).start(local());
    let waiting = waiting(ask(&mut conversation, "write everything").await);
    assert_eq!((waiting.len(), tool.runs()), (100, 0));
    let events = log(&bench, conversation.session()).await;
    let denied = events.iter().filter(|event| {
        matches!(&event.body, EventBody::ToolReturned { status: CallStatus::Denied, output, .. }
            if output.contains("which is the limit"))
    });
    assert_eq!(denied.count(), 28);
}
