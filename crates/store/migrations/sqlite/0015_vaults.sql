-- The vaults: encrypted secrets of each user. The head has unlock methods and an authenticated manifest of the records; its
-- revision is what changes are compared with. Nothing here is readable without the user's key, except names and times.

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

-- What was done with a vault, numbered for each user. Times are in milliseconds.
CREATE TABLE vault_events (
    user    TEXT NOT NULL,
    number  INTEGER NOT NULL,
    time    INTEGER NOT NULL,
    action  TEXT NOT NULL,
    subject TEXT,
    actor   TEXT NOT NULL,
    PRIMARY KEY (user, number)
) STRICT;
