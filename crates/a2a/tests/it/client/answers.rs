//! How artifacts, messages, data and files become the answer, without repeated text and within the limits.

use super::script::{
    BOTH, Op, Scripted, ScriptedReply, accepted, artifact, bare_task, chunk, done, run_call, send,
    settings, status, task, text, thread, timeouts, update,
};
use super::support::{End, Server, response};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use lango_a2a::client::{Binding, RemoteConnections, SlowCards};
use lango_core::{AttachedFile, RemoteAnswer, RemoteCall, RemoteEvent};
use lango_net::{Egress, EgressLimits, EgressRules};
use serde_json::{Value, json};

/// Runs a call that is answered with a stream of these items.
async fn answer_of_stream(items: Vec<Value>) -> super::script::CallTrace {
    let scripted = Scripted::start(Binding::HttpJson, true, move |op| match op {
        Op::Stream(_) => ScriptedReply::Stream(items.clone(), End::Clean),
        Op::Cancel(_) => ScriptedReply::Whole(bare_task("CANCELED", "", &[])),
        other => panic!("{other:?}"),
    })
    .await;
    run_call(&*scripted.agent().await, send("x")).await
}

/// Runs a call that is answered with this task.
async fn answer_of_task(task: Value) -> super::script::CallTrace {
    let scripted = Scripted::start(Binding::JsonRpc, false, move |op| match op {
        Op::Send(_) => ScriptedReply::Whole(json!({ "task": task })),
        Op::Get(_) => ScriptedReply::Whole(task.clone()),
        Op::Cancel(_) => ScriptedReply::Whole(bare_task("CANCELED", "", &[])),
        other => panic!("{other:?}"),
    })
    .await;
    run_call(&*scripted.agent().await, send("x")).await
}

#[tokio::test]
async fn repeated_text_appears_only_once_in_the_answer() {
    let start = task("WORKING", "", &[]);
    for rest in [
        vec![chunk("a", "Hello", false), update("COMPLETED", "Hello")],
        vec![
            chunk("a", "Hel", false),
            chunk("a", "lo", true),
            chunk("a", "Hello", false),
            update("COMPLETED", "Hello"),
        ],
        vec![
            chunk("a", "Hel", false),
            chunk("a", "lo", true),
            chunk("b", "Hello", false),
            update("COMPLETED", ""),
        ],
        vec![
            chunk("a", "Hel", true),
            chunk("a", "lo", true),
            task("COMPLETED", "Hello", &[("a", "Hello")]),
        ],
        vec![
            chunk("a", "Hello", false),
            task("COMPLETED", "Hello", &[("a", "Hello"), ("b", "Hello\n")]),
        ],
        vec![
            update("WORKING", "Hello"),
            chunk("a", "Hello", false),
            update("COMPLETED", "Hello"),
        ],
        vec![chunk("a", "Hello", false), task("COMPLETED", "", &[])],
        vec![update("WORKING", "thinking"), update("COMPLETED", "Hello")],
    ] {
        let items = [vec![start.clone()], rest].concat();
        let (events, end) = answer_of_stream(items.clone()).await;
        assert_eq!(end.unwrap(), done("Hello"), "{items:?}");
        assert!(!events.contains(&RemoteEvent::Withdrawn), "{items:?}");
    }
}

#[tokio::test]
async fn several_artifacts_are_joined_in_order_and_chunks_are_appended_to_the_right_one() {
    let (events, end) = answer_of_stream(vec![
        task("WORKING", "", &[]),
        chunk("a", "one", false),
        chunk("b", "three", false),
        chunk("a", " two", true),
        update("COMPLETED", "see above"),
    ])
    .await;
    assert_eq!(
        events,
        [
            accepted(),
            text("one\n\n"),
            RemoteEvent::Withdrawn,
            text("one two\n\n"),
            text("three")
        ]
    );
    assert_eq!(end.unwrap(), done("one two\n\nthree"));
}

#[tokio::test]
async fn shown_text_that_is_not_part_of_the_answer_is_withdrawn() {
    let (events, end) = answer_of_stream(vec![
        task("WORKING", "", &[]),
        chunk("a", "draft ", false),
        chunk("a", "final", false),
        update("COMPLETED", ""),
    ])
    .await;
    assert_eq!(
        events,
        [
            accepted(),
            text("draft "),
            RemoteEvent::Withdrawn,
            text("final")
        ]
    );
    assert_eq!(end.unwrap(), done("final"));
    for (state, message) in [("REJECTED", "not mine"), ("FAILED", "broken")] {
        let (events, _) = answer_of_stream(vec![
            task("WORKING", "", &[]),
            chunk("a", "draft ", false),
            update(state, message),
        ])
        .await;
        assert_eq!(
            events,
            [accepted(), text("draft "), RemoteEvent::Withdrawn],
            "{state}"
        );
    }
}

#[tokio::test]
async fn every_state_leads_to_the_right_outcome() {
    for binding in BOTH {
        let scripted = Scripted::start(binding, false, move |op| match op {
            Op::Send(sent) => {
                let state = sent["message"]["parts"][0]["text"].as_str().unwrap();
                ScriptedReply::Whole(task(state, "its\nwords", &[]))
            }
            Op::Cancel(_) => ScriptedReply::Whole(bare_task("CANCELED", "", &[])),
            other => panic!("{other:?}"),
        })
        .await;
        let agent = scripted.agent().await;
        let ends = |state: &'static str| {
            let agent = agent.clone();
            async move { run_call(&agent, send(state)).await.1 }
        };
        assert_eq!(ends("COMPLETED").await.unwrap(), done("its\nwords"));
        assert_eq!(ends("REJECTED").await.unwrap(), done("[REJECT] its words"));
        let question = RemoteAnswer {
            thread: Some(thread(Some("t1"))),
            ..RemoteAnswer::from("its\nwords".to_owned())
        };
        assert_eq!(ends("INPUT_REQUIRED").await.unwrap(), question);
        for (state, expected) in [
            ("FAILED", "it reports that the task failed: its words"),
            (
                "CANCELED",
                "it reports that the task was cancelled: its words",
            ),
            (
                "AUTH_REQUIRED",
                "it needs an authorization that lango cannot give: its words",
            ),
        ] {
            let error = ends(state).await.unwrap_err();
            assert_eq!((error.detail.as_str(), error.is_unknown), (expected, false));
        }
        let cancelled = Op::Cancel("t1".to_owned());
        assert_eq!(
            scripted.operations().last(),
            Some(&cancelled),
            "a task that waits for an authorization is cancelled"
        );
        assert_eq!(
            scripted
                .operations()
                .iter()
                .filter(|op| **op == cancelled)
                .count(),
            1
        );
    }
}

#[tokio::test]
async fn the_text_of_an_answer_can_come_from_the_history_or_the_status() {
    let mut with_history = bare_task("COMPLETED", "", &[]);
    with_history["history"] = json!([
        { "role": "ROLE_AGENT", "parts": [{ "text": "old question" }] },
        { "role": "ROLE_USER", "parts": [{ "text": "reply" }] },
        { "role": "ROLE_AGENT", "parts": [{ "text": "the answer" }] },
    ]);
    assert_eq!(
        answer_of_task(with_history.clone()).await.1.unwrap(),
        done("the answer")
    );
    with_history["history"].as_array_mut().unwrap().pop();
    let none = "(The task completed without any text.)";
    assert_eq!(answer_of_task(with_history).await.1.unwrap(), done(none));
    let silent = "(The agent needs more input, but does not say which.)";
    assert_eq!(
        answer_of_task(bare_task("INPUT_REQUIRED", "", &[]))
            .await
            .1
            .unwrap()
            .text,
        silent
    );
    assert_eq!(
        answer_of_task(bare_task("REJECTED", "", &[]))
            .await
            .1
            .unwrap()
            .text,
        "[REJECT] no reason given"
    );
    let question = bare_task("INPUT_REQUIRED", "Fine so?", &[("a", "A draft.")]);
    assert_eq!(
        answer_of_task(question).await.1.unwrap().text,
        "A draft.\n\nFine so?"
    );
    let question = bare_task("INPUT_REQUIRED", "Fine so?", &[("a", "A draft. Fine so?")]);
    assert_eq!(
        answer_of_task(question).await.1.unwrap().text,
        "A draft. Fine so?"
    );
}

#[tokio::test]
async fn data_is_shown_files_are_attached_and_escapes_are_removed() {
    let mut task = bare_task("COMPLETED", "", &[]);
    task["artifacts"] = json!([{ "artifactId": "a", "parts": [
        { "text": "See:\u{1b}[31m" },
        { "data": { "n": 1 }, "mediaType": "application/json" },
        { "raw": "aGVsbG8=", "filename": "../x\n.txt", "mediaType": "text/plain" },
        { "url": "http://127.0.0.1:9/y.png", "mediaType": "image/png" },
        { "raw": "iVBORw0KGgpwaXhlbHM", "filename": "one.png" },
        { "raw": "UEsDBAAA", "filename": "a.zip", "mediaType": "application/zip" },
        { "raw": "*", "filename": "odd.png", "mediaType": "image/png" },
        { "thought": "unknown" },
    ] }]);
    task["status"]["message"] =
        json!({ "role": "ROLE_AGENT", "parts": [{ "raw": "R0lGODlh", "filename": "two.gif" }] });
    let expected = "See:[31m\n{\"n\":1}\n[file: ../x .txt, text/plain, 5 bytes]\n\
        [file: image/png, http://127.0.0.1:9/y.png]\n[file: one.png, 14 bytes]\n\
        [file: a.zip, application/zip, 6 bytes]\n\
        [file: odd.png, image/png, left out: it is not base64]\n\
        [`y.png` was not fetched: `127.0.0.1:9` is refused: port 9 is not used for HTTP; add `127.0.0.1:9` to `egress.allow` to permit it]\n\
        [`a.zip` cannot be attached: it is not a PNG, JPEG, GIF or WebP image, UTF-8 text, HTML or PDF]";
    let answer = answer_of_task(task).await.1.unwrap();
    assert_eq!(answer.text, expected);
    assert_eq!(
        answer.files,
        [
            AttachedFile::text("../x .txt", "hello"),
            AttachedFile::image("one.png", *b"\x89PNG\r\n\x1a\npixels").unwrap(),
            AttachedFile::image("two.gif", *b"GIF89a").unwrap(),
        ]
    );
}

/// Returns the answer of an agent that sends this file part, fetched through this guard.
async fn with_linked_file(part: Value, egress: Egress) -> RemoteAnswer {
    let mut task = bare_task("COMPLETED", "", &[]);
    task["artifacts"] = json!([{ "artifactId": "a", "parts": [{ "text": "See" }, part] }]);
    let scripted = Scripted::start(Binding::JsonRpc, false, move |op| match op {
        Op::Send(_) => ScriptedReply::Whole(json!({ "task": task })),
        other => panic!("{other:?}"),
    })
    .await;
    let settings = vec![settings(&scripted.server.url)];
    let remotes =
        RemoteConnections::connect(settings, timeouts(), egress, SlowCards::default()).await;
    let agent = remotes.connected().remove(0);
    run_call(&agent, send("x")).await.1.unwrap()
}

#[tokio::test]
async fn a_file_at_a_url_is_fetched_only_where_the_egress_rules_allow_it() {
    let files = Server::start(|request| match request.path.as_str() {
        "/y.txt" => response(200, &[], "hello"),
        "/away" => response(302, &[("location", "http://127.0.0.2:1/y.txt")], ""),
        "/large" => response(200, &[], &"x".repeat(AttachedFile::FILE_BYTES + 1)),
        _ => response(404, &[], "nothing"),
    })
    .await;
    let host = files.url.strip_prefix("http://").unwrap().to_owned();
    let part =
        |path: &str| json!({ "url": format!("http://{host}{path}"), "mediaType": "text/plain" });

    let refused = with_linked_file(part("/y.txt"), Egress::default()).await;
    assert!(refused.files.is_empty() && files.requests().is_empty());
    let reason = format!(
        "[`y.txt` was not fetched: `{host}` is refused: the address is not public (loopback); add `{host}` to `egress.allow` to permit it]"
    );
    assert!(refused.text.ends_with(&reason), "{}", refused.text);

    let rules = EgressRules {
        allow: vec![host.parse().unwrap()],
        deny: Vec::new(),
    };
    let egress = Egress::new(rules, EgressLimits::default());
    let answer = with_linked_file(part("/y.txt"), egress.clone()).await;
    assert_eq!(answer.files, [AttachedFile::text("y.txt", "hello")]);
    assert_eq!(
        answer.text,
        format!("See\n[file: text/plain, http://{host}/y.txt]")
    );
    for (path, problem) in [
        ("/away", "`127.0.0.2:1` is refused"),
        ("/large", "more than the 10000000 bytes"),
        ("/gone", "status 404"),
    ] {
        let answer = with_linked_file(part(path), egress.clone()).await;
        assert!(
            answer.files.is_empty() && answer.text.contains(problem),
            "{}",
            answer.text
        );
    }
}

#[tokio::test]
async fn the_largest_file_is_accepted_and_files_beyond_the_limit_are_dropped() {
    let largest = STANDARD.encode(vec![b'a'; AttachedFile::FILE_BYTES]);
    let mut task = bare_task("COMPLETED", "done", &[]);
    task["artifacts"] = json!([{ "artifactId": "a", "parts": [
        { "raw": largest, "filename": "a.txt", "mediaType": "text/plain" },
    ] }]);
    let answer = answer_of_task(task).await.1.unwrap();
    assert_eq!(answer.files[0].bytes.len(), AttachedFile::FILE_BYTES);
    let mut task = bare_task("COMPLETED", "done", &[]);
    let part = json!({ "raw": "aGVsbG8=", "filename": "a.txt" });
    task["artifacts"] = json!([{ "artifactId": "a", "parts": vec![part; 20] }]);
    let answer = answer_of_task(task).await.1.unwrap();
    assert_eq!(answer.files.len(), 16);
    assert!(answer.text.contains("too many artifacts or files"));
}

#[tokio::test]
async fn files_are_sent_inline_over_both_bindings() {
    for binding in [Binding::JsonRpc, Binding::HttpJson] {
        let scripted = Scripted::start(binding, false, |_| {
            ScriptedReply::Whole(bare_task("COMPLETED", "seen", &[]))
        })
        .await;
        let mut call = send("look");
        if let RemoteCall::Send { files, .. } = &mut call {
            files.push(AttachedFile::image("one.png", *b"\x89PNG\r\n\x1a\npixels").unwrap());
        }
        run_call(&*scripted.agent().await, call).await.1.unwrap();
        let (Op::Send(sent) | Op::Stream(sent)) = &scripted.operations()[0] else {
            panic!("{:?}", scripted.operations());
        };
        assert_eq!(
            sent["message"]["parts"],
            json!([
                { "text": "look" },
                { "raw": "iVBORw0KGgpwaXhlbHM=", "filename": "one.png", "mediaType": "image/png" },
            ])
        );
    }
}

#[tokio::test]
async fn a_long_answer_is_truncated_with_a_note() {
    let max_bytes = 1024 * 1024;
    let note = "\n[cut: the answer was longer than 1 MiB or had too many artifacts or files]";
    let long = "é".repeat(max_bytes / 2 + 9);
    for task in [
        bare_task("COMPLETED", "", &[("a", &long)]),
        bare_task("COMPLETED", &long, &[]),
    ] {
        let answer = answer_of_task(task).await.1.unwrap();
        assert_eq!(answer.text.len(), max_bytes + note.len());
        assert!(answer.text.ends_with(note));
    }
}

#[tokio::test]
async fn unknown_malformed_and_missing_fields_do_not_fail_a_call() {
    // Unknown states and roles, invalid timestamps, missing ids, and unrelated items.
    let (events, end) = answer_of_stream(vec![
        json!({ "task": { "id": "t1", "status": { "state": "TASK_STATE_SUBMITTED", "timestamp": "yesterday" }, "future": [1] } }),
        json!({ "weatherUpdate": { "sunny": true } }),
        json!(null),
        json!({ "statusUpdate": { "taskId": "t1", "status": { "state": "TASK_STATE_DREAMING",
            "message": { "role": "ROLE_GHOST", "parts": [{ "smell": 1 }] } } } }),
        json!({ "artifactUpdate": { "taskId": "another", "artifact": artifact("z", "not ours") } }),
        json!({ "artifactUpdate": { "artifact": { "parts": [{ "text": "ok", "odd": 1 }] }, "lastChunk": "maybe" } }),
        json!({ "statusUpdate": { "taskId": "t1", "status": status("COMPLETED", "") } }),
    ])
    .await;
    let accepted = RemoteEvent::Accepted(lango_core::RemoteThread {
        context: "".into(),
        task: Some("t1".into()),
    });
    assert_eq!(events, [accepted, text("ok")]);
    assert_eq!(
        end.unwrap(),
        RemoteAnswer {
            thread: None,
            ..RemoteAnswer::from("ok".to_owned())
        }
    );
}

#[tokio::test]
async fn an_unknown_state_counts_as_running() {
    let scripted = Scripted::start(Binding::JsonRpc, true, |op| match op {
        Op::Stream(_) => ScriptedReply::Stream(
            vec![task("DREAMING", "", &[]), update("HUMMING", "")],
            End::Clean,
        ),
        Op::Get(_) => ScriptedReply::Whole(bare_task("COMPLETED", "", &[("a", "awake")])),
        other => panic!("{other:?}"),
    })
    .await;
    let (_, end) = run_call(&*scripted.agent().await, send("x")).await;
    assert_eq!(end.unwrap(), done("awake"));
}
