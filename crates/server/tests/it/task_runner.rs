//! Tasks of callers as turns: answers, approvals that only a person may give, and cancels.

use crate::support::{TestServer, message};
use lango_core::{
    AnswerSource, ApprovalAnswer, ApprovalId, BusyPolicy, CallStatus, EventBody, EventRange,
    MessageOrigin, Risk, SessionCatalog, SessionQuery, SessionStore, TaskPutOutcome, TaskStore,
    Tool, Trust, UserId,
};
use lango_engine::{CancelToken, TurnEnd, turn_updates};
use lango_server::TaskRunner;
use lango_testkit::model::{PacedModel, ScriptedModel, call, delegate_and_finish, say};
use lango_testkit::tool::CountingTool;
use serde_json::{Value, json};
use std::sync::Arc;

fn state(task: &Value) -> &str {
    task["status"]["state"].as_str().unwrap()
}

fn answer(task: &Value) -> &str {
    task["artifacts"][0]["parts"][0]["text"]
        .as_str()
        .unwrap_or_default()
}

/// Approves the pending call of a task, as another process would. Returns the approved request and the end of the turn.
async fn approve(server: &TestServer, task: &Value) -> (ApprovalId, TurnEnd) {
    let context = task["contextId"].as_str().unwrap();
    let session = TaskRunner::session_of(&UserId::from("a2a"), context);
    let mut conversation = server.runner.open(session).await.unwrap();
    let request = conversation.waiting()[0].request.id.clone();
    let (shown, _) = turn_updates();
    let (once, person) = (ApprovalAnswer::Once, AnswerSource::Person);
    let end = conversation
        .answer(&request, once, person, &CancelToken::new(), &shown)
        .await;
    (request, end.unwrap())
}

/// Returns a tool that needs approval, and a model that calls it once.
fn tool_with_approval() -> (Arc<CountingTool>, ScriptedModel) {
    let tool = Arc::new(CountingTool::new("fs_write").with_risk(Risk::Moderate));
    let model = ScriptedModel::replies([
        delegate_and_finish("operator", "write it"),
        call("fs_write", json!({ "path": "a" })),
        say("It is written."),
    ]);
    (tool, model)
}

#[tokio::test]
async fn a_message_becomes_a_turn_and_its_answer_an_artifact() {
    let folder = tempfile::tempdir().unwrap();
    let model = ScriptedModel::replies([say("Hello."), say("Again.")]);
    let server = TestServer::start(folder.path(), model, vec![]).await;
    let sent = server.rpc("SendMessage", message("m-1", "hello")).await;
    let task = &sent["result"]["task"];
    assert_eq!(
        (state(task), answer(task)),
        ("TASK_STATE_COMPLETED", "Hello.")
    );
    let mut second = message("m-2", "and again");
    second["message"]["contextId"] = task["contextId"].clone();
    let sent = server.rpc("SendMessage", second).await;
    let again = &sent["result"]["task"];
    assert_eq!(answer(again), "Again.");
    assert_ne!(again["id"], task["id"]);
    let user = UserId::from("a2a");
    let session = TaskRunner::session_of(&user, task["contextId"].as_str().unwrap());
    let listed = SessionCatalog::list(&*server.store, &user, SessionQuery::recent(10))
        .await
        .unwrap();
    assert_eq!(listed.len(), 1, "one conversation is one session");
    assert_eq!((&listed[0].id, listed[0].turns), (&session, 2));
    assert!(
        SessionCatalog::list(
            &*server.store,
            &UserId::from("local"),
            SessionQuery::recent(10)
        )
        .await
        .unwrap()
        .is_empty()
    );
    server.stop().await;
}

#[tokio::test]
async fn a_message_to_a_conversation_whose_session_was_deleted_starts_a_new_session() {
    let folder = tempfile::tempdir().unwrap();
    let model = ScriptedModel::replies([say("Hello."), say("Again.")]);
    let server = TestServer::start(folder.path(), model, vec![]).await;
    let mut first = message("m-1", "hello");
    first["message"]["contextId"] = "c".into();
    let sent = server.rpc("SendMessage", first).await;
    assert_eq!(state(&sent["result"]["task"]), "TASK_STATE_COMPLETED");
    let session = TaskRunner::session_of(&UserId::from("a2a"), "c");
    assert!(server.store.hide_session(&session, None).await.unwrap());
    while !server.store.remove_portion(&session).await.unwrap() {}
    let mut second = message("m-2", "and again");
    second["message"]["contextId"] = "c".into();
    let sent = server.rpc("SendMessage", second).await;
    let task = &sent["result"]["task"];
    assert_eq!(
        (state(task), answer(task)),
        ("TASK_STATE_COMPLETED", "Again.")
    );
    let page = EventRange { from: 1, limit: 1 };
    let events = server.store.read(&session, page).await.unwrap();
    let EventBody::UserMessage { text, .. } = &events[0].body else {
        panic!("{:?}", events[0]);
    };
    assert_eq!(&**text, "and again");
}

#[tokio::test]
async fn a_further_attempt_returns_the_answer_of_the_first_one_if_that_ran_after_all() {
    let folder = tempfile::tempdir().unwrap();
    let model = ScriptedModel::replies([say("Hello.")]);
    let server = TestServer::start(folder.path(), model, vec![]).await;
    let sent = server.rpc("SendMessage", message("m-1", "hello")).await;
    let first = &sent["result"]["task"];
    // One replica reported the task as failed before a slow one ran it.
    let user = UserId::from("a2a");
    let id = first["id"].as_str().unwrap();
    let mut record = server.store.get(&user, id).await.unwrap().unwrap();
    let mut body: Value = serde_json::from_str(&record.body).unwrap();
    body["status"]["state"] = "TASK_STATE_FAILED".into();
    body["status"]["message"] = json!({
        "messageId": "x", "role": "ROLE_AGENT", "parts": [], "metadata": { "started": false }
    });
    record.body = body.to_string().into();
    record.state = "TASK_STATE_FAILED".into();
    record.revision += 1;
    let written = server.store.put(record).await.unwrap();
    assert_eq!(written, TaskPutOutcome::Stored);
    let sent = server.rpc("SendMessage", message("m-1", "hello")).await;
    let second = &sent["result"]["task"];
    assert_ne!(second["id"], first["id"]);
    assert_eq!(second["contextId"], first["contextId"]);
    assert_eq!(
        (state(second), answer(second)),
        ("TASK_STATE_COMPLETED", "Hello.")
    );
}

#[tokio::test]
async fn a_message_of_a_caller_is_logged_as_from_a_program_and_its_answer_is_untrusted() {
    let folder = tempfile::tempdir().unwrap();
    let model = ScriptedModel::replies([say("Hello.")]);
    let server = TestServer::start(folder.path(), model, vec![]).await;
    let sent = server.rpc("SendMessage", message("m-1", "hello")).await;
    let context = sent["result"]["task"]["contextId"].as_str().unwrap();
    let session = TaskRunner::session_of(&UserId::from("a2a"), context);
    let page = EventRange { from: 1, limit: 10 };
    let events = SessionStore::read(&*server.store, &session, page)
        .await
        .unwrap();
    let EventBody::UserMessage { origin, .. } = &events[0].body else {
        panic!("{events:?}");
    };
    assert_eq!(*origin, Some(MessageOrigin::Program));
    assert!(matches!(events[1].body, EventBody::AgentMessage { .. }));
    assert_eq!(events[1].body.trust(), Trust::Untrusted);
}

#[tokio::test]
async fn an_answer_is_streamed_as_it_is_written() {
    let folder = tempfile::tempdir().unwrap();
    let text = "One two three four five six.";
    let model = ScriptedModel::replies([say(text)]).with_chunk_size(5);
    let model = PacedModel(Arc::new(model));
    let server = TestServer::start(folder.path(), model, vec![]).await;
    let events = server
        .stream("SendStreamingMessage", message("m-1", "count"))
        .await;
    assert!(events[0].get("task").is_some(), "{events:?}");
    let updates: Vec<&Value> = events
        .iter()
        .filter_map(|event| event.get("artifactUpdate"))
        .collect();
    let (whole, chunks) = updates.split_last().unwrap();
    let text_of = |update: &Value| update["artifact"]["parts"][0]["text"].clone();
    let chunks: Vec<Value> = chunks.iter().map(|update| text_of(update)).collect();
    assert!(chunks.len() > 2, "{events:?}");
    let streamed: String = chunks.iter().filter_map(Value::as_str).collect();
    assert_eq!(streamed, text);
    // Some clients keep only the last update.
    assert_eq!(text_of(whole), text);
    assert_eq!(
        (&whole["append"], &whole["lastChunk"]),
        (&json!(false), &json!(true))
    );
    let last = events.last().unwrap();
    assert_eq!(
        last["statusUpdate"]["status"]["state"],
        "TASK_STATE_COMPLETED"
    );
    server.stop().await;
}

#[tokio::test]
async fn a_call_that_needs_approval_waits_until_a_local_user_approves_it() {
    let folder = tempfile::tempdir().unwrap();
    let (tool, model) = tool_with_approval();
    let tools: Vec<Arc<dyn Tool>> = vec![Arc::clone(&tool) as _];
    let server = TestServer::start(folder.path(), model, tools).await;
    let sent = server.rpc("SendMessage", message("m-1", "write")).await;
    let task = sent["result"]["task"].clone();
    assert_eq!(state(&task), "TASK_STATE_AUTH_REQUIRED", "{task}");
    let text = task["status"]["message"]["parts"][0]["text"]
        .as_str()
        .unwrap();
    assert!(text.contains("operator wants to use fs_write"), "{text}");
    // The caller is a program, so its messages cannot approve anything.
    let mut yes = message("m-2", "yes, do it");
    yes["message"]["taskId"] = task["id"].clone();
    let sent = server.rpc("SendMessage", yes).await;
    assert_eq!(state(&sent["result"]["task"]), "TASK_STATE_AUTH_REQUIRED");
    assert_eq!(tool.runs(), 0);
    let (_, end) = approve(&server, &task).await;
    assert!(matches!(end, TurnEnd::Finished(_)));
    let got = server.rpc("GetTask", json!({ "id": task["id"] })).await;
    let task = &got["result"];
    assert_eq!(
        (state(task), answer(task)),
        ("TASK_STATE_COMPLETED", "It is written.")
    );
    assert_eq!(tool.runs(), 1);
    server.stop().await;
}

#[tokio::test]
async fn a_task_shows_the_next_approval_after_another_process_answered_one() {
    let folder = tempfile::tempdir().unwrap();
    let tool = Arc::new(CountingTool::new("fs_write").with_risk(Risk::Moderate));
    let model = ScriptedModel::replies([
        delegate_and_finish("operator", "write both"),
        call("fs_write", json!({ "path": "a" })),
        call("fs_write", json!({ "path": "b" })),
    ]);
    let server = TestServer::start(folder.path(), model, vec![Arc::clone(&tool) as _]).await;
    let sent = server.rpc("SendMessage", message("m-1", "write")).await;
    let task = &sent["result"]["task"];
    let (first, end) = approve(&server, task).await;
    let TurnEnd::Waiting(waiting) = end else {
        panic!("{end:?}");
    };
    let second = waiting[0].request.id.clone();
    assert_ne!(first, second);
    let listed = server.rpc("ListTasks", json!({})).await;
    let listed = &listed["result"]["tasks"][0];
    let got = server.rpc("GetTask", json!({ "id": task["id"] })).await;
    for task in [listed, &got["result"]] {
        assert_eq!(state(task), "TASK_STATE_AUTH_REQUIRED", "{task}");
        let metadata = &task["status"]["message"]["metadata"];
        assert_eq!(metadata["approvals"], json!([second.as_str()]), "{task}");
    }
    server.stop().await;
}

#[tokio::test]
async fn a_repeated_message_creates_no_empty_session() {
    let folder = tempfile::tempdir().unwrap();
    let server =
        TestServer::start(folder.path(), ScriptedModel::replies([say("yes")]), vec![]).await;
    for _ in 0..4 {
        let sent = server.rpc("SendMessage", message("m-1", "done?")).await;
        assert_eq!(state(&sent["result"]["task"]), "TASK_STATE_COMPLETED");
    }
    let sessions = SessionCatalog::list(
        &*server.store,
        &UserId::from("a2a"),
        SessionQuery::recent(10),
    )
    .await;
    assert_eq!(sessions.unwrap().len(), 1);
    server.stop().await;
}

#[tokio::test]
async fn cancelling_a_waiting_task_denies_its_call() {
    let folder = tempfile::tempdir().unwrap();
    let (tool, model) = tool_with_approval();
    let server = TestServer::start(folder.path(), model, vec![Arc::clone(&tool) as _]).await;
    let sent = server.rpc("SendMessage", message("m-1", "write")).await;
    let task = sent["result"]["task"].clone();
    let cancelled = server.rpc("CancelTask", json!({ "id": task["id"] })).await;
    assert_eq!(state(&cancelled["result"]), "TASK_STATE_CANCELED");
    let context = task["contextId"].as_str().unwrap();
    let session = TaskRunner::session_of(&UserId::from("a2a"), context);
    let all = EventRange {
        from: 1,
        limit: 100,
    };
    let events = SessionStore::read(&*server.store, &session, all)
        .await
        .unwrap();
    let is_denied = |body: &EventBody| {
        matches!(
            body,
            EventBody::ToolReturned {
                status: CallStatus::Denied,
                ..
            }
        )
    };
    assert!(events.iter().any(|event| is_denied(&event.body)));
    assert_eq!(tool.runs(), 0);
    server.stop().await;
}

#[tokio::test]
async fn while_another_process_answers_a_task_neither_fails_nor_can_be_cancelled() {
    let folder = tempfile::tempdir().unwrap();
    let (tool, model) = tool_with_approval();
    let server = TestServer::start(folder.path(), model, vec![Arc::clone(&tool) as _]).await;
    let sent = server.rpc("SendMessage", message("m-1", "write")).await;
    let task = sent["result"]["task"].clone();
    let context = task["contextId"].as_str().unwrap();
    let session = TaskRunner::session_of(&UserId::from("a2a"), context);
    let other_lease = server
        .store
        .acquire(&session, BusyPolicy::Refuse)
        .await
        .unwrap();
    let mut follow_up = message("m-2", "any news?");
    follow_up["message"]["taskId"] = task["id"].clone();
    let sent = server.rpc("SendMessage", follow_up).await;
    assert_eq!(state(&sent["result"]["task"]), "TASK_STATE_AUTH_REQUIRED");
    let refused = server.rpc("CancelTask", json!({ "id": task["id"] })).await;
    assert_eq!(refused["error"]["code"], -32002, "{refused}");
    let got = server.rpc("GetTask", json!({ "id": task["id"] })).await;
    assert_eq!(state(&got["result"]), "TASK_STATE_AUTH_REQUIRED");
    drop(other_lease);
    let cancelled = server.rpc("CancelTask", json!({ "id": task["id"] })).await;
    assert_eq!(state(&cancelled["result"]), "TASK_STATE_CANCELED");
    assert_eq!(tool.runs(), 0);
    server.stop().await;
}

#[tokio::test]
async fn a_new_task_waits_while_another_process_uses_its_session() {
    let folder = tempfile::tempdir().unwrap();
    let model = ScriptedModel::replies([say("Now.")]);
    let server = TestServer::start(folder.path(), model, vec![]).await;
    let session = TaskRunner::session_of(&UserId::from("a2a"), "busy");
    let other_lease = server
        .store
        .acquire(&session, BusyPolicy::Refuse)
        .await
        .unwrap();
    let id = server.start_task("m-1", "hello", Some("busy")).await["id"].clone();
    // It waits long enough to be reported as queued.
    let task = server.wait_for_state(&id, "TASK_STATE_WORKING").await;
    let text = task["status"]["message"]["parts"][0]["text"].as_str();
    assert!(text.unwrap().contains("queued"), "{text:?}");
    drop(other_lease);
    let task = server.wait_for_state(&id, "TASK_STATE_COMPLETED").await;
    assert_eq!(answer(&task), "Now.");
    server.stop().await;
}

#[tokio::test]
async fn a_task_whose_answer_is_too_long_still_completes() {
    let folder = tempfile::tempdir().unwrap();
    let model = ScriptedModel::replies([say(&"long ".repeat(1_000_000))]);
    let server = TestServer::start(folder.path(), model, vec![]).await;
    let sent = server.rpc("SendMessage", message("m-1", "much")).await;
    let task = &sent["result"]["task"];
    assert_eq!(state(task), "TASK_STATE_COMPLETED");
    let text = task["status"]["message"]["parts"][0]["text"].as_str();
    assert!(text.unwrap().contains("too long to be stored"), "{text:?}");
    server.stop().await;
}

#[tokio::test]
async fn calls_that_wait_for_approval_do_not_block_other_conversations() {
    let folder = tempfile::tempdir().unwrap();
    let tool = Arc::new(CountingTool::new("fs_write").with_risk(Risk::Moderate));
    let model = ScriptedModel::from_fn(|request| {
        let offers = |name: &str| request.functions.iter().any(|f| &*f.name == name);
        let messages = format!("{:?}", request.messages);
        if !messages.contains("write") {
            say("hello")
        } else if offers("delegate") {
            delegate_and_finish("operator", "write it")
        } else {
            call("fs_write", json!({ "path": "a" }))
        }
    });
    let server = TestServer::start(folder.path(), model, vec![Arc::clone(&tool) as _]).await;
    for number in 0..120 {
        let sent = server
            .rpc("SendMessage", message(&format!("m-{number}"), "write"))
            .await;
        assert_eq!(state(&sent["result"]["task"]), "TASK_STATE_AUTH_REQUIRED");
    }
    let sent = server.rpc("SendMessage", message("m-x", "hello")).await;
    let task = &sent["result"]["task"];
    assert_eq!(state(task), "TASK_STATE_COMPLETED", "{task}");
    server.stop().await;
}
