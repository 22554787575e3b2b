//! Approvals that a program answers.

use futures_util::StreamExt as _;
use lango::{
    ApprovalAnswer, ApprovalDecision, DeferAll, Error, JsonSchema, Lango, Storage, TurnEvent,
    approve_with, tool,
};
use serde::Deserialize;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

#[derive(Deserialize, JsonSchema)]
struct Payment {
    cents: u64,
}

const PAY: &str = r#"use pay {"cents": 5}"#;

/// Returns a tool that needs approval and counts its runs.
fn pay(runs: &Arc<AtomicUsize>) -> lango::CustomTool {
    let runs = Arc::clone(runs);
    tool("pay", "Pays", move |payment: Payment| {
        runs.fetch_add(1, Ordering::Relaxed);
        async move { Ok(format!("paid {}", payment.cents)) }
    })
    .owner("operator")
    .needs_approval()
}

#[tokio::test]
async fn without_an_approver_a_call_that_needs_approval_is_denied() {
    let runs = Arc::default();
    let lango = Lango::builder().tool(pay(&runs)).build().unwrap();
    let report = lango.session().run(PAY).await.unwrap();
    assert_eq!(runs.load(Ordering::Relaxed), 0);
    assert!(
        report.text().contains("no user could be asked"),
        "{}",
        report.text()
    );
}

#[tokio::test]
async fn an_approver_sees_the_exact_call_and_its_answer_counts() {
    let runs = Arc::default();
    let approver = approve_with(|approval| async move {
        let request = approval.request;
        assert_eq!(
            (request.agent.as_str(), request.tool.as_str()),
            ("operator", "pay")
        );
        match request.arguments["cents"].as_u64() {
            Some(5) => ApprovalDecision::allow(),
            _ => ApprovalDecision::deny("too much"),
        }
    });
    let lango = Lango::builder()
        .tool(pay(&runs))
        .approver(approver)
        .build()
        .unwrap();
    let session = lango.session();
    assert_eq!(session.run(PAY).await.unwrap().text(), "paid 5");
    let report = session.run(r#"use pay {"cents": 6}"#).await.unwrap();
    assert!(report.text().contains("too much"), "{}", report.text());
    assert_eq!(runs.load(Ordering::Relaxed), 1);
}

#[tokio::test]
async fn a_deferred_call_waits_in_the_store_until_another_program_answers() {
    let folder = tempfile::tempdir().unwrap();
    let runs = Arc::default();
    let open = || {
        let storage = Storage::Sqlite(folder.path().join("sessions.db"));
        let builder = Lango::builder().tool(pay(&runs)).approver(DeferAll);
        builder.store(storage).build().unwrap()
    };
    let (id, request) = {
        let session = open().session();
        let mut turn = session.run(PAY);
        let mut last = None;
        while let Some(event) = turn.next().await {
            last = Some(event.unwrap());
        }
        let Some(TurnEvent::Waiting(waiting)) = last else {
            panic!("the last event is {last:?}");
        };
        let error = session.run("hello").await.unwrap_err();
        assert!(matches!(error, Error::Turn(_)), "{error}");
        (session.id().clone(), waiting[0].request.id.clone())
    };
    let session = open().open(id).await.unwrap();
    assert_eq!(session.waiting().await.unwrap().len(), 1);
    let report = session.answer(request, ApprovalAnswer::Once).await.unwrap();
    assert_eq!(report.text(), "paid 5");
    assert_eq!(runs.load(Ordering::Relaxed), 1);
    assert!(session.waiting().await.unwrap().is_empty());
}

#[tokio::test]
async fn cancelling_a_turn_while_its_approver_decides_denies_the_call() {
    let runs = Arc::default();
    let asked = Arc::new(tokio::sync::Notify::new());
    let notify = Arc::clone(&asked);
    let approver = approve_with(move |_| {
        notify.notify_one();
        std::future::pending::<ApprovalDecision>()
    });
    let lango = Lango::builder()
        .tool(pay(&runs))
        .approver(approver)
        .build()
        .unwrap();
    let session = lango.session();
    let turn = session.run(PAY);
    asked.notified().await;
    turn.cancel();
    assert_eq!(turn.await.unwrap().outcome.name(), "cancelled");
    assert_eq!(runs.load(Ordering::Relaxed), 0);
    session.run("hello").await.unwrap();
}

#[tokio::test]
async fn a_turn_without_approval_has_nothing_to_resume() {
    let session = Lango::builder().build().unwrap().session();
    session.run("hello").await.unwrap();
    let error = session.resume().await.unwrap_err();
    assert!(error.to_string().contains("no unfinished turn"), "{error}");
}

/// An approver that reports what happened to calls with an unknown outcome.
struct Reporter;

impl lango::Approver for Reporter {
    fn approve<'a>(
        &'a self,
        _call: lango::PendingCall<'a>,
    ) -> lango::BoxFuture<'a, ApprovalDecision> {
        Box::pin(async { ApprovalDecision::allow() })
    }

    fn reconcile<'a>(
        &'a self,
        call: lango::PendingCall<'a>,
    ) -> lango::BoxFuture<'a, ApprovalDecision> {
        assert_eq!(call.approval.request.tool, "pay_slowly");
        let text = "it was paid".into();
        let answer = ApprovalAnswer::Happened { text };
        Box::pin(async { ApprovalDecision::Answer(answer) })
    }
}

#[test]
fn after_a_crash_the_approver_says_what_happened_and_the_next_turn_runs() {
    let folder = tempfile::tempdir().unwrap();
    let runs = Arc::new(AtomicUsize::new(0));
    let open = || {
        let runs = Arc::clone(&runs);
        let pay = tool("pay_slowly", "Pays", move |_: Payment| {
            runs.fetch_add(1, Ordering::Relaxed);
            std::future::pending::<Result<String, lango::ToolError>>()
        });
        let storage = Storage::Sqlite(folder.path().join("sessions.db"));
        let builder = Lango::builder()
            .tool(pay.owner("operator"))
            .approver(Reporter);
        builder.store(storage).build().unwrap()
    };
    let runtime = || tokio::runtime::Runtime::new().unwrap();
    // The first program ends in the middle of the call.
    let first = runtime();
    let id = first.block_on(async {
        let session = open().session();
        let _turn = session.run(r#"use pay_slowly {"cents": 5}"#);
        while runs.load(Ordering::Relaxed) == 0 {
            tokio::task::yield_now().await;
        }
        session.id().clone()
    });
    drop(first);
    runtime().block_on(async {
        let session = open().open(id).await.unwrap();
        let report = session.run("hello").await.unwrap();
        assert!(report.is_answered());
        let events = session.events(1, 100).await.unwrap();
        let reported = events.iter().any(|event| {
            matches!(&event.body, lango::EventBody::ToolReturned { output, .. } if output.contains("it was paid"))
        });
        assert!(reported);
    });
    assert_eq!(runs.load(Ordering::Relaxed), 1);
}
