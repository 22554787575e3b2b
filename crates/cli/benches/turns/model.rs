//! A scripted model behind OpenAI's chat completions: delegates, calls a tool, answers. Replies are streamed after a
//! fixed latency.

use serde_json::{Value, json};
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

/// Serves on a free port, which is printed, until the process is killed.
pub(crate) fn run(latency_ms: &str) {
    let latency = Duration::from_millis(latency_ms.parse().unwrap());
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        println!("{}", listener.local_addr().unwrap());
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(answer_requests(stream, latency));
        }
    });
}

async fn answer_requests(mut stream: TcpStream, latency: Duration) -> Option<()> {
    let mut buffer = Vec::new();
    stream.set_nodelay(true).ok()?;
    loop {
        let body = read_body(&mut stream, &mut buffer).await?;
        if !latency.is_zero() {
            tokio::time::sleep(latency).await;
        }
        let reply = reply_to(&body);
        let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream";
        let length = reply.len();
        let response = format!("{head}\r\ncontent-length: {length}\r\n\r\n{reply}");
        stream.write_all(response.as_bytes()).await.ok()?;
    }
}

async fn read_body(stream: &mut TcpStream, buffer: &mut Vec<u8>) -> Option<Value> {
    loop {
        if let Some(end) = buffer.windows(4).position(|window| window == b"\r\n\r\n") {
            let head = String::from_utf8_lossy(&buffer[..end]).to_lowercase();
            let length = head.split("content-length: ").nth(1)?.lines().next()?;
            let whole = end + 4 + length.trim().parse::<usize>().ok()?;
            if buffer.len() >= whole {
                let body = serde_json::from_slice(&buffer[end + 4..whole]).ok();
                buffer.drain(..whole);
                return body;
            }
        }
        if stream.read_buf(buffer).await.ok()? == 0 {
            return None;
        }
    }
}

fn reply_to(body: &Value) -> String {
    let messages = body["messages"].as_array().map_or(&[][..], Vec::as_slice);
    let last = messages.last().cloned().unwrap_or_default();
    let text = last["content"].as_str().unwrap_or_default();
    let call = |name: &str, arguments: Value| {
        let function = json!({ "name": name, "arguments": arguments.to_string() });
        json!({ "tool_calls": [{ "index": 0, "id": "c", "function": function }] })
    };
    let deltas = if last["role"] == "tool" {
        let words = "the file has notes in it".split_inclusive(' ');
        words.map(|word| json!({ "content": word })).collect()
    } else if text.contains("## Task") && text.contains("write to the notes") {
        let file = json!({ "path": "notes.md", "content": "more" });
        vec![call("fs_write", file)]
    } else if text.contains("## Task") {
        vec![call("fs_read", json!({ "path": "notes.md" }))]
    } else {
        let task = json!({ "agent": "operator", "task": text, "finish": true });
        vec![call("delegate", task)]
    };
    let mut frames: Vec<Value> = deltas
        .into_iter()
        .map(|delta| json!({ "choices": [{ "delta": delta }] }))
        .collect();
    frames.push(json!({ "choices": [{ "delta": {}, "finish_reason": "stop" }] }));
    frames
        .push(json!({ "choices": [], "usage": { "prompt_tokens": 500, "completion_tokens": 20 } }));
    let frames: String = frames
        .iter()
        .map(|frame| format!("data: {frame}\n\n"))
        .collect();
    format!("{frames}data: [DONE]\n\n")
}
