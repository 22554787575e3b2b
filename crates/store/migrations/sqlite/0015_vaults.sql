-- The vaults: encrypted secrets of each user. The head has unlock methods and an authenticated manifest of the records. A change
-- must name the current revision. Nothing here is readable without the user's key, except names and times.

CREATE TABLE vaults (
    user     TEXT NOT NULL PRIMARY KEY,
    revision INTEGER NOT NULL,
    head     BLOB NOT NULL
) STRICT;

CREATE TABLE vault_records (
    user     TEXT NOT NULL,
    name     TEXT NOT NULL,
    envelope BLOB NOT NULL,
    PRIMARY KEY (user, name)
) STRICT;

-- The audit log of a vault, numbered for each user. Times are in milliseconds.
CREATE TABLE vault_events (
    user    TEXT NOT NULL,
    number  INTEGER NOT NULL,
    time    INTEGER NOT NULL,
    action  TEXT NOT NULL,
    subject TEXT,
    actor   TEXT NOT NULL,
    PRIMARY KEY (user, number)
) STRICT;
