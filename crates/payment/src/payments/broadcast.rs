//! Signing, sending and waiting for a transfer that the wallet submits itself.
//!
//! An account nonce is taken in the same database transaction that stores the signed transaction with it. So there is no
//! nonce without a transaction that anybody can send again, and no gap that a killed replica leaves for good.

use super::{Payments, TRIES};
use crate::chain::{Counted, Receipt};
use crate::error::PaymentError;
use crate::transaction::{Fees, Transaction};
use lango_core::{
    NewTransaction, Payment, PaymentChange, PaymentChanged, PaymentQuery, PaymentState,
    SignedTransaction,
};
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// The pauses between questions for a receipt.
const SHORTEST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(2);

/// The most open payments that are looked at together.
pub(super) const MOST_OPEN: usize = 500;

/// The most hashes of replaced transactions that are stored.
const MOST_HASHES: usize = 16;

impl Payments {
    /// Signs the authorization and the transaction that carries it, and stores both with the next account nonce.
    pub(super) async fn sign_transfer(&self, payment: Payment) -> Result<Payment, PaymentError> {
        let wallet = self.wallet().await?;
        let authorization = self.authorization(wallet, &payment)?;
        let signer = self.signer().await?;
        let signature = authorization.sign(&signer).to_bytes();
        let data = authorization.call_data(&signature);
        let gas = self.0.chain.estimate_gas(&wallet, &data).await?;
        let fees = self.current_fees(with_margin(gas)).await?;
        if fees.most() > self.0.max_fee {
            let (needed, ceiling) = (fees.most(), self.0.max_fee);
            return Err(PaymentError::Fee { needed, ceiling });
        }
        let _one_at_a_time = self.0.signing.lock().await;
        self.take_nonce(payment, Some(signature), (fees, data))
            .await
    }

    /// Signs a transaction with the next account nonce and stores it, again and again until no other replica was faster.
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
            // Other software with the same wallet may be ahead of the ledger.
            let pending = self.0.chain.transactions(&wallet, Counted::Pending).await?;
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
            if changed == PaymentChanged::Applied || current.revision != revision {
                return Ok(current);
            }
        }
        Err(PaymentError::Unreachable {
            method: "eth_getTransactionCount",
            detail: "other replicas took every account nonce first; try again".to_owned(),
        })
    }

    /// Sends a signed payment and waits until it is settled, or the time is over.
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
                // A node that does not answer now may answer before the time is over.
                Ok(None) | Err(_) => {}
            }
            if Instant::now() + pause >= deadline {
                return self
                    .advance(
                        &payment,
                        PaymentState::Unknown,
                        "sent, and not confirmed in time; it may still be paid",
                    )
                    .await;
            }
            sleep(pause).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
            // An earlier transaction of the wallet may be missing, and this one waits for it.
            let _ = self.fill_gap(&payment).await;
            payment = self.reread(&payment).await?;
        }
        Ok(payment)
    }

    /// Sends the stored transaction. That a node refuses it is noted: it may be known there already, or be taken later.
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

    /// Returns what became of a payment's transaction, or of one that it replaced.
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

    /// Sends stored transactions with smaller account nonces again that the chain does not know.
    async fn fill_gap(&self, payment: &Payment) -> Result<(), PaymentError> {
        let Some(signed) = &payment.transaction else {
            return Ok(());
        };
        let wallet = self.wallet().await?;
        let pending = self.0.chain.transactions(&wallet, Counted::Pending).await?;
        if pending > signed.nonce {
            return Ok(());
        }
        let query = PaymentQuery::Open(self.account().await?);
        let open = self.0.store.payments(query, MOST_OPEN).await?;
        let is_missing = |nonce: u64| (pending..=signed.nonce).contains(&nonce);
        let missing = open
            .iter()
            .filter_map(|payment| payment.transaction.as_ref());
        for signed in missing.filter(|signed| is_missing(signed.nonce)) {
            // It may be on its way there already.
            let _ = self.0.chain.broadcast(&signed.raw).await;
        }
        Ok(())
    }

    /// Replaces the transaction of a payment by one with higher fees and the same account nonce, if the ceiling permits.
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
        // Nodes take a replacement only if it pays a tenth more.
        let fees = Fees {
            fee: fees.fee * 5 / 4,
            tip: (fees.tip * 5 / 4).max(1),
            ..fees
        };
        if fees.most() > self.0.max_fee {
            return Ok(payment);
        }
        let transaction = self.transaction(signed.nonce, fees, data);
        let (raw, hash) = transaction.sign(&self.signer().await?);
        let mut hashes: Vec<&str> = vec![&hash];
        hashes.extend(signed.hashes.split(' ').filter(|old| *old != hash));
        hashes.truncate(MOST_HASHES);
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
        if self.0.store.change_payment(change).await? == PaymentChanged::Applied {
            let _ = self.0.chain.broadcast(&raw).await;
        }
        self.reread(&payment).await
    }

    /// Returns fees that hold for some blocks: twice the base fee and a tip.
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

/// Adds a quarter: the state of the chain differs a little when the transaction runs.
fn with_margin(gas: u64) -> u64 {
    gas.saturating_add(gas / 4)
}
