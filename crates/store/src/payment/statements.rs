//! The statements on the ledger of payments.

use crate::engine::statements;

/// The columns of a payment, as [`payment`](super::payment) reads them.
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

    /// The same, while other changes of it wait.
    LOCK_PAYMENT: select!("WHERE id = $1 /*postgres FOR UPDATE*/");

    OPEN: select!("WHERE network = $1 AND wallet = $2 AND state NOT IN ('settled', 'failed') ORDER BY nonce /*postgres NULLS FIRST*/, id LIMIT $3");

    NEWEST: select!("WHERE network = $1 AND wallet = $2 ORDER BY created DESC, id DESC LIMIT $3");

    INSERT: "INSERT INTO payments (id, network, wallet, \"user\", session, recipient, purpose, host, budget, amount, day, state,
         valid_before, detail, revision, created, updated)
     VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, 0, $15, $16)";

    UPDATE: "UPDATE payments SET state = $3, detail = $4, updated = $5, signature = coalesce($6::bytea, signature),
         nonce = coalesce($7::bigint, nonce), raw = coalesce($8::bytea, raw), hashes = coalesce($9::text, hashes), revision = revision + 1
     WHERE id = $1 AND revision = $2";

    ADD_ACCOUNT: "INSERT INTO payment_accounts (network, wallet, next_nonce) VALUES ($1, $2, 0)
     ON CONFLICT (network, wallet) DO NOTHING";

    /// Locks the account, so that replicas reserve and change its payments one after the other.
    LOCK_ACCOUNT: "SELECT next_nonce FROM payment_accounts WHERE network = $1 AND wallet = $2 /*postgres FOR UPDATE*/";

    NEXT_NONCE: "SELECT next_nonce FROM payment_accounts WHERE network = $1 AND wallet = $2";

    /// Takes account nonces up to `$4` if `$3` still is the next one.
    TAKE_NONCE: "UPDATE payment_accounts SET next_nonce = $4 WHERE network = $1 AND wallet = $2 AND next_nonce = $3";

    /// The amounts of day `$3` that count: all, those to `$4`, those for `$5`.
    TOTALS: "SELECT coalesce(sum(amount), 0)::bigint,
         coalesce(sum(amount) FILTER (WHERE recipient = $4), 0)::bigint,
         coalesce(sum(amount) FILTER (WHERE purpose = $5), 0)::bigint
      FROM payments WHERE network = $1 AND wallet = $2 AND day = $3 AND state <> 'failed'";

    /// Adds the budget that a payment was the first to spend of.
    ADD_BUDGET: "INSERT INTO payment_budgets (id, network, wallet, \"user\", session, host, amount, created)
     SELECT id, network, wallet, \"user\", session, host, $2::bigint, created FROM payments WHERE id = $1";

    /// The budgets for a host in a session with what was spent of each. The index on budgets has another collation than their ids.
    BUDGETS: "SELECT id, amount,
         (SELECT coalesce(sum(payments.amount), 0)::bigint FROM payments
           WHERE payments.budget = payment_budgets.id /*postgres COLLATE \"default\"*/ AND payments.state <> 'failed')
      FROM payment_budgets
     WHERE session = $1 AND host = $2 AND \"user\" = $3 AND network = $4 AND wallet = $5";
}
