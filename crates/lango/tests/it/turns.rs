//! Turns as streams: reading them, dropping them, cancelling them, and never reading them.

use futures_util::StreamExt as _;
use lango::{
    BoxStream, EventBody, JsonSchema, Lango, Model, ModelError, ModelEvent, ModelInfo, ModelReply,
    ModelRequest, Outcome, Storage, TurnEvent, tool,
};
use serde::Deserialize;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Notify;

/// A model that writes many pieces before its reply.
struct Talkative {
    pieces: usize,
}

impl Model for Talkative {
    fn name(&self) -> &str {
        "test/talkative"
    }

    fn info(&self) -> ModelInfo {
        ModelInfo::default()
    }

    fn call<'a>(&'a self, _request: ModelRequest) -> BoxStream<'a, Result<ModelEvent, ModelError>> {
        let pieces = (0..self.pieces).map(|number| Ok(ModelEvent::Text(format!("{number} "))));
        let text = (0..self.pieces)
            .map(|number| format!("{number} "))
            .collect();
        let reply = ModelReply {
            text,
            ..ModelReply::default()
        };
        let reply = Ok(ModelEvent::Reply(reply));
        futures_util::stream::iter(pieces.chain([reply])).boxed()
    }
}

#[tokio::test]
async fn b01_a_hello_is_one_model_call_and_three_stored_events() {
    let session = Lango::builder().build().unwrap().session();
    let mut turn = session.run("hello");
    let (mut stored, mut last) = (0, None);
    while let Some(event) = turn.next().await {
        let event = event.unwrap();
        stored += usize::from(matches!(event, TurnEvent::Stored(_)));
        last = Some(event);
    }
    let Some(TurnEvent::Finished(report)) = last else {
        panic!("the last event is {last:?}");
    };
    assert_eq!((stored, report.model_calls), (3, 1));
    assert_eq!(report.author(), "lango-orchestrator");
    assert!(turn.next().await.is_none());
}

#[tokio::test]
async fn drafts_are_pieces_of_the_answer() {
    let lango = Lango::builder()
        .model(Talkative { pieces: 100 })
        .build()
        .unwrap();
    let mut turn = lango.session().run("talk");
    let mut draft = String::new();
    while let Some(event) = turn.next().await {
        match event.unwrap() {
            TurnEvent::Draft { text, .. } => draft.push_str(&text),
            TurnEvent::Finished(report) => assert_eq!(report.text().trim(), draft.trim()),
            _ => {}
        }
    }
    assert!(draft.ends_with("99 "), "{draft}");
}

#[tokio::test]
async fn a_turn_that_nobody_reads_runs_to_its_end() {
    let lango = Lango::builder()
        .model(Talkative { pieces: 50_000 })
        .build()
        .unwrap();
    let session = lango.session();
    let unread = session.run("talk");
    let next = tokio::time::timeout(Duration::from_secs(60), session.run("talk again"));
    // The second turn runs after the first one, which therefore ended.
    let report = next.await.expect("the first turn hangs").unwrap();
    assert_eq!(report.outcome.name(), "answered");
    assert_eq!(unread.await.unwrap().outcome.name(), "answered");
}

#[derive(Deserialize, JsonSchema)]
struct Nothing {}

/// Returns a tool that reports that it runs, and ends when it is told to.
fn slow_tool(started: &Arc<Notify>, finish: &Arc<Notify>) -> lango::CustomTool {
    let (started, finish) = (Arc::clone(started), Arc::clone(finish));
    tool("search_slowly", "Searches slowly", move |_: Nothing| {
        let (started, finish) = (Arc::clone(&started), Arc::clone(&finish));
        async move {
            started.notify_one();
            finish.notified().await;
            Ok("found")
        }
    })
}

#[tokio::test]
async fn dropping_the_stream_does_not_stop_the_turn() {
    let (started, finish) = (Arc::default(), Arc::default());
    let lango = Lango::builder()
        .tool(slow_tool(&started, &finish))
        .build()
        .unwrap();
    let session = lango.session();
    let turn = session.run("use search_slowly {}");
    started.notified().await;
    drop(turn);
    finish.notify_one();
    // Waits for the first turn.
    session.run("hello").await.unwrap();
    let events = session.events(1, 100).await.unwrap();
    let returned = events.iter().any(|event| {
        matches!(&event.body, EventBody::ToolReturned { output, .. } if **output == *"found")
    });
    assert!(returned);
}

#[tokio::test]
async fn cancel_stops_the_turn_and_the_session_goes_on() {
    let (started, finish) = (Arc::default(), Arc::default());
    let lango = Lango::builder()
        .tool(slow_tool(&started, &finish))
        .build()
        .unwrap();
    let session = lango.session();
    let turn = session.run("use search_slowly {}");
    started.notified().await;
    turn.cancel();
    assert_eq!(turn.await.unwrap().outcome, Outcome::Cancelled);
    let report = session.run("hello").await.unwrap();
    assert_eq!(report.outcome, Outcome::Answered { limit: None });
}

#[tokio::test]
async fn a_stored_session_is_continued_by_another_program() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("sessions.db");
    let open = || {
        let storage = Storage::Sqlite(path.clone());
        Lango::builder().store(storage).build().unwrap()
    };
    let id = {
        let session = open().session();
        session.run("hello").await.unwrap();
        session.id().clone()
    };
    let session = open().open(id).await.unwrap();
    session.run("hello again").await.unwrap();
    let events = session.events(1, 100).await.unwrap();
    let seqs: Vec<u64> = events.iter().map(|event| event.seq).collect();
    assert_eq!(seqs, (1..=6).collect::<Vec<u64>>());
}

#[tokio::test]
async fn an_unknown_session_is_an_error_that_names_it() {
    let lango = Lango::builder().build().unwrap();
    let error = lango.open("s_missing").await.unwrap_err();
    assert!(error.to_string().contains("s_missing"), "{error}");
}

#[tokio::test]
async fn a_single_agent_owns_every_tool() {
    let (started, finish): (Arc<Notify>, Arc<Notify>) = (Arc::default(), Arc::default());
    finish.notify_one();
    let lango = Lango::builder()
        .single_agent()
        .tool(slow_tool(&started, &finish))
        .build()
        .unwrap();
    let report = lango.session().run("use search_slowly {}").await.unwrap();
    assert_eq!((report.text(), report.author()), ("found", "lango-agent"));
    assert_eq!(report.rounds, 0);
}

#[tokio::test]
async fn a_queued_turn_says_so_and_is_cancelled_at_once_without_a_trace() {
    let (started, finish) = (Arc::default(), Arc::default());
    let lango = Lango::builder()
        .tool(slow_tool(&started, &finish))
        .build()
        .unwrap();
    let session = lango.session();
    let first = session.run("use search_slowly {}");
    started.notified().await;
    let mut second = session.run("hello");
    assert_eq!(second.next().await.unwrap().unwrap(), TurnEvent::Queued);
    second.cancel();
    let error = second.await.unwrap_err();
    assert!(error.to_string().contains("nothing was stored"), "{error}");
    finish.notify_one();
    first.await.unwrap();
    let events = session.events(1, 100).await.unwrap();
    assert_eq!(
        events.iter().filter(|event| event.author == "user").count(),
        1
    );
}

#[tokio::test]
async fn sessions_are_listed_by_the_catalog() {
    let lango = Lango::builder().build().unwrap();
    let session = lango.session();
    assert!(session.events(1, 10).await.unwrap().is_empty());
    session.run("hello").await.unwrap();
    let query = lango::SessionQuery::recent(10);
    let listed = lango
        .catalog()
        .unwrap()
        .list(session.user(), query)
        .await
        .unwrap();
    assert_eq!(listed.len(), 1);
    assert_eq!(listed[0].id, *session.id());
}

#[tokio::test]
async fn a_cancelled_turn_has_no_text_and_no_author() {
    let (started, finish) = (Arc::default(), Arc::default());
    let lango = Lango::builder()
        .tool(slow_tool(&started, &finish))
        .build()
        .unwrap();
    let turn = lango.session().run("use search_slowly {}");
    started.notified().await;
    turn.cancel();
    let report = turn.await.unwrap();
    assert_eq!(
        (report.text(), report.author(), report.is_answered()),
        ("", "", false)
    );
}
