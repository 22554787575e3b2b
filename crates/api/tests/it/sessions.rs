//! Sessions over the API: listing, renaming, forking, deleting, and whose they are.

use crate::support::{TestApi, TestResponse};
use axum::body::Body;
use axum::http::header::{AUTHORIZATION, CONTENT_TYPE};
use axum::http::{Method, Request};
use lango_testkit::model::{ScriptedModel, say};
use serde_json::{Value, json};

async fn send(
    api: &TestApi,
    method: Method,
    token: &str,
    path: &str,
    body: &Value,
) -> TestResponse {
    let request = Request::builder()
        .method(method)
        .uri(path)
        .header(AUTHORIZATION, format!("Bearer {token}"))
        .header(CONTENT_TYPE, "application/json")
        .body(Body::from(body.to_string()))
        .unwrap();
    api.send(request).await
}

/// Runs a turn to its end, and returns its session and its id.
pub(crate) async fn ask(
    api: &TestApi,
    token: &str,
    session: Option<&str>,
    text: &str,
) -> (String, String) {
    let body = match session {
        Some(session) => json!({ "text": text, "session": session }),
        None => json!({ "text": text }),
    };
    let started = api.post(token, "/api/turns", &body).await;
    assert_eq!(started.status, 202, "{}", started.body);
    let started = started.json();
    let text = |key: &str| started[key].as_str().unwrap().to_owned();
    let (session, turn) = (text("session"), text("turn"));
    let path = format!("/api/sessions/{session}/turns/{turn}");
    for _ in 0..500 {
        let response = api.get(token, &path).await;
        let is_over = |event: &Value| event["type"] == "turn.finished";
        if response.status == 200
            && response.json()["events"]
                .as_array()
                .unwrap()
                .iter()
                .any(is_over)
        {
            return (session, turn);
        }
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    panic!("turn {turn} does not end");
}

fn api() -> TestApi {
    TestApi::new(ScriptedModel::from_fn(|_| say("hi")))
}

#[tokio::test]
async fn sessions_are_listed_searched_renamed_and_deleted() {
    let api = api();
    let token = api.token("read run").await;
    let mut ids = Vec::new();
    for text in ["count the files", "draw a cat", "count the cats"] {
        ids.push(ask(&api, &token, None, text).await.0);
    }
    let page = api.get(&token, "/api/sessions?limit=2").await.ok();
    let next = page["next"].as_str().expect("there is a second page");
    let rest = api
        .get(&token, &format!("/api/sessions?limit=2&cursor={next}"))
        .await
        .ok();
    let listed = |page: &Value| page["sessions"].as_array().unwrap().len();
    assert_eq!(
        (listed(&page), listed(&rest), &rest["next"]),
        (2, 1, &Value::Null)
    );
    let found = api
        .get(&token, "/api/sessions?search=COUNT&status=idle")
        .await
        .ok();
    assert_eq!(listed(&found), 2);
    let path = format!("/api/sessions/{}", ids[0]);
    let beginning = api.get(&token, &path[..path.len() - 1]).await;
    assert_eq!(beginning.status, 404, "the beginning of an id is not an id");
    let renamed = send(
        &api,
        Method::PATCH,
        &token,
        &path,
        &json!({ "title": "  Files\n today " }),
    )
    .await;
    assert_eq!(renamed.ok()["title"], "Files today");
    let empty = send(&api, Method::PATCH, &token, &path, &json!({ "title": " " })).await;
    assert_eq!(empty.status, 422);
    assert_eq!(
        send(&api, Method::DELETE, &token, &path, &Value::Null)
            .await
            .status,
        204
    );
    assert_eq!(api.get(&token, &path).await.status, 404);
}

#[tokio::test]
async fn a_fork_goes_on_from_its_turn() {
    let api = api();
    let token = api.token("read run").await;
    let (session, first) = ask(&api, &token, None, "one").await;
    ask(&api, &token, Some(&session), "two").await;
    let path = format!("/api/sessions/{session}/fork");
    let fork = api.post(&token, &path, &json!({ "turn": first })).await;
    assert_eq!(fork.status, 201, "{}", fork.body);
    let fork = fork.json();
    assert_eq!(
        (&fork["turns"], &fork["title"]),
        (&json!(1), &json!("one (fork)"))
    );
    ask(&api, &token, fork["id"].as_str(), "three").await;
    assert!(api.last_request().contains("one") && !api.last_request().contains("two"));
    let unknown = api.post(&token, &path, &json!({ "turn": "t_none" })).await;
    assert_eq!(unknown.status, 404);
}

#[tokio::test]
async fn nobody_reaches_the_sessions_of_another_user() {
    let api = api();
    let (ann, bob) = (
        api.token_of("ann", "read run approve").await,
        api.token_of("bob", "read run approve").await,
    );
    let (session, turn) = ask(&api, &ann, None, "my secret").await;
    let base = format!("/api/sessions/{session}");
    for path in [
        "",
        "/events",
        "/export",
        "/calls/2",
        &format!("/turns/{turn}"),
    ] {
        assert_eq!(
            api.get(&bob, &format!("{base}{path}")).await.status,
            404,
            "{path}"
        );
    }
    assert_eq!(
        api.get(&bob, &format!("/api/events?session={session}"))
            .await
            .status,
        404
    );
    for (method, path, body) in [
        (Method::PATCH, base.clone(), json!({ "title": "x" })),
        (Method::DELETE, base.clone(), Value::Null),
        (
            Method::POST,
            format!("{base}/fork"),
            json!({ "turn": turn }),
        ),
        (
            Method::POST,
            format!("{base}/turns/{turn}/cancel"),
            json!({}),
        ),
        (
            Method::POST,
            "/api/turns".to_owned(),
            json!({ "session": session, "text": "x" }),
        ),
    ] {
        let response = send(&api, method.clone(), &bob, &path, &body).await;
        assert_eq!(response.status, 404, "{method} {path}: {}", response.body);
    }
    let listed = api.get(&bob, "/api/sessions").await.ok();
    assert_eq!(listed["sessions"], json!([]));
}

#[tokio::test]
async fn a_model_call_shows_what_was_sent_and_the_call_before() {
    let api = api();
    let token = api.token("read run").await;
    let (session, _) = ask(&api, &token, None, "hello").await;
    ask(&api, &token, Some(&session), "hello again").await;
    let call = |seq| {
        api.get(
            &token,
            format!("/api/sessions/{session}/calls/{seq}").leak(),
        )
    };
    let second = call(5).await.ok();
    assert_eq!(
        (&second["previous"], &second["agent"]),
        (&json!(2), &json!("lango-orchestrator"))
    );
    let sent = second["request"]["messages"].to_string();
    assert!(
        sent.contains("hello again") && sent.contains("\"hi\""),
        "{sent}"
    );
    assert_eq!(second["request"]["functions"][0]["name"], "delegate");
    assert_eq!(
        call(1).await.status,
        404,
        "the question is not the reply of a model"
    );
    assert_eq!(call(99).await.status, 404);
}

#[tokio::test]
async fn events_are_read_in_pages_from_both_ends() {
    let api = api();
    let token = api.token("read run").await;
    let (session, _) = ask(&api, &token, None, "one").await;
    for text in ["two", "three"] {
        ask(&api, &token, Some(&session), text).await;
    }
    let seqs = |query: &str| {
        let path = format!("/api/sessions/{session}/events?{query}");
        let (api, token) = (&api, &token);
        async move {
            let page = api.get(token, &path).await.ok();
            let events = page["events"].as_array().unwrap().iter();
            let seqs = events.map(|event| event["seq"].as_u64().unwrap());
            (seqs.collect::<Vec<u64>>(), page["last"].as_u64().unwrap())
        }
    };
    assert_eq!(seqs("limit=2").await, (vec![8, 9], 9));
    assert_eq!(seqs("before=8&limit=3").await, (vec![5, 6, 7], 9));
    assert_eq!(seqs("before=3&limit=9").await, (vec![1, 2], 9));
    assert_eq!(seqs("after=7").await, (vec![8, 9], 9));
    assert_eq!(seqs("after=9").await, (vec![], 9));
    for query in [
        "after=1&before=2",
        "limit=0",
        "limit=1001",
        "after=-1",
        "nonsense=1",
    ] {
        let path = format!("/api/sessions/{session}/events?{query}");
        assert_eq!(api.get(&token, &path).await.status, 400, "{query}");
    }
}
