//! A stored session as a regression test: the recorded replies of the models run again, with the tools of today.
//!
//! `cargo run --example replay`

use lango::{CallStatus, EventBody, JsonSchema, Lango, Storage, tool};
use serde::Deserialize;

#[derive(Deserialize, JsonSchema)]
struct Amount {
    cents: u64,
}

/// Builds the team with the given tax rate, which a later version of the tool got wrong.
fn team(percent: u64) -> lango::Builder {
    let tax = tool(
        "search_tax",
        "Computes the tax",
        move |amount: Amount| async move {
            Ok(format!("the tax is {} cents", amount.cents * percent / 100))
        },
    );
    Lango::builder().tool(tax.pure())
}

/// Returns what the tools returned in a session.
async fn results(session: &lango::Session) -> Result<Vec<String>, lango::Error> {
    let events = session.events(1, 1_000).await?;
    let results = events.iter().filter_map(|event| match &event.body {
        EventBody::ToolReturned {
            status: CallStatus::Ok,
            output,
            ..
        } => Some(output.to_string()),
        _ => None,
    });
    Ok(results.collect())
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), lango::Error> {
    // Recorded once, for example in production.
    let recorded = team(20).store(Storage::Memory).build()?.session();
    recorded.run(r#"use search_tax {"cents": 500}"#).await?;
    let events = recorded.events(1, 1_000).await?;

    // In the test, no model is called.
    for percent in [20, 19] {
        let replayed = team(percent).replay(&events).build()?.session();
        replayed.run(r#"use search_tax {"cents": 500}"#).await?;
        let same = results(&replayed).await? == results(&recorded).await?;
        println!(
            "tax of {percent} %: {}",
            if same {
                "same results"
            } else {
                "DIFFERENT results"
            }
        );
    }
    Ok(())
}
