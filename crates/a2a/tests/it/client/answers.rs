//! What becomes the answer: of artifacts, messages, data and files, each text once, within bounds.

use super::script::{
    BOTH, Op, Said, Scripted, accepted, artifact, bare_task, chunk, done, hear, patience, send,
    settings, status, task, text, thread, update,
};
use super::support::{End, Server, response};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use lango_a2a::client::{Binding, Remotes, SlowCards};
use lango_core::{AttachedFile, RemoteAnswer, RemoteCall, RemoteEvent};
use lango_net::{Egress, EgressLimits, EgressRules};
use serde_json::{Value, json};

/// What is heard of a stream of these things; the task, if asked for, is the last of them.
async fn of_stream(items: Vec<Value>) -> super::script::Heard {
    let scripted = Scripted::start(Binding::HttpJson, true, move |op| match op {
        Op::Stream(_) => Said::Stream(items.clone(), End::Clean),
        Op::Cancel(_) => Said::Whole(bare_task("CANCELED", "", &[])),
        other => panic!("{other:?}"),
    })
    .await;
    hear(&*scripted.agent().await, send("x")).await
}

/// What is heard of a task that is over at once.
async fn of_task(task: Value) -> super::script::Heard {
    let scripted = Scripted::start(Binding::JsonRpc, false, move |op| match op {
        Op::Send(_) => Said::Whole(json!({ "task": task })),
        Op::Get(_) => Said::Whole(task.clone()),
        Op::Cancel(_) => Said::Whole(bare_task("CANCELED", "", &[])),
        other => panic!("{other:?}"),
    })
    .await;
    hear(&*scripted.agent().await, send("x")).await
}

#[tokio::test]
async fn the_same_text_is_given_once_however_often_it_comes() {
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
        let (events, end) = of_stream(items.clone()).await;
        assert_eq!(end.unwrap(), done("Hello"), "{items:?}");
        assert!(!events.contains(&RemoteEvent::Withdrawn), "{items:?}");
    }
}

#[tokio::test]
async fn several_artifacts_come_in_order_and_chunks_find_theirs() {
    let (events, end) = of_stream(vec![
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
async fn what_was_shown_and_is_not_the_answer_is_withdrawn() {
    let (events, end) = of_stream(vec![
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
    for (state, words) in [("REJECTED", "not mine"), ("FAILED", "broken")] {
        let (events, _) = of_stream(vec![
            task("WORKING", "", &[]),
            chunk("a", "draft ", false),
            update(state, words),
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
async fn every_state_has_its_meaning() {
    for binding in BOTH {
        let scripted = Scripted::start(binding, false, move |op| match op {
            Op::Send(sent) => {
                let state = sent["message"]["parts"][0]["text"].as_str().unwrap();
                Said::Whole(task(state, "its\nwords", &[]))
            }
            Op::Cancel(_) => Said::Whole(bare_task("CANCELED", "", &[])),
            other => panic!("{other:?}"),
        })
        .await;
        let agent = scripted.agent().await;
        let ends = |state: &'static str| {
            let agent = agent.clone();
            async move { hear(&agent, send(state)).await.1 }
        };
        assert_eq!(ends("COMPLETED").await.unwrap(), done("its\nwords"));
        assert_eq!(ends("REJECTED").await.unwrap(), done("[REJECT] its words"));
        let question = RemoteAnswer {
            thread: Some(thread(Some("t1"))),
            ..RemoteAnswer::from("its\nwords".to_owned())
        };
        assert_eq!(ends("INPUT_REQUIRED").await.unwrap(), question);
        for (state, expected) in [
            ("FAILED", "it says that the task failed: its words"),
            ("CANCELED", "the task was cancelled there: its words"),
            (
                "AUTH_REQUIRED",
                "it needs an authorisation that lango cannot give here: its words",
            ),
        ] {
            let error = ends(state).await.unwrap_err();
            assert_eq!((error.detail.as_str(), error.is_unknown), (expected, false));
        }
        let cancelled = Op::Cancel("t1".to_owned());
        assert_eq!(
            scripted.asked().last(),
            Some(&cancelled),
            "nobody waits for it any more"
        );
        assert_eq!(
            scripted
                .asked()
                .iter()
                .filter(|op| **op == cancelled)
                .count(),
            1
        );
    }
}

#[tokio::test]
async fn words_are_looked_for_where_they_may_be() {
    let mut spoken = bare_task("COMPLETED", "", &[]);
    spoken["history"] = json!([
        { "role": "ROLE_AGENT", "parts": [{ "text": "old question" }] },
        { "role": "ROLE_USER", "parts": [{ "text": "reply" }] },
        { "role": "ROLE_AGENT", "parts": [{ "text": "the answer" }] },
    ]);
    assert_eq!(of_task(spoken.clone()).await.1.unwrap(), done("the answer"));
    spoken["history"].as_array_mut().unwrap().pop();
    let none = "(The task is completed. There was no text.)";
    assert_eq!(of_task(spoken).await.1.unwrap(), done(none));
    let silent = "(It waits for more input, and does not say for what.)";
    assert_eq!(
        of_task(bare_task("INPUT_REQUIRED", "", &[]))
            .await
            .1
            .unwrap()
            .text,
        silent
    );
    assert_eq!(
        of_task(bare_task("REJECTED", "", &[]))
            .await
            .1
            .unwrap()
            .text,
        "[REJECT] no reason given"
    );
    let asked = bare_task("INPUT_REQUIRED", "Fine so?", &[("a", "A draft.")]);
    assert_eq!(of_task(asked).await.1.unwrap().text, "A draft.\n\nFine so?");
    let asked = bare_task("INPUT_REQUIRED", "Fine so?", &[("a", "A draft. Fine so?")]);
    assert_eq!(of_task(asked).await.1.unwrap().text, "A draft. Fine so?");
}

#[tokio::test]
async fn data_is_told_of_files_are_attached_and_escapes_are_not_passed_on() {
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
    let answer = of_task(task).await.1.unwrap();
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

/// What is answered by an agent with this file part, through this guard.
async fn with_linked_file(part: Value, egress: Egress) -> RemoteAnswer {
    let mut task = bare_task("COMPLETED", "", &[]);
    task["artifacts"] = json!([{ "artifactId": "a", "parts": [{ "text": "See" }, part] }]);
    let scripted = Scripted::start(Binding::JsonRpc, false, move |op| match op {
        Op::Send(_) => Said::Whole(json!({ "task": task })),
        other => panic!("{other:?}"),
    })
    .await;
    let settings = vec![settings(&scripted.server.url)];
    let remotes = Remotes::connect(settings, patience(), egress, SlowCards::default()).await;
    let agent = remotes.connected().remove(0);
    hear(&agent, send("x")).await.1.unwrap()
}

#[tokio::test]
async fn a_file_at_a_url_is_fetched_only_where_the_egress_rules_allow_it() {
    let files = Server::start(|seen| match seen.path.as_str() {
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
    assert!(refused.files.is_empty() && files.seen().is_empty());
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
async fn the_largest_file_comes_back_and_more_than_a_message_takes_is_cut() {
    let largest = STANDARD.encode(vec![b'a'; AttachedFile::FILE_BYTES]);
    let mut task = bare_task("COMPLETED", "done", &[]);
    task["artifacts"] = json!([{ "artifactId": "a", "parts": [
        { "raw": largest, "filename": "a.txt", "mediaType": "text/plain" },
    ] }]);
    let answer = of_task(task).await.1.unwrap();
    assert_eq!(answer.files[0].bytes.len(), AttachedFile::FILE_BYTES);
    let mut task = bare_task("COMPLETED", "done", &[]);
    let part = json!({ "raw": "aGVsbG8=", "filename": "a.txt" });
    task["artifacts"] = json!([{ "artifactId": "a", "parts": vec![part; 20] }]);
    let answer = of_task(task).await.1.unwrap();
    assert_eq!(answer.files.len(), 16);
    assert!(answer.text.contains("too many artifacts or files"));
}

#[tokio::test]
async fn files_are_sent_by_value_over_both_bindings() {
    for binding in [Binding::JsonRpc, Binding::HttpJson] {
        let scripted = Scripted::start(binding, false, |_| {
            Said::Whole(bare_task("COMPLETED", "seen", &[]))
        })
        .await;
        let mut call = send("look");
        if let RemoteCall::Send { files, .. } = &mut call {
            files.push(AttachedFile::image("one.png", *b"\x89PNG\r\n\x1a\npixels").unwrap());
        }
        hear(&*scripted.agent().await, call).await.1.unwrap();
        let (Op::Send(sent) | Op::Stream(sent)) = &scripted.asked()[0] else {
            panic!("{:?}", scripted.asked());
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
async fn an_answer_longer_than_its_bound_is_cut_with_a_note() {
    let most = 1024 * 1024;
    let note = "\n[cut: the answer was longer than 1 MiB or had too many artifacts or files]";
    let long = "é".repeat(most / 2 + 9);
    for task in [
        bare_task("COMPLETED", "", &[("a", &long)]),
        bare_task("COMPLETED", &long, &[]),
    ] {
        let answer = of_task(task).await.1.unwrap();
        assert_eq!(answer.text.len(), most + note.len());
        assert!(answer.text.ends_with(note));
    }
}

#[tokio::test]
async fn odd_and_missing_things_do_not_fail_a_call() {
    // States and roles from the future, timestamps that are none, names that are missing, noise between.
    let (events, end) = of_stream(vec![
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
async fn an_unknown_state_is_waited_out() {
    let scripted = Scripted::start(Binding::JsonRpc, true, |op| match op {
        Op::Stream(_) => Said::Stream(
            vec![task("DREAMING", "", &[]), update("HUMMING", "")],
            End::Clean,
        ),
        Op::Get(_) => Said::Whole(bare_task("COMPLETED", "", &[("a", "awake")])),
        other => panic!("{other:?}"),
    })
    .await;
    let (_, end) = hear(&*scripted.agent().await, send("x")).await;
    assert_eq!(end.unwrap(), done("awake"));
}
