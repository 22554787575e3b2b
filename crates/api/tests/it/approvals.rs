//! Approvals over the API: answered once, in the words that fit, by callers who may.

use crate::support::TestApi;
use axum::body::Body;
use axum::http::Request;
use lango_core::Limits;
use lango_testkit::model::{ScriptedModel, call, calls, delegate, say};
use lango_testkit::tool::CountingTool;
use serde_json::{Value, json};

/// An API with a turn that asks to write a file, and the id of the request.
async fn asking(token_scopes: &str) -> (TestApi, String, String) {
    let api = TestApi::new(ScriptedModel::replies([
        delegate("operator", "write"),
        call("fs_write", json!({ "path": "a" })),
        say("written"),
        say("It is written."),
    ]));
    let token = api.token(token_scopes).await;
    let starter = api.token("read run").await;
    let started = api
        .post(&starter, "/api/turns", &json!({ "text": "write a" }))
        .await;
    assert_eq!(started.status, 202, "{}", started.body);
    loop {
        let listed = api.get(&starter, "/api/approvals").await.ok();
        if let Some(id) = listed["pending"][0]["id"].as_str() {
            return (api, token, id.to_owned());
        }
        tokio::task::yield_now().await;
    }
}

/// Answers, and tries again while the turn is being parked.
async fn answer(api: &TestApi, token: &str, id: &str, body: Value) -> (u16, Value) {
    loop {
        let response = api
            .post(token, &format!("/api/approvals/{id}"), &body)
            .await;
        let is_parking = response.status == 409 && response.body.contains("busy");
        if !is_parking {
            return (response.status, response.json());
        }
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn an_answer_continues_the_turn_and_counts_once() {
    let (api, token, id) = asking("read approve").await;
    let shown = api.get(&token, &format!("/api/approvals/{id}")).await.ok();
    assert_eq!(
        (&shown["tool"], &shown["is_here"]),
        (&json!("fs_write"), &json!(true))
    );
    let (status, body) = answer(&api, &token, &id, json!({ "answer": "once" })).await;
    assert_eq!(status, 202, "{body}");
    let (status, body) = answer(&api, &token, &id, json!({ "answer": "no" })).await;
    assert_eq!(status, 404, "{body}");
    while api.get(&token, "/api/sessions").await.ok()["sessions"][0]["status"] != "idle" {
        tokio::task::yield_now().await;
    }
    assert_eq!(api.writer.runs(), 1);
}

#[tokio::test]
async fn an_answer_that_does_not_fit_is_refused() {
    let (api, token, id) = asking("read approve").await;
    for body in [
        json!({ "answer": "retry" }),
        json!({ "answer": "skip" }),
        json!({ "answer": "happened" }),
        json!({ "answer": "maybe" }),
        json!({ "answer": "once", "extra": 1 }),
        json!({}),
    ] {
        let (status, problem) = answer(&api, &token, &id, body.clone()).await;
        assert_eq!(status, 422, "{body}: {problem}");
    }
    let (status, _) = answer(&api, &token, "a_none", json!({ "answer": "once" })).await;
    assert_eq!(status, 404);
    let (status, body) = answer(
        &api,
        &token,
        &id,
        json!({ "answer": "no", "reason": "not now" }),
    )
    .await;
    assert_eq!(status, 202, "{body}");
    assert_eq!(api.writer.runs(), 0);
}

#[tokio::test]
async fn an_answer_for_the_session_becomes_a_grant_that_can_be_revoked() {
    let (api, token, id) = asking("read approve").await;
    let (status, body) = answer(&api, &token, &id, json!({ "answer": "session" })).await;
    assert_eq!(status, 202, "{body}");
    let grants = api.get(&token, "/api/approvals").await.ok()["grants"].clone();
    assert_eq!(grants[0]["id"], id.as_str());
    let delete = || {
        let request = Request::delete(format!("/api/grants/{id}"))
            .header("authorization", format!("Bearer {token}"));
        api.send(request.body(Body::empty()).unwrap())
    };
    assert_eq!(delete().await.status, 204);
    assert_eq!(delete().await.status, 404);
}

#[tokio::test]
async fn nobody_answers_for_another_user() {
    let (api, _, id) = asking("read").await;
    let bob = api.token_of("bob", "read run approve").await;
    let (status, _) = answer(&api, &bob, &id, json!({ "answer": "once" })).await;
    assert_eq!(status, 404);
    assert_eq!(api.get(&bob, "/api/approvals").await.ok()["count"], 0);
    assert_eq!(api.writer.runs(), 0);
}

#[tokio::test]
async fn a_request_is_answered_while_another_call_of_its_turn_runs() {
    let model = ScriptedModel::replies([
        delegate("operator", "read and write"),
        calls([
            ("fs_read", json!({ "path": "b" })),
            ("fs_write", json!({ "path": "a" })),
        ]),
    ]);
    let reader = CountingTool::new("fs_read").never_returning();
    let api = TestApi::with_reader(model, Limits::default(), reader);
    let token = api.token("read run approve").await;
    let started = api
        .post(&token, "/api/turns", &json!({ "text": "read and write" }))
        .await;
    assert_eq!(started.status, 202, "{}", started.body);
    let id = loop {
        let listed = api.get(&token, "/api/approvals").await.ok();
        if let Some(id) = listed["pending"][0]["id"].as_str() {
            break id.to_owned();
        }
        tokio::task::yield_now().await;
    };
    let path = format!("/api/approvals/{id}");
    let unfit = api.post(&token, &path, &json!({ "answer": "retry" })).await;
    assert_eq!(unfit.status, 422, "{}", unfit.body);
    let answered = api.post(&token, &path, &json!({ "answer": "once" })).await;
    assert_eq!(answered.status, 202, "{}", answered.body);
    while api.writer.runs() == 0 {
        tokio::task::yield_now().await;
    }
    let again = api.post(&token, &path, &json!({ "answer": "once" })).await;
    assert_eq!(again.status, 404, "{}", again.body);
    assert_eq!(api.writer.runs(), 1);
}
