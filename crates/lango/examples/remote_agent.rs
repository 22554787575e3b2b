//! A remote agent that speaks A2A 1.0, as a sub-agent of the orchestrator.
//!
//! `cargo run --example remote_agent -- URL [TOKEN] ["message"]`, for example with `lango serve` on the other side. Without
//! a URL it starts a small agent of its own, on this machine.

use axum::routing::{get, post};
use axum::{Json, Router};
use lango::{Lango, connect_remote};
use serde_json::{Value, json};
use tokio::net::TcpListener;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let url = match arguments.next() {
        Some(url) => url,
        None => start_agent().await?,
    };
    let token = arguments.next().filter(|token| !token.is_empty());
    let message = arguments.next();
    let message = message.unwrap_or("what is the weather in Porto?".to_owned());
    let remote = connect_remote("weather", &url, token.as_deref()).await?;
    println!("{}: {}", remote.name(), remote.description());
    let lango = Lango::builder().remote_agent(remote).build()?;
    let report = lango.session().run(message).await?;
    println!("{}: {}", report.author(), report.text());
    Ok(())
}

/// Starts an agent with one skill, as any A2A library could, and returns its address.
async fn start_agent() -> std::io::Result<String> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let url = format!("http://{}", listener.local_addr()?);
    let card = json!({
        "name": "Weather",
        "description": "tells the weather of a city",
        "version": "1.0.0",
        "supportedInterfaces": [{
            "url": format!("{url}/rpc"),
            "protocolBinding": "JSONRPC",
            "protocolVersion": "1.0",
        }],
        "capabilities": { "streaming": false },
        "defaultInputModes": ["text/plain"],
        "defaultOutputModes": ["text/plain"],
        "skills": [{ "id": "weather", "name": "weather", "description": "weather of a city", "tags": ["weather"] }],
    });
    let router = Router::new()
        .route("/.well-known/agent-card.json", get(|| async { Json(card) }))
        .route("/rpc", post(answer));
    tokio::spawn(axum::serve(listener, router).into_future());
    Ok(url)
}

async fn answer(Json(request): Json<Value>) -> Json<Value> {
    Json(json!({
        "jsonrpc": "2.0",
        "id": request["id"],
        "result": { "message": {
            "messageId": "m-1",
            "role": "ROLE_AGENT",
            "parts": [{ "text": "the weather in Porto: sunny, 21 degrees" }],
        } },
    }))
}
