//! The statements on the ledger of payments.

/// The columns of a payment, as [`payment_of_row`](super::super::payment) reads them.
macro_rules! select {
    ($rest:literal) => {
        concat!(
            "SELECT id, network, wallet, user, session, recipient, purpose, host, budget, amount, day, state, \
             valid_before, signature, nonce, raw, hashes, detail, revision, created, updated FROM payments ",
            $rest
        )
    };
}

pub(in crate::sqlite) const PAYMENT: &str = select!("WHERE id = ?1");

pub(in crate::sqlite) const OPEN: &str = select!(
    "WHERE network = ?1 AND wallet = ?2 AND state NOT IN ('settled', 'failed') ORDER BY nonce, id LIMIT ?3"
);

pub(in crate::sqlite) const NEWEST: &str =
    select!("WHERE network = ?1 AND wallet = ?2 ORDER BY created DESC, id DESC LIMIT ?3");

pub(in crate::sqlite) const INSERT: &str =
    "INSERT INTO payments (id, network, wallet, user, session, recipient, purpose, host, budget, amount, day, state,
         valid_before, detail, revision, created, updated)
     VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, 0, ?15, ?16)";

pub(in crate::sqlite) const UPDATE: &str =
    "UPDATE payments SET state = ?3, detail = ?4, updated = ?5, signature = coalesce(?6, signature),
         nonce = coalesce(?7, nonce), raw = coalesce(?8, raw), hashes = coalesce(?9, hashes), revision = revision + 1
     WHERE id = ?1 AND revision = ?2";

pub(in crate::sqlite) const ADD_ACCOUNT: &str =
    "INSERT INTO payment_accounts (network, wallet, next_nonce) VALUES (?1, ?2, 0)
     ON CONFLICT (network, wallet) DO NOTHING";

pub(in crate::sqlite) const NEXT_NONCE: &str =
    "SELECT next_nonce FROM payment_accounts WHERE network = ?1 AND wallet = ?2";

/// Takes account nonces up to `?4` if `?3` still is the next one.
pub(in crate::sqlite) const TAKE_NONCE: &str = "UPDATE payment_accounts SET next_nonce = ?4 WHERE network = ?1 AND wallet = ?2 AND next_nonce = ?3";

/// The amounts of day `?3` that count: all, those to `?4`, those for `?5`.
pub(in crate::sqlite) const TOTALS: &str = "SELECT coalesce(sum(amount), 0),
         coalesce(sum(amount) FILTER (WHERE recipient = ?4), 0),
         coalesce(sum(amount) FILTER (WHERE purpose = ?5), 0)
      FROM payments WHERE network = ?1 AND wallet = ?2 AND day = ?3 AND state <> 'failed'";

pub(in crate::sqlite) const ADD_BUDGET: &str =
    "INSERT INTO payment_budgets (id, network, wallet, user, session, host, amount, created)
     VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)";

/// The budgets for a host in a session with what was spent of each.
pub(in crate::sqlite) const BUDGETS: &str = "SELECT id, amount,
         (SELECT coalesce(sum(payments.amount), 0) FROM payments
           WHERE payments.budget = payment_budgets.id AND payments.state <> 'failed')
      FROM payment_budgets
     WHERE session = ?1 AND host = ?2 AND user = ?3 AND network = ?4 AND wallet = ?5";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sqlite::statements::tests::plan_of;

    #[test]
    fn no_statement_on_payments_scans_a_table_or_sorts() {
        for statement in [
            PAYMENT, OPEN, NEWEST, UPDATE, NEXT_NONCE, TAKE_NONCE, TOTALS, BUDGETS,
        ] {
            let plan = plan_of(statement);
            let is_scan = plan.contains("SCAN");
            assert!(!is_scan && !plan.contains("TEMP B-TREE"), "{plan}");
        }
    }
}
