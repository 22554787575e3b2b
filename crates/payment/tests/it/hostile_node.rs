//! Tests with nodes that serve another chain, send invalid responses, or never confirm a payment.

use crate::node::{Node, Reply, honest, payments, response};
use lango_core::{PaymentQuery, PaymentState, PaymentStore};
use lango_payment::{Address, PaymentError, PaymentOrder, Usdc};
use serde_json::json;

fn order(key: &str, units: u64) -> PaymentOrder {
    PaymentOrder {
        user: "local".into(),
        session: "s_1".into(),
        call_key: key.to_owned(),
        recipient: Address::parse("0x00000000000000000000000000000000000000b0").unwrap(),
        amount: Usdc(units),
        purpose: "a test".to_owned(),
    }
}

#[tokio::test]
async fn nothing_is_signed_for_a_node_of_another_chain() {
    let node = Node::start(|method| match method {
        "eth_chainId" => Reply::Result("0x2105".into()),
        other => honest(other),
    })
    .await;
    let (payments, _) = payments(&node.url);
    let refused = payments.send(&order("a", 1)).await;
    let expected = matches!(
        refused,
        Err(PaymentError::WrongChain {
            expected: 84532,
            found: 8453
        })
    );
    assert!(expected, "{refused:?}");
    let called = node.methods();
    assert!(
        called.iter().all(|method| method == "eth_chainId"),
        "{called:?}"
    );
}

#[tokio::test]
async fn invalid_responses_are_errors_and_nothing_is_paid() {
    let answers = [
        response("200 OK", "not json"),
        response(
            "200 OK",
            "{\"jsonrpc\":\"2.0\",\"id\":99999,\"result\":\"0x14a34\"}",
        ),
        response("200 OK", "{}"),
        response(
            "307 Temporary Redirect\r\nLocation: http://127.0.0.1:1/",
            "",
        ),
        response("200 OK", &"[".repeat(2 << 20)),
        response(
            "200 OK",
            "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":\"84532\"}",
        ),
        "HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\n{".to_owned(),
    ];
    for answer in answers {
        let shown: String = answer.chars().take(80).collect();
        let node = Node::start(move |_| Reply::Response(answer.clone())).await;
        let (payments, _) = payments(&node.url);
        let failed = payments.send(&order("a", 1)).await;
        let is_refused = matches!(failed, Err(PaymentError::Unreachable { .. }));
        assert!(is_refused, "{shown}: {failed:?}");
    }
}

#[tokio::test]
async fn the_error_message_of_a_node_is_truncated_and_has_no_control_characters() {
    let error = json!({ "code": -1, "message": format!("\u{1b}[31m{}", "x".repeat(5000)) });
    let body = json!({ "jsonrpc": "2.0", "id": 1, "error": error }).to_string();
    let node = Node::start(move |_| Reply::Response(response("200 OK", &body))).await;
    let (payments, _) = payments(&node.url);
    let text = payments.wallet().await.unwrap_err().to_string();
    assert!(text.len() < 500 && !text.contains('\u{1b}'), "{text}");
}

#[tokio::test]
async fn a_payment_that_a_node_never_confirms_is_unknown_and_counts_towards_limits() {
    let node = Node::start(honest).await;
    let (payments, store) = payments(&node.url);
    let payment = payments.send(&order("a", 2_000_000)).await.unwrap();
    assert_eq!(payment.state, PaymentState::Unknown, "{payment:?}");
    let over = payments.send(&order("b", 1_000_001)).await;
    assert!(matches!(over, Err(PaymentError::Limit { .. })), "{over:?}");
    // Sending again reuses the same transaction.
    let again = payments.send(&order("a", 2_000_000)).await.unwrap();
    assert_eq!(again.transaction, payment.transaction);
    let all = store.payments(PaymentQuery::Newest(payment.account.clone()), 9);
    assert_eq!(all.await.unwrap().len(), 1);
}

#[tokio::test]
async fn a_payment_over_a_limit_is_never_signed() {
    let node = Node::start(honest).await;
    let (payments, _) = payments(&node.url);
    let over = payments.send(&order("a", 2_000_001)).await;
    assert!(matches!(over, Err(PaymentError::Limit { .. })), "{over:?}");
    let poor = payments.send(&order("a", 5_000_001)).await;
    assert!(matches!(poor, Err(PaymentError::Funds { .. })), "{poor:?}");
    let called = node.methods();
    for method in ["eth_estimateGas", "eth_sendRawTransaction"] {
        assert!(!called.iter().any(|one| one == method), "{called:?}");
    }
}
