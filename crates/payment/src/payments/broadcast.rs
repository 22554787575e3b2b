//! Signs and sends transfers that the wallet submits itself, and waits for them.
//!
//! An account nonce is taken in the same database transaction that stores the signed transaction with it. So every taken nonce has
//! a transaction that any replica can send again, and a killed replica leaves no permanent gap.

use super::{Payments, TRIES};
use crate::chain::{CountScope, Receipt};
use crate::error::PaymentError;
use crate::transaction::{Fees, Transaction};
use lango_core::{
    NewTransaction, Payment, PaymentChange, PaymentChangeOutcome, PaymentQuery, PaymentState,
    SignedTransaction,
};
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// The first and the longest pause between checks for a receipt.
const SHORTEST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(2);

/// Maximum number of open payments that one query reads.
pub(super) const MAX_OPEN: usize = 500;

/// Maximum number of transaction hashes stored with a payment: the current one and those it replaced.
const MAX_HASHES: usize = 16;

impl Payments {
    /// Signs the authorization and the transaction that submits it, and stores both with the next account nonce.
    pub(super) async fn sign_transfer(&self, payment: Payment) -> Result<Payment, PaymentError> {
        let wallet = self.wallet().await?;
        let authorization = self.authorization(wallet, &payment)?;
        let signer = self.signer().await?;
        let signature = authorization.sign(&signer).to_bytes();
        let data = authorization.call_data(&signature);
        let gas = self.0.chain.estimate_gas(&wallet, &data).await?;
        let fees = self.current_fees(with_margin(gas)).await?;
        if fees.max_total() > self.0.max_fee {
            let (needed, ceiling) = (fees.max_total(), self.0.max_fee);
            return Err(PaymentError::Fee { needed, ceiling });
        }
        let _one_at_a_time = self.0.signing.lock().await;
        self.take_nonce(payment, Some(signature), (fees, data))
            .await
    }

    /// Signs a transaction with the next account nonce and stores it. Retries if another replica took the nonce first.
    pub(super) async fn take_nonce(
        &self,
        payment: Payment,
        signature: Option<[u8; 65]>,
        (fees, data): (Fees, Vec<u8>),
    ) -> Result<Payment, PaymentError> {
        let wallet = self.wallet().await?;
        let signer = self.signer().await?;
        let mut current = payment;
        let revision = current.revision;
        for _ in 0..TRIES {
            // Other software that uses the same wallet may be ahead of the ledger.
            let pending = self
                .0
                .chain
                .transactions(&wallet, CountScope::Pending)
                .await?;
            let next = self.status("", "").await?.next_nonce;
            let nonce = next.max(pending);
            let (raw, hash) = self.transaction(nonce, fees, data.clone()).sign(&signer);
            let change = PaymentChange {
                id: current.id.clone(),
                expected: current.revision,
                state: PaymentState::Signed.max(current.state),
                detail: format!("signed as transaction {nonce} of the wallet").into(),
                time: self.0.clock.now(),
                authorization: signature.map(Vec::from),
                transaction: Some(NewTransaction {
                    signed: SignedTransaction {
                        nonce,
                        raw,
                        hashes: hash.into(),
                    },
                    expected_next: Some(next),
                }),
            };
            let changed = self.0.store.change_payment(change).await?;
            current = self.reread(&current).await?;
            if changed == PaymentChangeOutcome::Applied || current.revision != revision {
                return Ok(current);
            }
        }
        Err(PaymentError::Unreachable {
            method: "eth_getTransactionCount",
            detail: "other replicas kept taking the next account nonce first; try again".to_owned(),
        })
    }

    /// Sends a signed payment and waits until it is settled or the confirmation timeout has passed.
    pub(super) async fn submit_and_wait(&self, payment: Payment) -> Result<Payment, PaymentError> {
        let deadline = Instant::now() + self.0.confirmation_timeout;
        let mut payment = self.submit(payment).await?;
        let mut pause = SHORTEST_PAUSE;
        while payment.state.is_open() {
            match self.find_receipt(&payment).await {
                Ok(Some(Receipt::Succeeded)) => {
                    return self.advance(&payment, PaymentState::Settled, "paid").await;
                }
                Ok(Some(Receipt::Reverted)) => return self.reconcile_one(payment).await,
                // A node that does not answer now may answer before the deadline.
                Ok(None) | Err(_) => {}
            }
            if Instant::now() + pause >= deadline {
                return self
                    .advance(
                        &payment,
                        PaymentState::Unknown,
                        "sent, but not confirmed in time; it may still be paid",
                    )
                    .await;
            }
            sleep(pause).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
            // This transaction may be waiting for an earlier one of the wallet that the chain does not have.
            let _ = self.fill_gap(&payment).await;
            payment = self.reread(&payment).await?;
        }
        Ok(payment)
    }

    /// Sends the stored transaction. If the node refuses it, only records the refusal, because the node may already
    /// know the transaction or may accept it later.
    pub(super) async fn submit(&self, payment: Payment) -> Result<Payment, PaymentError> {
        let Some(signed) = &payment.transaction else {
            return Ok(payment);
        };
        let sent = self.0.chain.broadcast(&signed.raw).await;
        let detail = match sent {
            Ok(()) => "sent".to_owned(),
            Err(error) => format!("sent, but {error}"),
        };
        match payment.state {
            PaymentState::Signed => {
                self.advance(&payment, PaymentState::Submitted, detail)
                    .await
            }
            _ => Ok(payment),
        }
    }

    /// Returns the receipt of a payment's transaction, or of one that it replaced.
    pub(super) async fn find_receipt(
        &self,
        payment: &Payment,
    ) -> Result<Option<Receipt>, PaymentError> {
        let hashes = payment.transaction.iter();
        for hash in hashes.flat_map(|signed| signed.hashes.split(' ')) {
            if let Some(receipt) = self.0.chain.receipt(hash).await? {
                return Ok(Some(receipt));
            }
        }
        Ok(None)
    }

    /// Resends stored transactions with smaller account nonces if the chain does not know them.
    async fn fill_gap(&self, payment: &Payment) -> Result<(), PaymentError> {
        let Some(signed) = &payment.transaction else {
            return Ok(());
        };
        let wallet = self.wallet().await?;
        let pending = self
            .0
            .chain
            .transactions(&wallet, CountScope::Pending)
            .await?;
        if pending > signed.nonce {
            return Ok(());
        }
        let query = PaymentQuery::Open(self.account().await?);
        let open = self.0.store.payments(query, MAX_OPEN).await?;
        let is_missing = |nonce: u64| (pending..=signed.nonce).contains(&nonce);
        let missing = open
            .iter()
            .filter_map(|payment| payment.transaction.as_ref());
        for signed in missing.filter(|signed| is_missing(signed.nonce)) {
            // This fails if the node already has it.
            let _ = self.0.chain.broadcast(&signed.raw).await;
        }
        Ok(())
    }

    /// Replaces the transaction of a payment with one that has the same account nonce and higher fees, unless these
    /// fees would exceed the maximum.
    pub(super) async fn raise_fees(&self, payment: Payment) -> Result<Payment, PaymentError> {
        let (Some(signed), Some(signature)) = (&payment.transaction, &payment.authorization) else {
            return Ok(payment);
        };
        let wallet = self.wallet().await?;
        let Ok(signature) = <[u8; 65]>::try_from(signature.as_slice()) else {
            return Ok(payment);
        };
        let data = self.authorization(wallet, &payment)?.call_data(&signature);
        let fees = self.current_fees(super::USUAL_GAS * 3 / 2).await?;
        // Nodes accept a replacement only if it pays at least a tenth more.
        let fees = Fees {
            fee: fees.fee * 5 / 4,
            tip: (fees.tip * 5 / 4).max(1),
            ..fees
        };
        if fees.max_total() > self.0.max_fee {
            return Ok(payment);
        }
        let transaction = self.transaction(signed.nonce, fees, data);
        let (raw, hash) = transaction.sign(&self.signer().await?);
        let mut hashes: Vec<&str> = vec![&hash];
        hashes.extend(signed.hashes.split(' ').filter(|old| *old != hash));
        hashes.truncate(MAX_HASHES);
        let change = PaymentChange {
            id: payment.id.clone(),
            expected: payment.revision,
            state: payment.state,
            detail: "replaced by a transaction with a higher fee".into(),
            time: self.0.clock.now(),
            authorization: None,
            transaction: Some(NewTransaction {
                signed: SignedTransaction {
                    nonce: signed.nonce,
                    raw: raw.clone(),
                    hashes: hashes.join(" ").into(),
                },
                expected_next: None,
            }),
        };
        if self.0.store.change_payment(change).await? == PaymentChangeOutcome::Applied {
            let _ = self.0.chain.broadcast(&raw).await;
        }
        self.reread(&payment).await
    }

    /// Returns fees that suffice for several blocks: twice the base fee, and a tip.
    pub(super) async fn current_fees(&self, gas: u64) -> Result<Fees, PaymentError> {
        let block = self.0.chain.latest_block().await?;
        let tip = self.0.chain.tip().await?;
        let fee = block.base_fee.saturating_mul(2).saturating_add(tip);
        Ok(Fees { gas, fee, tip })
    }

    fn transaction(&self, nonce: u64, fees: Fees, data: Vec<u8>) -> Transaction {
        Transaction {
            chain_id: self.network().chain_id(),
            nonce,
            fees,
            to: self.network().token(),
            data,
        }
    }
}

/// Adds a quarter to a gas estimate, because the state of the chain may differ when the transaction runs.
fn with_margin(gas: u64) -> u64 {
    gas.saturating_add(gas / 4)
}
