-- The ledger of payments. A payment counts towards the limits of its day in every state except 'failed'. Amounts are in the
-- smallest unit of the token; `valid_before` is in seconds, other times are in milliseconds.

-- The accounts that pay. Reserving locks the row, so that replicas reserve one at a time.
CREATE TABLE payment_accounts (
    network    TEXT NOT NULL,
    wallet     TEXT NOT NULL,
    next_nonce INTEGER NOT NULL,
    PRIMARY KEY (network, wallet)
) STRICT;

CREATE TABLE payments (
    id           TEXT NOT NULL PRIMARY KEY,
    network      TEXT NOT NULL,
    wallet       TEXT NOT NULL,
    user         TEXT NOT NULL,
    session      TEXT NOT NULL,
    recipient    TEXT NOT NULL,
    purpose      TEXT NOT NULL,
    host         TEXT,
    budget       TEXT,
    amount       INTEGER NOT NULL CHECK (amount > 0),
    day          INTEGER NOT NULL,
    state        TEXT NOT NULL,
    valid_before INTEGER NOT NULL,
    signature    BLOB,
    nonce        INTEGER,
    raw          BLOB,
    hashes       TEXT,
    detail       TEXT NOT NULL,
    revision     INTEGER NOT NULL,
    created      INTEGER NOT NULL,
    updated      INTEGER NOT NULL
) STRICT;
CREATE INDEX payments_by_day ON payments (network, wallet, day);
CREATE INDEX payments_by_time ON payments (network, wallet, created, id);
CREATE INDEX payments_by_budget ON payments (budget) WHERE budget IS NOT NULL;
CREATE INDEX payments_open ON payments (network, wallet, nonce, id) WHERE state NOT IN ('settled', 'failed');
-- No two payments share an account nonce.
CREATE UNIQUE INDEX payments_by_nonce ON payments (network, wallet, nonce) WHERE nonce IS NOT NULL;

-- Budgets that a user allowed for a host in a session. The id is that of the first payment.
CREATE TABLE payment_budgets (
    id      TEXT NOT NULL PRIMARY KEY,
    network TEXT NOT NULL,
    wallet  TEXT NOT NULL,
    user    TEXT NOT NULL,
    session TEXT NOT NULL,
    host    TEXT NOT NULL,
    amount  INTEGER NOT NULL,
    created INTEGER NOT NULL
) STRICT;
CREATE INDEX payment_budgets_by_host ON payment_budgets (session, host);
