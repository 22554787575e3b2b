//! Approvals in code: a tool that needs approval, and a policy that decides.
//!
//! `cargo run --example approvals`

use lango::{ApprovalDecision, JsonSchema, Lango, PendingApproval, approve_with, tool};
use serde::Deserialize;

#[derive(Deserialize, JsonSchema)]
struct Refund {
    order: String,
    /// The amount in cents.
    cents: u64,
}

async fn decide(approval: PendingApproval) -> ApprovalDecision {
    let request = &approval.request;
    println!(
        "{} wants to call {} {}",
        request.agent, request.tool, request.arguments
    );
    match request.arguments["cents"].as_u64() {
        Some(cents) if cents <= 1_000 => ApprovalDecision::allow(),
        _ => ApprovalDecision::deny("refunds above 10 dollars need a manager"),
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), lango::Error> {
    let refund = tool("refund", "Refunds an order", |refund: Refund| async move {
        Ok(format!(
            "refunded {} cents of order {}",
            refund.cents, refund.order
        ))
    });
    let lango = Lango::builder()
        .tool(
            refund
                .owner("operator")
                .capability("refunds")
                .needs_approval(),
        )
        .approver(approve_with(decide))
        .build()?;
    let session = lango.session();
    for cents in [500, 50_000] {
        let message = format!(r#"use refund {{"order": "A-17", "cents": {cents}}}"#);
        println!("{}\n", session.run(message).await?.text());
    }
    Ok(())
}
