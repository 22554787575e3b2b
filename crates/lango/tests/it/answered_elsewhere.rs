//! A call that waits here is answered by another process, while the user here is still being asked.

use futures_util::StreamExt as _;
use lango::{
    ApprovalAnswer, ApprovalDecision, ApprovalId, Approver, BoxFuture, Error, EventBody,
    JsonSchema, Lango, PendingCall, RunnerError, SessionId, Storage, TurnEvent, tool,
};
use serde::Deserialize;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::sync::{Notify, mpsc};

#[derive(Deserialize, JsonSchema)]
struct Payment {
    cents: u64,
}

const PAY: &str = r#"use pay {"cents": 5}"#;

/// The variables from which the other process learns what to answer.
const DATABASE: &str = "LANGO_TEST_DATABASE";
const SESSION: &str = "LANGO_TEST_SESSION";
const REQUEST: &str = "LANGO_TEST_REQUEST";

/// An approver of a user who does not react. It reports each question, and how it became obsolete.
struct AbsentUser {
    asked: mpsc::UnboundedSender<ApprovalId>,
    /// How many questions are on the screen.
    shown: Arc<AtomicUsize>,
    answered_elsewhere: Arc<AtomicUsize>,
}

/// A question on the screen. It disappears with the future of its decision.
struct ShownQuestion(Arc<AtomicUsize>);

impl Drop for ShownQuestion {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Approver for AbsentUser {
    fn approve<'a>(&'a self, call: PendingCall<'a>) -> BoxFuture<'a, ApprovalDecision> {
        Box::pin(async move {
            self.shown.fetch_add(1, Ordering::SeqCst);
            let _question = ShownQuestion(Arc::clone(&self.shown));
            self.asked.send(call.approval.request.id.clone()).unwrap();
            std::future::pending().await
        })
    }

    fn reconcile<'a>(&'a self, call: PendingCall<'a>) -> BoxFuture<'a, ApprovalDecision> {
        self.approve(call)
    }

    fn answered_elsewhere(&self, call: PendingCall<'_>) {
        assert_eq!(call.approval.request.tool, "pay");
        assert_eq!(
            self.shown.load(Ordering::SeqCst),
            0,
            "the question vanishes first"
        );
        self.answered_elsewhere.fetch_add(1, Ordering::SeqCst);
    }
}

/// Opens the database with a tool that needs approval. Each run of the tool waits for `may_pay`.
fn open(database: &Path, may_pay: &Arc<Notify>, approver: impl Approver + 'static) -> Lango {
    let may_pay = Arc::clone(may_pay);
    let pay = tool("pay", "Pays", move |payment: Payment| {
        let may_pay = Arc::clone(&may_pay);
        async move {
            may_pay.notified().await;
            Ok(format!("paid {}", payment.cents))
        }
    });
    let builder = Lango::builder().tool(pay.owner("operator").needs_approval());
    let storage = Storage::Sqlite(database.to_owned());
    builder.approver(approver).store(storage).build().unwrap()
}

/// A program whose user is asked and does not react.
struct Asking {
    lango: Lango,
    questions: mpsc::UnboundedReceiver<ApprovalId>,
    answered_elsewhere: Arc<AtomicUsize>,
}

fn asking(database: &Path) -> Asking {
    let (asked, questions) = mpsc::unbounded_channel();
    let answered_elsewhere = Arc::default();
    let approver = AbsentUser {
        asked,
        shown: Arc::default(),
        answered_elsewhere: Arc::clone(&answered_elsewhere),
    };
    // The tool never runs here.
    let lango = open(database, &Arc::default(), approver);
    Asking {
        lango,
        questions,
        answered_elsewhere,
    }
}

/// Answers from a second runner over the same database.
async fn answer(
    database: &Path,
    may_pay: &Arc<Notify>,
    answer: ApprovalAnswer,
    of: (SessionId, ApprovalId),
) -> String {
    let session = open(database, may_pay, lango::DeferAll)
        .open(of.0)
        .await
        .unwrap();
    session
        .answer(of.1, answer)
        .await
        .unwrap()
        .text()
        .to_owned()
}

#[tokio::test]
async fn a_question_vanishes_when_another_process_answers_and_the_turn_is_followed_to_its_end() {
    let may_pay = Arc::new(Notify::new());
    may_pay.notify_one();
    for (reply, expected) in [
        (ApprovalAnswer::Once, "paid 5"),
        (ApprovalAnswer::No { reason: None }, "said no"),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let database = folder.path().join("sessions.db");
        let mut here = asking(&database);
        let session = here.lango.session();
        let mut turn = session.run(PAY);
        let request = here.questions.recv().await.unwrap();
        let there = answer(&database, &may_pay, reply, (session.id().clone(), request)).await;
        let (mut stored, mut end) = (Vec::new(), None);
        while let Some(event) = turn.next().await {
            match event.unwrap() {
                TurnEvent::Stored(event) => stored.push(event),
                TurnEvent::Finished(report) => end = Some(report),
                _ => {}
            }
        }
        let report = end.unwrap();
        assert!(
            report.is_answered() && report.text().contains(expected),
            "{report:?}"
        );
        assert_eq!(report.text(), there);
        assert_eq!(here.answered_elsewhere.load(Ordering::SeqCst), 1);
        // What the other process stored is shown here too, once.
        assert_eq!(stored, session.events(1, 1000).await.unwrap());
        assert!(session.run("hello").await.unwrap().is_answered());
    }
}

#[tokio::test]
async fn cancelling_while_another_process_runs_the_turn_only_stops_following_it() {
    let folder = tempfile::tempdir().unwrap();
    let database = folder.path().join("sessions.db");
    let mut here = asking(&database);
    let session = here.lango.session();
    let mut turn = session.run(PAY);
    let request = here.questions.recv().await.unwrap();
    let may_pay = Arc::new(Notify::new());
    let there = answer(
        &database,
        &may_pay,
        ApprovalAnswer::Once,
        (session.id().clone(), request),
    );
    let here = async {
        // The call runs there, and is shown here.
        loop {
            match turn.next().await.unwrap().unwrap() {
                TurnEvent::Stored(event) if matches!(event.body, EventBody::ToolCalled { .. }) => {
                    break;
                }
                _ => {}
            }
        }
        turn.cancel();
        let end = turn.report().await;
        may_pay.notify_one();
        end
    };
    let (there, here) = futures_util::future::join(there, here).await;
    assert!(
        matches!(here, Err(Error::Turn(RunnerError::NothingPending))),
        "{here:?}"
    );
    assert_eq!(there, "paid 5");
}

#[tokio::test]
async fn an_answer_of_a_real_other_process_ends_the_question_here() {
    let folder = tempfile::tempdir().unwrap();
    let database = folder.path().join("sessions.db");
    let mut here = asking(&database);
    let session = here.lango.session();
    let turn = session.run(PAY);
    let request = here.questions.recv().await.unwrap();
    let mut other = Command::new(std::env::current_exe().unwrap())
        .args([
            "--exact",
            "answered_elsewhere::the_other_process",
            "--ignored",
        ])
        .env(DATABASE, &database)
        .env(SESSION, session.id().as_str())
        .env(REQUEST, request.as_str())
        .spawn()
        .unwrap();
    let report = turn.report().await.unwrap();
    assert_eq!(report.text(), "paid 5");
    assert!(other.wait().unwrap().success());
    assert_eq!(here.answered_elsewhere.load(Ordering::SeqCst), 1);
}

#[tokio::test]
#[ignore = "the other process of a test, not a test itself"]
async fn the_other_process() {
    let variable = |name: &str| std::env::var(name).unwrap();
    let of = (
        SessionId::from(variable(SESSION).as_str()),
        ApprovalId::from(variable(REQUEST).as_str()),
    );
    let may_pay = Arc::new(Notify::new());
    may_pay.notify_one();
    let database = variable(DATABASE);
    let text = answer(Path::new(&database), &may_pay, ApprovalAnswer::Once, of).await;
    assert_eq!(text, "paid 5");
}
