-- The vaults: encrypted secrets of each user. The head has unlock methods and an authenticated manifest of the records. A change
-- must name the current revision. Nothing here is readable without the user's key, except names and times.

CREATE TABLE vaults (
    "user"   TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    revision BIGINT NOT NULL,
    head     BYTEA NOT NULL
);

CREATE TABLE vault_records (
    "user"   TEXT COLLATE "C" NOT NULL,
    name     TEXT COLLATE "C" NOT NULL,
    envelope BYTEA NOT NULL,
    PRIMARY KEY ("user", name)
);

-- The audit log of a vault, numbered for each user. Times are in milliseconds.
CREATE TABLE vault_events (
    "user"  TEXT COLLATE "C" NOT NULL,
    number  BIGINT NOT NULL,
    time    BIGINT NOT NULL,
    action  TEXT NOT NULL,
    subject TEXT,
    actor   TEXT NOT NULL,
    PRIMARY KEY ("user", number)
);
