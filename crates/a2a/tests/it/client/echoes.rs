//! A remote agent that echoes the token: in answers, streams, errors, ids and its card.

use super::script::{
    BOTH, Scripted, ScriptedReply, card, chunk, run_call, send, settings, task, timeouts, update,
};
use super::support::{End, Server, json as answer, response};
use lango_a2a::client::{Binding, connect};
use lango_core::{RemoteAgent, RemoteEvent};
use lango_testkit::canary::{echo, encodings, find_encoding};

const TOKEN: &str = "s3cret-t0ken";

#[track_caller]
fn assert_hidden(text: &str) {
    assert_eq!(find_encoding(text.as_bytes(), TOKEN), None, "{text}");
}

#[tokio::test]
async fn answers_with_the_token_are_masked() {
    for binding in BOTH {
        let text = echo(TOKEN);
        let scripted = Scripted::start(binding, false, move |_| {
            ScriptedReply::Whole(task("COMPLETED", "", &[("a", &text)]))
        })
        .await;
        let (_, end) = run_call(&*scripted.agent().await, send("x")).await;
        let end = end.unwrap();
        assert_hidden(&format!("{end:?}"));
        assert_eq!(
            end.text.matches("[secret HELPER_TOKEN]").count(),
            encodings(TOKEN).len()
        );
    }
}

#[tokio::test]
async fn a_token_that_is_split_across_a_stream_is_masked() {
    for binding in BOTH {
        for size in [1, 2, 3, 5] {
            let text = echo(TOKEN);
            let scripted = Scripted::start(binding, true, move |_| {
                let letters: Vec<char> = text.chars().collect();
                let mut items = vec![task("SUBMITTED", "", &[])];
                for (index, piece) in letters.chunks(size).enumerate() {
                    let piece: String = piece.iter().collect();
                    items.push(chunk("a", &piece, index > 0));
                }
                items.push(update("COMPLETED", ""));
                ScriptedReply::Stream(items, End::Clean)
            })
            .await;
            let (events, end) = run_call(&*scripted.agent().await, send("x")).await;
            let shown = events.iter().map(|event| match event {
                RemoteEvent::Text(text) => text.as_str(),
                _ => "",
            });
            assert_hidden(&shown.collect::<String>());
            assert_hidden(&end.unwrap().text);
        }
    }
}

#[tokio::test]
async fn ids_errors_and_the_card_with_the_token_are_masked() {
    let mut named = task("INPUT_REQUIRED", "more?", &[]);
    named["task"]["contextId"] = TOKEN.into();
    let scripted = Scripted::start(Binding::HttpJson, false, move |_| {
        ScriptedReply::Whole(named.clone())
    })
    .await;
    let (events, end) = run_call(&*scripted.agent().await, send("x")).await;
    assert_hidden(&format!("{events:?} {end:?}"));
    for (_, text) in encodings(TOKEN) {
        for before in [0, 150, 180, 190] {
            let message = format!("{}{text}", "x".repeat(before));
            let scripted = Scripted::start(Binding::JsonRpc, false, move |_| {
                ScriptedReply::Error(-32001, "X", message.clone())
            })
            .await;
            let error = run_call(&*scripted.agent().await, send("x"))
                .await
                .1
                .unwrap_err();
            assert!(!error.detail.contains("s3cret"), "{error}");
            assert_hidden(&error.detail);
        }
    }
    let server = Server::start(|request| {
        let mut card = card(
            &format!("http://{}", request.header("host").unwrap()),
            Binding::JsonRpc,
            false,
        );
        card["description"] = echo(TOKEN).into();
        answer(200, &card)
    })
    .await;
    let agent = connect(&settings(&server.url), &timeouts()).await.unwrap();
    assert!(
        agent.description().contains("[secret"),
        "{}",
        agent.description()
    );
    assert_hidden(agent.description());
}

#[tokio::test]
async fn a_compressed_answer_is_refused() {
    for streams in [false, true] {
        let scripted = Scripted::start(Binding::JsonRpc, streams, |_| {
            let headers = [
                ("content-type", "text/event-stream"),
                ("content-encoding", "gzip"),
            ];
            ScriptedReply::Raw(response(200, &headers, "x"))
        })
        .await;
        let error = run_call(&*scripted.agent().await, send("x"))
            .await
            .1
            .unwrap_err();
        assert!(error.detail.contains("compressed"), "{error}");
    }
}
