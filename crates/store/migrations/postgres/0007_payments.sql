-- The ledger of payments. A payment counts towards the limits of its day in every state except 'failed'. Amounts are in the
-- smallest unit of the token; `valid_before` is in seconds, other times are in milliseconds.

-- The accounts that pay. Reserving locks the row, so that replicas reserve one at a time.
CREATE TABLE payment_accounts (
    network    TEXT COLLATE "C" NOT NULL,
    wallet     TEXT COLLATE "C" NOT NULL,
    next_nonce BIGINT NOT NULL,
    PRIMARY KEY (network, wallet)
);

CREATE TABLE payments (
    id           TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    network      TEXT COLLATE "C" NOT NULL,
    wallet       TEXT COLLATE "C" NOT NULL,
    "user"       TEXT COLLATE "C" NOT NULL,
    session      TEXT COLLATE "C" NOT NULL,
    recipient    TEXT NOT NULL,
    purpose      TEXT NOT NULL,
    host         TEXT COLLATE "C",
    budget       TEXT,
    amount       BIGINT NOT NULL CHECK (amount > 0),
    day          BIGINT NOT NULL,
    state        TEXT NOT NULL,
    valid_before BIGINT NOT NULL,
    signature    BYTEA,
    nonce        BIGINT,
    raw          BYTEA,
    hashes       TEXT,
    detail       TEXT NOT NULL,
    revision     BIGINT NOT NULL,
    created      BIGINT NOT NULL,
    updated      BIGINT NOT NULL
);
CREATE INDEX payments_by_day ON payments (network, wallet, day);
CREATE INDEX payments_by_time ON payments (network, wallet, created, id);
CREATE INDEX payments_by_budget ON payments (budget) WHERE budget IS NOT NULL;
CREATE INDEX payments_open ON payments (network, wallet, nonce, id) WHERE state NOT IN ('settled', 'failed');
-- No two payments share an account nonce.
CREATE UNIQUE INDEX payments_by_nonce ON payments (network, wallet, nonce) WHERE nonce IS NOT NULL;

-- Budgets that a user allowed for a host in a session. The id is that of the first payment.
CREATE TABLE payment_budgets (
    id      TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    network TEXT COLLATE "C" NOT NULL,
    wallet  TEXT COLLATE "C" NOT NULL,
    "user"  TEXT COLLATE "C" NOT NULL,
    session TEXT COLLATE "C" NOT NULL,
    host    TEXT COLLATE "C" NOT NULL,
    amount  BIGINT NOT NULL,
    created BIGINT NOT NULL
);
CREATE INDEX payment_budgets_by_host ON payment_budgets (session, host);
