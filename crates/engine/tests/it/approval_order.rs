//! Calls that wait beside calls that do not, answers out of order, and restarts in between.

use crate::approvals::{answer, ask, in_session, one_write, waiting, writing_bench};
use crate::bench::{finished, local, log, turn};
use crate::support::rule;
use lango_core::{
    Answer, AnsweredBy, Event, EventBody, NewSession, SessionCatalog, SessionId, SessionStore,
    Timestamp,
};
use lango_engine::{Action, Rules, RunnerError, Stop, TurnEnd};
use lango_store::Store;
use lango_testkit::model::{ScriptedModel, call, calls, delegate_and_finish, say};
use lango_testkit::remote::ScriptedRemote;
use lango_testkit::tool::CountingTool;
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::sync::mpsc;

#[tokio::test(start_paused = true)]
async fn an_allowed_call_behind_one_that_is_asked_for_waits_with_it_and_runs_after_it() {
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
    finished(answer(&mut conversation, Answer::Once).await);
    assert_eq!((tool.runs(), read.runs()), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn a_granted_call_behind_one_that_is_asked_for_keeps_its_place() {
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
    finished(answer(&mut conversation, Answer::Once).await);
    assert_eq!(tool.runs(), 3);
}

#[tokio::test(start_paused = true)]
async fn the_second_of_two_can_be_answered_first() {
    let (bench, tool) = writing_bench();
    let both = calls(["a", "b"].map(|path| ("fs_write", json!({ "path": path }))));
    let script = [delegate_and_finish("operator", "x"), both, say("Done.")];
    let mut conversation = bench.runner(ScriptedModel::replies(script)).start(local());
    let queue = waiting(ask(&mut conversation, "go").await);
    let (sender, _shown) = mpsc::channel(1000);
    let stop = Stop::new();
    let second = &queue[1].request.id;
    let end = conversation.answer(second, Answer::Once, AnsweredBy::Person, &stop, &sender);
    assert_eq!(waiting(end.await.unwrap()).len(), 1);
    let again = conversation.answer(second, Answer::Once, AnsweredBy::Person, &stop, &sender);
    assert!(matches!(again.await, Err(RunnerError::NotWaiting { .. })));
    finished(answer(&mut conversation, Answer::Once).await);
    assert_eq!(tool.runs(), 2);
}

#[tokio::test]
async fn nobody_overtakes_a_turn_that_waits() {
    let (mut bench, _tool) = writing_bench();
    let store = Arc::new(Store::in_memory());
    bench.store = Arc::clone(&store) as _;
    let script = [say("Hi.")].into_iter().chain(one_write("a"));
    let runner = bench.runner(ScriptedModel::replies(script));
    let mut one = runner.start(local());
    turn(&mut one, "hello").await;
    let mut other = runner.open(one.session().clone()).await.unwrap();
    waiting(ask(&mut other, "write").await);
    let (sender, _shown) = mpsc::channel(1000);
    let overtaking = one.turn("and?", &Stop::new(), &sender).await;
    assert!(
        matches!(overtaking, Err(RunnerError::Waiting { .. })),
        "{overtaking:?}"
    );
    assert_eq!(store.approvals(&local()).await.unwrap().waiting.len(), 1);
    finished(answer(&mut one, Answer::Once).await);
    other.refresh().await.unwrap();
    assert!(other.waiting().is_empty(), "it was answered elsewhere");
}

#[tokio::test]
async fn an_answer_holds_only_in_the_folder_where_it_was_asked_for() {
    let (mut bench, tool) = writing_bench();
    let model = ScriptedModel::replies(one_write("a").into_iter().take(2));
    let mut conversation = bench.runner(model).start(local());
    waiting(ask(&mut conversation, "write").await);
    bench.folder = "/elsewhere";
    let runner = bench.runner(ScriptedModel::replies([say("Done.")]));
    let mut elsewhere = runner.open(conversation.session().clone()).await.unwrap();
    let request = elsewhere.waiting()[0].request.id.clone();
    let (sender, _shown) = mpsc::channel(10);
    let stop = Stop::new();
    let refused = elsewhere.answer(&request, Answer::Once, AnsweredBy::Person, &stop, &sender);
    let refused = refused.await.unwrap_err().to_string();
    assert!(refused.contains("`/work`"), "{refused}");
    assert_eq!(tool.runs(), 0);
}

#[tokio::test]
async fn what_is_asked_for_each_time_is_asked_for_each_of_two_same_calls() {
    let (mut bench, tool) = writing_bench();
    bench.rules = Rules::new(vec![rule(Action::AskEachTime, "fs_write")]);
    let both = calls(["a", "a"].map(|path| ("fs_write", json!({ "path": path }))));
    let script = [delegate_and_finish("operator", "x"), both, say("Done.")];
    let mut conversation = bench.runner(ScriptedModel::replies(script)).start(local());
    assert_eq!(waiting(ask(&mut conversation, "both").await).len(), 2);
    assert_eq!(
        waiting(answer(&mut conversation, Answer::Once).await).len(),
        1
    );
    assert_eq!(tool.runs(), 1);
}

#[tokio::test]
async fn one_answer_is_one_grant_however_many_calls_it_answers() {
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
async fn a_grant_that_is_taken_back_in_a_turn_does_not_hold_for_the_same_call_again() {
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

/// A future of the store in memory is ready at once.
fn now(future: impl Future<Output = ()>) {
    let mut future = std::pin::pin!(future);
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    assert!(future.as_mut().poll(&mut context).is_ready());
}

#[tokio::test]
async fn a_turn_that_waited_counts_as_one() {
    let (bench, _tool) = writing_bench();
    let mut conversation = bench
        .runner(ScriptedModel::replies(one_write("a")))
        .start(local());
    waiting(ask(&mut conversation, "write").await);
    assert_eq!(conversation.turns(), 1);
    finished(answer(&mut conversation, Answer::Once).await);
    assert_eq!(conversation.turns(), 1);
}

/// The two agents are asked at once; whoever has a result says that it is done.
fn two_at_once(agents: [&'static str; 2]) -> ScriptedModel {
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

/// The same events in another session, as a process that ended left them.
pub async fn left_behind(
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
async fn a_remote_call_that_was_under_way_is_not_made_again() {
    let (mut bench, _tool) = writing_bench();
    let remote = Arc::new(ScriptedRemote::new("payer", Ok("paid")));
    bench.remotes.push(Arc::clone(&remote) as _);
    let model = || two_at_once(["operator", "payer"]);
    let mut conversation = bench.runner(model()).start(local());
    waiting(ask(&mut conversation, "go").await);
    let all = log(&bench, conversation.session()).await.into_iter();
    let cut = all.filter(|event| !matches!(event.body, EventBody::RemoteReturned { .. }));
    let session = left_behind(&*bench.store, cut).await;
    let mut again = bench.runner(model()).open(session).await.unwrap();
    finished(answer(&mut again, Answer::Once).await);
    assert_eq!(remote.calls().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn the_time_between_a_crash_and_the_answer_does_not_count() {
    let (bench, tool) = writing_bench();
    let model = || two_at_once(["operator", "librarian"]);
    let mut conversation = bench.runner(model()).start(local());
    waiting(ask(&mut conversation, "go").await);
    let all = log(&bench, conversation.session()).await;
    let asked = |event: &Event| matches!(event.body, EventBody::ApprovalRequested(_));
    let end = all.iter().position(asked).unwrap();
    let session = left_behind(&*bench.store, all.into_iter().take(end + 1)).await;
    bench.clock.set(Timestamp(86_400_000));
    let mut again = bench.runner(model()).open(session).await.unwrap();
    let report = finished(answer(&mut again, Answer::Once).await);
    assert_eq!((report.answer.as_deref(), tool.runs()), (Some("Done."), 1));
}

#[tokio::test]
async fn a_restart_does_not_change_what_the_model_is_sent() {
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
        let report = finished(answer(&mut conversation, Answer::Once).await);
        report.answer.unwrap().to_string()
    };
    assert_eq!(
        ask_after_39_turns(false).await,
        ask_after_39_turns(true).await
    );
}
