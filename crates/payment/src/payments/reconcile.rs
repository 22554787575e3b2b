//! Reconciles open payments with the chain. The state of the authorization in the token contract decides.
//!
//! A payment fails, and its amount becomes available again, only if its authorization can no longer be used: there is a
//! block past its `validBefore`, and the authorization was unused as of that block.

use super::Payments;
use super::broadcast::MAX_OPEN;
use crate::chain::{Block, CountScope, Receipt};
use crate::error::PaymentError;
use lango_core::{Payment, PaymentQuery, PaymentState};
use std::time::Duration;
use tokio::time::Instant;

/// Seconds that a block must be past `validBefore`, so that the transfer cannot still be included by another fork.
const EXPIRY_MARGIN_S: u64 = 30;

/// Minimum interval between reconciliations that are triggered by payments.
const INTERVAL: Duration = Duration::from_secs(10);

/// How long after its last change a payment is left to the replica that is making it, in milliseconds.
const GRACE_PERIOD_MS: u64 = 15_000;

/// The result of a reconciliation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ReconcileReport {
    /// Number of payments that turned out to be paid.
    pub settled: usize,
    /// Number of payments that can no longer be paid.
    pub failed: usize,
    /// Number of payments that are still open.
    pub open: usize,
}

impl Payments {
    /// Reconciles all open payments of the wallet. A payment that cannot be checked now stays open.
    pub async fn reconcile(&self) -> Result<ReconcileReport, PaymentError> {
        self.reconcile_older_than(0).await
    }

    /// Reconciles open payments that have not changed for a while, unless a reconciliation ran recently. Ignores
    /// errors, because nothing depends on the result.
    pub(super) async fn reconcile_if_due(&self) {
        let mut last = self.0.reconciled.lock().await;
        if last.is_some_and(|last| last.elapsed() < INTERVAL) {
            return;
        }
        *last = Some(Instant::now());
        drop(last);
        let _ = self.reconcile_older_than(GRACE_PERIOD_MS).await;
    }

    async fn reconcile_older_than(&self, age_ms: u64) -> Result<ReconcileReport, PaymentError> {
        let query = PaymentQuery::Open(self.account().await?);
        let open = self.0.store.payments(query, MAX_OPEN).await?;
        let latest = self.0.clock.now().0.saturating_sub(age_ms);
        let mut result = ReconcileReport::default();
        for payment in open {
            if payment.updated.0 > latest {
                result.open += 1;
                continue;
            }
            let checked = self.reconcile_one(payment).await;
            match checked.map(|payment| payment.state) {
                Ok(PaymentState::Settled) => result.settled += 1,
                Ok(PaymentState::Failed) => result.failed += 1,
                Ok(_) | Err(_) => result.open += 1,
            }
        }
        Ok(result)
    }

    /// Determines the state of one open payment, and sends it again if it can still be paid.
    pub(super) async fn reconcile_one(&self, payment: Payment) -> Result<Payment, PaymentError> {
        let wallet = self.wallet().await?;
        let block = self.0.chain.latest_block().await?;
        let authorization = self.authorization(wallet, &payment)?;
        let is_used = self.0.chain.is_used(&wallet, &authorization.nonce, block);
        if is_used.await? {
            return self.advance(&payment, PaymentState::Settled, "paid").await;
        }
        if is_expired(&payment, block) {
            return self.fail_expired(payment).await;
        }
        match (payment.state, &payment.transaction) {
            // The replica that reserved the payment may be about to sign it, so this one does not.
            (PaymentState::Reserved, _) | (_, None) => Ok(payment),
            (_, Some(signed)) => {
                let nonce = signed.nonce;
                self.send_again(payment, nonce, block).await
            }
        }
    }

    /// Marks a payment whose authorization has expired as failed, once its account nonce is used and no longer blocks
    /// later transactions.
    async fn fail_expired(&self, payment: Payment) -> Result<Payment, PaymentError> {
        if let Some(signed) = &payment.transaction {
            let wallet = self.wallet().await?;
            let mined = self
                .0
                .chain
                .transactions(&wallet, CountScope::Mined)
                .await?;
            if mined <= signed.nonce {
                // The transaction pays nothing any more, but the transactions after it wait for its nonce.
                let _ = self.0.chain.broadcast(&signed.raw).await;
                return self.raise_fees(payment).await;
            }
        }
        let detail = "not paid: its authorization was not used in time";
        self.advance(&payment, PaymentState::Failed, detail).await
    }

    async fn send_again(
        &self,
        payment: Payment,
        nonce: u64,
        block: Block,
    ) -> Result<Payment, PaymentError> {
        match self.find_receipt(&payment).await? {
            // The next block that is read will show the authorization as used.
            Some(Receipt::Succeeded) => Ok(payment),
            Some(Receipt::Reverted) => {
                let detail = "the transaction failed on the chain; the amount stays reserved until the authorization expires";
                self.advance(&payment, PaymentState::Unknown, detail).await
            }
            None => {
                let wallet = self.wallet().await?;
                let mined = self
                    .0
                    .chain
                    .transactions(&wallet, CountScope::Mined)
                    .await?;
                if mined > nonce {
                    return self.move_to_next_nonce(payment).await;
                }
                let Some(signed) = &payment.transaction else {
                    return Ok(payment);
                };
                let newest = signed.hashes.split(' ').next().unwrap_or_default();
                let offered = self.0.chain.offered_fee(newest).await?;
                if offered.is_some_and(|fee| fee < block.base_fee) {
                    return self.raise_fees(payment).await;
                }
                match self.0.chain.broadcast(&signed.raw).await {
                    Err(PaymentError::Refused { message, .. }) if is_too_cheap(&message) => {
                        self.raise_fees(payment).await
                    }
                    _ => self.submit(payment).await,
                }
            }
        }
    }

    /// Signs a transaction with the same authorization and the next account nonce, because other software used the old nonce.
    async fn move_to_next_nonce(&self, payment: Payment) -> Result<Payment, PaymentError> {
        let wallet = self.wallet().await?;
        let signature = payment.authorization.as_deref();
        let Some(signature) = signature.and_then(|bytes| <[u8; 65]>::try_from(bytes).ok()) else {
            return Ok(payment);
        };
        // The transaction may have been mined since the last check.
        if self.find_receipt(&payment).await?.is_some() {
            return Ok(payment);
        }
        let data = self.authorization(wallet, &payment)?.call_data(&signature);
        let fees = self.current_fees(super::USUAL_GAS * 3 / 2).await?;
        if fees.max_total() > self.0.max_fee {
            return Ok(payment);
        }
        let _one_at_a_time = self.0.signing.lock().await;
        let moved = self.take_nonce(payment, None, (fees, data)).await?;
        self.submit(moved).await
    }
}

fn is_expired(payment: &Payment, block: Block) -> bool {
    block.timestamp >= payment.valid_before.saturating_add(EXPIRY_MARGIN_S)
}

/// Returns whether a node refused a transaction because of its fee. There is no error code for this.
fn is_too_cheap(message: &str) -> bool {
    let message = message.to_lowercase();
    [
        "underpriced",
        "fee too low",
        "less than block base fee",
        "too low for the next block",
    ]
    .iter()
    .any(|words| message.contains(words))
}
