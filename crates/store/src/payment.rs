//! Rules of the ledger of payments that all stores share.

use lango_core::{
    BudgetUse, Payment, PaymentChange, PaymentLimit, PaymentState, Reservation, StoreError,
};

/// Maximum length of a purpose, a detail or another text of a payment, in bytes.
const MOST_TEXT_BYTES: usize = 4096;

/// Maximum size of a signed transaction, in bytes.
const MOST_RAW_BYTES: usize = 16 << 10;

/// Fails for a payment that cannot be stored.
pub(crate) fn check_reservation(reservation: &Reservation) -> Result<(), StoreError> {
    let payment = &reservation.payment;
    let texts = [
        &payment.id,
        &payment.account.network,
        &payment.account.wallet,
        &payment.recipient,
        &payment.purpose,
        &payment.detail,
    ];
    let numbers = [
        payment.amount,
        payment.day,
        payment.valid_before,
        payment.created.0,
        payment.updated.0,
    ];
    if !payment.user.can_be_kept() {
        return refused("a payment belongs to a user whose name cannot be stored");
    }
    if payment.amount == 0 || payment.state != PaymentState::Reserved {
        return refused("a payment is reserved with an amount and before it is signed");
    }
    if texts.iter().any(|text| text.len() > MOST_TEXT_BYTES) {
        return refused("a text of a payment has more than 4096 bytes");
    }
    if numbers.iter().any(|number| i64::try_from(*number).is_err()) {
        return refused("a number of a payment is too large");
    }
    if reservation.budget.is_some() != payment.host.is_some() {
        return refused("a payment for a host spends a budget, and no other does");
    }
    Ok(())
}

/// Fails for a change that cannot be stored.
pub(crate) fn check_change(change: &PaymentChange) -> Result<(), StoreError> {
    let signed = change.transaction.as_ref().map(|new| &new.signed);
    if change.detail.len() > MOST_TEXT_BYTES
        || signed
            .is_some_and(|signed| signed.raw.len() > MOST_RAW_BYTES || signed.hashes.len() > 4096)
    {
        return refused("a change of a payment is too large");
    }
    if change.transaction.as_ref().is_some_and(|new| {
        new.expected_next
            .is_some_and(|next| next > new.signed.nonce)
    }) {
        return refused("an account nonce is taken twice");
    }
    Ok(())
}

/// Returns whether the change applies to the payment as it is.
pub(crate) fn applies(change: &PaymentChange, payment: &Payment) -> bool {
    let keeps_nonce = match &change.transaction {
        Some(new) if new.expected_next.is_none() => {
            let nonce = payment.transaction.as_ref().map(|signed| signed.nonce);
            nonce == Some(new.signed.nonce)
        }
        _ => true,
    };
    let state = payment.state;
    let moves = state == change.state && state.is_open() || state.can_become(change.state);
    payment.revision == change.expected && moves && keeps_nonce
}

/// A budget and what was spent of it.
pub(crate) struct SpentBudget {
    pub id: String,
    pub amount: u64,
    pub spent: u64,
}

/// Returns the id of the budget that a payment spends, or what is left for it.
pub(crate) fn budget_for(
    budgets: &[SpentBudget],
    reservation: &Reservation,
) -> Result<Option<String>, (PaymentLimit, u64)> {
    let payment = &reservation.payment;
    let left = |budget: &SpentBudget| budget.amount.saturating_sub(budget.spent);
    match reservation.budget {
        None => Ok(None),
        Some(BudgetUse::New(amount)) if payment.amount <= amount => {
            Ok(Some(payment.id.to_string()))
        }
        Some(BudgetUse::New(amount)) => Err((PaymentLimit::Budget, amount)),
        Some(BudgetUse::Existing) => {
            let found = budgets.iter().find(|budget| left(budget) >= payment.amount);
            found.map(|budget| Some(budget.id.clone())).ok_or_else(|| {
                let most = budgets.iter().map(left).max();
                (PaymentLimit::Budget, most.unwrap_or(0))
            })
        }
    }
}

fn refused(detail: &str) -> Result<(), StoreError> {
    Err(StoreError::Failed {
        detail: detail.to_owned(),
    })
}
