//! Tests of the payment tools: what they ask the user, what they show, and what they refuse.

use crate::node::{Node, TOKEN, WALLET, honest, payments};
use lango_core::{Caller, Inspection, OutputSink, PreviewLength, PreviewRequest, Tool, Trust};
use lango_net::Egress;
use lango_payment::payment_tools;
use serde_json::{Value, json};
use std::sync::Arc;

const RECIPIENT: &str = "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed";

async fn tool(name: &str) -> (Arc<dyn Tool>, Node) {
    let node = Node::start(honest).await;
    let (payments, _) = payments(&node.url);
    let tools = payment_tools(&payments, &Egress::default());
    let found = tools
        .into_iter()
        .find(|tool| tool.spec().name.as_str() == name);
    (found.unwrap(), node)
}

fn caller() -> Caller {
    Caller {
        user: "local".into(),
        session: "s_1".into(),
        turn: "t_1".into(),
        agent: "vault".into(),
        call: "c_1".into(),
        trust: Trust::Trusted,
        inspection: Inspection::default(),
        output: OutputSink::default(),
    }
}

fn arguments(amount: &str, recipient: &str, purpose: &str) -> Arc<Value> {
    Arc::new(json!({ "amount": amount, "recipient": recipient, "purpose": purpose }))
}

#[tokio::test]
async fn a_payment_needs_the_users_approval_and_does_not_run_without_it() {
    let (tool, node) = tool("payment_send").await;
    let arguments = arguments("1.5", RECIPIENT, "a domain");
    let inspection = tool.inspect(&caller(), Arc::clone(&arguments)).await;
    let reason = inspection.user_only.unwrap();
    for part in ["1.5 USDC", RECIPIENT, "Base Sepolia"] {
        assert!(reason.contains(part), "{reason}");
    }
    let refused = tool.run(&caller(), arguments).await.unwrap_err();
    assert!(refused.message.contains("the user was not asked"));
    assert!(node.methods().is_empty());
}

#[tokio::test]
async fn the_preview_shows_amount_recipient_network_purpose_fee_and_limits() {
    let (tool, _node) = tool("payment_send").await;
    let shown = tool.preview(
        arguments("1.5", RECIPIENT, "a domain"),
        PreviewRequest {
            length: PreviewLength::Short,
            inspection: Inspection::default(),
        },
    );
    let shown = shown.await.unwrap();
    for part in [
        "1.5 USDC",
        RECIPIENT,
        "Base Sepolia",
        "a domain",
        "at most 0.001 ETH",
        "today, after this payment: 1.5 USDC",
    ] {
        assert!(shown.contains(part), "{shown}");
    }
    let over = tool.preview(
        arguments("2.000001", RECIPIENT, "x"),
        PreviewRequest {
            length: PreviewLength::Short,
            inspection: Inspection::default(),
        },
    );
    let over = over.await.unwrap();
    assert!(
        over.contains("will fail") && over.contains("payment.maxPerPayment"),
        "{over}"
    );
}

#[tokio::test]
async fn invalid_recipients_amounts_and_purposes_are_refused() {
    let (tool, node) = tool("payment_send").await;
    let mut caller = caller();
    caller.inspection.user_only = Some("asked".into());
    let zero = "0x0000000000000000000000000000000000000000";
    let mistyped = "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAeD";
    let long = "x".repeat(201);
    for (amount, recipient, purpose, part) in [
        ("1", WALLET, "x", "the wallet that pays"),
        ("1", TOKEN, "x", "the USDC contract"),
        ("1", zero, "x", "zero address"),
        ("1", mistyped, "x", "checksum"),
        ("1e2", RECIPIENT, "x", "amount"),
        ("-1", RECIPIENT, "x", "amount"),
        ("0", RECIPIENT, "x", "greater than zero"),
        ("0.0000001", RECIPIENT, "x", "6 decimals"),
        ("1", RECIPIENT, " ", "purpose"),
        ("1", RECIPIENT, "a\nb", "purpose"),
        ("1", RECIPIENT, &long, "purpose"),
    ] {
        let refused = tool
            .run(&caller, arguments(amount, recipient, purpose))
            .await;
        let message = refused.unwrap_err().message;
        assert!(message.contains(part), "{amount} {recipient}: {message}");
    }
    assert!(
        !node
            .methods()
            .contains(&"eth_sendRawTransaction".to_owned())
    );
}

#[tokio::test]
async fn a_paid_request_needs_the_users_approval_and_must_be_encrypted() {
    let (tool, _node) = tool("payment_fetch").await;
    let inspect = |url: &str| {
        let arguments = json!({ "url": url, "max_amount": "0.1", "budget": "0.5" });
        let tool = Arc::clone(&tool);
        async move { tool.inspect(&caller(), Arc::new(arguments)).await }
    };
    let asked = inspect("https://example.com/data").await;
    let reason = asked.user_only.unwrap();
    for part in ["0.1 USDC", "`example.com`", "this session", "0.5 USDC"] {
        assert!(reason.contains(part), "{reason}");
    }
    for refused in [
        "http://example.com/",
        "https://127.0.0.1/",
        "ftp://example.com/",
    ] {
        let mut caller = caller();
        caller.inspection = inspect(refused).await;
        let arguments = Arc::new(json!({ "url": refused, "max_amount": "0.1" }));
        assert!(tool.run(&caller, arguments).await.is_err(), "{refused}");
    }
}
