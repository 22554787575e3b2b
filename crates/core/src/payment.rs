//! The seam to the ledger of payments. A store counts amounts and compares revisions; what an authorization or a signed
//! transaction says is the business of the payment crate.
//!
//! A payment reserves its amount before anything is signed, and its amount counts towards every limit until the payment is
//! [`Failed`](PaymentState::Failed), which it becomes only when its authorization can no longer be used.

use crate::{BoxFuture, SessionId, StoreError, Text, Timestamp, UserId};

/// The state of a payment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PaymentState {
    /// The amount counts towards the limits; nothing is signed.
    Reserved,
    /// What was signed is stored, and may have been sent.
    Signed,
    /// It was sent to the chain, or to the host that asked for it.
    Submitted,
    /// It was sent, and nothing confirmed it in time. It may have happened.
    Unknown,
    /// The recipient was paid.
    Settled,
    /// The recipient was not paid and can no longer be paid by it.
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
    pub fn of_name(name: &str) -> Option<Self> {
        let row = Self::ALL.iter().find(|(_, own)| *own == name);
        row.map(|(state, _)| *state)
    }

    /// Returns whether the payment can still change.
    pub fn is_open(self) -> bool {
        !matches!(self, Self::Settled | Self::Failed)
    }

    /// Returns whether a payment in this state may get the other one. A payment never goes back to being unsigned, and
    /// never leaves an end.
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

/// The account that pays: a wallet on a network. Limits and account nonces are counted for each.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PaymentAccount {
    /// The name of the network.
    pub network: Text,
    /// The address of the wallet, in small letters.
    pub wallet: Text,
}

/// One payment of the ledger.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Payment {
    /// The nonce of its authorization, in hexadecimal digits; derived from the call that pays.
    pub id: Text,
    /// Who pays.
    pub account: PaymentAccount,
    /// The user whose agent asked for it.
    pub user: UserId,
    /// The session in which it was asked for.
    pub session: SessionId,
    /// The address of the recipient, in small letters.
    pub recipient: Text,
    /// What it is for.
    pub purpose: Text,
    /// The host that asked for it, if it pays for a request.
    pub host: Option<Text>,
    /// The budget that it spends, if it pays for a request.
    pub budget: Option<Text>,
    /// The amount in the smallest unit of the token.
    pub amount: u64,
    /// The day that the amount counts to, in days since 1970 (UTC).
    pub day: u64,
    /// The state.
    pub state: PaymentState,
    /// From when on the authorization is void, in seconds since 1970, by the clock of the chain.
    pub valid_before: u64,
    /// The signature of the authorization.
    pub authorization: Option<Vec<u8>>,
    /// The transaction that carries it; none for one that the host submits.
    pub transaction: Option<SignedTransaction>,
    /// What happened last, as a sentence without a full stop.
    pub detail: Text,
    /// Grows with every change.
    pub revision: u64,
    /// When it was reserved.
    pub created: Timestamp,
    /// When it changed last.
    pub updated: Timestamp,
}

/// A signed transaction of the wallet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SignedTransaction {
    /// Its account nonce.
    pub nonce: u64,
    /// The bytes to send.
    pub raw: Vec<u8>,
    /// Its hash and those of the transactions that it replaced, the newest first, separated by spaces.
    pub hashes: Text,
}

/// The most that may be paid, in the smallest unit of the token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PaymentLimits {
    /// With one payment.
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
    /// All of them.
    pub day: u64,
    /// Those to one recipient.
    pub recipient: u64,
    /// Those for one purpose.
    pub purpose: u64,
}

/// A limit that refuses a payment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PaymentLimit {
    /// That of one payment.
    Payment,
    /// That of a day.
    Day,
    /// That of a recipient.
    Recipient,
    /// That of a purpose.
    Purpose,
    /// The budget of a host.
    Budget,
}

impl PaymentLimits {
    /// Returns the first limit that a payment of `amount` would exceed, with what is left of it.
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

/// The part of a budget for a host that a payment spends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BudgetUse {
    /// A budget of this amount that the user allowed with this very call.
    New(u64),
    /// One that was allowed before, in the same session and for the same host.
    Existing,
}

/// A payment to reserve.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reservation {
    /// The payment, in the state [`PaymentState::Reserved`].
    pub payment: Payment,
    /// The limits.
    pub limits: PaymentLimits,
    /// The budget that it spends; `payment.budget` is filled in by the store.
    pub budget: Option<BudgetUse>,
}

/// The result of a reservation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reserved {
    /// It is reserved now.
    New(Payment),
    /// It was reserved before, and is as it is now.
    Existing(Payment),
    /// It would exceed a limit; nothing was stored.
    Refused {
        /// The limit.
        limit: PaymentLimit,
        /// What is left of it.
        left: u64,
    },
}

/// A change of a payment that applies only to one revision.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PaymentChange {
    /// The payment.
    pub id: Text,
    /// The expected revision.
    pub expected: u64,
    /// The new state.
    pub state: PaymentState,
    /// What happened.
    pub detail: Text,
    /// When.
    pub time: Timestamp,
    /// The signature, if it is new.
    pub authorization: Option<Vec<u8>>,
    /// The transaction, if it is new.
    pub transaction: Option<NewTransaction>,
}

/// A transaction to store with a payment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewTransaction {
    /// The transaction.
    pub signed: SignedTransaction,
    /// The next account nonce that [`PaymentStore::payment_account`] returned. The store applies the change only if that is
    /// still the next nonce, and then sets the next nonce to `signed.nonce + 1`. So every nonce in use has a stored
    /// transaction. `None` means that `signed` replaces the payment's earlier transaction and reuses its nonce.
    pub expected_next: Option<u64>,
}

/// The result of a [`PaymentChange`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PaymentChanged {
    /// It was applied.
    Applied,
    /// The payment or the next account nonce is not as expected; nothing was changed.
    Outdated,
}

/// The payments to read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PaymentQuery {
    /// One.
    Id(Text),
    /// All of an account that can still change, by account nonce, those without one first.
    Open(PaymentAccount),
    /// The newest of an account.
    Newest(PaymentAccount),
}

/// What a store knows of an account.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct AccountStatus {
    /// The next account nonce that no stored transaction uses.
    pub next_nonce: u64,
    /// The totals of the day that was asked for.
    pub totals: PaymentTotals,
}

/// Whose totals to read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TotalsQuery {
    /// The account.
    pub account: PaymentAccount,
    /// The day.
    pub day: u64,
    /// The recipient.
    pub recipient: Text,
    /// The purpose.
    pub purpose: Text,
}

/// A budget that a user allowed for a host in a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BudgetKey {
    /// The account that pays.
    pub account: PaymentAccount,
    /// The user.
    pub user: UserId,
    /// The session.
    pub session: SessionId,
    /// The host.
    pub host: Text,
}

/// The ledger of payments. Nothing in it is ever deleted by lango, and no export of sessions contains it.
pub trait PaymentStore: Send + Sync {
    /// Checks all limits and stores the payment, in one transaction in which no other payment of the account is reserved.
    fn reserve_payment(
        &self,
        reservation: Reservation,
    ) -> BoxFuture<'_, Result<Reserved, StoreError>>;

    /// Applies a change if the payment, and for a new account nonce the account, are as expected.
    fn change_payment(
        &self,
        change: PaymentChange,
    ) -> BoxFuture<'_, Result<PaymentChanged, StoreError>>;

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

    /// Returns the largest amount that is left of a budget for the host in the session; 0 if there is none.
    fn payment_budget(&self, key: BudgetKey) -> BoxFuture<'_, Result<u64, StoreError>>;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_payment_never_leaves_its_end_and_is_never_unsigned_again() {
        use PaymentState::*;
        let all = [Reserved, Signed, Submitted, Unknown, Settled, Failed];
        for next in all {
            assert!(!Settled.can_become(next) && !Failed.can_become(next));
            assert!(!next.can_become(Reserved));
        }
        assert!(!Reserved.can_become(Submitted) && !Reserved.can_become(Settled));
        for state in all {
            assert_eq!(PaymentState::of_name(state.name()), Some(state));
        }
    }

    #[test]
    fn a_limit_may_be_used_up_to_the_last_unit_and_not_beyond() {
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
