//! Pending calls next to calls that can run, answers out of order, and restarts in between.

use crate::approvals::{answer, ask, in_session, one_write, waiting, writing_bench};
use crate::bench::{finished, local, log, turn};
use crate::support::rule;
use lango_core::{
    AnswerSource, ApprovalAnswer, Event, EventBody, NewSession, SessionCatalog, SessionId,
    SessionStore, Timestamp,
};
use lango_engine::{ApprovalRules, CancelToken, RuleAction, RunnerError, TurnEnd, turn_updates};
use lango_store::Store;
use lango_testkit::model::{ScriptedModel, call, calls, delegate_and_finish, say};
use lango_testkit::remote::ScriptedRemote;
use lango_testkit::tool::CountingTool;
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

#[tokio::test(start_paused = true)]
async fn an_allowed_call_after_a_pending_one_runs_after_it() {
    let (mut bench, tool) = writing_bench();
    let read = Arc::new(CountingTool::new("fs_read"));
    bench.tools.push(Arc::clone(&read) as _);
    let both = calls([
        ("fs_write", json!({ "path": "a" })),
        ("fs_read", json!({ "path": "b" })),
    ]);
    let script = [delegate_and_finish("operator", "x"), both, say("Done.")];
    let mut conversation = bench.runner(ScriptedModel::replies(script)).start(local());
    assert_eq!(waiting(ask(&mut conversation, "go").await).len(), 1);
    finished(answer(&mut conversation, ApprovalAnswer::Once).await);
    assert_eq!((tool.runs(), read.runs()), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn a_granted_call_after_a_pending_one_keeps_its_place() {
    let (bench, tool) = writing_bench();
    let both = calls([
        ("fs_write", json!({ "path": "a" })),
        ("fs_write", json!({ "path": "notes/b" })),
    ]);
    let second = [delegate_and_finish("operator", "x"), both, say("Done.")];
    let script = one_write("notes/a").into_iter().chain(second);
    let mut conversation = bench.runner(ScriptedModel::replies(script)).start(local());
    waiting(ask(&mut conversation, "1").await);
    finished(answer(&mut conversation, in_session(r#"{"path":"notes/*"}"#)).await);
    assert_eq!(waiting(ask(&mut conversation, "2").await).len(), 1);
    assert_eq!(tool.runs(), 1);
    finished(answer(&mut conversation, ApprovalAnswer::Once).await);
    assert_eq!(tool.runs(), 3);
}

#[tokio::test(start_paused = true)]
async fn the_second_of_two_requests_can_be_answered_first() {
    let (bench, tool) = writing_bench();
    let both = calls(["a", "b"].map(|path| ("fs_write", json!({ "path": path }))));
    let script = [delegate_and_finish("operator", "x"), both, say("Done.")];
    let mut conversation = bench.runner(ScriptedModel::replies(script)).start(local());
    let queue = waiting(ask(&mut conversation, "go").await);
    let (sender, _shown) = turn_updates();
    let stop = CancelToken::new();
    let second = &queue[1].request.id;
    let end = conversation.answer(
        second,
        ApprovalAnswer::Once,
        AnswerSource::Person,
        &stop,
        &sender,
    );
    assert_eq!(waiting(end.await.unwrap()).len(), 1);
    let again = conversation.answer(
        second,
        ApprovalAnswer::Once,
        AnswerSource::Person,
        &stop,
        &sender,
    );
    assert!(matches!(again.await, Err(RunnerError::NotPending { .. })));
    finished(answer(&mut conversation, ApprovalAnswer::Once).await);
    assert_eq!(tool.runs(), 2);
}

#[tokio::test]
async fn no_new_turn_starts_while_one_waits_for_approval() {
    let (mut bench, _tool) = writing_bench();
    let store = Arc::new(Store::in_memory());
    bench.store = Arc::clone(&store) as _;
    let script = [say("Hi.")].into_iter().chain(one_write("a"));
    let runner = bench.runner(ScriptedModel::replies(script));
    let mut one = runner.start(local());
    turn(&mut one, "hello").await;
    let mut other = runner.open(one.session().clone()).await.unwrap();
    waiting(ask(&mut other, "write").await);
    let (sender, _shown) = turn_updates();
    let overtaking = one.turn("and?", &CancelToken::new(), &sender).await;
    assert!(
        matches!(overtaking, Err(RunnerError::ApprovalPending { .. })),
        "{overtaking:?}"
    );
    assert_eq!(store.approvals(&local()).await.unwrap().waiting.len(), 1);
    finished(answer(&mut one, ApprovalAnswer::Once).await);
    other.refresh().await.unwrap();
    assert!(other.waiting().is_empty(), "it was answered elsewhere");
}

#[tokio::test]
async fn an_answer_is_accepted_only_in_the_folder_of_its_request() {
    let (mut bench, tool) = writing_bench();
    let model = ScriptedModel::replies(one_write("a").into_iter().take(2));
    let mut conversation = bench.runner(model).start(local());
    waiting(ask(&mut conversation, "write").await);
    bench.folder = "/elsewhere";
    let runner = bench.runner(ScriptedModel::replies([say("Done.")]));
    let mut elsewhere = runner.open(conversation.session().clone()).await.unwrap();
    let request = elsewhere.waiting()[0].request.id.clone();
    let (sender, _shown) = turn_updates();
    let stop = CancelToken::new();
    let refused = elsewhere.answer(
        &request,
        ApprovalAnswer::Once,
        AnswerSource::Person,
        &stop,
        &sender,
    );
    let refused = refused.await.unwrap_err().to_string();
    assert!(refused.contains("`/work`"), "{refused}");
    assert_eq!(tool.runs(), 0);
}

#[tokio::test]
async fn two_equal_calls_that_need_approval_each_time_are_asked_about_separately() {
    let (mut bench, tool) = writing_bench();
    bench.rules = ApprovalRules::new(vec![rule(RuleAction::AskEachTime, "fs_write")]);
    let both = calls(["a", "a"].map(|path| ("fs_write", json!({ "path": path }))));
    let script = [delegate_and_finish("operator", "x"), both, say("Done.")];
    let mut conversation = bench.runner(ScriptedModel::replies(script)).start(local());
    assert_eq!(waiting(ask(&mut conversation, "both").await).len(), 2);
    assert_eq!(
        waiting(answer(&mut conversation, ApprovalAnswer::Once).await).len(),
        1
    );
    assert_eq!(tool.runs(), 1);
}

#[tokio::test]
async fn one_answer_creates_one_grant_even_if_it_covers_several_calls() {
    let (mut bench, tool) = writing_bench();
    let store = Arc::new(Store::in_memory());
    bench.store = Arc::clone(&store) as _;
    let both = calls(["a", "a"].map(|path| ("fs_write", json!({ "path": path }))));
    let script = [delegate_and_finish("operator", "x"), both, say("Done.")];
    let mut conversation = bench.runner(ScriptedModel::replies(script)).start(local());
    waiting(ask(&mut conversation, "both").await);
    finished(answer(&mut conversation, in_session("*")).await);
    assert_eq!(tool.runs(), 2);
    assert_eq!(store.approvals(&local()).await.unwrap().granted.len(), 1);
}

#[tokio::test]
async fn a_grant_that_is_revoked_during_a_turn_does_not_cover_the_same_call_again() {
    let (mut bench, tool) = writing_bench();
    let store = Arc::new(Store::in_memory());
    bench.store = Arc::clone(&store) as _;
    let twice = [
        delegate_and_finish("operator", "x"),
        call("fs_write", json!({ "path": "a" })),
        call("fs_write", json!({ "path": "a" })),
        say("Done."),
    ];
    let script: Vec<_> = one_write("a").into_iter().chain(twice).collect();
    let (asked, revoker) = (AtomicUsize::new(0), Arc::clone(&store));
    let model = ScriptedModel::new(move |_| {
        let number = asked.fetch_add(1, Ordering::SeqCst);
        if number == 5 {
            now(async {
                let grant = revoker.approvals(&local()).await.unwrap().granted.remove(0);
                revoker.revoke(&local(), &grant.id).await.unwrap();
            });
        }
        Ok(script[number].clone())
    });
    let mut conversation = bench.runner(model).start(local());
    waiting(ask(&mut conversation, "1").await);
    finished(answer(&mut conversation, in_session("*")).await);
    let end = ask(&mut conversation, "2").await;
    assert!(
        matches!(end, TurnEnd::Waiting(_)),
        "it ran {} times",
        tool.runs()
    );
}

/// Polls a future of the in-memory store, which is ready immediately.
fn now(future: impl Future<Output = ()>) {
    let mut future = std::pin::pin!(future);
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    assert!(future.as_mut().poll(&mut context).is_ready());
}

#[tokio::test]
async fn a_turn_that_waited_is_counted_once() {
    let (bench, _tool) = writing_bench();
    let mut conversation = bench
        .runner(ScriptedModel::replies(one_write("a")))
        .start(local());
    waiting(ask(&mut conversation, "write").await);
    assert_eq!(conversation.turns(), 1);
    finished(answer(&mut conversation, ApprovalAnswer::Once).await);
    assert_eq!(conversation.turns(), 1);
}

/// A model that delegates to both agents in one reply; an agent with a result replies that it is done.
fn delegate_to_both(agents: [&'static str; 2]) -> ScriptedModel {
    ScriptedModel::new(move |request| {
        let offers = |name: &str| request.functions.iter().any(|f| &*f.name == name);
        let has_result = request.messages.len() > 1;
        let delegations = agents.map(|agent| ("delegate", json!({ "agent": agent, "task": "go" })));
        Ok(match () {
            () if offers("delegate") && !has_result => calls(delegations),
            () if has_result => say("Done."),
            () if offers("fs_write") => call("fs_write", json!({ "path": "a" })),
            () => call("search_web", json!({})),
        })
    })
}

/// Copies events into another session, as a process that ended would leave them.
pub(crate) async fn copy_to_session(
    store: &dyn SessionStore,
    events: impl Iterator<Item = Event>,
) -> SessionId {
    let session = SessionId::from("s_cut");
    let new = NewSession {
        id: session.clone(),
        user: local(),
        created: Timestamp(0),
    };
    store.create(new).await.unwrap();
    let renumbered = events.enumerate().map(|(at, event)| Event {
        session: session.clone(),
        seq: at as u64 + 1,
        ..event
    });
    let events: Vec<Event> = renumbered.collect();
    store.append(events.into()).await.unwrap();
    session
}

#[tokio::test(start_paused = true)]
async fn a_running_remote_call_is_not_sent_again() {
    let (mut bench, _tool) = writing_bench();
    let remote = Arc::new(ScriptedRemote::new("payer", Ok("paid")));
    bench.remotes.push(Arc::clone(&remote) as _);
    let model = || delegate_to_both(["operator", "payer"]);
    let mut conversation = bench.runner(model()).start(local());
    waiting(ask(&mut conversation, "go").await);
    let all = log(&bench, conversation.session()).await.into_iter();
    let cut = all.filter(|event| !matches!(event.body, EventBody::RemoteReturned { .. }));
    let session = copy_to_session(&*bench.store, cut).await;
    let mut again = bench.runner(model()).open(session).await.unwrap();
    finished(answer(&mut again, ApprovalAnswer::Once).await);
    assert_eq!(remote.calls().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn the_time_between_a_crash_and_the_answer_does_not_count() {
    let (bench, tool) = writing_bench();
    let model = || delegate_to_both(["operator", "librarian"]);
    let mut conversation = bench.runner(model()).start(local());
    waiting(ask(&mut conversation, "go").await);
    let all = log(&bench, conversation.session()).await;
    let asked = |event: &Event| matches!(event.body, EventBody::ApprovalRequested(_));
    let end = all.iter().position(asked).unwrap();
    let session = copy_to_session(&*bench.store, all.into_iter().take(end + 1)).await;
    bench.clock.set(Timestamp(86_400_000));
    let mut again = bench.runner(model()).open(session).await.unwrap();
    let report = finished(answer(&mut again, ApprovalAnswer::Once).await);
    assert_eq!((report.answer.as_deref(), tool.runs()), (Some("Done."), 1));
}

#[tokio::test]
async fn a_restart_does_not_change_the_model_requests() {
    let model = || {
        ScriptedModel::new(|request| {
            let offers = |name: &str| request.functions.iter().any(|f| &*f.name == name);
            let text = format!("{:?}", request.messages);
            Ok(match () {
                () if offers("fs_write") && request.messages.len() == 1 => {
                    call("fs_write", json!({ "path": "a" }))
                }
                () if offers("fs_write") => say("Written."),
                () if text.contains("Written.") || !text.contains("do write") => {
                    say(&request.messages.len().to_string())
                }
                () => calls([("delegate", json!({ "agent": "operator", "task": "go" }))]),
            })
        })
    };
    let ask_after_39_turns = async |restart: bool| {
        let (bench, _tool) = writing_bench();
        let mut conversation = bench.runner(model()).start(local());
        for _ in 0..39 {
            turn(&mut conversation, "hello").await;
        }
        waiting(ask(&mut conversation, "do write").await);
        if restart {
            let session = conversation.session().clone();
            conversation = bench.runner(model()).open(session).await.unwrap();
        }
        let report = finished(answer(&mut conversation, ApprovalAnswer::Once).await);
        report.answer.unwrap().to_string()
    };
    assert_eq!(
        ask_after_39_turns(false).await,
        ask_after_39_turns(true).await
    );
}
