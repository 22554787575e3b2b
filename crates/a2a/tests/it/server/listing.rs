//! Lists of tasks: their order, pages, filters, and which fields they omit.

use super::memory::MemoryTasks;
use super::support::{TestServer, message, reason, settings};
use lango_core::{Clock, Timestamp};
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

fn ids(list: &Value) -> Vec<&str> {
    let tasks = list["tasks"].as_array().unwrap();
    tasks
        .iter()
        .map(|task| task["id"].as_str().unwrap())
        .collect()
}

/// Creates tasks with different times, the latest one last. Returns their ids.
async fn create_tasks(server: &TestServer, texts: &[&str]) -> Vec<String> {
    let mut made = Vec::new();
    for text in texts {
        let task = server.send(text).await;
        made.push(task["id"].as_str().unwrap().to_owned());
        tokio::time::sleep(Duration::from_millis(3)).await;
    }
    made
}

#[tokio::test]
async fn a_list_has_the_latest_change_first_and_always_has_a_page_token() {
    let server = TestServer::start().await;
    let empty = server.result("ListTasks", json!({})).await;
    let expected = json!({ "tasks": [], "nextPageToken": "", "pageSize": 50, "totalSize": 0 });
    assert_eq!(empty, expected);
    assert_eq!(server.get("/tasks").await.1, expected);

    let mut made = create_tasks(&server, &["one", "artifact two", "ask three", "fail four"]).await;
    let params = json!({ "message": super::support::reply("now", &json!(made[2])) });
    server.result("SendMessage", params).await;
    // The third changed last.
    let third = made.remove(2);
    made.push(third);
    made.reverse();
    let list = server.result("ListTasks", json!({})).await;
    assert_eq!(ids(&list), made);
    assert_eq!(
        (&list["totalSize"], &list["nextPageToken"]),
        (&json!(4), &json!(""))
    );
    for task in list["tasks"].as_array().unwrap() {
        assert!(task.get("artifacts").is_none(), "missing, not empty");
        assert!(task["history"].is_array());
    }
    let list = server
        .result(
            "ListTasks",
            json!({ "includeArtifacts": true, "historyLength": 0 }),
        )
        .await;
    for task in list["tasks"].as_array().unwrap() {
        assert!(task["artifacts"].is_array() && task.get("history").is_none());
    }
    let query = "/tasks?includeArtifacts=true&historyLength=0";
    assert_eq!(server.get(query).await.1, list);
}

/// A clock that always returns the same time.
struct FixedClock;

impl Clock for FixedClock {
    fn now(&self) -> Timestamp {
        Timestamp(1_800_000_000_000)
    }
}

#[tokio::test]
async fn the_pages_together_have_all_tasks() {
    let server = TestServer::start().await;
    let mut made = create_tasks(&server, &["x"; 7]).await;
    made.reverse();
    assert_pages(&server, made).await;
}

#[tokio::test]
async fn the_pages_together_have_all_tasks_even_if_they_changed_at_the_same_time() {
    let tasks: Arc<MemoryTasks> = Arc::default();
    let server =
        TestServer::with_store(tasks.clone(), tasks, Arc::new(FixedClock), settings()).await;
    let mut made = create_tasks(&server, &["x"; 7]).await;
    made.sort();
    made.reverse();
    assert_pages(&server, made).await;
    let whole_second =
        server.result("ListTasks", json!({})).await["tasks"][0]["status"]["timestamp"].clone();
    assert_eq!(whole_second, "2027-01-15T08:00:00.000Z");
}

async fn assert_pages(server: &TestServer, made: Vec<String>) {
    for size in [1, 2, 3, 6, 7, 8] {
        let mut listed: Vec<String> = Vec::new();
        let mut token = String::new();
        loop {
            let params = json!({ "pageSize": size, "pageToken": token });
            let page = server.result("ListTasks", params).await;
            let query = format!("/tasks?pageSize={size}&pageToken={token}");
            assert_eq!(server.get(&query).await.1, page);
            assert_eq!(
                (&page["pageSize"], &page["totalSize"]),
                (&json!(size), &json!(7))
            );
            listed.extend(ids(&page).into_iter().map(str::to_owned));
            token = page["nextPageToken"].as_str().unwrap().to_owned();
            if token.is_empty() {
                break;
            }
            assert_eq!(ids(&page).len(), size);
        }
        assert_eq!(listed, made, "in pages of {size}");
    }
}

#[tokio::test]
async fn a_page_of_long_tasks_ends_early() {
    let mut settings = settings();
    settings.limits.task_bytes = 4 << 20;
    let server = TestServer::with(settings).await;
    for _ in 0..4 {
        server.send("big 2000").await;
    }
    let page = server
        .result("ListTasks", json!({ "includeArtifacts": true }))
        .await;
    assert_eq!((ids(&page).len(), &page["totalSize"]), (3, &json!(4)));
    let params = json!({ "includeArtifacts": true, "pageToken": page["nextPageToken"] });
    let rest = server.result("ListTasks", params).await;
    assert_eq!((ids(&rest).len(), &rest["nextPageToken"]), (1, &json!("")));
    let short = server.result("ListTasks", json!({})).await;
    assert_eq!(ids(&short).len(), 4);
}

#[tokio::test]
async fn filters_narrow_the_list() {
    let server = TestServer::start().await;
    let mut first = message("one");
    first["contextId"] = json!("here");
    server
        .result("SendMessage", json!({ "message": first }))
        .await;
    tokio::time::sleep(Duration::from_millis(3)).await;
    let made = create_tasks(&server, &["ask two", "three"]).await;
    let time = server.task(&json!(made[0])).await["status"]["timestamp"].clone();
    let cases = [
        (json!({ "contextId": "here" }), 1),
        (json!({ "contextId": "nowhere" }), 0),
        (json!({ "status": "TASK_STATE_COMPLETED" }), 2),
        (json!({ "status": "TASK_STATE_INPUT_REQUIRED" }), 1),
        (json!({ "status": "TASK_STATE_UNSPECIFIED" }), 3),
        (json!({ "statusTimestampAfter": time }), 2),
        (json!({ "statusTimestampAfter": "2999-01-01T00:00:00Z" }), 0),
        (
            json!({ "statusTimestampAfter": "1969-01-01T00:00:00+02:00" }),
            3,
        ),
        (
            json!({ "statusTimestampAfter": time, "status": "TASK_STATE_COMPLETED" }),
            1,
        ),
    ];
    for (params, expected) in cases {
        let list = server.result("ListTasks", params.clone()).await;
        assert_eq!(ids(&list).len(), expected, "{params}");
        assert_eq!(list["totalSize"], expected, "{params}");
        let query: Vec<String> = params
            .as_object()
            .unwrap()
            .iter()
            .map(|(key, value)| format!("{key}={}", value.as_str().unwrap().replace('+', "%2B")))
            .collect();
        assert_eq!(
            server.get(&format!("/tasks?{}", query.join("&"))).await.1,
            list
        );
    }
}

#[tokio::test]
async fn the_refusal_of_an_invalid_list_request_names_the_field() {
    let server = TestServer::start().await;
    let cases = [
        ("pageSize", json!(0)),
        ("pageSize", json!(101)),
        ("pageSize", json!(-1)),
        ("pageSize", json!(1.5)),
        ("pageSize", json!("many")),
        ("pageSize", json!(4_294_967_297_i64)),
        ("pageToken", json!("garbage")),
        ("pageToken", json!("12-")),
        ("pageToken", json!("-1-x")),
        ("pageToken", json!("99999999999999999999-x")),
        ("historyLength", json!(-5)),
        ("status", json!("TASK_STATE_RUNNING")),
        ("statusTimestampAfter", json!("yesterday")),
        ("includeArtifacts", json!("perhaps")),
        ("contextId", json!(["a"])),
    ];
    for (field, value) in cases {
        let mut params = json!({});
        params[field] = value.clone();
        let error = server.error("ListTasks", params).await;
        assert_eq!(
            (&error["code"], reason(&error["data"])),
            (&json!(-32602), "INVALID_PARAMS")
        );
        let violation = &error["data"][1]["fieldViolations"][0];
        assert_eq!(violation["field"], field, "{value}");
        assert!(violation["description"].is_string());
        if let Some(text) = value
            .as_str()
            .map(str::to_owned)
            .or(value.as_i64().map(|it| it.to_string()))
        {
            let (status, body) = server.get(&format!("/tasks?{field}={text}")).await;
            assert_eq!(status, 400);
            assert_eq!(
                body["error"]["details"][1]["fieldViolations"][0]["field"],
                field
            );
        }
    }
    // Numbers may be strings, as in queries.
    assert_eq!(
        server.result("ListTasks", json!({ "pageSize": "5" })).await["pageSize"],
        5
    );
}

#[tokio::test]
async fn a_list_is_counted_only_once_even_if_it_needs_several_reads() {
    let server = TestServer::start().await;
    for _ in 0..40 {
        server.send("one").await;
    }
    let before = server.tasks.counts.load(Ordering::SeqCst);
    let list = server.result("ListTasks", json!({ "pageSize": 35 })).await;
    assert_eq!(ids(&list).len(), 35);
    assert_eq!(list["totalSize"], 40);
    assert_eq!(server.tasks.counts.load(Ordering::SeqCst), before + 1);
}
