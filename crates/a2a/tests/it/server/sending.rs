//! Messages, and the tasks that they open.

use super::support::{
    TestServer, message, normalize, read, reason, reply, sent, settings, with_timeout,
};
use lango_a2a::server::RunCause;
use reqwest::Method;
use serde_json::{Value, json};

fn done(text: &str) -> Value {
    json!({
        "id": "TASK",
        "contextId": "CONTEXT",
        "status": {
            "state": "TASK_STATE_COMPLETED",
            "message": {
                "messageId": "MESSAGE", "contextId": "CONTEXT", "taskId": "TASK",
                "role": "ROLE_AGENT", "parts": [{ "text": format!("done: {text}") }],
            },
            "timestamp": "TIME",
        },
        "history": [{
            "messageId": "MESSAGE", "contextId": "CONTEXT", "taskId": "TASK",
            "role": "ROLE_USER", "parts": [{ "text": text }],
        }],
    })
}

#[tokio::test]
async fn a_message_is_answered_with_its_task_over_both_bindings() {
    let server = TestServer::start().await;
    let answer = server
        .rpc("SendMessage", json!({ "message": message("one") }))
        .await;
    let task = answer["result"]["task"].clone();
    assert_eq!(normalize(task.clone()), done("one"));
    assert_eq!(server.task(&task["id"]).await, task);

    let body = json!({ "message": message("two") });
    let (status, answer) = server.http(Method::POST, "/message:send", Some(body)).await;
    assert_eq!(status, 200);
    assert_eq!(normalize(answer.clone()), json!({ "task": done("two") }));
    let id = answer["task"]["id"].as_str().unwrap();
    let (status, task) = server.get(&format!("/tasks/{id}")).await;
    assert_eq!(status, 200);
    assert_eq!(task, answer["task"]);
    assert_eq!(server.task(&json!(id)).await, task);
}

#[tokio::test]
async fn the_agent_can_answer_with_a_message_instead_of_a_task() {
    let server = TestServer::start().await;
    let expected = json!({ "message": {
        "messageId": "MESSAGE", "contextId": "CONTEXT",
        "role": "ROLE_AGENT", "parts": [{ "text": "hello yourself" }],
    } });
    let params = json!({ "message": message("hello") });
    let result = server.result("SendMessage", params.clone()).await;
    assert_eq!(normalize(result), expected);
    let events = server
        .rpc_stream("SendStreamingMessage", params)
        .await
        .remaining()
        .await;
    assert_eq!(
        events.into_iter().map(normalize).collect::<Vec<_>>(),
        [expected]
    );
    let tasks = server.result("ListTasks", json!({})).await;
    assert_eq!(tasks["totalSize"], 0);
}

#[tokio::test]
async fn a_result_becomes_an_artifact() {
    let server = TestServer::start().await;
    let task = server.send("artifact forty-two").await;
    let artifacts = json!([{
        "artifactId": "a", "name": "answer", "parts": [{ "text": "forty-two" }],
    }]);
    assert_eq!(task["artifacts"], artifacts);
    assert_eq!(server.task(&task["id"]).await["artifacts"], artifacts);
}

#[tokio::test]
async fn a_client_that_does_not_wait_gets_the_task_immediately_and_can_poll_it() {
    let server = TestServer::start().await;
    let task = server.start_task("hold").await;
    assert_eq!(task["status"]["state"], "TASK_STATE_SUBMITTED");
    server
        .wait_for_state(&task["id"], "TASK_STATE_WORKING")
        .await;
    server.agent.gate.add_permits(1);
    let task = server
        .wait_for_state(&task["id"], "TASK_STATE_COMPLETED")
        .await;
    assert_eq!(task["status"]["message"]["parts"][0]["text"], "held");
}

#[tokio::test]
async fn a_blocking_call_returns_when_the_task_ends_or_waits() {
    let server = TestServer::start().await;
    for (text, state) in [
        ("ask what?", "TASK_STATE_INPUT_REQUIRED"),
        ("authorise", "TASK_STATE_AUTH_REQUIRED"),
        ("fail sorry", "TASK_STATE_FAILED"),
        ("reject no", "TASK_STATE_REJECTED"),
        ("nothing", "TASK_STATE_FAILED"),
        ("panic", "TASK_STATE_FAILED"),
    ] {
        let task = server.send(text).await;
        assert_eq!(task["status"]["state"], state, "{text}");
        assert!(
            task["status"]["message"]["parts"][0]["text"].is_string(),
            "{text}"
        );
    }
}

#[tokio::test]
async fn the_history_has_the_question_and_the_reply() {
    let server = TestServer::start().await;
    let task = server.send("ask which colour?").await;
    let id = task["id"].clone();
    let params = json!({ "message": reply("blue", &id) });
    let answered = server.result("SendMessage", params).await["task"].clone();
    assert_eq!(answered["status"]["state"], "TASK_STATE_COMPLETED");
    assert_eq!(answered["contextId"], task["contextId"]);
    let messages: Vec<_> = answered["history"]
        .as_array()
        .unwrap()
        .iter()
        .map(|message| {
            (
                message["role"].as_str().unwrap(),
                message["parts"][0]["text"].as_str().unwrap(),
            )
        })
        .collect();
    assert_eq!(
        messages,
        [
            ("ROLE_USER", "ask which colour?"),
            ("ROLE_AGENT", "which colour?"),
            ("ROLE_USER", "blue"),
        ]
    );
    let runs = server.agent.runs.lock().unwrap();
    assert_eq!(runs[0].cause, RunCause::NewTask);
    assert_eq!(runs[1].cause, RunCause::FollowUp);
}

#[tokio::test]
async fn a_reply_waits_for_the_run_that_asked_the_question_to_return() {
    let server = TestServer::start().await;
    let task = server.send("ask-then-linger").await;
    let id = task["id"].clone();
    let params = json!({ "message": reply("blue", &id) });
    let answer = server.result("SendMessage", params);
    let release = async {
        // Usually long enough for the reply to arrive first. If not, the test is only less strict.
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        server.agent.gate.add_permits(1);
    };
    let (answer, ()) = tokio::join!(with_timeout(answer), release);
    assert_eq!(answer["task"]["status"]["state"], "TASK_STATE_COMPLETED");
}

#[tokio::test]
async fn a_run_that_does_not_return_is_aborted_for_the_reply() {
    let mut settings = settings();
    settings.limits.stop_timeout = std::time::Duration::from_millis(50);
    let server = TestServer::with(settings).await;
    let id = server.send("ask-then-linger").await["id"].clone();
    let params = json!({ "message": reply("blue", &id) });
    let answer = server.result("SendMessage", params).await;
    assert_eq!(answer["task"]["status"]["state"], "TASK_STATE_COMPLETED");
    assert_eq!(server.agent.runs.lock().unwrap().len(), 2);
}

#[tokio::test]
async fn the_history_has_the_requested_length() {
    let server = TestServer::start().await;
    let task = server.send("ask which?").await;
    let id = task["id"].clone();
    let params = json!({ "message": reply("this", &id), "configuration": { "historyLength": 1 } });
    let sent = server.result("SendMessage", params).await["task"].clone();
    assert_eq!(sent["history"].as_array().unwrap().len(), 1);
    assert_eq!(sent["history"][0]["parts"][0]["text"], "this");
    for (length, expected) in [(0, 0), (1, 1), (2, 2), (3, 3), (99, 3)] {
        let params = json!({ "id": id, "historyLength": length });
        let task = server.result("GetTask", params).await;
        let shown = task
            .get("history")
            .map_or(0, |history| history.as_array().unwrap().len());
        assert_eq!(shown, expected);
        let path = format!("/tasks/{}?historyLength={length}", id.as_str().unwrap());
        assert_eq!(server.get(&path).await.1, task);
    }
    // The field is missing, not empty.
    let params = json!({ "id": id, "historyLength": 0 });
    assert!(
        server
            .result("GetTask", params)
            .await
            .get("history")
            .is_none()
    );
    // The field names of the proto definition are accepted too.
    let params = json!({ "id": id, "history_length": 0 });
    assert!(
        server
            .result("GetTask", params)
            .await
            .get("history")
            .is_none()
    );
}

#[tokio::test]
async fn each_message_of_a_context_without_a_task_opens_a_new_task() {
    let server = TestServer::start().await;
    let mut first = message("one");
    first["contextId"] = json!("my-context");
    let task = server
        .result("SendMessage", json!({ "message": first }))
        .await["task"]
        .clone();
    assert_eq!(task["contextId"], "my-context");
    let mut second = message("two");
    second["contextId"] = json!("my-context");
    server
        .result("SendMessage", json!({ "message": second }))
        .await;
    let runs = server.agent.runs.lock().unwrap();
    assert_eq!(runs[1].cause, RunCause::NewTask);
    assert_ne!(runs[0].task, runs[1].task);
}

#[tokio::test]
async fn messages_to_unknown_ended_running_or_mismatched_tasks_are_refused() {
    let server = TestServer::start().await;
    let ended = server.send("one").await["id"].clone();
    let waiting = server.send("ask what?").await["id"].clone();
    let running = server.start_task("hold").await["id"].clone();
    server.wait_for_state(&running, "TASK_STATE_WORKING").await;
    let mut mismatched = reply("x", &waiting);
    mismatched["contextId"] = json!("another");
    let cases = [
        (reply("x", &json!("unknown")), -32001, "TASK_NOT_FOUND", 404),
        (reply("x", &ended), -32004, "UNSUPPORTED_OPERATION", 400),
        (reply("x", &running), -32004, "UNSUPPORTED_OPERATION", 400),
        (mismatched, -32602, "INVALID_PARAMS", 400),
    ];
    for (message, code, why, status) in cases {
        let body = json!({ "message": message });
        let error = server.error("SendMessage", body.clone()).await;
        assert_eq!(
            (&error["code"], reason(&error["data"])),
            (&json!(code), why)
        );
        let error = server.error("SendStreamingMessage", body.clone()).await;
        assert_eq!(error["code"], code);
        for path in ["/message:send", "/message:stream"] {
            let (answered, body) = server.http(Method::POST, path, Some(body.clone())).await;
            assert_eq!(answered, status);
            assert_eq!(reason(&body["error"]["details"]), why);
        }
    }
    assert_eq!(
        server.task(&waiting).await["status"]["state"],
        "TASK_STATE_INPUT_REQUIRED"
    );
    server.agent.gate.add_permits(1);
    server
        .wait_for_state(&running, "TASK_STATE_COMPLETED")
        .await;
}

#[tokio::test]
async fn a_repeated_message_returns_the_same_task_while_it_runs_and_after_its_end() {
    let server = TestServer::start().await;
    let params =
        json!({ "message": message("hold"), "configuration": { "returnImmediately": true } });
    let first = server.result("SendMessage", params.clone()).await["task"]["id"].clone();
    let again = server.result("SendMessage", params.clone()).await["task"]["id"].clone();
    assert_eq!(first, again);
    server.agent.gate.add_permits(1);
    let done = server.wait_for_state(&first, "TASK_STATE_COMPLETED").await;
    let answer = server.result("SendMessage", params.clone()).await;
    assert_eq!(answer["task"], done);
    let streamed = server.rpc_stream("SendStreamingMessage", params.clone());
    assert_eq!(streamed.await.remaining().await, [json!({ "task": done })]);
    assert_eq!(server.agent.runs.lock().unwrap().len(), 1);

    // A message with the same id from another user, or for another context, is a different message.
    let request = server.request(Method::POST, "/message:send");
    let theirs = read(sent(request.header("x-user", "bob"), &params).await).await;
    assert_ne!(theirs["task"]["id"], first);
    let mut elsewhere = params.clone();
    elsewhere["message"]["contextId"] = json!("elsewhere");
    let elsewhere = server.result("SendMessage", elsewhere).await;
    assert_ne!(elsewhere["task"]["id"], first);
    server.agent.gate.add_permits(2);
    server
        .wait_for_state(&elsewhere["task"]["id"], "TASK_STATE_COMPLETED")
        .await;
}

#[tokio::test]
async fn a_repeated_follow_up_is_handled_only_once() {
    let server = TestServer::start().await;
    let id = server.send("ask what?").await["id"].clone();
    let params = json!({ "message": reply("ask and now?", &id) });
    let first = server.result("SendMessage", params.clone()).await;
    assert_eq!(
        first["task"]["status"]["state"],
        "TASK_STATE_INPUT_REQUIRED"
    );
    let again = server.result("SendMessage", params.clone()).await;
    assert_eq!(again, first);
    let end = json!({ "message": reply("done", &id) });
    let ended = server.result("SendMessage", end.clone()).await;
    assert_eq!(ended["task"]["status"]["state"], "TASK_STATE_COMPLETED");
    for repeated in [params, end] {
        assert_eq!(server.result("SendMessage", repeated).await, ended);
    }
    assert_eq!(server.agent.runs.lock().unwrap().len(), 3);
}

#[tokio::test]
async fn the_same_message_id_with_another_text_is_a_different_message() {
    let server = TestServer::start().await;
    let params = |text: &str, task: Option<&Value>| {
        let mut message = message(text);
        message["messageId"] = json!("m-1");
        if let Some(task) = task {
            message["taskId"] = task.clone();
        }
        json!({ "message": message, "configuration": { "returnImmediately": true } })
    };
    let start = |text: &'static str| {
        let params = params(text, None);
        async { server.result("SendMessage", params).await["task"]["id"].clone() }
    };
    let first = start("hold one").await;
    let other = start("hold two").await;
    assert_ne!(first, other);
    assert_eq!(start("hold one").await, first);
    assert_eq!(start("hold two").await, other);
    server.agent.gate.add_permits(2);
    server.wait_for_state(&first, "TASK_STATE_COMPLETED").await;
    server.wait_for_state(&other, "TASK_STATE_COMPLETED").await;

    // Also for messages to an existing task.
    let waiting = server.send("ask what?").await["id"].clone();
    let follow_up = server
        .result("SendMessage", params("hold", Some(&waiting)))
        .await;
    assert_eq!(follow_up["task"]["id"], waiting);
    let joined = server
        .result("SendMessage", params("hold", Some(&waiting)))
        .await;
    assert_eq!(joined["task"]["id"], waiting);
    let error = server
        .error("SendMessage", params("something else", Some(&waiting)))
        .await;
    assert_eq!(error["code"], -32004);
    server.agent.gate.add_permits(1);
    server
        .wait_for_state(&waiting, "TASK_STATE_COMPLETED")
        .await;
}

#[tokio::test]
async fn a_user_cannot_reach_the_tasks_of_another_user() {
    let server = TestServer::start().await;
    let task = server.send("ask what?").await;
    let id = task["id"].as_str().unwrap();
    let context = &task["contextId"];
    for (method, params) in [
        ("GetTask", json!({ "id": id })),
        ("CancelTask", json!({ "id": id })),
        ("SubscribeToTask", json!({ "id": id })),
        ("SendMessage", json!({ "message": reply("x", &json!(id)) })),
    ] {
        let call = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
        let request = server.request(Method::POST, "/").header("x-user", "bob");
        let answer = read(sent(request, &call).await).await;
        assert_eq!(answer["error"]["code"], -32001, "{method}");
    }
    let request = server
        .request(Method::GET, "/tasks")
        .header("x-user", "bob");
    let list = read(request.send().await.unwrap()).await;
    assert_eq!(list["totalSize"], 0);
    // The same context id of another user is a different context.
    let mut own = message("mine");
    own["contextId"] = context.clone();
    let request = server
        .request(Method::POST, "/message:send")
        .header("x-user", "bob");
    sent(request, &json!({ "message": own })).await;
    let last = server.agent.runs.lock().unwrap().last().unwrap().cause;
    assert_eq!(last, RunCause::NewTask);
    assert_eq!(server.task(&json!(id)).await, task);
}
