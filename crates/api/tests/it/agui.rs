//! Runs, interrupts and errors of `/agui`.

use crate::support::{TestApi, TestResponse};
use lango_core::ModelReply;
use lango_testkit::model::{ScriptedModel, call, calls, delegate, delegate_and_finish, say};
use serde_json::{Value, json};
use std::collections::HashSet;

const AGUI: &str = "/agui";

fn run(thread: &str, text: &str) -> Value {
    json!({
        "threadId": thread,
        "runId": "run-1",
        "protocolVersion": "1.0",
        "state": {},
        "messages": [{ "id": "m1", "role": "user", "content": text }],
        "tools": [],
        "context": [],
        "forwardedProps": {},
    })
}

fn resume(thread: &str, entries: Value) -> Value {
    json!({ "threadId": thread, "runId": "run-2", "protocolVersion": "1.0", "messages": [], "resume": entries })
}

/// Sends a run, checks the order of its events as the official client does, and returns them.
async fn events(api: &TestApi, token: &str, body: &Value) -> Vec<Value> {
    let response = api.post(token, AGUI, body).await;
    let events = response.events();
    verify(&events);
    events
}

/// Fails if the official client would refuse the events.
fn verify(events: &[Value]) {
    assert_eq!(events[0]["type"], "RUN_STARTED");
    let (mut messages, mut steps, mut tool_calls) =
        (HashSet::new(), HashSet::new(), HashSet::new());
    for (at, event) in events.iter().enumerate() {
        let id = |name: &str| event[name].as_str().unwrap().to_owned();
        let is_last = at + 1 == events.len();
        match event["type"].as_str().unwrap() {
            "TEXT_MESSAGE_START" => assert!(messages.insert(id("messageId")), "{event}"),
            "TEXT_MESSAGE_CONTENT" => {
                assert!(
                    messages.contains(&id("messageId")) && !id("delta").is_empty(),
                    "{event}"
                );
            }
            "TEXT_MESSAGE_END" => assert!(messages.remove(&id("messageId")), "{event}"),
            "STEP_STARTED" => assert!(steps.insert(id("stepName")), "{event}"),
            "STEP_FINISHED" => assert!(steps.remove(&id("stepName")), "{event}"),
            "TOOL_CALL_START" => assert!(tool_calls.insert(id("toolCallId")), "{event}"),
            "TOOL_CALL_ARGS" => assert!(tool_calls.contains(&id("toolCallId")), "{event}"),
            "TOOL_CALL_END" => assert!(tool_calls.remove(&id("toolCallId")), "{event}"),
            "RUN_FINISHED" => {
                assert!(is_last, "{event}");
                assert!(
                    messages.is_empty() && steps.is_empty() && tool_calls.is_empty(),
                    "{events:?}"
                );
            }
            "RUN_ERROR" => assert!(is_last, "{event}"),
            _ => {}
        }
    }
}

fn types(events: &[Value]) -> Vec<&str> {
    events
        .iter()
        .map(|event| event["type"].as_str().unwrap())
        .collect()
}

fn of_type<'a>(events: &'a [Value], kind: &str) -> Vec<&'a Value> {
    events
        .iter()
        .filter(|event| event["type"] == kind)
        .collect()
}

fn text(events: &[Value]) -> String {
    let contents = of_type(events, "TEXT_MESSAGE_CONTENT").into_iter();
    contents
        .map(|event| event["delta"].as_str().unwrap())
        .collect()
}

fn interrupts(events: &[Value]) -> Vec<Value> {
    let outcome = &events.last().unwrap()["outcome"];
    assert_eq!(outcome["type"], "interrupt", "{events:?}");
    outcome["interrupts"].as_array().unwrap().clone()
}

fn writing() -> Vec<ModelReply> {
    vec![
        delegate_and_finish("operator", "write it"),
        call("fs_write", json!({ "path": "a" })),
        say("It is written."),
    ]
}

#[tokio::test]
async fn a_run_streams_the_answer_as_a_text_message() {
    let api = TestApi::new(ScriptedModel::replies([say("Hello!")]).with_chunk_size(3));
    let token = api.token("run").await;
    let response = api.post(&token, AGUI, &run("t", "hi")).await;
    let events = response.events();
    verify(&events);
    assert_eq!(
        types(&events),
        [
            "RUN_STARTED",
            "TEXT_MESSAGE_START",
            "TEXT_MESSAGE_CONTENT",
            "TEXT_MESSAGE_CONTENT",
            "TEXT_MESSAGE_END",
            "RUN_FINISHED",
        ]
    );
    assert_eq!(text(&events), "Hello!");
    let last = events.last().unwrap();
    assert_eq!(last["threadId"], "t");
    assert_eq!(last["runId"], "run-1");
    assert_eq!(last["outcome"], json!({ "type": "success" }));
    assert_eq!(last["usage"][0]["totalTokens"], 15);
    assert_eq!(
        last["result"]["session"],
        response.header("x-lango-session")
    );
}

#[tokio::test]
async fn delegations_are_steps_with_an_activity_and_calls_have_results() {
    let replies = [
        calls([
            ("delegate", json!({ "agent": "operator", "task": "one" })),
            ("delegate", json!({ "agent": "operator", "task": "two" })),
        ]),
        call("fs_read", json!({ "path": "a" })),
        say("read"),
        say("read too"),
        say("Both are read."),
    ];
    let api = TestApi::new(ScriptedModel::replies(replies));
    let token = api.token("run").await;
    let events = events(&api, &token, &run("t", "read")).await;
    let steps: Vec<_> = of_type(&events, "STEP_STARTED")
        .iter()
        .map(|event| &event["stepName"])
        .collect();
    assert_eq!(steps, ["operator", "operator (2)"]);
    let activities = of_type(&events, "ACTIVITY_SNAPSHOT");
    let statuses: Vec<_> = activities
        .iter()
        .map(|event| &event["content"]["status"])
        .collect();
    assert_eq!(statuses, ["running", "running", "finished", "finished"]);
    assert_eq!(activities[0]["content"]["task"], "one");
    let result = of_type(&events, "TOOL_CALL_RESULT");
    let start = of_type(&events, "TOOL_CALL_START");
    assert_eq!(start.len(), 1);
    assert_eq!(start[0]["toolCallName"], "fs_read");
    assert_eq!(result[0]["toolCallId"], start[0]["toolCallId"]);
    assert!(text(&events).ends_with("Both are read."));
}

#[tokio::test]
async fn an_approval_is_an_interrupt_that_the_next_run_resumes() {
    let api = TestApi::new(ScriptedModel::replies(writing()));
    let token = api.token("run approve").await;
    let first = events(&api, &token, &run("t", "write it")).await;
    let [interrupt] = &interrupts(&first)[..] else {
        panic!("{first:?}");
    };
    assert_eq!(interrupt["reason"], "tool_call");
    let start = of_type(&first, "TOOL_CALL_START");
    assert_eq!(interrupt["toolCallId"], start[0]["toolCallId"]);
    assert_eq!(start[0]["toolCallName"], "fs_write");
    assert_eq!(api.writer.runs(), 0);

    let entry = json!([{ "interruptId": interrupt["id"], "status": "resolved", "payload": { "approved": true } }]);
    let second = events(&api, &token, &resume("t", entry.clone())).await;
    assert!(of_type(&second, "TOOL_CALL_START").is_empty(), "{second:?}");
    assert_eq!(
        of_type(&second, "TOOL_CALL_RESULT")[0]["toolCallId"],
        interrupt["toolCallId"]
    );
    assert_eq!(of_type(&second, "STEP_STARTED")[0]["stepName"], "operator");
    assert_eq!(
        of_type(&second, "ACTIVITY_SNAPSHOT").last().unwrap()["content"]["task"],
        "write it"
    );
    assert_eq!(text(&second), "It is written.");
    assert_eq!(second.last().unwrap()["outcome"]["type"], "success");
    assert_eq!(api.writer.runs(), 1);

    // The same answer again changes nothing, and tells the client that nothing waits.
    let again = events(&api, &token, &resume("t", entry)).await;
    assert_eq!(again.last().unwrap()["outcome"]["type"], "success");
    assert_eq!(api.writer.runs(), 1);
}

#[tokio::test]
async fn every_form_of_an_answer_is_understood() {
    for (entry, runs) in [
        (
            json!({ "status": "resolved", "payload": { "approved": false } }),
            0,
        ),
        (
            json!({ "status": "resolved", "payload": { "approved": false, "reason": "later" } }),
            0,
        ),
        (
            json!({ "status": "resolved", "payload": { "answer": "once" } }),
            1,
        ),
        (
            json!({ "status": "resolved", "payload": { "answer": "session", "pattern": "*" } }),
            1,
        ),
        (
            json!({ "status": "resolved", "payload": { "answer": "no", "reason": "later" } }),
            0,
        ),
        (json!({ "status": "resolved", "payload": true }), 1),
        (json!({ "status": "cancelled" }), 0),
    ] {
        let api = TestApi::new(ScriptedModel::replies(writing()));
        let token = api.token("run approve").await;
        let first = events(&api, &token, &run("t", "write it")).await;
        let mut entry = entry;
        entry["interruptId"] = interrupts(&first)[0]["id"].clone();
        let second = events(&api, &token, &resume("t", json!([entry]))).await;
        assert_eq!(
            second.last().unwrap()["type"],
            "RUN_FINISHED",
            "{entry}: {second:?}"
        );
        assert_eq!(api.writer.runs(), runs, "{entry}");
    }
}

#[tokio::test]
async fn a_run_must_answer_all_interrupts_of_its_thread() {
    let replies = vec![
        delegate_and_finish("operator", "write both"),
        calls([
            ("fs_write", json!({ "n": 1 })),
            ("fs_write", json!({ "n": 2 })),
        ]),
        say("Both are written."),
    ];
    let api = TestApi::new(ScriptedModel::replies(replies));
    let token = api.token("run approve").await;
    let first = events(&api, &token, &run("t", "write both")).await;
    let ids: Vec<_> = interrupts(&first)
        .iter()
        .map(|one| one["id"].clone())
        .collect();
    assert_eq!(ids.len(), 2);
    let yes = |id: &Value| json!({ "interruptId": id, "status": "resolved", "payload": { "approved": true } });
    for body in [
        run("t", "and?"),
        resume("t", json!([yes(&ids[0])])),
        resume(
            "t",
            json!([yes(&ids[0]), yes(&ids[1]), yes(&json!("p_unknown"))]),
        ),
        resume("other", json!([yes(&ids[0]), yes(&ids[1])])),
        resume(
            "t",
            json!([yes(&ids[0]), { "interruptId": ids[1], "status": "resolved", "payload": { "approved": true, "editedArgs": {} } }]),
        ),
        resume(
            "t",
            json!([yes(&ids[0]), { "interruptId": ids[1], "status": "resolved", "payload": { "answer": "retry" } }]),
        ),
        resume(
            "t",
            json!([yes(&ids[0]), { "interruptId": ids[1], "status": "resolved" }]),
        ),
    ] {
        let events = events(&api, &token, &body).await;
        assert_eq!(
            events.last().unwrap()["type"],
            "RUN_ERROR",
            "{body}: {events:?}"
        );
        assert_eq!(api.writer.runs(), 0, "{body}");
    }
    let both = json!([yes(&ids[0]), yes(&ids[1])]);
    let second = events(&api, &token, &resume("t", both)).await;
    assert_eq!(of_type(&second, "TOOL_CALL_RESULT").len(), 2);
    assert_eq!(text(&second), "Both are written.");
    assert_eq!(api.writer.runs(), 2);
}

#[tokio::test]
async fn an_answer_needs_the_scope_approve() {
    let api = TestApi::new(ScriptedModel::replies(writing()));
    let (runner, reader) = (api.token("run").await, api.token("read approve").await);
    let first = events(&api, &runner, &run("t", "write it")).await;
    let id = &interrupts(&first)[0]["id"];
    let body = resume(
        "t",
        json!([{ "interruptId": id, "status": "resolved", "payload": { "approved": true } }]),
    );
    for (token, scope) in [(&runner, "`approve`"), (&reader, "`run`")] {
        let response: TestResponse = api.post(token, AGUI, &body).await;
        assert_eq!(response.status, 403, "{}", response.body);
        assert!(response.body.contains(scope), "{}", response.body);
    }
    assert_eq!(api.writer.runs(), 0);
}

#[tokio::test]
async fn a_thread_is_a_session_of_its_user_alone() {
    let api = TestApi::new(ScriptedModel::from_fn(|_| say("ok")));
    let (owner, guest) = (api.token("run").await, api.token_of("guest", "run").await);
    let session = |response: TestResponse| response.header("x-lango-session").to_owned();
    let of_owner = session(api.post(&owner, AGUI, &run("t", "hi")).await);
    assert_eq!(
        session(api.post(&owner, AGUI, &run("t", "hi")).await),
        of_owner
    );
    assert_eq!(
        session(api.post(&owner, AGUI, &run(&of_owner, "hi")).await),
        of_owner
    );
    assert_ne!(
        session(api.post(&guest, AGUI, &run("t", "hi")).await),
        of_owner
    );
    assert_ne!(
        session(api.post(&guest, AGUI, &run(&of_owner, "hi")).await),
        of_owner
    );
}

#[tokio::test]
async fn tools_of_the_client_are_refused() {
    let api = TestApi::new(ScriptedModel::from_fn(|_| say("ok")));
    let token = api.token("run").await;
    let mut body = run("t", "hi");
    body["tools"] = json!([{ "name": "f", "description": "f", "parameters": {} }]);
    let events = events(&api, &token, &body).await;
    let error = events.last().unwrap();
    assert_eq!(error["type"], "RUN_ERROR");
    assert_eq!(
        error["message"],
        "lango's agents have their own tools; remove tools from the request"
    );
}

#[tokio::test]
async fn a_failed_turn_is_a_run_error() {
    let api = TestApi::new(ScriptedModel::replies([]));
    let token = api.token("run").await;
    let events = events(&api, &token, &run("t", "hi")).await;
    assert_eq!(events.last().unwrap()["type"], "RUN_ERROR");
    assert_eq!(events.last().unwrap()["code"], "setup_needed");
}

#[tokio::test]
async fn a_withdrawn_draft_is_a_message_of_its_own() {
    let with_call = ModelReply {
        text: "Let me look.".to_owned(),
        ..delegate("operator", "look")
    };
    let replies = [with_call, say("found"), say("Here it is.")];
    let api = TestApi::new(ScriptedModel::replies(replies).with_chunk_size(3));
    let token = api.token("run").await;
    let events = events(&api, &token, &run("t", "look")).await;
    assert_eq!(of_type(&events, "TEXT_MESSAGE_START").len(), 2);
    assert_eq!(text(&events), "Let me look.Here it is.");
}

#[tokio::test]
async fn malformed_runs_are_problems() {
    let api = TestApi::new(ScriptedModel::from_fn(|_| say("ok")));
    let token = api.token("run").await;
    for (field, value) in [
        ("threadId", json!(null)),
        ("threadId", json!("")),
        ("threadId", json!("x".repeat(201))),
        ("runId", json!(5)),
        ("messages", json!({})),
        ("messages", json!([5])),
        ("messages", json!([{ "role": "user", "content": 5 }])),
        (
            "messages",
            json!([{ "role": "user", "content": [{ "type": "audio" }] }]),
        ),
        ("tools", json!({})),
        ("resume", json!([{ "interruptId": 5 }])),
        ("resume", json!([{ "interruptId": "x", "status": "maybe" }])),
    ] {
        let mut body = run("t", "hi");
        body[field] = value;
        let response = api.post(&token, AGUI, &body).await;
        assert_eq!(response.status, 422, "{field}: {}", response.body);
        assert_eq!(response.header("content-type"), "application/problem+json");
    }
    assert_eq!(api.get(&token, AGUI).await.status, 405);
    assert_eq!(api.post("wrong", AGUI, &run("t", "hi")).await.status, 401);
}
