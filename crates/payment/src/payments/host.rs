//! Payments for requests: lango signs the authorization, and the host that demanded the payment submits it.

use super::{HostOrder, Payments, check_same};
use crate::authorization::Authorization;
use crate::error::PaymentError;
use lango_core::{BudgetKey, Payment, PaymentChange, PaymentState, SessionId, Text, UserId};
use std::time::Duration;
use tokio::time::sleep;

/// Maximum number of times to ask the chain whether the host has submitted a payment.
const CHECKS: usize = 4;
/// Pause between two checks.
const PAUSE: Duration = Duration::from_millis(500);

impl Payments {
    /// Returns what remains of the budget that the user allowed for a host in a session.
    pub(crate) async fn budget_left(
        &self,
        user: &UserId,
        session: &SessionId,
        host: &str,
    ) -> Result<u64, PaymentError> {
        let key = BudgetKey {
            account: self.account().await?,
            user: user.clone(),
            session: session.clone(),
            host: host.into(),
        };
        Ok(self.0.store.payment_budget(key).await?)
    }

    /// Reserves and signs a payment for a host, or returns the payment that the same call made before.
    pub(crate) async fn authorize(
        &self,
        order: &HostOrder,
    ) -> Result<(Payment, Authorization, [u8; 65]), PaymentError> {
        let id = self.payment_id(&order.order).await?;
        let payment = match self.find_payment(&id).await? {
            Some(payment) => payment,
            None => {
                let host = Some((Text::clone(&order.host), order.budget));
                self.reserve(&order.order, host, order.validity_s).await?
            }
        };
        check_same(&payment, &order.order)?;
        if payment.host.as_ref() != Some(&order.host) {
            return Err(PaymentError::Conflict);
        }
        if !payment.state.is_open() {
            let state = payment.state.name();
            return Err(PaymentError::Terms {
                detail: format!(
                    "this call has already made its payment, which is {state}; the host's response was lost"
                ),
            });
        }
        let authorization = self.authorization(self.wallet().await?, &payment)?;
        let signature = authorization.sign(&self.signer().await?).to_bytes();
        if payment.state != PaymentState::Reserved {
            return Ok((payment, authorization, signature));
        }
        let change = PaymentChange {
            id: payment.id.clone(),
            expected: payment.revision,
            state: PaymentState::Signed,
            detail: "signed for the host".into(),
            time: self.0.clock.now(),
            authorization: Some(signature.to_vec()),
            transaction: None,
        };
        self.0.store.change_payment(change).await?;
        let payment = self.reread(&payment).await?;
        // A signature that is not stored must never be sent.
        if payment.authorization.as_deref() == Some(&signature[..]) {
            Ok((payment, authorization, signature))
        } else {
            Err(PaymentError::Conflict)
        }
    }

    /// Records that the authorization was sent to the host, and checks a few times whether the host has used it.
    pub(crate) async fn record_sent_to_host(
        &self,
        payment: Payment,
        detail: String,
    ) -> Result<Payment, PaymentError> {
        let mut payment = match payment.state {
            PaymentState::Signed => {
                self.advance(&payment, PaymentState::Submitted, detail)
                    .await?
            }
            _ => payment,
        };
        for check in 0..CHECKS {
            if check > 0 {
                sleep(PAUSE).await;
            }
            payment = self.reconcile_one(payment).await?;
            if !payment.state.is_open() {
                break;
            }
        }
        Ok(payment)
    }
}
