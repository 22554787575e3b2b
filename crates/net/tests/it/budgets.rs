//! The budgets of turns.

use crate::support::{Server, ok, url};
use lango_core::{SessionId, TurnId};
use lango_net::{Egress, EgressLimits, EgressRules, HeaderMap, RefusalReason};

fn limits(requests: u64, total_bytes: u64) -> EgressLimits {
    EgressLimits {
        requests,
        total_bytes,
        ..EgressLimits::default()
    }
}

async fn server(egress_limits: EgressLimits) -> (Server, Egress) {
    let server = Server::start(|_| ok(&"x".repeat(1000))).await;
    let allow = vec![server.address.to_string().parse().unwrap()];
    let rules = EgressRules {
        allow,
        deny: Vec::new(),
    };
    (server, Egress::new(rules, egress_limits))
}

#[tokio::test]
async fn a_turn_cannot_exceed_its_requests_and_the_next_turn_has_a_new_budget() {
    let (server, egress) = server(limits(2, u64::MAX)).await;
    let (session, url) = (
        SessionId::from("s"),
        url(&format!("http://{}/", server.address)),
    );
    let first = egress.budgets().of(&session, &TurnId::from("1"));
    for _ in 0..2 {
        egress
            .client()
            .get(&url, &HeaderMap::new(), &first)
            .await
            .unwrap();
    }
    let same = egress.budgets().of(&session, &TurnId::from("1"));
    let error = egress
        .client()
        .get(&url, &HeaderMap::new(), &same)
        .await
        .unwrap_err();
    assert_eq!(
        error.refusal().unwrap().reason,
        RefusalReason::OutOfRequests { limit: 2 }
    );
    assert!(error.to_string().contains("egress.maxRequests"), "{error}");
    assert_eq!(server.count(), 2);
    let next = egress.budgets().of(&session, &TurnId::from("2"));
    egress
        .client()
        .get(&url, &HeaderMap::new(), &next)
        .await
        .unwrap();
    assert_eq!(next.usage().requests, 1);
}

#[tokio::test]
async fn a_turn_that_exceeds_its_bytes_is_stopped_in_the_middle_of_a_body() {
    let (server, egress) = server(limits(10, 1500)).await;
    let budget = egress
        .budgets()
        .of(&SessionId::from("s"), &TurnId::from("1"));
    let url = url(&format!("http://{}/", server.address));
    egress
        .client()
        .get(&url, &HeaderMap::new(), &budget)
        .await
        .unwrap();
    let error = egress
        .client()
        .get(&url, &HeaderMap::new(), &budget)
        .await
        .unwrap_err();
    assert_eq!(
        error.refusal().unwrap().reason,
        RefusalReason::OutOfBytes { limit: 1500 }
    );
    let error = egress
        .client()
        .get(&url, &HeaderMap::new(), &budget)
        .await
        .unwrap_err();
    assert!(error.to_string().contains("egress.maxBytes"), "{error}");
    assert_eq!(server.count(), 2, "an exhausted budget opens no connection");
}

#[test]
fn sessions_have_separate_budgets_and_old_ones_are_dropped() {
    let egress = Egress::new(EgressRules::default(), EgressLimits::default());
    let turn = TurnId::from("t");
    let in_use = egress.budgets().of(&SessionId::from("kept"), &turn);
    for index in 0..3000 {
        let session = SessionId::from(format!("s{index}").as_str());
        let budget = egress.budgets().of(&session, &turn);
        assert_eq!(budget.usage().requests, 0);
    }
    // A budget in use is not dropped, even after thousands of others.
    let again = egress.budgets().of(&SessionId::from("kept"), &turn);
    drop(in_use);
    assert_eq!(
        format!("{again:?}"),
        format!("{:?}", egress.budgets().of(&SessionId::from("kept"), &turn))
    );
}

#[tokio::test]
async fn response_headers_count_towards_the_bytes_of_the_turn() {
    let server = Server::start(|_| {
        let filler = "x".repeat(2000);
        format!("HTTP/1.1 200 OK\r\nX-Filler: {filler}\r\nContent-Length: 0\r\n\r\n").into_bytes()
    })
    .await;
    let allow = vec![server.address.to_string().parse().unwrap()];
    let rules = EgressRules {
        allow,
        deny: Vec::new(),
    };
    let egress = Egress::new(rules, limits(10, 3000));
    let budget = egress
        .budgets()
        .of(&SessionId::from("s"), &TurnId::from("1"));
    let url = url(&format!("http://{}/", server.address));
    let headers = HeaderMap::new();
    let get = || egress.client().get(&url, &headers, &budget);
    get().await.unwrap();
    let error = get().await.unwrap_err();
    assert_eq!(
        error.refusal().unwrap().reason,
        RefusalReason::OutOfBytes { limit: 3000 }
    );
}
