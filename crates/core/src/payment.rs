//! The ledger of payments. The store counts amounts and compares revisions. Only the payment crate interprets
//! authorizations and signed transactions.
//!
//! A payment reserves its amount before anything is signed. The amount counts towards every limit until the payment is
//! [`Failed`](PaymentState::Failed). A payment fails only when its authorization can no longer be used.

use crate::{BoxFuture, SessionId, StoreError, Text, Timestamp, UserId};

/// The state of a payment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PaymentState {
    /// The amount counts towards the limits; nothing is signed.
    Reserved,
    /// The signed payment is stored, and may have been sent.
    Signed,
    /// The payment was sent to the chain, or to the host that requested it.
    Submitted,
    /// The payment was sent but not confirmed in time. The recipient may or may not be paid.
    Unknown,
    /// The recipient was paid.
    Settled,
    /// The recipient was not paid, and this payment can no longer pay them.
    Failed,
}

impl PaymentState {
    /// All states with their names.
    const ALL: [(Self, &'static str); 6] = [
        (Self::Reserved, "reserved"),
        (Self::Signed, "signed"),
        (Self::Submitted, "submitted"),
        (Self::Unknown, "unknown"),
        (Self::Settled, "settled"),
        (Self::Failed, "failed"),
    ];

    /// Returns the name in the database and in JSON.
    pub fn name(self) -> &'static str {
        let row = Self::ALL.iter().find(|(state, _)| *state == self);
        row.map_or("unknown", |(_, name)| name)
    }

    /// Returns the state with this name.
    pub fn from_name(name: &str) -> Option<Self> {
        let row = Self::ALL.iter().find(|(_, own)| *own == name);
        row.map(|(state, _)| *state)
    }

    /// Whether the payment can still change.
    pub fn is_open(self) -> bool {
        !matches!(self, Self::Settled | Self::Failed)
    }

    /// Whether a payment may change from this state to `next`. A signed payment never becomes unsigned again, and a
    /// settled or failed payment never changes.
    pub fn can_become(self, next: Self) -> bool {
        match (self, next) {
            (Self::Settled | Self::Failed, _) => false,
            (Self::Reserved, Self::Signed | Self::Failed) => true,
            (Self::Reserved, _) => false,
            (_, Self::Reserved) => false,
            (Self::Submitted | Self::Unknown, Self::Signed) => false,
            (_, _) => true,
        }
    }
}

/// The account that pays: a wallet on a network. Each account has its own limits and account nonces.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PaymentAccount {
    /// The name of the network.
    pub network: Text,
    /// The address of the wallet, in lower case.
    pub wallet: Text,
}

/// One payment of the ledger.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Payment {
    /// The nonce of the authorization, in hexadecimal; derived from the call that pays.
    pub id: Text,
    pub account: PaymentAccount,
    /// The user whose agent requested the payment.
    pub user: UserId,
    /// The session in which the payment was requested.
    pub session: SessionId,
    /// The address of the recipient, in lower case.
    pub recipient: Text,
    pub purpose: Text,
    /// The host that requested the payment, if it pays for an HTTP request.
    pub host: Option<Text>,
    /// The budget that the payment uses, if it pays for an HTTP request.
    pub budget: Option<Text>,
    /// The amount in the smallest unit of the token.
    pub amount: u64,
    /// The day whose limits the amount counts towards, in days since 1970 (UTC).
    pub day: u64,
    pub state: PaymentState,
    /// When the authorization expires, in seconds since 1970, by the clock of the chain.
    pub valid_before: u64,
    /// The signature of the authorization.
    pub authorization: Option<Vec<u8>>,
    /// The transaction that carries the authorization; `None` if the host submits it.
    pub transaction: Option<SignedTransaction>,
    /// What happened last, as a sentence without a full stop.
    pub detail: Text,
    /// Increases with every change.
    pub revision: u64,
    pub created: Timestamp,
    pub updated: Timestamp,
}

/// A signed transaction of the wallet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SignedTransaction {
    pub nonce: u64,
    /// The bytes to send.
    pub raw: Vec<u8>,
    /// The hash of the transaction and those of the transactions that it replaced, newest first, separated by spaces.
    pub hashes: Text,
}

/// The maximum amounts, in the smallest unit of the token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PaymentLimits {
    /// Of one payment.
    pub payment: u64,
    /// In one day.
    pub day: u64,
    /// To one recipient in one day.
    pub recipient: u64,
    /// For one purpose in one day.
    pub purpose: u64,
}

/// The amounts of a day that count towards the limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PaymentTotals {
    /// The amounts of all payments.
    pub day: u64,
    /// The amounts paid to one recipient.
    pub recipient: u64,
    /// The amounts paid for one purpose.
    pub purpose: u64,
}

/// A limit that a payment would exceed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PaymentLimit {
    Payment,
    Day,
    Recipient,
    Purpose,
    /// The budget for a host.
    Budget,
}

impl PaymentLimits {
    /// Returns the first limit that a payment of `amount` would exceed, and the amount that remains within that limit.
    pub fn exceeded(&self, amount: u64, totals: &PaymentTotals) -> Option<(PaymentLimit, u64)> {
        let rows = [
            (PaymentLimit::Payment, self.payment, 0),
            (PaymentLimit::Day, self.day, totals.day),
            (PaymentLimit::Recipient, self.recipient, totals.recipient),
            (PaymentLimit::Purpose, self.purpose, totals.purpose),
        ];
        rows.into_iter().find_map(|(limit, most, used)| {
            let left = most.saturating_sub(used);
            (amount > left).then_some((limit, left))
        })
    }
}

/// The budget that a payment to a host uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BudgetUse {
    /// A new budget of this amount, which the user allowed with this call.
    New(u64),
    /// A budget that the user allowed earlier, in the same session and for the same host.
    Existing,
}

/// A payment to reserve.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reservation {
    /// The payment, in the state [`PaymentState::Reserved`].
    pub payment: Payment,
    pub limits: PaymentLimits,
    /// The budget that the payment uses. The store fills in `payment.budget`.
    pub budget: Option<BudgetUse>,
}

/// The result of a reservation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReservationOutcome {
    /// The payment was reserved.
    New(Payment),
    /// The payment had been reserved before; this is its current state.
    Existing(Payment),
    /// The payment would exceed a limit; nothing was stored.
    Refused {
        limit: PaymentLimit,
        /// The amount that remains within the limit.
        left: u64,
    },
}

/// A change of a payment that applies only to one revision.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PaymentChange {
    pub id: Text,
    pub expected: u64,
    pub state: PaymentState,
    pub detail: Text,
    pub time: Timestamp,
    /// The new signature of the authorization, if there is one.
    pub authorization: Option<Vec<u8>>,
    /// The new transaction, if there is one.
    pub transaction: Option<NewTransaction>,
}

/// A transaction to store with a payment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewTransaction {
    pub signed: SignedTransaction,
    /// The next account nonce that [`PaymentStore::payment_account`] returned. The store applies the change only if
    /// that is still the next nonce, and then sets the next nonce to `signed.nonce + 1`. So every used nonce has a
    /// stored transaction. `None` means that `signed` replaces the payment's earlier transaction and reuses its nonce.
    pub expected_next: Option<u64>,
}

/// The result of a [`PaymentChange`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PaymentChangeOutcome {
    Applied,
    /// The payment's revision or the next account nonce differs from the expected one; nothing was changed.
    Outdated,
}

/// Selects the payments to read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PaymentQuery {
    Id(Text),
    /// All payments of an account that can still change, by account nonce; those without a nonce come first.
    Open(PaymentAccount),
    /// The newest payments of an account.
    Newest(PaymentAccount),
}

/// The state of an account in the ledger.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct AccountStatus {
    /// The first account nonce that no stored transaction uses.
    pub next_nonce: u64,
    /// The totals of the requested day.
    pub totals: PaymentTotals,
}

/// Selects the totals to read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TotalsQuery {
    pub account: PaymentAccount,
    pub day: u64,
    pub recipient: Text,
    pub purpose: Text,
}

/// The key of a budget that a user allowed for a host in a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BudgetKey {
    pub account: PaymentAccount,
    pub user: UserId,
    pub session: SessionId,
    pub host: Text,
}

/// The ledger of payments. lango never deletes anything from it, and session exports leave it out.
pub trait PaymentStore: Send + Sync {
    /// Checks all limits and stores the payment in one transaction. Other reservations of the same account wait for it.
    fn reserve_payment(
        &self,
        reservation: Reservation,
    ) -> BoxFuture<'_, Result<ReservationOutcome, StoreError>>;

    /// Applies a change if the payment has the expected revision and, for a new nonce, the account has the expected
    /// next nonce.
    fn change_payment(
        &self,
        change: PaymentChange,
    ) -> BoxFuture<'_, Result<PaymentChangeOutcome, StoreError>>;

    /// Reads at most `limit` payments.
    fn payments(
        &self,
        query: PaymentQuery,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<Payment>, StoreError>>;

    /// Reads the next account nonce and the totals of a day.
    fn payment_account(
        &self,
        query: TotalsQuery,
    ) -> BoxFuture<'_, Result<AccountStatus, StoreError>>;

    /// Returns the largest amount that remains in any budget for the host in the session; 0 if there is no budget.
    fn payment_budget(&self, key: BudgetKey) -> BoxFuture<'_, Result<u64, StoreError>>;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_finished_payment_never_changes_and_a_signed_one_stays_signed() {
        use PaymentState::*;
        let all = [Reserved, Signed, Submitted, Unknown, Settled, Failed];
        for next in all {
            assert!(!Settled.can_become(next) && !Failed.can_become(next));
            assert!(!next.can_become(Reserved));
        }
        assert!(!Reserved.can_become(Submitted) && !Reserved.can_become(Settled));
        for state in all {
            assert_eq!(PaymentState::from_name(state.name()), Some(state));
        }
    }

    #[test]
    fn a_limit_can_be_used_up_exactly_but_not_exceeded() {
        let limits = PaymentLimits {
            payment: 10,
            day: 20,
            recipient: 15,
            purpose: 12,
        };
        let totals = PaymentTotals {
            day: 10,
            recipient: 10,
            purpose: 7,
        };
        assert_eq!(limits.exceeded(5, &totals), None);
        assert_eq!(
            limits.exceeded(6, &totals),
            Some((PaymentLimit::Recipient, 5))
        );
        assert_eq!(
            limits.exceeded(11, &PaymentTotals::default()),
            Some((PaymentLimit::Payment, 10))
        );
    }
}
