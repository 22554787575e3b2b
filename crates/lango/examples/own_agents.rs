//! A team of your own: agents are data, and the prefixes of tool names decide who owns which tool.
//!
//! `cargo run --example own_agents`

use lango::{JsonSchema, Lango, Topology, tool};
use serde::Deserialize;

const TEAM: &str = r#"
name = "support"
root = "front-desk"

[[agents]]
name = "billing"
role = "answers questions about invoices"
keywords = ["invoice", "bill", "payment"]
accepts = "a question about an invoice, with its number"
returns = "the amount and the due date"
cannot = "change an invoice"
prefixes = [{ prefix = "invoice_", capability = "invoice look-up" }]

[[agents]]
name = "shipping"
role = "finds parcels"
keywords = ["parcel", "delivery", "tracking"]
accepts = "a tracking number"
returns = "where the parcel is"
cannot = "redirect a parcel"
prefixes = [{ prefix = "parcel_", capability = "parcel tracking" }]
"#;

#[derive(Deserialize, JsonSchema)]
struct Number {
    /// The number of the invoice or the parcel.
    number: String,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), lango::Error> {
    let invoice = tool("invoice_find", "Finds an invoice", |n: Number| async move {
        Ok(format!("invoice {}: 40.00, due on Friday", n.number))
    });
    let parcel = tool("parcel_find", "Finds a parcel", |n: Number| async move {
        Ok(format!("parcel {} is in Lyon", n.number))
    });
    let lango = Lango::builder()
        .custom_topology(Topology::parse(TEAM, "support")?)
        .tool(invoice)
        .tool(parcel)
        .build()?;
    for agent in &lango.tree().agents {
        println!("{}: {}", agent.name, agent.description);
    }
    let session = lango.session();
    for message in [
        r#"use invoice_find {"number": "7"}"#,
        r#"use parcel_find {"number": "X1"}"#,
    ] {
        println!("{}", session.run(message).await?.text());
    }
    Ok(())
}
