//! Agents inside a web service: `POST /ask` with a text runs a turn, and the answer is the response. A client that names
//! a session in `?session=ID` continues it.
//!
//! `cargo run --example axum_service`, then `curl -d 'hello' http://127.0.0.1:3000/ask`

use axum::extract::{Query, State};
use axum::http::StatusCode;
use axum::routing::post;
use axum::{Json, Router};
use lango::{Lango, Storage, UserInput};
use serde::Deserialize;
use serde_json::{Value, json};

#[derive(Deserialize)]
struct Parameters {
    session: Option<String>,
}

async fn ask(
    State(lango): State<Lango>,
    Query(parameters): Query<Parameters>,
    message: String,
) -> Result<Json<Value>, (StatusCode, String)> {
    let failed = |error: lango::Error| {
        let status = match &error {
            lango::Error::Store(lango::StoreError::NotFound { .. }) => StatusCode::NOT_FOUND,
            lango::Error::Turn(_) => StatusCode::BAD_REQUEST,
            _ => StatusCode::INTERNAL_SERVER_ERROR,
        };
        (status, error.to_string())
    };
    let session = match parameters.session {
        Some(id) => lango.open(id.as_str()).await.map_err(failed)?,
        None => lango.session(),
    };
    // If the client disconnects, this future is dropped, and the turn still runs to its end.
    // The message comes from another program, so agents must not trust it like a person at the keyboard.
    let message = UserInput::from_program(message);
    let report = session.run(message).await.map_err(failed)?;
    Ok(Json(json!({
        "session": session.id(),
        "author": report.author(),
        "answer": report.text(),
    })))
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let port = std::env::var("PORT").unwrap_or("3000".to_owned());
    let storage = match std::env::args().nth(1) {
        Some(path) => Storage::Sqlite(path.into()),
        None => Storage::Memory,
    };
    let lango = Lango::builder().store(storage).build()?;
    let listener = tokio::net::TcpListener::bind(format!("127.0.0.1:{port}")).await?;
    println!("listening on http://{}", listener.local_addr()?);
    let router = Router::new().route("/ask", post(ask)).with_state(lango);
    axum::serve(listener, router).await?;
    Ok(())
}
