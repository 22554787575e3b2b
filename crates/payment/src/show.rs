//! Texts about payments for users and models.

use crate::address::Address;
use crate::amount::Usdc;
use crate::error::PaymentError;
use crate::payments::{PaymentOrder, PaymentQuote, Payments, RemainingLimits};
use lango_core::{Payment, PaymentState};
use lango_net::{FetchedResponse, Url};
use serde_json::{Value, json};

/// Formats the payment that the user is asked to allow.
pub(crate) fn order_preview(
    payments: &Payments,
    order: &PaymentOrder,
    left: Result<RemainingLimits, PaymentError>,
) -> String {
    format!(
        "Pay      {}\nTo       {}\nOn       {}\nFor      {}\nFee      at most {}\n{}",
        order.amount,
        order.recipient,
        payments.network(),
        order.purpose,
        payments.fee_ceiling(),
        limits(left),
    )
}

/// Formats the budget that the user is asked to allow.
pub(crate) fn fetch_preview(
    payments: &Payments,
    url: &Url,
    (max_amount, budget): (Usdc, Usdc),
    left: Result<RemainingLimits, PaymentError>,
) -> String {
    format!(
        "Fetch    {url}\nPay      up to {max_amount} for it, if the host demands it\nBudget   {budget} for this host in this session, \
         without asking again\nOn       {}\nFee      none, the host pays it\n{}",
        payments.network(),
        limits(left),
    )
}

fn limits(left: Result<RemainingLimits, PaymentError>) -> String {
    match left {
        Ok(RemainingLimits {
            day,
            recipient,
            purpose,
        }) => format!(
            "Left     today, after this payment: {day}; for this recipient {recipient}; for this purpose {purpose}\n"
        ),
        Err(error) => format!("Left     this call will fail: {error}\n"),
    }
}

pub(crate) fn quote(payments: &Payments, quote: &PaymentQuote) -> String {
    let left = match &quote.left {
        Ok(left) => format!(
            "After this payment the limits leave {} today, {} for this recipient and {} for this purpose.",
            left.day, left.recipient, left.purpose
        ),
        Err(error) => format!("It will be refused: {error}."),
    };
    format!(
        "{} on {}. The network fee is about {}, at most {}. The wallet has {}. {left} The user has to allow the payment.",
        quote.amount,
        payments.network(),
        quote.fee,
        quote.fee_ceiling,
        quote.balance,
    )
}

/// Describes the outcome of a payment.
pub(crate) fn outcome(payment: &Payment) -> String {
    let amount = Usdc(payment.amount);
    let recipient = checksummed(&payment.recipient);
    let id = &payment.id[..payment.id.len().min(12)];
    let hash = payment.transaction.as_ref();
    let hash = hash.and_then(|signed| signed.hashes.split(' ').next());
    let hash = hash.map_or(String::new(), |hash| format!(", transaction {hash}"));
    match payment.state {
        PaymentState::Settled => format!("paid {amount} to {recipient} (payment {id}{hash})"),
        PaymentState::Failed => {
            format!(
                "not paid: {amount} to {recipient} (payment {id}; {})",
                payment.detail
            )
        }
        PaymentState::Reserved => format!(
            "not paid yet: {amount} to {recipient} is reserved (payment {id}; {})",
            payment.detail
        ),
        PaymentState::Signed | PaymentState::Submitted | PaymentState::Unknown => format!(
            "unknown: {amount} to {recipient} was sent and is not confirmed (payment {id}{hash}; {}). It may still be paid \
             until it expires, so do not pay again; payment_history shows its status",
            payment.detail
        ),
    }
}

/// Formats a response, and the payment made for it.
pub(crate) fn response(response: &FetchedResponse, payment: Option<&Payment>) -> String {
    let paid = payment.map_or("nothing was paid".to_owned(), outcome);
    let body = String::from_utf8_lossy(&response.body);
    let cut = if response.was_cut { "\n[cut]" } else { "" };
    let location = response.headers.get("location");
    let location = location.and_then(|location| location.to_str().ok());
    let location = location.map_or(String::new(), |location| {
        format!(", a redirect to {location} that was not followed")
    });
    format!(
        "status {}{location}; {paid}\n\n{body}{cut}",
        response.status
    )
}

/// Returns a payment as JSON.
pub fn payment_json(payment: &Payment) -> Value {
    let hash = payment.transaction.as_ref();
    let hash = hash.and_then(|signed| signed.hashes.split(' ').next());
    json!({
        "id": payment.id,
        "state": payment.state.name(),
        "amount": amount_text(payment.amount),
        "recipient": checksummed(&payment.recipient),
        "network": payment.account.network,
        "purpose": payment.purpose,
        "host": payment.host,
        "transaction": hash,
        "detail": payment.detail,
        "validBefore": payment.valid_before,
        "created": payment.created.0,
        "updated": payment.updated.0,
    })
}

/// Returns an address of the ledger with its checksum, as other software shows it.
pub fn checksummed(address: &str) -> String {
    Address::parse(address).map_or_else(|_| address.to_owned(), |address| address.to_string())
}

/// Returns an amount without its unit.
pub fn amount_text(units: u64) -> String {
    let shown = Usdc(units).to_string();
    shown.trim_end_matches(" USDC").to_owned()
}
