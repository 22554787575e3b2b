//! A turn as a stream: drafts while the model writes, stored events, and the report at the end.
//!
//! `cargo run --example streaming`

use futures_util::StreamExt;
use lango::{EventBody, Lango, TurnEvent};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), lango::Error> {
    let lango = Lango::builder().build()?;
    let mut turn = lango.session().run("make a plan for a picnic");
    while let Some(event) = turn.next().await {
        match event? {
            TurnEvent::Draft { text, .. } => print!("{text}"),
            TurnEvent::Stored(event) => {
                if let EventBody::AgentDelegated { agent, .. } = &event.body {
                    println!("[{} asks {agent}]", event.author);
                }
            }
            TurnEvent::Finished(report) => {
                println!(
                    "\n[{}: {} model calls]",
                    report.outcome.name(),
                    report.model_calls
                );
            }
            _ => {}
        }
    }
    Ok(())
}
