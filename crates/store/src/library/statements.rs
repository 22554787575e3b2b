//! The statements on the library. Each finds its rows by key.

use crate::backend::{Sql, sql, statements};

/// Tests whether a column is in an array.
macro_rules! any {
    ($array:literal) => {
        concat!(
            "/*postgres = ANY (",
            $array,
            ")*/ /*sqlite IN (SELECT value FROM json_each(",
            $array,
            "))*/"
        )
    };
}

macro_rules! documents {
    ($rest:literal) => {
        concat!(
            "SELECT document.id, collection.name, nullif(collection.session, ''), document.source, document.trust,
                    document.title, document.hash, document.size, document.added, document.complete,
                    (SELECT count(*) FROM library_chunks WHERE library_chunks.document = document.id)
               FROM library_collections AS collection
               JOIN library_documents AS document ON document.collection = collection.id ",
            $rest
        )
    };
}

statements! {
INSERT_COLLECTION: r#"INSERT INTO library_collections ("user", name, session) VALUES ($1, $2, $3)
     ON CONFLICT DO NOTHING"#;

COLLECTION: r#"SELECT id FROM library_collections WHERE "user" = $1 AND name = $2 AND session = $3"#;

/// Locks collections in a fixed order, so that no two transactions deadlock.
LOCK_COLLECTIONS: concat!("SELECT id FROM library_collections WHERE id ", any!("$1"),
    " ORDER BY id /*postgres FOR UPDATE*/");

/// Selects a user's collections. With a session, selects only those that are visible in it.
COLLECTIONS: r#"SELECT id, name, nullif(session, ''), chunks, words, vectors FROM library_collections
      WHERE "user" = $1 AND ($2::text IS NULL OR session = '' OR session = $2) ORDER BY name, session"#;

SIZE: concat!("SELECT coalesce(sum(chunks), 0)::bigint, coalesce(sum(words), 0)::bigint
       FROM library_collections WHERE id ", any!("$1"));

/// Inserts documents with [`Tx::batch`](crate::backend::Tx::batch). Skips those whose name is taken.
INSERT_DOCUMENT: "INSERT INTO library_documents (collection, source, trust, title, hash, size, added)
     /*sqlite VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT DO NOTHING*/
     /*postgres SELECT new.* FROM unnest($1::bigint[], $2::text[], $3::text[], $4::text[], $5::bytea[],
                              $6::bigint[], $7::bigint[])
                    AS new (collection, source, trust, title, hash, size, added)
      WHERE NOT EXISTS (
            SELECT FROM library_documents AS old WHERE old.collection = new.collection
               AND hashtextextended(old.source, 0) = hashtextextended(new.source, 0)
               AND old.source = new.source LIMIT 1)*/
     RETURNING id";

/// Selects documents by name with [`Tx::batch`](crate::backend::Tx::batch).
DOCUMENT_KEY: "SELECT document.id, document.collection, document.source FROM library_documents AS document
     /*sqlite WHERE collection = $1 AND source = $2*/
     /*postgres JOIN unnest($1::bigint[], $2::text[]) AS key (collection, source)
         ON document.collection = key.collection
        AND hashtextextended(document.source, 0) = hashtextextended(key.source, 0)
        AND document.source = key.source*/";

COMPLETE_DOCUMENTS: concat!("UPDATE library_documents SET complete = 1 WHERE id ", any!("$1"));

/// Reserves numbers for new chunks of a collection. Returns the first.
RESERVE_CHUNK_KEYS: "UPDATE library_collections
        SET next_chunk = next_chunk + $2, chunks = chunks + $2, words = words + $3
      WHERE id = $1 RETURNING next_chunk - $2";

ADD_CHUNK_COUNTS:
    "UPDATE library_collections SET chunks = chunks + $2, words = words + $3 WHERE id = $1";

/// Inserts chunks with [`Tx::batch`](crate::backend::Tx::batch). In SQLite a trigger indexes the words.
INSERT_CHUNK: "INSERT INTO library_chunks (id, document, ordinal, position, words, heading, text)
     /*sqlite VALUES ($1, $2, $3, $4, $5, $6, $7)*/
     /*postgres SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[], $5::bigint[],
                          $6::text[], $7::text[])*/";

/// Selects the collection of a document, if the user owns it.
COLLECTION_OF_DOCUMENT: r#"SELECT document.collection FROM library_documents AS document
       JOIN library_collections AS collection ON collection.id = document.collection
      WHERE document.id = $1 AND collection."user" = $2"#;

CHUNKS_OF_DOCUMENT:
    "SELECT id, words FROM library_chunks WHERE document = $1 ORDER BY ordinal LIMIT $2";

DELETE_CHUNKS: concat!("DELETE FROM library_chunks WHERE id ", any!("$1"));

DELETE_DOCUMENT: "DELETE FROM library_documents WHERE id = $1";

/// Selects documents by a range of names. PostgreSQL's index has the first 300 characters of the names. In SQLite the blob that
/// replaces a missing end is greater than any text.
DOCUMENTS_IN_RANGE: documents!(
    r#"WHERE collection.id = $2 AND collection."user" = $1 AND document.source >= $3
       /*sqlite AND document.source < coalesce($4, x'00') ORDER BY document.source*/
       /*postgres AND left(document.source, 300) >= left($3, 300)
                  AND ($4::text IS NULL OR document.source < $4)
                ORDER BY left(document.source, 300), document.source*/
       LIMIT $5"#
);

DOCUMENTS_NAMED: documents!(
    r#"WHERE collection."user" = $1 AND document.source = $2
       /*postgres AND hashtextextended(document.source, 0) = hashtextextended($2, 0) ORDER BY document.id*/"#
);

DOCUMENT_BY_ID: documents!(r#"WHERE document.id = $2 AND collection."user" = $1"#);

CHUNKS: concat!(
    "SELECT chunk.id, document.id, collection.name, document.source, document.trust, document.title,
            chunk.heading, chunk.text, chunk.ordinal, chunk.position
       FROM library_chunks AS chunk
       JOIN library_documents AS document ON document.id = chunk.document
       JOIN library_collections AS collection ON collection.id = document.collection
      WHERE chunk.id ", any!("$1"));

CHUNK_LENGTHS: concat!("SELECT id, document, words FROM library_chunks WHERE id ", any!("$1"));

EXISTING_CHUNKS: concat!("SELECT id FROM library_chunks WHERE id ", any!("$1"));

MODEL: r#"SELECT maker FROM library_maker WHERE "only" = 1"#;

MODEL_FOR_SHARE: r#"SELECT maker FROM library_maker WHERE "only" = 1 /*postgres FOR SHARE*/"#;

MODEL_FOR_UPDATE: r#"SELECT maker FROM library_maker WHERE "only" = 1 /*postgres FOR UPDATE*/"#;

INSERT_MODEL: r#"INSERT INTO library_maker ("only", maker) VALUES (1, $1) ON CONFLICT ("only") DO NOTHING"#;

SET_MODEL: r#"UPDATE library_maker SET maker = $1 WHERE "only" = 1"#;

/// Inserts vectors with [`Tx::batch`](crate::backend::Tx::batch). Returns the chunks that had no vector.
INSERT_VECTOR: "INSERT INTO library_vectors (chunk, numbers)
     /*sqlite VALUES ($1, $2)*/ /*postgres SELECT * FROM unnest($1::bigint[], $2::bytea[])*/
     ON CONFLICT DO NOTHING RETURNING chunk";

VECTORS: concat!("SELECT chunk, numbers FROM library_vectors WHERE chunk ", any!("$1"));

/// Deletes the vectors of chunks. Returns the chunks that had one.
DELETE_VECTORS: concat!("DELETE FROM library_vectors WHERE chunk ", any!("$1"), " RETURNING chunk");

BLOCKS: concat!("SELECT block, present, bits FROM library_bits WHERE block ", any!("$1"));

BLOCKS_IN_RANGE:
    "SELECT block, present, bits FROM library_bits WHERE block >= $1 AND block < $2 ORDER BY block";

/// Selects the generation and number of vectors of each collection, the model of all vectors, and the approximate number of vectors
/// in pgvector's index, if it exists.
GENERATIONS: concat!(r#"SELECT id, generation, vectors, (SELECT maker FROM library_maker WHERE "only" = 1),
            /*sqlite NULL*/ /*postgres (SELECT max(reltuples)::bigint
                FROM pg_index JOIN pg_class ON pg_class.oid = pg_index.indexrelid
               WHERE indrelid = 'library_vectors'::regclass AND relname LIKE 'library_near_%')*/
       FROM library_collections WHERE id "#, any!("$1"));

/// Inserts or replaces blocks with [`Tx::batch`](crate::backend::Tx::batch).
SET_BLOCK: "INSERT INTO library_bits (block, present, bits)
     /*sqlite VALUES ($1, $2, $3)*/ /*postgres SELECT * FROM unnest($1::bigint[], $2::bytea[], $3::bytea[])*/
     ON CONFLICT (block) DO UPDATE SET present = excluded.present, bits = excluded.bits";

DELETE_BLOCKS: concat!("DELETE FROM library_bits WHERE block ", any!("$1"));

ADD_VECTOR_COUNT: "UPDATE library_collections
        SET vectors = vectors + $2, generation = generation + 1 WHERE id = $1";

/// Selects chunks without a vector. It uses a subquery for each row, because PostgreSQL would sort all rows of a join.
MISSING_VECTORS: "SELECT id, heading, text FROM library_chunks
      WHERE id > $1
        AND (SELECT chunk FROM library_vectors WHERE chunk = library_chunks.id) IS NULL
      ORDER BY id LIMIT $2";

NEWEST_KNOWLEDGE: r#"SELECT version, category, content, tags, document FROM knowledge
      WHERE "user" = $1 AND key = $2 ORDER BY version DESC LIMIT 1"#;

INSERT_KNOWLEDGE: r#"INSERT INTO knowledge
            ("user", key, version, category, content, tags, source, trust, saved, document)
     VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)"#;

OUTDATE_KNOWLEDGE:
    r#"UPDATE knowledge SET document = NULL WHERE "user" = $1 AND key = $2 AND version = $3"#;

/// Deletes all versions under the key whose newest version has this document.
DELETE_KNOWLEDGE: r#"DELETE FROM knowledge
      WHERE "user" = $1 AND key = (SELECT key FROM knowledge WHERE document = $2)"#;

DELETE_LEARNING: r#"DELETE FROM learnings WHERE document = $2 AND "user" = $1"#;

KNOWLEDGE_OF_DOCUMENTS: concat!(
    "SELECT key, version, category, content, tags, source, trust, saved, document
       FROM knowledge WHERE document ", any!("$2"), r#" AND /*sqlite +*/"user" = $1"#);

KNOWLEDGE_VERSIONS: r#"SELECT key, version, category, content, tags, source, trust, saved
       FROM knowledge WHERE "user" = $1 AND key = $2 ORDER BY version DESC LIMIT $3"#;

LEARNING_DOCUMENT: r#"SELECT document FROM learnings WHERE "user" = $1 AND occasion = $2 AND fix = $3
        /*postgres AND hashtextextended(occasion, 0) = hashtextextended($2, 0)
        AND hashtextextended(fix, 0) = hashtextextended($3, 0)*/"#;

INSERT_LEARNING: r#"INSERT /*sqlite OR REPLACE*/ INTO learnings
            ("user", occasion, fix, error_pattern, confidence, source, trust, saved, document)
     VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)"#;

LEARNINGS_OF_DOCUMENTS: concat!(
    "SELECT occasion, fix, error_pattern, confidence, source, trust, saved, document
       FROM learnings WHERE document ", any!("$2"), r#" AND /*sqlite +*/"user" = $1"#);
}

/// Deletes all vectors when the model changes. There is no condition, so SQLite frees whole pages, which is fast.
pub(super) const DELETE_ALL_VECTORS: [Sql; 3] = [
    sql!("DELETE FROM library_vectors"),
    sql!("DELETE FROM library_bits"),
    sql!("UPDATE library_collections SET vectors = 0, generation = generation + 1"),
];
