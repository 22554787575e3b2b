//! Calls in the chat completions API, as servers really send them.

use crate::openai::{chunk, done, end};
use crate::support::Wire::OpenAi;
use crate::support::{calls_of, read, reply};
use lango_testkit::wire_server::ScriptedAnswer;
use serde_json::{Value, json};

fn pieces(pieces: Value) -> String {
    chunk(json!({ "tool_calls": pieces }))
}

#[tokio::test]
async fn parallel_calls_with_index_zero_stay_distinct() {
    let call = |id: &str, path: &str| {
        let arguments = json!({ "path": path }).to_string();
        pieces(
            json!([{ "index": 0, "id": id, "type": "function", "function": { "name": "read", "arguments": arguments } }]),
        )
    };
    let reply = reply(
        OpenAi,
        ScriptedAnswer::frames([
            call("call_a", "1"),
            call("call_b", "2"),
            end("tool_calls"),
            done(),
        ]),
    )
    .await;
    assert_eq!(
        calls_of(&reply),
        [("read", r#"{"path":"1"}"#), ("read", r#"{"path":"2"}"#)]
    );
    assert_eq!(reply.calls[1].id, "call_b");
}

#[tokio::test]
async fn parallel_calls_without_an_index_stay_distinct() {
    let frames = [
        pieces(json!([{ "id": "a", "function": { "name": "one", "arguments": "{\"x\"" } }])),
        pieces(json!([{ "function": { "arguments": ":1}" } }])),
        pieces(json!([{ "id": "b", "function": { "name": "two", "arguments": "{}" } }])),
        end("tool_calls"),
    ];
    let reply = reply(OpenAi, ScriptedAnswer::frames(frames)).await;
    assert_eq!(calls_of(&reply), [("one", r#"{"x":1}"#), ("two", "{}")]);
}

#[tokio::test]
async fn parallel_calls_without_ids_stay_distinct() {
    let frames = [
        pieces(json!([
            { "index": 0, "function": { "name": "one", "arguments": "{}" } },
            { "index": 0, "function": { "name": "two", "arguments": "{}" } },
        ])),
        end("tool_calls"),
    ];
    let reply = reply(OpenAi, ScriptedAnswer::frames(frames)).await;
    assert_eq!(calls_of(&reply), [("one", "{}"), ("two", "{}")]);
}

#[tokio::test]
async fn parallel_calls_with_one_id_stay_distinct_by_their_index() {
    let call = |index: u64, path: &str| {
        let arguments = json!({ "path": path }).to_string();
        pieces(
            json!([{ "index": index, "id": "read", "function": { "name": "read", "arguments": arguments } }]),
        )
    };
    let reply = reply(
        OpenAi,
        ScriptedAnswer::frames([call(0, "1"), call(1, "2"), end("tool_calls")]),
    )
    .await;
    assert_eq!(
        calls_of(&reply),
        [("read", r#"{"path":"1"}"#), ("read", r#"{"path":"2"}"#)]
    );
}

#[tokio::test]
async fn interleaved_arguments_of_two_calls_are_joined() {
    let (one, two) = (r#"{"path":"é"}"#, r#"{"n":[1,2]}"#);
    let mut frames = vec![pieces(json!([
        { "index": 0, "id": "a", "type": "function", "function": { "name": "one", "arguments": "" } },
        { "index": 1, "id": "b", "type": "function", "function": { "name": "two", "arguments": "" } },
    ]))];
    let (mut left, mut right) = (one.chars(), two.chars());
    loop {
        let piece =
            |index: u64, c: char| json!([{ "index": index, "function": { "arguments": c } }]);
        match (left.next(), right.next()) {
            (None, None) => break,
            (l, r) => {
                frames.extend(l.map(|c| pieces(piece(0, c))));
                frames.extend(r.map(|c| pieces(piece(1, c))));
            }
        }
    }
    frames.push(end("tool_calls"));
    let reply = reply(OpenAi, ScriptedAnswer::frames(frames)).await;
    assert_eq!(calls_of(&reply), [("one", one), ("two", two)]);
}

#[tokio::test]
async fn pieces_that_repeat_the_id_and_name_are_one_call() {
    let piece = |arguments: &str| {
        pieces(
            json!([{ "index": 0, "id": "a", "function": { "name": "one", "arguments": arguments } }]),
        )
    };
    let reply = reply(
        OpenAi,
        ScriptedAnswer::frames([piece("{\"x\""), piece(":1}"), end("tool_calls")]),
    )
    .await;
    assert_eq!(calls_of(&reply), [("one", r#"{"x":1}"#)]);
}

#[tokio::test]
async fn arguments_that_are_sent_as_an_object_are_read() {
    let call = json!({ "index": 0, "id": "a", "function": { "name": "one", "arguments": { "path": "x" } } });
    let streamed = ScriptedAnswer::frames([pieces(json!([call])), end("tool_calls")]);
    let message = json!({ "content": null, "tool_calls": [call] });
    let whole = ScriptedAnswer::json(
        &json!({ "choices": [{ "message": message, "finish_reason": "tool_calls" }] }),
    );
    for answer in [streamed, whole] {
        assert_eq!(
            calls_of(&reply(OpenAi, answer).await),
            [("one", r#"{"path":"x"}"#)]
        );
    }
}

#[tokio::test]
async fn calls_are_read_whatever_the_finish_reason_is() {
    for reason in [
        "stop",
        "length",
        "function_call",
        "content_filter",
        "brand_new",
    ] {
        let frames = [
            pieces(
                json!([{ "index": 0, "id": "a", "function": { "name": "one", "arguments": "{}" } }]),
            ),
            end(reason),
        ];
        assert_eq!(
            calls_of(&reply(OpenAi, ScriptedAnswer::frames(frames)).await),
            [("one", "{}")],
            "{reason}"
        );
    }
}

#[tokio::test]
async fn arguments_truncated_by_the_token_limit_are_not_repaired() {
    let frames = [
        pieces(
            json!([{ "index": 0, "id": "a", "function": { "name": "one", "arguments": "{\"path\": \"/et" } }]),
        ),
        end("length"),
    ];
    assert_eq!(
        calls_of(&reply(OpenAi, ScriptedAnswer::frames(frames)).await),
        [("one", "{\"path\": \"/et")]
    );
}

#[tokio::test]
async fn a_huge_index_costs_nothing() {
    let call = |index: u64, id: &str| json!([{ "index": index, "id": id, "function": { "name": id, "arguments": "" } }]);
    let piece = |index: u64| json!([{ "index": index, "function": { "arguments": "{}" } }]);
    let frames = [
        pieces(call(4_294_967_295, "a")),
        pieces(call(u64::MAX, "b")),
        pieces(piece(4_294_967_295)),
        pieces(piece(u64::MAX)),
        end("tool_calls"),
    ];
    let (_, end) = read(OpenAi, ScriptedAnswer::frames(frames)).await;
    assert_eq!(calls_of(&end.unwrap()), [("a", "{}"), ("b", "{}")]);
}
