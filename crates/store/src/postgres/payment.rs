//! The ledger of payments. Reserving locks the row of the account, so that replicas reserve one after the other, and each
//! sees all that was reserved before.

use super::PostgresEngine;
use super::asking::{execute, row, rows};
use super::database::Values;
use super::failure::Failure;
use super::rows::{bound, limit, text, unsigned};
use super::statements::payment::{
    ADD_ACCOUNT, ADD_BUDGET, BUDGETS, INSERT, LOCK_ACCOUNT, LOCK_PAYMENT, NEWEST, NEXT_NONCE, OPEN,
    PAYMENT, TAKE_NONCE, TOTALS, UPDATE,
};
use super::text::{Words, optional_words};
use crate::payment::{SpentBudget, applies, budget_for, check_change, check_reservation};
use deadpool_postgres::Transaction;
use lango_core::{
    AccountStatus, BoxFuture, BudgetKey, BudgetUse, Payment, PaymentAccount, PaymentChange,
    PaymentChanged, PaymentQuery, PaymentState, PaymentStore, PaymentTotals, Reservation, Reserved,
    SessionId, SignedTransaction, StoreError, Text, Timestamp, TotalsQuery, UserId,
};
use tokio_postgres::Row;

impl PaymentStore for PostgresEngine {
    fn reserve_payment(
        &self,
        reservation: Reservation,
    ) -> BoxFuture<'_, Result<Reserved, StoreError>> {
        Box::pin(async move {
            check_reservation(&reservation)?;
            let reserved = self.repeatable_change(reservation, |transaction, reservation| {
                Box::pin(reserve(transaction, reservation))
            });
            reserved.await
        })
    }

    fn change_payment(
        &self,
        change: PaymentChange,
    ) -> BoxFuture<'_, Result<PaymentChanged, StoreError>> {
        Box::pin(async move {
            check_change(&change)?;
            // If the answer to a first try is lost, the second one finds another revision: the caller reads it again.
            let changed = self.repeatable_change(change, |transaction, change| {
                Box::pin(apply(transaction, change))
            });
            changed.await
        })
    }

    fn payments(
        &self,
        query: PaymentQuery,
        most: usize,
    ) -> BoxFuture<'_, Result<Vec<Payment>, StoreError>> {
        Box::pin(async move {
            let database = &self.database;
            let found = match &query {
                PaymentQuery::Id(id) => database.query(PAYMENT, &[&Words(id)]).await?,
                PaymentQuery::Open(account) | PaymentQuery::Newest(account) => {
                    let is_open = matches!(query, PaymentQuery::Open(_));
                    let values: Values<'_> = &[
                        &Words(&account.network),
                        &Words(&account.wallet),
                        &limit(most),
                    ];
                    let statement = if is_open { OPEN } else { NEWEST };
                    database.query(statement, values).await?
                }
            };
            self.values(&found, payment_of_row)
        })
    }

    fn payment_account(
        &self,
        query: TotalsQuery,
    ) -> BoxFuture<'_, Result<AccountStatus, StoreError>> {
        self.look(query, |transaction, query| {
            Box::pin(async move {
                let account = &query.account;
                let values: Values<'_> = &[&Words(&account.network), &Words(&account.wallet)];
                let next = row(transaction, NEXT_NONCE, values).await?;
                Ok(AccountStatus {
                    next_nonce: next.map_or(Ok(0), |row| unsigned(&row, 0))?,
                    totals: totals(transaction, query).await?,
                })
            })
        })
    }

    fn payment_budget(&self, key: BudgetKey) -> BoxFuture<'_, Result<u64, StoreError>> {
        self.look(key, |transaction, key| {
            Box::pin(async move {
                let budgets = budgets(transaction, key).await?;
                let left = budgets
                    .iter()
                    .map(|budget| budget.amount.saturating_sub(budget.spent));
                Ok(left.max().unwrap_or(0))
            })
        })
    }
}

async fn reserve(
    transaction: &Transaction<'_>,
    reservation: &Reservation,
) -> Result<Reserved, Failure> {
    let payment = &reservation.payment;
    let account = &payment.account;
    let wallet: Values<'_> = &[&Words(&account.network), &Words(&account.wallet)];
    execute(transaction, ADD_ACCOUNT, wallet).await?;
    row(transaction, LOCK_ACCOUNT, wallet).await?;
    if let Some(found) = row(transaction, PAYMENT, &[&Words(&payment.id)]).await? {
        return Ok(Reserved::Existing(payment_of_row(&found)?));
    }
    let query = TotalsQuery {
        account: account.clone(),
        day: payment.day,
        recipient: payment.recipient.clone(),
        purpose: payment.purpose.clone(),
    };
    let totals = totals(transaction, &query).await?;
    if let Some((limit, left)) = reservation.limits.exceeded(payment.amount, &totals) {
        return Ok(Reserved::Refused { limit, left });
    }
    let found = match &payment.host {
        None => Vec::new(),
        Some(host) => {
            let key = BudgetKey {
                account: account.clone(),
                user: payment.user.clone(),
                session: payment.session.clone(),
                host: host.clone(),
            };
            budgets(transaction, &key).await?
        }
    };
    let budget = match budget_for(&found, reservation) {
        Ok(budget) => budget.map(Text::from),
        Err((limit, left)) => return Ok(Reserved::Refused { limit, left }),
    };
    let host = payment.host.as_deref().map(Words);
    let created = bound(payment.created.0);
    if let Some(BudgetUse::New(amount)) = reservation.budget {
        let values: Values<'_> = &[
            &Words(&payment.id),
            &Words(&account.network),
            &Words(&account.wallet),
            &Words(payment.user.as_str()),
            &Words(payment.session.as_str()),
            &host,
            &bound(amount),
            &created,
        ];
        execute(transaction, ADD_BUDGET, values).await?;
    }
    let values: Values<'_> = &[
        &Words(&payment.id),
        &Words(&account.network),
        &Words(&account.wallet),
        &Words(payment.user.as_str()),
        &Words(payment.session.as_str()),
        &Words(&payment.recipient),
        &Words(&payment.purpose),
        &host,
        &budget.as_deref().map(Words),
        &bound(payment.amount),
        &bound(payment.day),
        &Words(payment.state.name()),
        &bound(payment.valid_before),
        &Words(&payment.detail),
        &created,
        &bound(payment.updated.0),
    ];
    execute(transaction, INSERT, values).await?;
    let mut stored = payment.clone();
    stored.budget = budget;
    Ok(Reserved::New(stored))
}

async fn apply(
    transaction: &Transaction<'_>,
    change: &PaymentChange,
) -> Result<PaymentChanged, Failure> {
    let found = row(transaction, LOCK_PAYMENT, &[&Words(&change.id)]).await?;
    let payment = found.as_ref().map(payment_of_row).transpose()?;
    let Some(payment) = payment.filter(|payment| applies(change, payment)) else {
        return Ok(PaymentChanged::Outdated);
    };
    let new = change.transaction.as_ref();
    if let Some((new, expected)) = new.and_then(|new| Some((new, new.expected_next?))) {
        let values: Values<'_> = &[
            &Words(&payment.account.network),
            &Words(&payment.account.wallet),
            &bound(expected),
            &bound(new.signed.nonce + 1),
        ];
        if execute(transaction, TAKE_NONCE, values).await? == 0 {
            return Ok(PaymentChanged::Outdated);
        }
    }
    let signed = new.map(|new| &new.signed);
    let values: Values<'_> = &[
        &Words(&change.id),
        &bound(change.expected),
        &Words(change.state.name()),
        &Words(&change.detail),
        &bound(change.time.0),
        &change.authorization,
        &signed.map(|signed| bound(signed.nonce)),
        &signed.map(|signed| &signed.raw),
        &signed.map(|signed| Words(&signed.hashes)),
    ];
    execute(transaction, UPDATE, values).await?;
    Ok(PaymentChanged::Applied)
}

async fn totals(
    transaction: &Transaction<'_>,
    query: &TotalsQuery,
) -> Result<PaymentTotals, Failure> {
    let values: Values<'_> = &[
        &Words(&query.account.network),
        &Words(&query.account.wallet),
        &bound(query.day),
        &Words(&query.recipient),
        &Words(&query.purpose),
    ];
    let Some(found) = row(transaction, TOTALS, values).await? else {
        return Ok(PaymentTotals::default());
    };
    Ok(PaymentTotals {
        day: unsigned(&found, 0)?,
        recipient: unsigned(&found, 1)?,
        purpose: unsigned(&found, 2)?,
    })
}

async fn budgets(
    transaction: &Transaction<'_>,
    key: &BudgetKey,
) -> Result<Vec<SpentBudget>, Failure> {
    let values: Values<'_> = &[
        &Words(key.session.as_str()),
        &Words(&key.host),
        &Words(key.user.as_str()),
        &Words(&key.account.network),
        &Words(&key.account.wallet),
    ];
    let found = rows(transaction, BUDGETS, values).await?;
    let budgets = found.iter().map(|row| {
        Ok(SpentBudget {
            id: text(row, 0)?.to_string(),
            amount: unsigned(row, 1)?,
            spent: unsigned(row, 2)?,
        })
    });
    budgets.collect()
}

fn payment_of_row(row: &Row) -> Result<Payment, Failure> {
    let state = text(row, 11)?;
    let state = PaymentState::of_name(&state)
        .ok_or_else(|| Failure::other(format!("a payment has the unknown state `{state}`")))?;
    let optional = |column| Ok::<_, Failure>(optional_words(row, column)?.map(Text::from));
    let raw: Option<Vec<u8>> = row.try_get(15)?;
    let transaction = match raw {
        None => None,
        Some(raw) => Some(SignedTransaction {
            nonce: unsigned(row, 14)?,
            raw,
            hashes: text(row, 16)?,
        }),
    };
    Ok(Payment {
        id: text(row, 0)?,
        account: PaymentAccount {
            network: text(row, 1)?,
            wallet: text(row, 2)?,
        },
        user: UserId::new(text(row, 3)?),
        session: SessionId::new(text(row, 4)?),
        recipient: text(row, 5)?,
        purpose: text(row, 6)?,
        host: optional(7)?,
        budget: optional(8)?,
        amount: unsigned(row, 9)?,
        day: unsigned(row, 10)?,
        state,
        valid_before: unsigned(row, 12)?,
        authorization: row.try_get(13)?,
        transaction,
        detail: text(row, 17)?,
        revision: unsigned(row, 18)?,
        created: Timestamp(unsigned(row, 19)?),
        updated: Timestamp(unsigned(row, 20)?),
    })
}
