//! The ledger of payments. The writer's transactions are immediate, so that processes reserve one after the other.

use super::SqliteEngine;
use super::failure::Failure;
use super::rows::{bound, limit, unsigned};
use super::statements::payment::{
    ADD_ACCOUNT, ADD_BUDGET, BUDGETS, INSERT, NEWEST, NEXT_NONCE, OPEN, PAYMENT, TAKE_NONCE,
    TOTALS, UPDATE,
};
use crate::payment::{SpentBudget, applies, budget_for, check_change, check_reservation};
use lango_core::{
    AccountStatus, BoxFuture, BudgetKey, BudgetUse, Payment, PaymentAccount, PaymentChange,
    PaymentChanged, PaymentQuery, PaymentState, PaymentStore, PaymentTotals, Reservation, Reserved,
    SessionId, SignedTransaction, StoreError, Text, Timestamp, TotalsQuery, UserId,
};
use rusqlite::{Connection, OptionalExtension as _, Row, params};

impl PaymentStore for SqliteEngine {
    fn reserve_payment(
        &self,
        reservation: Reservation,
    ) -> BoxFuture<'_, Result<Reserved, StoreError>> {
        Box::pin(async move {
            check_reservation(&reservation)?;
            let reserved = self
                .writer
                .change(move |connection| reserve(connection, &reservation));
            reserved.await
        })
    }

    fn change_payment(
        &self,
        change: PaymentChange,
    ) -> BoxFuture<'_, Result<PaymentChanged, StoreError>> {
        Box::pin(async move {
            check_change(&change)?;
            let changed = self
                .writer
                .change(move |connection| apply(connection, &change));
            changed.await
        })
    }

    fn payments(
        &self,
        query: PaymentQuery,
        most: usize,
    ) -> BoxFuture<'_, Result<Vec<Payment>, StoreError>> {
        Box::pin(self.readers.read(move |reader| {
            let connection = reader.connection;
            let of = |statement: &str, account: &PaymentAccount| {
                let mut statement = connection.prepare_cached(statement)?;
                let values = params![account.network, account.wallet, limit(most)];
                let rows = statement.query_map(values, payment_of_row)?;
                rows.collect::<rusqlite::Result<Vec<_>>>()
            };
            Ok(match &query {
                PaymentQuery::Id(id) => payment(connection, id)?.into_iter().collect(),
                PaymentQuery::Open(account) => of(OPEN, account)?,
                PaymentQuery::Newest(account) => of(NEWEST, account)?,
            })
        }))
    }

    fn payment_account(
        &self,
        query: TotalsQuery,
    ) -> BoxFuture<'_, Result<AccountStatus, StoreError>> {
        Box::pin(self.readers.read(move |reader| {
            let moment = reader.connection.unchecked_transaction()?;
            let account = &query.account;
            let next = moment
                .prepare_cached(NEXT_NONCE)?
                .query_row(params![account.network, account.wallet], |row| {
                    unsigned(row, 0)
                })
                .optional()?;
            Ok(AccountStatus {
                next_nonce: next.unwrap_or(0),
                totals: totals(&moment, &query)?,
            })
        }))
    }

    fn payment_budget(&self, key: BudgetKey) -> BoxFuture<'_, Result<u64, StoreError>> {
        Box::pin(self.readers.read(move |reader| {
            let budgets = budgets(reader.connection, &key)?;
            let left = budgets
                .iter()
                .map(|budget| budget.amount.saturating_sub(budget.spent));
            Ok(left.max().unwrap_or(0))
        }))
    }
}

fn reserve(connection: &Connection, reservation: &Reservation) -> Result<Reserved, Failure> {
    let payment = &reservation.payment;
    let account = &payment.account;
    connection
        .prepare_cached(ADD_ACCOUNT)?
        .execute(params![account.network, account.wallet])?;
    if let Some(existing) = self::payment(connection, &payment.id)? {
        return Ok(Reserved::Existing(existing));
    }
    let totals = totals(
        connection,
        &TotalsQuery {
            account: account.clone(),
            day: payment.day,
            recipient: payment.recipient.clone(),
            purpose: payment.purpose.clone(),
        },
    )?;
    if let Some((limit, left)) = reservation.limits.exceeded(payment.amount, &totals) {
        return Ok(Reserved::Refused { limit, left });
    }
    let found = match &payment.host {
        None => Vec::new(),
        Some(host) => budgets(
            connection,
            &BudgetKey {
                account: account.clone(),
                user: payment.user.clone(),
                session: payment.session.clone(),
                host: host.clone(),
            },
        )?,
    };
    let budget = match budget_for(&found, reservation) {
        Ok(budget) => budget.map(Text::from),
        Err((limit, left)) => return Ok(Reserved::Refused { limit, left }),
    };
    if let Some(BudgetUse::New(amount)) = reservation.budget {
        connection.prepare_cached(ADD_BUDGET)?.execute(params![
            payment.id,
            account.network,
            account.wallet,
            payment.user.as_str(),
            payment.session.as_str(),
            payment.host,
            bound(amount),
            bound(payment.created.0),
        ])?;
    }
    connection.prepare_cached(INSERT)?.execute(params![
        payment.id,
        account.network,
        account.wallet,
        payment.user.as_str(),
        payment.session.as_str(),
        payment.recipient,
        payment.purpose,
        payment.host,
        budget,
        bound(payment.amount),
        bound(payment.day),
        payment.state.name(),
        bound(payment.valid_before),
        payment.detail,
        bound(payment.created.0),
        bound(payment.updated.0),
    ])?;
    let mut stored = payment.clone();
    stored.budget = budget;
    Ok(Reserved::New(stored))
}

fn apply(connection: &Connection, change: &PaymentChange) -> Result<PaymentChanged, Failure> {
    let payment = payment(connection, &change.id)?;
    let Some(payment) = payment.filter(|payment| applies(change, payment)) else {
        return Ok(PaymentChanged::Outdated);
    };
    let new = change.transaction.as_ref();
    if let Some((new, expected)) = new.and_then(|new| Some((new, new.expected_next?))) {
        let account = &payment.account;
        let taken = connection.prepare_cached(TAKE_NONCE)?.execute(params![
            account.network,
            account.wallet,
            bound(expected),
            bound(new.signed.nonce + 1)
        ])?;
        if taken == 0 {
            return Ok(PaymentChanged::Outdated);
        }
    }
    let signed = new.map(|new| &new.signed);
    connection.prepare_cached(UPDATE)?.execute(params![
        change.id,
        bound(change.expected),
        change.state.name(),
        change.detail,
        bound(change.time.0),
        change.authorization,
        signed.map(|signed| bound(signed.nonce)),
        signed.map(|signed| &signed.raw),
        signed.map(|signed| &signed.hashes),
    ])?;
    Ok(PaymentChanged::Applied)
}

fn payment(connection: &Connection, id: &str) -> rusqlite::Result<Option<Payment>> {
    connection
        .prepare_cached(PAYMENT)?
        .query_row([id], payment_of_row)
        .optional()
}

fn totals(connection: &Connection, query: &TotalsQuery) -> rusqlite::Result<PaymentTotals> {
    let values = params![
        query.account.network,
        query.account.wallet,
        bound(query.day),
        query.recipient,
        query.purpose
    ];
    connection.prepare_cached(TOTALS)?.query_row(values, |row| {
        Ok(PaymentTotals {
            day: unsigned(row, 0)?,
            recipient: unsigned(row, 1)?,
            purpose: unsigned(row, 2)?,
        })
    })
}

fn budgets(connection: &Connection, key: &BudgetKey) -> rusqlite::Result<Vec<SpentBudget>> {
    let mut statement = connection.prepare_cached(BUDGETS)?;
    let values = params![
        key.session.as_str(),
        key.host,
        key.user.as_str(),
        key.account.network,
        key.account.wallet
    ];
    let rows = statement.query_map(values, |row| {
        Ok(SpentBudget {
            id: row.get(0)?,
            amount: unsigned(row, 1)?,
            spent: unsigned(row, 2)?,
        })
    })?;
    rows.collect()
}

fn payment_of_row(row: &Row<'_>) -> rusqlite::Result<Payment> {
    let state: String = row.get(11)?;
    let state = PaymentState::of_name(&state).ok_or_else(|| {
        let kind = rusqlite::types::Type::Text;
        let problem = format!("a payment has the unknown state `{state}`");
        rusqlite::Error::FromSqlConversionFailure(11, kind, problem.into())
    })?;
    let raw: Option<Vec<u8>> = row.get(15)?;
    let transaction = match raw {
        None => None,
        Some(raw) => Some(SignedTransaction {
            nonce: unsigned(row, 14)?,
            raw,
            hashes: row.get(16)?,
        }),
    };
    Ok(Payment {
        id: row.get(0)?,
        account: PaymentAccount {
            network: row.get(1)?,
            wallet: row.get(2)?,
        },
        user: UserId::new(row.get::<_, Text>(3)?),
        session: SessionId::new(row.get::<_, Text>(4)?),
        recipient: row.get(5)?,
        purpose: row.get(6)?,
        host: row.get(7)?,
        budget: row.get(8)?,
        amount: unsigned(row, 9)?,
        day: unsigned(row, 10)?,
        state,
        valid_before: unsigned(row, 12)?,
        authorization: row.get(13)?,
        transaction,
        detail: row.get(17)?,
        revision: unsigned(row, 18)?,
        created: Timestamp(unsigned(row, 19)?),
        updated: Timestamp(unsigned(row, 20)?),
    })
}
