//! Finding out what became of payments that are open: the authorization's state in the token contract decides.
//!
//! A payment fails, and its amount is free again, only if its authorization can no longer be used: a block is past its
//! `validBefore`, and as of that block it was not used.

use super::Payments;
use super::broadcast::MOST_OPEN;
use crate::chain::{Block, Counted, Receipt};
use crate::error::PaymentError;
use lango_core::{Payment, PaymentQuery, PaymentState};
use std::time::Duration;
use tokio::time::Instant;

/// How far a block must be past `validBefore`, in seconds, so that another fork does not include the transfer after all.
const EXPIRY_MARGIN_S: u64 = 30;

/// The shortest time between two reconciliations before a payment.
const INTERVAL: Duration = Duration::from_secs(10);

/// How long a payment is left to the replica that makes it, in milliseconds.
const LEFT_ALONE_MS: u64 = 15_000;

/// The result of a reconciliation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Reconciled {
    /// Payments that turned out to be paid.
    pub settled: usize,
    /// Payments that can no longer be paid.
    pub failed: usize,
    /// Payments that are still open.
    pub open: usize,
}

impl Payments {
    /// Looks at all open payments of the wallet. A payment that cannot be checked now stays open.
    pub async fn reconcile(&self) -> Result<Reconciled, PaymentError> {
        self.reconcile_older_than(0).await
    }

    /// Looks at the open payments that nobody changed for a while, if that was not done a moment ago. Nothing depends on it,
    /// so errors are left to the payment itself.
    pub(super) async fn reconcile_now_and_then(&self) {
        let mut last = self.0.reconciled.lock().await;
        if last.is_some_and(|last| last.elapsed() < INTERVAL) {
            return;
        }
        *last = Some(Instant::now());
        drop(last);
        let _ = self.reconcile_older_than(LEFT_ALONE_MS).await;
    }

    async fn reconcile_older_than(&self, age_ms: u64) -> Result<Reconciled, PaymentError> {
        let query = PaymentQuery::Open(self.account().await?);
        let open = self.0.store.payments(query, MOST_OPEN).await?;
        let latest = self.0.clock.now().0.saturating_sub(age_ms);
        let mut result = Reconciled::default();
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

    /// Finds out what became of one open payment, and sends it again if it can still be paid.
    pub(super) async fn reconcile_one(&self, payment: Payment) -> Result<Payment, PaymentError> {
        let wallet = self.wallet().await?;
        let block = self.0.chain.latest_block().await?;
        let authorization = self.authorization(wallet, &payment)?;
        let is_used = self.0.chain.is_used(&wallet, &authorization.nonce, block);
        if is_used.await? {
            return self.advance(&payment, PaymentState::Settled, "paid").await;
        }
        if is_expired(&payment, block) {
            return self.release(payment).await;
        }
        match (payment.state, &payment.transaction) {
            // Whoever reserved it may be about to sign it; it is not signed for them.
            (PaymentState::Reserved, _) | (_, None) => Ok(payment),
            (_, Some(signed)) => {
                let nonce = signed.nonce;
                self.send_again(payment, nonce, block).await
            }
        }
    }

    /// Ends a payment whose authorization is void, once its account nonce is used up and holds no other payment back.
    async fn release(&self, payment: Payment) -> Result<Payment, PaymentError> {
        if let Some(signed) = &payment.transaction {
            let wallet = self.wallet().await?;
            let mined = self.0.chain.transactions(&wallet, Counted::Mined).await?;
            if mined <= signed.nonce {
                // It pays nobody any more, but the transactions after it wait for its nonce.
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
            // The state of the authorization follows with the next block that is read.
            Some(Receipt::Succeeded) => Ok(payment),
            Some(Receipt::Reverted) => {
                let detail = "the transaction failed on the chain; the amount counts until the authorization is void";
                self.advance(&payment, PaymentState::Unknown, detail).await
            }
            None => {
                let wallet = self.wallet().await?;
                let mined = self.0.chain.transactions(&wallet, Counted::Mined).await?;
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

    /// Signs the same authorization for the next account nonce, since other software used up the one that it had.
    async fn move_to_next_nonce(&self, payment: Payment) -> Result<Payment, PaymentError> {
        let wallet = self.wallet().await?;
        let signature = payment.authorization.as_deref();
        let Some(signature) = signature.and_then(|bytes| <[u8; 65]>::try_from(bytes).ok()) else {
            return Ok(payment);
        };
        // Its receipt may have come between the two questions.
        if self.find_receipt(&payment).await?.is_some() {
            return Ok(payment);
        }
        let data = self.authorization(wallet, &payment)?.call_data(&signature);
        let fees = self.current_fees(super::USUAL_GAS * 3 / 2).await?;
        if fees.most() > self.0.max_fee {
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

/// Returns whether a node refuses a transaction because of its fee. There is no code for it.
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
