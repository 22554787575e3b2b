//! Files that callers send: they become attachments, or are refused before anything is stored.

use crate::support::{TestServer, message};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use lango_core::{Event, EventBody, EventRange, SessionStore, UserId};
use lango_net::{Egress, EgressLimits, EgressRules};
use lango_server::TaskRunner;
use lango_testkit::model::{ScriptedModel, say};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

const PNG: &[u8] = b"\x89PNG\r\n\x1a\npixels";

fn raw(name: &str, media_type: &str, bytes: &[u8]) -> Value {
    json!({ "raw": STANDARD.encode(bytes), "filename": name, "mediaType": media_type })
}

fn with_parts(id: &str, parts: Value) -> Value {
    let mut params = message(id, "x");
    params["message"]["parts"] = parts;
    params
}

/// Returns the events of a task's conversation.
async fn events(server: &TestServer, task: &Value) -> Vec<Event> {
    let context = task["contextId"].as_str().unwrap();
    let session = TaskRunner::session_of(&UserId::from("a2a"), context);
    let page = EventRange {
        from: 1,
        limit: 100,
    };
    SessionStore::read(&*server.store, &session, page)
        .await
        .unwrap()
}

#[tokio::test]
async fn a_file_becomes_an_attachment_and_the_task_has_a_reference_to_it() {
    let folder = tempfile::tempdir().unwrap();
    let model = ScriptedModel::from_fn(|request| {
        let seen = request.contents.values().map(|bytes| bytes.len());
        let mut seen: Vec<usize> = seen.collect();
        seen.sort_unstable();
        say(&format!("seen: {seen:?}"))
    });
    let server = TestServer::start(folder.path(), model, vec![]).await;
    let parts = json!([
        { "text": "look" },
        raw("../one.png", "image/png", PNG),
        raw("page.json", "application/json", b"[1]"),
        { "data": { "n": 1 } },
    ]);
    let sent = server
        .rpc("SendMessage", with_parts("m-1", parts.clone()))
        .await;
    let task = &sent["result"]["task"];
    assert_eq!(
        task["artifacts"][0]["parts"][0]["text"], "seen: [3, 14]",
        "{sent}"
    );
    let stored = task.to_string();
    assert!(
        stored.contains("[file: one.png, image/png, 14 bytes]"),
        "{stored}"
    );
    assert!(!stored.contains(&STANDARD.encode(PNG)), "{stored}");
    let events = events(&server, task).await;
    let attachments = events[0].body.attachments();
    let names: Vec<&str> = attachments.iter().map(|it| &*it.name).collect();
    assert_eq!(names, ["one.png", "page.json"]);
    // The same message returns the same task.
    let again = server.rpc("SendMessage", with_parts("m-1", parts)).await;
    assert_eq!(again["result"]["task"]["id"], task["id"]);
    server.stop().await;
}

#[tokio::test]
async fn a_short_text_file_becomes_part_of_the_message_and_a_long_one_is_attached() {
    let folder = tempfile::tempdir().unwrap();
    let model =
        ScriptedModel::from_fn(|request| say(&format!("{} attached", request.contents.len())));
    let server = TestServer::start(folder.path(), model, vec![]).await;
    let parts = json!([
        { "text": "say it back" },
        { "raw": STANDARD.encode("the lift is out of order"), "mediaType": "text/plain; charset=utf-8" },
        raw("../notes.md", "Text/Markdown", "größer".as_bytes()),
        raw("long.txt", "text/plain", &vec![b'a'; 64 * 1024]),
    ]);
    let sent = server.rpc("SendMessage", with_parts("m-1", parts)).await;
    let task = &sent["result"]["task"];
    let answer = &task["artifacts"][0]["parts"][0]["text"];
    assert_eq!(answer, "1 attached", "{sent}");
    let events = events(&server, task).await;
    let EventBody::UserMessage { text, .. } = &events[0].body else {
        panic!("{events:?}");
    };
    assert_eq!(
        &**text,
        "say it back\n\nthe lift is out of order\n\n[file: notes.md]\ngrößer"
    );
    let attachments = events[0].body.attachments();
    assert_eq!(&*attachments[0].name, "long.txt");

    // The message may consist only of a text file.
    let only = json!([{ "raw": STANDARD.encode("hello"), "mediaType": "text/plain" }]);
    let sent = server.rpc("SendMessage", with_parts("m-2", only)).await;
    let answer = &sent["result"]["task"]["artifacts"][0]["parts"][0]["text"];
    assert_eq!(answer, "0 attached", "{sent}");

    let broken = json!([raw("a.txt", "text/plain", b"\x80\x81\0\x01")]);
    let refused = server.rpc("SendMessage", with_parts("m-3", broken)).await;
    assert_eq!(refused["error"]["code"], -32005, "{refused}");
    let long = json!([
        { "text": "x".repeat(1024 * 1024 - 10) },
        { "raw": STANDARD.encode("more than ten bytes"), "mediaType": "text/plain" },
    ]);
    let refused = server.rpc("SendMessage", with_parts("m-4", long)).await;
    let error = refused["error"].to_string();
    assert!(error.contains("the limit is 1048576"), "{error}");
    server.stop().await;
}

#[tokio::test]
async fn a_forged_reference_of_a_caller_is_ignored() {
    let folder = tempfile::tempdir().unwrap();
    let model = ScriptedModel::from_fn(|_| say("ok"));
    let server = TestServer::start(folder.path(), model, vec![]).await;
    let sent = server
        .rpc(
            "SendMessage",
            with_parts("m-1", json!([raw("a.png", "image/png", PNG)])),
        )
        .await;
    let task = &sent["result"]["task"];
    let stored = events(&server, task).await[0].body.attachments()[0].clone();
    let forged = json!([{ "text": "look", "metadata": { "lango/attachment": stored } }]);
    let sent = server.rpc("SendMessage", with_parts("m-2", forged)).await;
    let events = events(&server, &sent["result"]["task"]).await;
    assert!(events[0].body.attachments().is_empty(), "{events:?}");
    server.stop().await;
}

#[tokio::test]
async fn a_file_that_cannot_be_attached_is_refused_and_nothing_is_stored() {
    let folder = tempfile::tempdir().unwrap();
    let server = TestServer::start(folder.path(), ScriptedModel::replies([]), vec![]).await;
    let mut image = PNG.to_vec();
    image.resize(5_000_001, 0);
    let url = json!({ "url": "http://10.0.0.1/x.png", "mediaType": "image/png" });
    for (part, code, reason) in [
        (
            url,
            -32602,
            "this agent does not fetch files from `10.0.0.1:80`: its address is not public; send the bytes of `x.png` as `raw`",
        ),
        (
            raw("a.zip", "application/zip", b"PK\x03\x04\0"),
            -32005,
            "this agent accepts text/plain",
        ),
        (
            raw("a.png", "image/png", b"PK\x03\x04\0"),
            -32005,
            "`a.png` cannot be attached",
        ),
        (
            raw("big.png", "image/png", &image),
            -32602,
            "may have 5000000 at most",
        ),
    ] {
        let params = with_parts("m-1", json!([{ "text": "look" }, part]));
        let refused = server.rpc("SendMessage", params).await;
        assert_eq!(refused["error"]["code"], code, "{refused}");
        assert!(refused["error"].to_string().contains(reason), "{refused}");
    }
    let listed = server.rpc("ListTasks", json!({})).await;
    assert_eq!(listed["result"]["totalSize"], 0);
    server.stop().await;
}

#[tokio::test]
async fn the_largest_file_fits_and_a_large_message_without_files_does_not() {
    let folder = tempfile::tempdir().unwrap();
    let model = ScriptedModel::from_fn(|request| {
        let bytes = request.contents.values().next().map(|bytes| bytes.len());
        say(&format!("{bytes:?}"))
    });
    let server = TestServer::start(folder.path(), model, vec![]).await;
    let largest = vec![b'a'; 10_000_000];
    let params = with_parts("m-1", json!([raw("a.txt", "text/plain", &largest)]));
    let sent = server.rpc("SendMessage", params).await;
    let answer = &sent["result"]["task"]["artifacts"][0]["parts"][0]["text"];
    // The context window of the model is unknown, so it gets the whole file.
    assert_eq!(answer, "Some(10000000)", "{}", &sent.to_string()[..300]);
    let mut params = message("m-2", "short");
    params["message"]["metadata"] = json!({ "long": "x".repeat(5_000_000) });
    let refused = server.rpc("SendMessage", params).await;
    let refused = refused["error"].to_string();
    assert!(refused.contains("without its files"), "{refused}");
    server.stop().await;
}

#[tokio::test]
async fn a_file_at_a_url_is_fetched_only_where_the_egress_rules_allow_it() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let host = listener.local_addr().unwrap();
    let served = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut head = [0; 4096];
        let _ = stream.read(&mut head).await.unwrap();
        let answer = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";
        stream.write_all(answer).await.unwrap();
    });
    let model = || {
        ScriptedModel::from_fn(|request| {
            let seen = request.contents.values().map(|bytes| bytes.len());
            say(&format!("seen: {:?}", seen.collect::<Vec<_>>()))
        })
    };
    let parts = json!([{ "url": format!("http://{host}/notes.txt"), "mediaType": "text/plain" }]);

    let folder = tempfile::tempdir().unwrap();
    let server = TestServer::fetching(folder.path(), model(), Egress::default()).await;
    let refused = server
        .rpc("SendMessage", with_parts("m-1", parts.clone()))
        .await;
    assert_eq!(refused["error"]["code"], -32602, "{refused}");
    let error = refused["error"].to_string();
    assert!(error.contains("its address is not public"), "{error}");
    assert!(
        !error.contains("egress.allow"),
        "callers must not see the configuration: {error}"
    );
    assert!(!served.is_finished());
    server.stop().await;

    let rules = EgressRules {
        allow: vec![host.to_string().parse().unwrap()],
        deny: Vec::new(),
    };
    let egress = Egress::new(rules, EgressLimits::default());
    let folder = tempfile::tempdir().unwrap();
    let server = TestServer::fetching(folder.path(), model(), egress).await;
    let sent = server.rpc("SendMessage", with_parts("m-1", parts)).await;
    let task = &sent["result"]["task"];
    assert_eq!(
        task["artifacts"][0]["parts"][0]["text"], "seen: [5]",
        "{sent}"
    );
    let attachments = events(&server, task).await[0].body.attachments().to_vec();
    assert_eq!(&*attachments[0].name, "notes.txt");
    served.await.unwrap();
    server.stop().await;
}
