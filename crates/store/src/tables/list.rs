//! The tables, each after those that its rows refer to. A migration that adds a table adds it here; a test compares them.

use super::ColumnType::{Bytes, Integer, Real, Text};
use super::RowOrder::{Ascending, Descending};
use super::Table;

/// Tables that are not moved or exported: what they contain can be fetched again.
pub const CACHES: &[&str] = &["web_pages"];

/// Makes tables of their names, the number of columns of their keys, their order and their columns.
macro_rules! tables {
    ($($name:ident $key:literal $order:ident: $($column:ident $kind:ident),+;)+) => {
        &[$(Table {
            name: stringify!($name),
            key: $key,
            columns: &[$((stringify!($column), $kind)),+],
            order: $order,
        }),+]
    };
}

/// All other tables.
pub const TABLES: &[Table] = tables! {
    sessions 1 Ascending: id Text, user Text, title Text, created Integer, updated Integer;
    events 2 Ascending: session Text, seq Integer, turn Text, frame Text, time Integer, body Text, author Text,
        hash Bytes;
    turns 2 Ascending: session Text, ordinal Integer, turn Text, first_seq Integer, question_seq Integer,
        delegation_seq Integer, answer_seq Integer, finished Integer;
    approvals 2 Ascending: session Text, id Text, user Text, turn Text, time Integer, request Text, pattern Text,
        folder Text;
    remote_threads 2 Ascending: session Text, agent Text, context Text, task Text;
    tasks 1 Ascending: id Text, user Text, context Text, state Text, running Integer, updated Integer, body Text,
        revision Integer, attempts Integer, message Text, cancelled Integer;
    watermarks 1 Ascending: session Text, user Text, observed Integer, revision Integer, trusted Integer,
        failures Integer;
    forgotten_turns 2 Ascending: session Text, ordinal Integer;
    // A row names the one it went into, which was made after it.
    recollections 1 Descending: id Integer, user Text, session Text, generation Integer, first_turn Integer,
        last_turn Integer, text Text, source Text, trusted Integer, created Integer, part_of Integer;
    saved_memories 1 Ascending: id Integer, user Text, text Text, tags Text, source Text, trusted Integer,
        created Integer;
    graph_users 1 Ascending: id Integer, user Text;
    graph_entities 1 Ascending: id Integer, user Integer, key Text, name Text, kind Text;
    graph_predicates 1 Ascending: id Integer, user Integer, key Text, name Text;
    graph_sources 1 Ascending: id Integer, user Integer, name Text, trusted Integer;
    graph_facts 1 Ascending: id Integer, subject Integer, predicate Integer, object Integer, source Integer,
        confidence Real, created Integer, valid_from Integer, valid_to Integer;
    library_collections 1 Ascending: id Integer, user Text, name Text, session Text, next_chunk Integer,
        chunks Integer, words Integer, vectors Integer, generation Integer;
    library_documents 1 Ascending: id Integer, collection Integer, source Text, trust Text, title Text, hash Bytes,
        size Integer, added Integer, complete Integer;
    library_chunks 1 Ascending: id Integer, document Integer, ordinal Integer, position Integer, words Integer,
        heading Text, text Text;
    library_maker 1 Ascending: only Integer, maker Text;
    library_vectors 1 Ascending: chunk Integer, numbers Bytes;
    library_bits 1 Ascending: block Integer, present Bytes, bits Bytes;
    knowledge 3 Ascending: user Text, key Text, version Integer, category Text, content Text, tags Text, source Text,
        trust Text, saved Integer, document Integer;
    learnings 3 Ascending: user Text, occasion Text, fix Text, error_pattern Text, confidence Real, source Text,
        trust Text, saved Integer, document Integer;
    attachments 2 Ascending: user Text, digest Text, bytes Bytes;
    attachment_references 2 Ascending: session Text, digest Text, user Text;
    attachment_puts 3 Ascending: user Text, digest Text, time Integer;
    vaults 1 Ascending: user Text, revision Integer, head Bytes;
    vault_records 2 Ascending: user Text, name Text, envelope Bytes;
    vault_events 2 Ascending: user Text, number Integer, time Integer, action Text, subject Text, actor Text;
    payment_accounts 2 Ascending: network Text, wallet Text, next_nonce Integer;
    payments 1 Ascending: id Text, network Text, wallet Text, user Text, session Text, recipient Text, purpose Text,
        host Text, budget Text, amount Integer, day Integer, state Text, valid_before Integer, signature Bytes,
        nonce Integer, raw Bytes, hashes Text, detail Text, revision Integer, created Integer, updated Integer;
    payment_budgets 1 Ascending: id Text, network Text, wallet Text, user Text, session Text, host Text,
        amount Integer, created Integer;
};
