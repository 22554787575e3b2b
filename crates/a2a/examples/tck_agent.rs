//! An agent for the protocol's test kit, behind the real server. It chooses its behaviour by the prefix of the
//! message's id, as the kit expects. `tck_agent PORT` serves it on loopback; `scripts/a2a-tck` runs the kit against it.

#[path = "../tests/it/server/memory.rs"]
#[allow(dead_code, clippy::unwrap_used)]
mod memory;

use a2a::{AgentSkill, Message, Part};
use lango_a2a::server::{
    Access, AgentBackend, AgentServer, ArtifactChunk, ReportError, Reporter, RunResult,
    ServerSettings, StatusMessage, TaskRun,
};
use lango_core::{BoxFuture, UserId};
use memory::{MemoryTasks, SystemClock};
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;

struct ScriptedAgent;

impl AgentBackend for ScriptedAgent {
    fn run<'a>(&'a self, run: TaskRun, reporter: Reporter) -> BoxFuture<'a, RunResult> {
        Box::pin(async move {
            if let Err(error) = act(run, &reporter).await {
                eprintln!("a report was not accepted: {error}");
            }
            RunResult::Reported
        })
    }

    fn answer_directly<'a>(
        &'a self,
        _user: &'a UserId,
        _context: &'a str,
        message: &'a Message,
    ) -> BoxFuture<'a, Option<StatusMessage>> {
        let is_direct = message.message_id.starts_with("tck-message-response");
        Box::pin(async move { is_direct.then(|| "Direct message response".into()) })
    }
}

async fn act(mut run: TaskRun, reporter: &Reporter) -> Result<(), ReportError> {
    let id = std::mem::take(&mut run.message.message_id);
    // Longer prefixes come before the shorter ones that they start with.
    let scripts = [
        "tck-artifact-file-url",
        "tck-artifact-file",
        "tck-artifact-text",
        "tck-artifact-data",
        "tck-input-required",
        "tck-reject-task",
        "tck-stream-artifact-chunked",
        "tck-stream-artifact-file",
        "tck-stream-",
        "test-resubscribe-message-id",
        "tck-complete-task",
    ];
    let script = scripts.iter().find(|script| id.starts_with(**script));
    let file = || {
        let text = b"Generated file content".to_vec();
        Part::raw(text)
            .with_filename("output.txt")
            .with_media_type("text/plain")
    };
    let whole = |part: Part| ArtifactChunk::whole("result", vec![part]).named("result");
    match script.copied().unwrap_or_default() {
        "tck-artifact-text" => {
            reporter
                .artifact(whole(Part::text("Generated text content")))
                .await?;
        }
        "tck-artifact-file" => reporter.artifact(whole(file())).await?,
        "tck-artifact-file-url" => {
            let url = Part::url("https://example.com/output.txt").with_filename("output.txt");
            reporter
                .artifact(whole(url.with_media_type("text/plain")))
                .await?;
        }
        "tck-artifact-data" => {
            let data = Part::data(json!({ "key": "value", "count": 42 }));
            reporter.artifact(whole(data)).await?;
        }
        "tck-input-required" => return reporter.ask("What else?").await,
        "tck-reject-task" => return reporter.rejected("rejected").await,
        "tck-stream-artifact-chunked" => {
            reporter.working(StatusMessage::empty()).await?;
            reporter
                .artifact(ArtifactChunk::text("result", "chunk-1 "))
                .await?;
            reporter
                .artifact(ArtifactChunk::text("result", "chunk-2").last())
                .await?;
        }
        "tck-stream-artifact-file" => {
            reporter.working(StatusMessage::empty()).await?;
            reporter.artifact(whole(file())).await?;
        }
        "tck-stream-" => {
            reporter.working(StatusMessage::empty()).await?;
            reporter
                .artifact(whole(Part::text("Stream hello from TCK")))
                .await?;
        }
        "test-resubscribe-message-id" => {
            reporter.working(StatusMessage::empty()).await?;
            tokio::select! {
                () = tokio::time::sleep(Duration::from_secs(4)) => {}
                _ = run.stop.wait() => return Ok(()),
            }
        }
        _ => {}
    }
    reporter.completed("Hello from TCK").await
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let port: u16 = std::env::args()
        .nth(1)
        .ok_or("usage: tck_agent PORT")?
        .parse()?;
    let listener = tokio::net::TcpListener::bind(("127.0.0.1", port)).await?;
    let base_url = format!("http://{}", listener.local_addr()?);
    let about = "Does what the test kit's scenarios say";
    let mut settings = ServerSettings::new("Scripted agent", about, "1.0.0", &base_url);
    settings.skills = vec![AgentSkill {
        id: "scenarios".to_owned(),
        name: "Scenarios".to_owned(),
        description: "Follows the scenarios of the test kit".to_owned(),
        tags: vec!["test".to_owned()],
        examples: None,
        input_modes: None,
        output_modes: None,
        security_requirements: None,
    }];
    settings.access = Access::Open;
    settings.default_user = Some(UserId::new("tester"));
    let tasks = Arc::new(MemoryTasks::default());
    let server = AgentServer::new(
        Arc::new(ScriptedAgent),
        tasks,
        Arc::new(SystemClock),
        settings,
    );
    println!("listening on {base_url}");
    axum::serve(listener, server.router()).await?;
    Ok(())
}
