//! A tool of your own: one function with typed arguments, owned by an agent that you name.
//!
//! `cargo run --example own_tool`

use lango::{JsonSchema, Lango, ToolError, tool};
use serde::Deserialize;

#[derive(Deserialize, JsonSchema)]
struct OrderQuery {
    /// The number of the order, such as `A-17`.
    number: String,
}

async fn order_status(query: OrderQuery) -> Result<String, ToolError> {
    match query.number.as_str() {
        "A-17" => Ok("order A-17 was shipped on Monday".to_owned()),
        other => Err(ToolError::new(format!(
            "there is no order {other}; ask the user for the number"
        ))),
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), lango::Error> {
    let status = tool(
        "order_status",
        "Returns the status of an order",
        order_status,
    )
    .owner("librarian")
    .capability("order look-up")
    .pure();
    let lango = Lango::builder().tool(status).build()?;
    // A real model decides by itself when to call the tool; the demo model calls what a message names.
    let report = lango
        .session()
        .run(r#"use order_status {"number": "A-17"}"#)
        .await?;
    println!("{}", report.text());
    println!(
        "{} tool call, {} delegation",
        report.tool_calls, report.rounds
    );
    Ok(())
}
