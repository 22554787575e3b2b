//! Tests that both databases find rows by key in large tables.

use super::statements::{CLAIM, HAS_SUCCESSOR, JOIN_QUEUE, RELEASE, RENEW, RENEW_ALONE};
use crate::backend::plans::{ManyRows, assert_sqlite_uses_keys};
use crate::backend::{Sql, sql};
use crate::library;
use crate::{agent_memory, graph};

/// Tables that grow with use.
const LARGE: &str = "sessions, events, turns, recollections, watermarks, forgotten_turns, saved_memories, graph_users, \
    graph_entities, graph_predicates, graph_sources, graph_facts, library_collections, library_documents, library_chunks, \
    library_index, library_vectors, library_bits, knowledge, learnings";

const FILL: &str = r#"
INSERT INTO recollections ("user", session, generation, first_turn, last_turn, text, source, trusted, created)
SELECT 'u_' || n % 1000, 's_' || n, part % 3, 0, 1, 'words ' || n || part, 'rules', 1, n
  FROM generate_series(1, 2000) AS n, generate_series(1, 25) AS part;
UPDATE recollections SET part_of = id + 1 WHERE id % 4 = 1;
INSERT INTO watermarks (session, "user") SELECT id, "user" FROM sessions;
INSERT INTO forgotten_turns (session, ordinal) SELECT id, 1 FROM sessions;
INSERT INTO saved_memories ("user", text, tags, source, trusted, created)
SELECT 'u_' || n % 1000, 'words ' || n, '[]', 'chronicler', n % 2, n FROM generate_series(1, 30000) AS n;

INSERT INTO graph_users ("user") SELECT 'u_' || n FROM generate_series(1, 2000) AS n;
INSERT INTO graph_entities ("user", key, name)
SELECT 1 + n % 2000, 'e ' || n, 'E ' || n FROM generate_series(1, 40000) AS n;
INSERT INTO graph_predicates ("user", key, name)
SELECT 1 + n % 2000, 'p ' || n, 'P ' || n FROM generate_series(1, 10000) AS n;
INSERT INTO graph_sources ("user", name, trusted)
SELECT 1 + n % 2000, 'f ' || n, 0 FROM generate_series(1, 10000) AS n;
INSERT INTO graph_facts (subject, predicate, object, source, confidence, created, valid_from, valid_to)
SELECT 1 + n % 40000, 1 + n % 9973, 1 + n * 7 % 40000, 1 + n % 10000, 1, n, n,
       CASE n % 5 WHEN 0 THEN n END
  FROM generate_series(1, 100000) AS n;

INSERT INTO library_collections ("user", name) SELECT 'u_' || n, 'documents' FROM generate_series(1, 2000) AS n;
INSERT INTO library_documents (collection, source, trust, title, hash, size, added)
SELECT 1 + n % 2000, '/home/u/' || n, 'untrusted', 'n', '', 1, n FROM generate_series(1, 20000) AS n;
INSERT INTO library_chunks (id, document, ordinal, position, words, heading, text)
SELECT ((1 + n % 2000)::bigint << 32) + n, 1 + n % 20000, n / 20000, 1, 2, '', 'word ' || n
  FROM generate_series(1, 40000) AS n;
INSERT INTO library_index (chunk, terms)
SELECT id, array_to_tsvector(ARRAY['word', 'word 2', 'n' || id % 5000, 'm' || id % 50]) FROM library_chunks;
INSERT INTO library_vectors (chunk, numbers) SELECT id, '\x00010203' FROM library_chunks;
INSERT INTO library_bits (block, present, bits)
SELECT (n::bigint << 25) + m, '\x01', '\x00' FROM generate_series(1, 2000) AS n, generate_series(0, 9) AS m;
INSERT INTO library_maker ("only", maker) VALUES (1, '{}');
INSERT INTO knowledge ("user", key, version, category, content, tags, source, trust, saved, document)
SELECT 'u_' || n % 2000, 'k' || n, 1, '', '', '[]', '', 'trusted', 1, n FROM generate_series(1, 20000) AS n;
INSERT INTO learnings ("user", occasion, fix, error_pattern, confidence, source, trust, saved, document)
SELECT 'u_' || n % 2000, 'o' || n, 'f', '', 1, '', 'trusted', 1, n FROM generate_series(1, 20000) AS n"#;

async fn filled() -> ManyRows {
    ManyRows::open(&format!("{FILL}; ANALYZE {LARGE}")).await
}

/// Returns the large table that a plan scans.
fn scanned(plan: &str) -> Option<&str> {
    let scans = plan.split("Seq Scan on ").skip(1);
    let mut tables = scans.filter_map(|rest| rest.split(' ').next());
    tables.find(|table| LARGE.split(", ").any(|large| large == *table))
}

#[tokio::test]
async fn no_statement_on_leases_scans_a_table_or_sorts() {
    let rows = ManyRows::open("").await;
    let of_renewer = [RELEASE, RENEW, RENEW_ALONE].map(Sql::only_postgres);
    let statements = [CLAIM, JOIN_QUEUE, HAS_SUCCESSOR].into_iter();
    for statement in statements.chain(of_renewer) {
        rows.assert_uses_keys(statement).await;
    }
}

#[tokio::test]
async fn no_everyday_statement_of_knowledge_scans_a_table() {
    let rows = filled().await;
    let mut bad = Vec::new();
    let all = [
        graph::STATEMENTS,
        graph::LOOKUPS.as_flattened(),
        library::STATEMENTS,
        agent_memory::STATEMENTS,
    ];
    for statement in all.concat() {
        // The names are subqueries, whose results may be scanned.
        assert_sqlite_uses_keys(statement, &["wanted VIRTUAL TABLE", "newest"]);
        let plan = rows.plan(statement).await;
        if scanned(&plan).is_some() {
            bad.push(plan);
        }
    }
    assert!(bad.is_empty(), "{}", bad.join("\n\n"));
    // This proves that the check can fail.
    let plan = rows
        .plan(sql!("SELECT count(created) FROM graph_facts"))
        .await;
    assert_eq!(scanned(&plan), Some("graph_facts"));
}

#[tokio::test]
async fn even_common_words_are_looked_up_in_the_index() {
    let rows = filled().await;
    let first = "SET enable_seqscan = off; SET enable_indexscan = off";
    rows.client.batch_execute(first).await.unwrap();
    for statement in library::BY_WORDS {
        let plan = rows.plan(statement).await;
        let index = plan.contains("Bitmap Index Scan on library_index_terms");
        let others = scanned(&plan).is_some() || plan.contains("library_index_pkey");
        assert!(index && !others, "{plan}");
    }
    // The frequency of a common word is not counted but estimated from the server's statistics.
    let words = ["word", "n7", "nowhere"].map(str::to_owned).to_vec();
    let (_, frequencies) = rows.store.word_frequencies(words).await.unwrap();
    assert!(
        (39_000..=41_000).contains(&frequencies[0]),
        "{frequencies:?}"
    );
    assert_eq!(frequencies[1..], [8, 0]);
}
