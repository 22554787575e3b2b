//! Sends mutated requests until ten thousand of them were refused. None may cause a server error.

use crate::support::TestApi;
use axum::body::Body;
use axum::http::Request;
use lango_testkit::model::{ScriptedModel, say};
use serde_json::{Value, json};

/// A random number generator with a fixed seed.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % limit as u64).unwrap()
    }

    fn pick<'a, T>(&mut self, items: &'a [T]) -> &'a T {
        &items[self.below(items.len())]
    }
}

/// Replaces, removes or repeats a value anywhere in the JSON.
fn mutate(body: &mut Value, numbers: &mut Numbers) {
    let strange = [
        json!(null),
        json!(true),
        json!(-1),
        json!(1e300),
        json!(""),
        json!("\u{0}\u{2028}\u{1F600}"),
        json!("data:image/png;base64,AAAA"),
        json!("data:;base64,!"),
        json!([]),
        json!([[[[]]]]),
        json!({}),
        json!({ "type": "json_schema", "schema": { "$ref": "#" } }),
        json!({ "id": "x", "role": "user", "content": [{ "type": "text" }] }),
        json!("x".repeat(70_000)),
    ];
    let mut pointers = vec![String::new()];
    collect(body, "", &mut pointers);
    let pointer = numbers.pick(&pointers);
    let Some(value) = body.pointer_mut(pointer) else {
        return;
    };
    match (numbers.below(6), value) {
        (0, Value::Object(map)) => {
            let key = map.keys().next().cloned();
            key.and_then(|key| map.remove(&key));
        }
        (0, Value::Array(list)) => drop(list.pop()),
        (1, Value::Array(list)) => list.extend(list.clone()),
        (_, value) => *value = numbers.pick(&strange).clone(),
    }
}

/// Adds the pointers to all values inside.
fn collect(value: &Value, pointer: &str, pointers: &mut Vec<String>) {
    let inside: Vec<(String, &Value)> = match value {
        Value::Object(map) => map
            .iter()
            .map(|(key, value)| (key.clone(), value))
            .collect(),
        Value::Array(list) => list
            .iter()
            .enumerate()
            .map(|(at, value)| (at.to_string(), value))
            .collect(),
        _ => Vec::new(),
    };
    for (key, value) in inside {
        let pointer = format!("{pointer}/{key}");
        collect(value, &pointer, pointers);
        pointers.push(pointer);
    }
}

/// Changes bytes, so that the body may not be JSON any more.
fn damage(bytes: &mut Vec<u8>, numbers: &mut Numbers) {
    for _ in 0..=numbers.below(4) {
        let at = numbers.below(bytes.len().max(1));
        match numbers.below(3) {
            0 => bytes.truncate(at),
            1 if at < bytes.len() => bytes[at] = u8::try_from(numbers.below(256)).unwrap(),
            _ => bytes.insert(at.min(bytes.len()), b'['),
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ten_thousand_malformed_requests_are_no_errors_of_the_server() {
    let api = TestApi::new(ScriptedModel::from_fn(|_| say("{}")).without_recording());
    let token = api.token("read run approve").await;
    let part = json!([{ "type": "text", "text": "hi" }, { "type": "image_url", "image_url": { "url": "data:text/plain;base64,aGk=" } }]);
    let item = json!([{ "type": "input_text", "text": "hi" }, { "type": "input_image", "image_url": "data:text/plain;base64,aGk=" }]);
    let source = json!([{ "type": "text", "text": "hi" },
        { "type": "document", "source": { "type": "data", "value": "aGk=", "mimeType": "text/plain" } }]);
    let bodies = [
        (
            "/v1/chat/completions",
            json!({ "model": "lango", "messages": [{ "role": "system", "content": "s" }, { "role": "user", "content": part }],
                "stream": true, "stream_options": { "include_usage": true }, "n": 1, "tools": [], "tool_choice": "none",
                "response_format": { "type": "json_schema", "json_schema": { "name": "n", "schema": { "type": "object" } } } }),
        ),
        (
            "/v1/responses",
            json!({ "model": "lango", "input": [{ "type": "message", "role": "user", "content": item }], "instructions": "s",
                "conversation": { "id": "c" }, "metadata": { "a": "b" }, "stream": false,
                "text": { "format": { "type": "json_schema", "name": "n", "schema": { "type": "object" } } } }),
        ),
        (
            "/agui",
            json!({ "threadId": "t", "runId": "r", "state": {}, "messages": [{ "id": "1", "role": "user", "content": source }],
                "tools": [], "context": [{ "description": "d", "value": "v" }], "forwardedProps": {} }),
        ),
        (
            "/agui",
            json!({ "threadId": "t", "runId": "r", "messages": [],
                "resume": [{ "interruptId": "i", "status": "resolved", "payload": { "approved": true } }] }),
        ),
    ];
    for (path, body) in &bodies {
        let response = api.post(&token, path, body).await;
        assert_eq!(response.status, 200, "{path}: {}", response.body);
    }
    let mut numbers = Numbers(0x9E37_79B9_7F4A_7C15);
    let (mut refused, mut sent) = (0, 0);
    while refused < 10_000 {
        sent += 1;
        let (path, body) = numbers.pick(&bodies);
        let mut body = body.clone();
        for _ in 0..=numbers.below(3) {
            mutate(&mut body, &mut numbers);
        }
        let mut bytes = body.to_string().into_bytes();
        if numbers.below(4) == 0 {
            damage(&mut bytes, &mut numbers);
        }
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let request = Request::post(*path)
            .header("authorization", format!("Bearer {token}"))
            .header("content-type", "application/json");
        let response = api.send(request.body(Body::from(bytes)).unwrap()).await;
        assert!(
            response.status < 500,
            "{} for {path}: {text}: {}",
            response.status,
            response.body
        );
        if path.starts_with("/v1/") && response.status != 200 {
            response.openai_error(response.status);
        }
        let is_refused = response.status != 200 || response.body.contains("RUN_ERROR");
        refused += usize::from(is_refused);
        assert!(
            sent < 50_000,
            "only {refused} of {sent} requests were malformed"
        );
    }
    println!("{refused} of {sent} requests were refused");
}
