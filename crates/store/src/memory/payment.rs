//! Payments in memory.

use super::MemoryStore;
use crate::payment::{SpentBudget, applies, budget_for, check_change, check_reservation};
use lango_core::{
    AccountStatus, BoxFuture, BudgetKey, BudgetUse, Payment, PaymentAccount, PaymentChange,
    PaymentChanged, PaymentQuery, PaymentState, PaymentStore, PaymentTotals, Reservation, Reserved,
    StoreError, Text, TotalsQuery,
};
use std::collections::BTreeMap;
use std::future::ready;
use std::sync::{MutexGuard, PoisonError};

/// The ledger.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    payments: BTreeMap<Text, Payment>,
    next_nonces: BTreeMap<PaymentAccount, u64>,
    /// By id, with the amounts.
    budgets: Vec<(Text, BudgetKey, u64)>,
}

impl PaymentStore for MemoryStore {
    fn reserve_payment(
        &self,
        reservation: Reservation,
    ) -> BoxFuture<'_, Result<Reserved, StoreError>> {
        let checked = check_reservation(&reservation);
        let reserved = checked.map(|()| self.ledger().reserve(reservation));
        Box::pin(ready(reserved))
    }

    fn change_payment(
        &self,
        change: PaymentChange,
    ) -> BoxFuture<'_, Result<PaymentChanged, StoreError>> {
        let changed = check_change(&change).map(|()| self.ledger().change(change));
        Box::pin(ready(changed))
    }

    fn payments(
        &self,
        query: PaymentQuery,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<Payment>, StoreError>> {
        let ledger = self.ledger();
        let of = |account: &PaymentAccount| {
            let payments = ledger.payments.values();
            let payments = payments.filter(|payment| payment.account == *account);
            payments.cloned().collect::<Vec<_>>()
        };
        let mut found = match query {
            PaymentQuery::Id(id) => ledger.payments.get(&id).cloned().into_iter().collect(),
            PaymentQuery::Open(account) => {
                let mut open = of(&account);
                open.retain(|payment| payment.state.is_open());
                open.sort_by_key(|payment| payment.transaction.as_ref().map(|signed| signed.nonce));
                open
            }
            PaymentQuery::Newest(account) => {
                let mut all = of(&account);
                all.sort_by(|one, other| (other.created, &other.id).cmp(&(one.created, &one.id)));
                all
            }
        };
        found.truncate(limit);
        Box::pin(ready(Ok(found)))
    }

    fn payment_account(
        &self,
        query: TotalsQuery,
    ) -> BoxFuture<'_, Result<AccountStatus, StoreError>> {
        let ledger = self.ledger();
        let next = ledger.next_nonces.get(&query.account);
        let status = AccountStatus {
            next_nonce: next.copied().unwrap_or(0),
            totals: ledger.totals(&query),
        };
        Box::pin(ready(Ok(status)))
    }

    fn payment_budget(&self, key: BudgetKey) -> BoxFuture<'_, Result<u64, StoreError>> {
        let budgets = self.ledger().budgets_of(&key);
        let left = budgets
            .iter()
            .map(|budget| budget.amount.saturating_sub(budget.spent));
        Box::pin(ready(Ok(left.max().unwrap_or(0))))
    }
}

impl Ledger {
    fn reserve(&mut self, mut reservation: Reservation) -> Reserved {
        let payment = &reservation.payment;
        if let Some(existing) = self.payments.get(&payment.id) {
            return Reserved::Existing(existing.clone());
        }
        let totals = self.totals(&TotalsQuery {
            account: payment.account.clone(),
            day: payment.day,
            recipient: payment.recipient.clone(),
            purpose: payment.purpose.clone(),
        });
        if let Some((limit, left)) = reservation.limits.exceeded(payment.amount, &totals) {
            return Reserved::Refused { limit, left };
        }
        let key = payment.host.as_ref().map(|host| BudgetKey {
            account: payment.account.clone(),
            user: payment.user.clone(),
            session: payment.session.clone(),
            host: host.clone(),
        });
        let budgets = key.as_ref().map(|key| self.budgets_of(key));
        let budget = match budget_for(&budgets.unwrap_or_default(), &reservation) {
            Ok(budget) => budget.map(Text::from),
            Err((limit, left)) => return Reserved::Refused { limit, left },
        };
        if let (Some(BudgetUse::New(amount)), Some(key)) = (reservation.budget, key) {
            self.budgets.push((payment.id.clone(), key, amount));
        }
        reservation.payment.budget = budget;
        let payment = reservation.payment;
        self.next_nonces.entry(payment.account.clone()).or_default();
        self.payments.insert(payment.id.clone(), payment.clone());
        Reserved::New(payment)
    }

    fn change(&mut self, change: PaymentChange) -> PaymentChanged {
        let Some(payment) = self.payments.get_mut(&change.id) else {
            return PaymentChanged::Outdated;
        };
        if !applies(&change, payment) {
            return PaymentChanged::Outdated;
        }
        if let Some(new) = change.transaction {
            let next = self.next_nonces.entry(payment.account.clone()).or_default();
            match new.expected_next {
                Some(expected) if *next != expected => return PaymentChanged::Outdated,
                Some(_) => *next = new.signed.nonce + 1,
                None => {}
            }
            payment.transaction = Some(new.signed);
        }
        payment.authorization = change.authorization.or(payment.authorization.take());
        payment.state = change.state;
        payment.detail = change.detail;
        payment.updated = change.time;
        payment.revision += 1;
        PaymentChanged::Applied
    }

    fn totals(&self, query: &TotalsQuery) -> PaymentTotals {
        let mut totals = PaymentTotals::default();
        let counted = self.payments.values().filter(|payment| {
            payment.account == query.account
                && payment.day == query.day
                && payment.state != PaymentState::Failed
        });
        for payment in counted {
            totals.day += payment.amount;
            if payment.recipient == query.recipient {
                totals.recipient += payment.amount;
            }
            if payment.purpose == query.purpose {
                totals.purpose += payment.amount;
            }
        }
        totals
    }

    fn budgets_of(&self, key: &BudgetKey) -> Vec<SpentBudget> {
        let budgets = self.budgets.iter().filter(|(_, own, _)| own == key);
        let spent = |id: &Text| {
            let payments = self.payments.values().filter(|payment| {
                payment.budget.as_ref() == Some(id) && payment.state != PaymentState::Failed
            });
            payments.map(|payment| payment.amount).sum()
        };
        let budgets = budgets.map(|(id, _, amount)| SpentBudget {
            id: id.to_string(),
            amount: *amount,
            spent: spent(id),
        });
        budgets.collect()
    }
}

impl MemoryStore {
    fn ledger(&self) -> MutexGuard<'_, Ledger> {
        self.ledger.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
