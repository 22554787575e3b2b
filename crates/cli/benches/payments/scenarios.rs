//! Payments on the chain with one fault each.

use super::chain::Chain;
use super::node::LossyNode;
use super::wallet::{KnownKey, Setup, order};
use lango_core::{Payment, PaymentQuery, PaymentState, PaymentStore};
use lango_payment::{PaymentError, ReconcileReport};
use lango_store::Store;
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;

/// Runs all scenarios and returns how many there were.
pub(crate) async fn run(chain: &Chain) -> usize {
    the_same_call_pays_once(chain).await;
    a_lost_broadcast_is_unknown_and_the_next_payment_fills_its_nonce(chain).await;
    an_unconfirmed_payment_is_unknown_and_settled_later(chain).await;
    other_software_that_uses_the_wallet_does_not_block_it(chain).await;
    an_expired_payment_fails_only_when_it_cannot_be_paid(chain).await;
    an_unsigned_payment_fails_after_it_expires(chain).await;
    a_stuck_transaction_is_replaced_by_one_with_a_higher_fee(chain).await;
    a_fee_over_the_ceiling_is_refused(chain).await;
    8
}

async fn stored(store: &Arc<Store>, key: &KnownKey) -> Vec<Payment> {
    let query = PaymentQuery::Newest(key.account());
    store.payments(query, 100).await.unwrap()
}

async fn the_same_call_pays_once(chain: &Chain) {
    let key = KnownKey::funded(1, chain);
    let store = Arc::new(Store::in_memory());
    let setup = Setup::new(chain.url(), &key, store.clone());
    let payments = setup.payments();
    let first = payments.send(&order("a", 7, 1)).await.unwrap();
    assert_eq!(first.state, PaymentState::Settled, "{first:?}");
    let again = payments.send(&order("a", 7, 1)).await.unwrap();
    assert_eq!(again, first);
    // A process that has lost its database is refused by the contract.
    let without_ledger = Setup::new(chain.url(), &key, Arc::new(Store::in_memory()));
    let refused = without_ledger.payments().send(&order("a", 7, 1)).await;
    assert!(
        matches!(refused, Err(PaymentError::Refused { .. })),
        "{refused:?}"
    );
    let other = payments.send(&order("a", 8, 1)).await;
    assert!(matches!(other, Err(PaymentError::Conflict)), "{other:?}");
    let transfers = chain.transfers(&key.address());
    assert_eq!((transfers.len(), transfers[0].amount), (1, 7));
}

async fn a_lost_broadcast_is_unknown_and_the_next_payment_fills_its_nonce(chain: &Chain) {
    let key = KnownKey::funded(2, chain);
    let node = LossyNode::start(chain.port());
    let store = Arc::new(Store::in_memory());
    let mut setup = Setup::new(node.url(), &key, store.clone());
    setup.timeout = Duration::from_millis(300);
    node.lose(Some("eth_sendRawTransaction"));
    let lost = setup.payments().send(&order("lost", 5, 1)).await.unwrap();
    assert_eq!(lost.state, PaymentState::Unknown, "{lost:?}");
    assert!(chain.transfers(&key.address()).is_empty());
    node.lose(None);
    setup.timeout = Duration::from_secs(10);
    let next = setup.payments().send(&order("next", 6, 2)).await.unwrap();
    assert_eq!(next.state, PaymentState::Settled, "{next:?}");
    setup.payments().reconcile().await.unwrap();
    let states = stored(&store, &key).await;
    assert!(
        states
            .iter()
            .all(|payment| payment.state == PaymentState::Settled)
    );
    assert_eq!(chain.transfers(&key.address()).len(), 2);
    assert_eq!(chain.transactions(&key.address()), 2);
}

async fn an_unconfirmed_payment_is_unknown_and_settled_later(chain: &Chain) {
    let key = KnownKey::funded(3, chain);
    let store = Arc::new(Store::in_memory());
    let mut setup = Setup::new(chain.url(), &key, store.clone());
    setup.timeout = Duration::from_millis(300);
    chain.set_automine(false);
    let payment = setup.payments().send(&order("slow", 5, 1)).await.unwrap();
    assert_eq!(payment.state, PaymentState::Unknown, "{payment:?}");
    // Repeated reconciling neither fails the payment nor pays it again.
    for _ in 0..3 {
        let open = setup.payments().reconcile().await.unwrap();
        assert_eq!(
            open,
            ReconcileReport {
                open: 1,
                ..ReconcileReport::default()
            }
        );
    }
    chain.mine();
    chain.set_automine(true);
    let settled = setup.payments().reconcile().await.unwrap();
    assert_eq!(
        settled,
        ReconcileReport {
            settled: 1,
            ..ReconcileReport::default()
        }
    );
    assert_eq!(chain.transfers(&key.address()).len(), 1);
}

async fn other_software_that_uses_the_wallet_does_not_block_it(chain: &Chain) {
    let key = KnownKey::funded(4, chain);
    let node = LossyNode::start(chain.port());
    let store = Arc::new(Store::in_memory());
    let mut setup = Setup::new(node.url(), &key, store.clone());
    setup.timeout = Duration::from_millis(300);
    node.lose(Some("eth_sendRawTransaction"));
    setup.payments().send(&order("moved", 5, 1)).await.unwrap();
    node.lose(None);
    // Other transactions use the nonce of the signed payment and the next two.
    let wallet = key.address();
    chain.call("hardhat_impersonateAccount", json!([wallet]));
    for _ in 0..3 {
        let other = json!({ "from": wallet, "to": super::chain::MINTER, "value": "0x1" });
        chain.call("eth_sendTransaction", json!([other]));
    }
    setup.timeout = Duration::from_secs(10);
    let payments = setup.payments();
    payments.reconcile().await.unwrap();
    payments.reconcile().await.unwrap();
    let moved = stored(&store, &key).await.remove(0);
    assert_eq!(moved.state, PaymentState::Settled, "{moved:?}");
    let ahead = payments.send(&order("ahead", 6, 1)).await.unwrap();
    assert_eq!(ahead.state, PaymentState::Settled, "{ahead:?}");
    assert_eq!(chain.transfers(&wallet).len(), 2);
}

async fn an_expired_payment_fails_only_when_it_cannot_be_paid(chain: &Chain) {
    let key = KnownKey::funded(5, chain);
    let node = LossyNode::start(chain.port());
    let store = Arc::new(Store::in_memory());
    let mut setup = Setup::new(node.url(), &key, store.clone());
    setup.timeout = Duration::from_millis(300);
    setup.limits.day = 9;
    node.lose(Some("eth_sendRawTransaction"));
    setup.payments().send(&order("late", 5, 1)).await.unwrap();
    let payments = setup.payments();
    // Shortly after its expiry another fork could still contain it.
    chain.advance_time(605);
    let open = payments.reconcile().await.unwrap();
    assert_eq!(open.open, 1);
    let over = payments.send(&order("over", 5, 1)).await;
    assert!(matches!(over, Err(PaymentError::Limit { .. })), "{over:?}");
    chain.advance_time(60);
    // Its account nonce is still unused, so later payments would wait for it.
    assert_eq!(payments.reconcile().await.unwrap().open, 1);
    node.lose(None);
    payments.reconcile().await.unwrap();
    payments.reconcile().await.unwrap();
    let late = stored(&store, &key).await.remove(0);
    assert_eq!(late.state, PaymentState::Failed, "{late:?}");
    setup.timeout = Duration::from_secs(10);
    let next = setup.payments().send(&order("next", 9, 1)).await.unwrap();
    assert_eq!(next.state, PaymentState::Settled, "{next:?}");
    let transfers = chain.transfers(&key.address());
    assert_eq!((transfers.len(), transfers[0].amount), (1, 9));
}

async fn an_unsigned_payment_fails_after_it_expires(chain: &Chain) {
    let key = KnownKey::funded(6, chain);
    let node = LossyNode::start(chain.port());
    let store = Arc::new(Store::in_memory());
    let setup = Setup::new(node.url(), &key, store.clone());
    node.lose(Some("eth_estimateGas"));
    let failed = setup.payments().send(&order("cut", 5, 1)).await;
    assert!(
        matches!(failed, Err(PaymentError::Unreachable { .. })),
        "{failed:?}"
    );
    node.lose(None);
    assert_eq!(setup.payments().reconcile().await.unwrap().open, 1);
    chain.advance_time(700);
    assert_eq!(setup.payments().reconcile().await.unwrap().failed, 1);
    let gone = setup.payments().send(&order("cut", 5, 1)).await.unwrap();
    assert_eq!(gone.state, PaymentState::Failed);
    assert!(chain.transfers(&key.address()).is_empty());
}

async fn a_stuck_transaction_is_replaced_by_one_with_a_higher_fee(chain: &Chain) {
    let key = KnownKey::funded(7, chain);
    let store = Arc::new(Store::in_memory());
    let mut setup = Setup::new(chain.url(), &key, store.clone());
    setup.timeout = Duration::from_millis(300);
    chain.set_automine(false);
    let stuck = setup.payments().send(&order("stuck", 5, 1)).await.unwrap();
    assert_eq!(stuck.state, PaymentState::Unknown, "{stuck:?}");
    // The base fee rises above the transaction's maximum.
    let risen = json!(["0x2540be400"]);
    chain.call("hardhat_setNextBlockBaseFeePerGas", risen);
    chain.mine();
    assert!(chain.transfers(&key.address()).is_empty());
    setup.payments().reconcile().await.unwrap();
    chain.mine();
    chain.set_automine(true);
    setup.payments().reconcile().await.unwrap();
    let replaced = stored(&store, &key).await.remove(0);
    assert_eq!(replaced.state, PaymentState::Settled, "{replaced:?}");
    let hashes = replaced.transaction.unwrap().hashes;
    assert_eq!(hashes.split(' ').count(), 2);
    assert_eq!(chain.transfers(&key.address()).len(), 1);
    assert_eq!(chain.transactions(&key.address()), 1);
    chain.call("hardhat_setNextBlockBaseFeePerGas", json!(["0xf4240"]));
    chain.mine();
}

async fn a_fee_over_the_ceiling_is_refused(chain: &Chain) {
    let key = KnownKey::funded(8, chain);
    let mut setup = Setup::new(chain.url(), &key, Arc::new(Store::in_memory()));
    setup.max_fee = 1000;
    let refused = setup.payments().send(&order("dear", 5, 1)).await;
    assert!(
        matches!(refused, Err(PaymentError::Fee { .. })),
        "{refused:?}"
    );
    assert!(chain.transfers(&key.address()).is_empty());
}
