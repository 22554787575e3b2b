//! The ledger of payments. Reserving locks the row of the account, so that replicas reserve one at a time and each sees
//! everything that was reserved before.

use crate::StoreFuture;
use crate::backend::{BackendError, Result, Row, Tx, Value, records, statements, values};
use crate::decode::{check_user, failed};
use crate::store::Store;
use lango_core::{
    AccountStatus, BudgetKey, BudgetUse, Payment, PaymentAccount, PaymentChange,
    PaymentChangeOutcome, PaymentLimit, PaymentQuery, PaymentState, PaymentStore, PaymentTotals,
    Reservation, ReservationOutcome, SignedTransaction, StoreError, Text, TotalsQuery,
};

/// Maximum length of a purpose, a detail or another text of a payment, in bytes.
const MAX_TEXT_BYTES: usize = 4096;

/// Maximum size of a signed transaction, in bytes.
const MAX_RAW_BYTES: usize = 16 << 10;

impl PaymentStore for Store {
    fn reserve_payment(&self, reservation: Reservation) -> StoreFuture<'_, ReservationOutcome> {
        self.backend
            .write_idempotent(reservation, |tx, reservation| {
                Box::pin(reserve(tx, reservation))
            })
    }

    fn change_payment(&self, change: PaymentChange) -> StoreFuture<'_, PaymentChangeOutcome> {
        // If the reply to the first attempt is lost, the second one finds a newer revision, and the caller reads the payment again.
        self.backend
            .write_idempotent(change, |tx, change| Box::pin(apply(tx, change)))
    }

    fn payments(&self, query: PaymentQuery, limit: usize) -> StoreFuture<'_, Vec<Payment>> {
        let (statement, account) = match query {
            PaymentQuery::Id(id) => return self.backend.query(PAYMENT, values![id], payment),
            PaymentQuery::Open(account) => (OPEN, account),
            PaymentQuery::Newest(account) => (NEWEST, account),
        };
        let values = values![account.network, account.wallet, limit];
        self.backend.query(statement, values, payment)
    }

    fn payment_account(&self, query: TotalsQuery) -> StoreFuture<'_, AccountStatus> {
        self.backend.snapshot(query, |tx, query| {
            Box::pin(async move {
                let PaymentAccount { network, wallet } = &query.account;
                let next = tx.value(NEXT_NONCE, values![network, wallet]).await?;
                let values = values![network, wallet, query.day, query.recipient, query.purpose];
                Ok(AccountStatus {
                    next_nonce: next.unwrap_or(0),
                    totals: totals(tx, values).await?,
                })
            })
        })
    }

    fn payment_budget(&self, key: BudgetKey) -> StoreFuture<'_, u64> {
        self.backend.read(key, |tx, key| {
            Box::pin(async move {
                let PaymentAccount { network, wallet } = &key.account;
                let values = values![key.session, key.host, key.user, network, wallet];
                Ok(max_left(&budgets(tx, values).await?))
            })
        })
    }
}

fn check_reservation(reservation: &Reservation) -> Result<(), StoreError> {
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
    check_user(&payment.user, "a payment")?;
    let refused = if payment.amount == 0 || payment.state != PaymentState::Reserved {
        "a payment must be reserved before it is signed, with an amount greater than zero"
    } else if texts.iter().any(|text| text.len() > MAX_TEXT_BYTES) {
        "a text field of a payment is longer than 4096 bytes"
    } else if numbers.iter().any(|number| i64::try_from(*number).is_err()) {
        "a number in a payment is too large"
    } else if reservation.budget.is_some() != payment.host.is_some() {
        "a payment must have a budget if and only if it has a host"
    } else {
        return Ok(());
    };
    Err(failed(refused))
}

fn check_change(change: &PaymentChange) -> Result<(), StoreError> {
    let (mut is_large, mut is_taken) = (change.detail.len() > MAX_TEXT_BYTES, false);
    if let Some(new) = &change.transaction {
        let signed = &new.signed;
        is_large |= signed.raw.len() > MAX_RAW_BYTES || signed.hashes.len() > MAX_TEXT_BYTES;
        is_taken = new.expected_next.is_some_and(|next| next > signed.nonce);
    }
    if is_large {
        return Err(failed("a change to a payment is too large"));
    }
    if is_taken {
        return Err(failed("the account nonce of a payment is already taken"));
    }
    Ok(())
}

/// Returns whether the change can be applied to the payment in its current state.
fn applies(change: &PaymentChange, payment: &Payment) -> bool {
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

/// Returns the id of the budget that a payment uses. The error is the largest amount that remains in any budget.
fn budget_for(budgets: &[Budget], reservation: &Reservation) -> Result<Option<Text>, u64> {
    let payment = &reservation.payment;
    match reservation.budget {
        None => Ok(None),
        Some(BudgetUse::New(amount)) if payment.amount <= amount => Ok(Some(payment.id.clone())),
        Some(BudgetUse::New(amount)) => Err(amount),
        Some(BudgetUse::Existing) => {
            let found = budgets.iter().find(|(_, left)| *left >= payment.amount);
            let id = found.map(|(id, _)| Some(id.clone()));
            id.ok_or_else(|| max_left(budgets))
        }
    }
}

async fn reserve(tx: &mut Tx<'_>, reservation: &Reservation) -> Result<ReservationOutcome> {
    check_reservation(reservation)?;
    let payment = &reservation.payment;
    let PaymentAccount { network, wallet } = &payment.account;
    tx.execute(LOCK_ACCOUNT, values![network, wallet]).await?;
    let values = values![payment.id];
    if let Some(existing) = tx.query_opt(PAYMENT, values, self::payment).await? {
        return Ok(ReservationOutcome::Existing(existing));
    }
    let (day, recipient, purpose) = (payment.day, &payment.recipient, &payment.purpose);
    let totals = totals(tx, values![network, wallet, day, recipient, purpose]).await?;
    if let Some((limit, left)) = reservation.limits.exceeded(payment.amount, &totals) {
        return Ok(ReservationOutcome::Refused { limit, left });
    }
    let mut found = Vec::new();
    if let Some(host) = &payment.host {
        let values = values![payment.session, host, payment.user, network, wallet];
        found = budgets(tx, values).await?;
    }
    let budget = match budget_for(&found, reservation) {
        Ok(budget) => budget,
        Err(left) => {
            let limit = PaymentLimit::Budget;
            return Ok(ReservationOutcome::Refused { limit, left });
        }
    };
    let mut stored = payment.clone();
    stored.budget = budget;
    insert(tx, &stored, reservation.budget).await?;
    Ok(ReservationOutcome::New(stored))
}

async fn insert(tx: &mut Tx<'_>, payment: &Payment, budget: Option<BudgetUse>) -> Result<()> {
    let account = &payment.account;
    let state = payment.state.name();
    let values = values![
        payment.id,
        account.network,
        account.wallet,
        payment.user,
        payment.session,
        payment.recipient,
        payment.purpose,
        payment.host,
        payment.budget,
        payment.amount,
        payment.day,
        state,
        payment.valid_before,
        payment.detail,
        payment.created,
        payment.updated,
    ];
    tx.execute(INSERT, values).await?;
    if let Some(BudgetUse::New(amount)) = budget {
        tx.execute(ADD_BUDGET, values![payment.id, amount]).await?;
    }
    Ok(())
}

async fn apply(tx: &mut Tx<'_>, change: &PaymentChange) -> Result<PaymentChangeOutcome> {
    check_change(change)?;
    let values = values![change.id];
    let payment = tx.query_opt(LOCK_PAYMENT, values, payment).await?;
    let Some(payment) = payment.filter(|payment| applies(change, payment)) else {
        return Ok(PaymentChangeOutcome::Outdated);
    };
    let new = change.transaction.as_ref();
    if let Some((new, expected)) = new.and_then(|new| Some((new, new.expected_next?))) {
        let (account, next) = (&payment.account, new.signed.nonce + 1);
        let values = values![account.network, account.wallet, expected, next];
        if tx.execute(TAKE_NONCE, values).await? == 0 {
            return Ok(PaymentChangeOutcome::Outdated);
        }
    }
    let signed = new.map(|new| &new.signed);
    tx.execute(
        UPDATE,
        values![
            change.id,
            change.expected,
            change.state.name(),
            change.detail,
            change.time,
            change.authorization,
            signed.map(|signed| signed.nonce),
            signed.map(|signed| &signed.raw),
            signed.map(|signed| &signed.hashes),
        ],
    )
    .await?;
    Ok(PaymentChangeOutcome::Applied)
}

async fn totals(tx: &mut Tx<'_>, values: &[Value<'_>]) -> Result<PaymentTotals> {
    let totals = tx
        .query_opt(TOTALS, values, |row| row.read::<PaymentTotals>())
        .await?;
    Ok(totals.unwrap_or_default())
}

records! {
    PaymentTotals { day, recipient, purpose }
}

/// The id of a budget, and the amount left in it.
type Budget = (Text, u64);

async fn budgets(tx: &mut Tx<'_>, values: &[Value<'_>]) -> Result<Vec<Budget>> {
    let budgets = tx.query(BUDGETS, values, |row| {
        let (amount, spent): (u64, u64) = (row.get(1)?, row.get(2)?);
        Ok((row.get(0)?, amount.saturating_sub(spent)))
    });
    budgets.await
}

fn max_left(budgets: &[Budget]) -> u64 {
    budgets.iter().map(|(_, left)| *left).max().unwrap_or(0)
}

/// Reads the columns of [`PAYMENT`].
fn payment(row: Row<'_>) -> Result<Payment> {
    let state: Text = row.get(11)?;
    let state = PaymentState::from_name(&state)
        .ok_or_else(|| BackendError::other(format!("a payment has the unknown state `{state}`")))?;
    let transaction = match row.get(15)? {
        None => None,
        Some(raw) => Some(SignedTransaction {
            nonce: row.get(14)?,
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
        user: row.get(3)?,
        session: row.get(4)?,
        recipient: row.get(5)?,
        purpose: row.get(6)?,
        host: row.get(7)?,
        budget: row.get(8)?,
        amount: row.get(9)?,
        day: row.get(10)?,
        state,
        valid_before: row.get(12)?,
        authorization: row.get(13)?,
        transaction,
        detail: row.get(17)?,
        revision: row.get(18)?,
        created: row.get(19)?,
        updated: row.get(20)?,
    })
}

/// Selects the columns of a payment that [`payment`] reads.
macro_rules! select {
    ($rest:literal) => {
        concat!(
            "SELECT id, network, wallet, \"user\", session, recipient, purpose, host, budget, amount, day, state, \
             valid_before, signature, nonce, raw, hashes, detail, revision, created, updated FROM payments ",
            $rest
        )
    };
}

statements! {
    PAYMENT: select!("WHERE id = $1");

    /// Selects a payment and locks it, so that other changes to it wait.
    LOCK_PAYMENT: select!("WHERE id = $1 /*postgres FOR UPDATE*/");

    OPEN: select!("WHERE network = $1 AND wallet = $2 AND state NOT IN ('settled', 'failed') ORDER BY nonce /*postgres NULLS FIRST*/, id LIMIT $3");

    NEWEST: select!("WHERE network = $1 AND wallet = $2 ORDER BY created DESC, id DESC LIMIT $3");

    INSERT: "INSERT INTO payments (id, network, wallet, \"user\", session, recipient, purpose, host, budget, amount, day, state,
         valid_before, detail, revision, created, updated)
     VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, 0, $15, $16)";

    UPDATE: "UPDATE payments SET state = $3, detail = $4, updated = $5, signature = coalesce($6::bytea, signature),
         nonce = coalesce($7::bigint, nonce), raw = coalesce($8::bytea, raw), hashes = coalesce($9::text, hashes), revision = revision + 1
     WHERE id = $1 AND revision = $2";

    /// Inserts the account or locks it, so that replicas reserve its payments one at a time.
    LOCK_ACCOUNT: "INSERT INTO payment_accounts (network, wallet, next_nonce) VALUES ($1, $2, 0)
     ON CONFLICT (network, wallet) DO UPDATE SET wallet = excluded.wallet";

    NEXT_NONCE: "SELECT next_nonce FROM payment_accounts WHERE network = $1 AND wallet = $2";

    /// Takes the account nonces below `$4` if `$3` is still the next one.
    TAKE_NONCE: "UPDATE payment_accounts SET next_nonce = $4 WHERE network = $1 AND wallet = $2 AND next_nonce = $3";

    /// Sums the amounts of all payments of day `$3` that did not fail, of those to recipient `$4`, and of those for
    /// purpose `$5`.
    TOTALS: "SELECT coalesce(sum(amount), 0)::bigint,
         coalesce(sum(amount) FILTER (WHERE recipient = $4), 0)::bigint,
         coalesce(sum(amount) FILTER (WHERE purpose = $5), 0)::bigint
      FROM payments WHERE network = $1 AND wallet = $2 AND day = $3 AND state <> 'failed'";

    /// Adds a budget of `$2`, with a payment as its first expense.
    ADD_BUDGET: "INSERT INTO payment_budgets (id, network, wallet, \"user\", session, host, amount, created)
     SELECT id, network, wallet, \"user\", session, host, $2::bigint, created FROM payments WHERE id = $1";

    /// Selects the budgets for a host in a session, with the amount spent of each. The statement sets the collation,
    /// because the index on `payments.budget` has a different one than the ids of budgets.
    BUDGETS: "SELECT id, amount,
         (SELECT coalesce(sum(payments.amount), 0)::bigint FROM payments
           WHERE payments.budget = payment_budgets.id /*postgres COLLATE \"default\"*/ AND payments.state <> 'failed')
      FROM payment_budgets
     WHERE session = $1 AND host = $2 AND \"user\" = $3 AND network = $4 AND wallet = $5";
}
