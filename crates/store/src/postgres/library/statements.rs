//! The library's SQL, all of it. Each statement finds its rows by a key.

pub(super) const INSERT_COLLECTION: &str = r#"INSERT INTO library_collections ("user", name, session) VALUES ($1, $2, $3)
     ON CONFLICT DO NOTHING"#;

pub(super) const COLLECTION: &str =
    r#"SELECT id FROM library_collections WHERE "user" = $1 AND name = $2 AND session = $3"#;

/// In one order, so that no two transactions wait for each other.
pub(super) const HOLD_COLLECTIONS: &str =
    "SELECT id FROM library_collections WHERE id = ANY ($1) ORDER BY id FOR UPDATE";

pub(super) const VISIBLE: &str = r#"SELECT id, name, session, chunks, words, vectors
       FROM library_collections WHERE "user" = $1 AND (session = '' OR session = $2)
      ORDER BY name, session"#;

pub(super) const ALL_COLLECTIONS: &str = r#"SELECT id, name, session, chunks, words, vectors
       FROM library_collections WHERE "user" = $1 ORDER BY name, session"#;

pub(super) const COLLECTION_SIZES: &str =
    "SELECT id, chunks, words FROM library_collections WHERE id = ANY ($1)";

/// Unless there is one of that name.
pub(super) const INSERT_DOCUMENTS: &str =
    "INSERT INTO library_documents (collection, source, trust, title, hash, size, added)
     SELECT new.* FROM unnest($1::bigint[], $2::text[], $3::text[], $4::text[], $5::bytea[],
                              $6::bigint[], $7::bigint[])
                    AS new (collection, source, trust, title, hash, size, added)
      WHERE NOT EXISTS (
            SELECT FROM library_documents AS there WHERE there.collection = new.collection
               AND hashtextextended(there.source, 0) = hashtextextended(new.source, 0)
               AND there.source = new.source LIMIT 1)";

pub(super) const DOCUMENT_KEYS: &str = "SELECT there.id, there.collection, there.source
       FROM unnest($1::bigint[], $2::text[]) AS asked (collection, source)
       JOIN library_documents AS there ON there.collection = asked.collection
        AND hashtextextended(there.source, 0) = hashtextextended(asked.source, 0)
        AND there.source = asked.source";

pub(super) const COMPLETE_DOCUMENTS: &str =
    "UPDATE library_documents SET complete = 1 WHERE id = ANY ($1)";

/// Numbers for new chunks of a collection; gives the first of them.
pub(super) const TAKE_CHUNK_KEYS: &str = "UPDATE library_collections
        SET next_chunk = next_chunk + $2, chunks = chunks + $2, words = words + $3
      WHERE id = $1 RETURNING next_chunk - $2";

pub(super) const ADD_CHUNK_COUNTS: &str =
    "UPDATE library_collections SET chunks = chunks + $2, words = words + $3 WHERE id = $1";

pub(super) const INSERT_CHUNKS: &str =
    "INSERT INTO library_chunks (id, document, ordinal, position, words, heading, text)
     SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[], $5::bigint[],
                          $6::text[], $7::text[])";

/// The terms of chunks, and for those that come again how often, as far as that is marked.
pub(super) const INSERT_WORDS: &str = "INSERT INTO library_index (chunk, terms)
     SELECT chunk.id, array_to_tsvector(coalesce(
                (SELECT array_agg(word.lexeme || often.mark)
                   FROM unnest(to_tsvector('library_words', chunk.folded)) AS word
                   JOIN (VALUES (1, ''), (2, ' 2'), (3, ' 3'), (4, ' 4'), (6, ' 6'), (9, ' 9'))
                        AS often (times, mark) ON often.times <= cardinality(word.positions)),
                '{}'))
       FROM unnest($1::bigint[], $2::text[]) AS chunk (id, folded)";

/// The collection of a document, if it is the user's.
pub(super) const OWNED_DOCUMENT: &str = r#"SELECT document.collection FROM library_documents AS document
       JOIN library_collections AS collection ON collection.id = document.collection
      WHERE document.id = $1 AND collection."user" = $2"#;

pub(super) const SOME_CHUNKS: &str =
    "SELECT id, words FROM library_chunks WHERE document = $1 ORDER BY ordinal LIMIT $2";

pub(super) const DELETE_CHUNKS: &str = "DELETE FROM library_chunks WHERE id = ANY ($1)";

pub(super) const DELETE_DOCUMENT: &str = "DELETE FROM library_documents WHERE id = $1";

/// The columns of a document.
macro_rules! documents {
    ($rest:literal) => {
        concat!(
            "SELECT document.id, collection.name, collection.session, document.source, document.trust,
                    document.title, document.hash, document.size, document.added, document.complete,
                    (SELECT count(*) FROM library_chunks WHERE library_chunks.document = document.id)
               FROM library_collections AS collection
               JOIN library_documents AS document ON document.collection = collection.id ",
            $rest
        )
    };
}

/// A collection's documents whose names are in a range. The index has the beginnings of the names.
pub(super) const DOCUMENTS_IN_RANGE: &str = documents!(
    r#"WHERE collection.id = $2 AND collection."user" = $1
       AND left(document.source, 300) >= left($3, 300) AND document.source >= $3
       AND ($4::text IS NULL OR document.source < $4)
     ORDER BY left(document.source, 300), document.source LIMIT $5"#
);

pub(super) const DOCUMENTS_NAMED: &str = documents!(
    r#"WHERE collection."user" = $1
       AND hashtextextended(document.source, 0) = hashtextextended($2, 0) AND document.source = $2
     ORDER BY document.id"#
);

pub(super) const DOCUMENT_BY_ID: &str =
    documents!(r#"WHERE document.id = $2 AND collection."user" = $1"#);

pub(super) const CHUNKS: &str =
    "SELECT chunk.id, document.id, collection.name, document.source, document.trust, document.title,
            chunk.heading, chunk.text, chunk.ordinal, chunk.position
       FROM library_chunks AS chunk
       JOIN library_documents AS document ON document.id = chunk.document
       JOIN library_collections AS collection ON collection.id = document.collection
      WHERE chunk.id = ANY ($1)";

pub(super) const LENGTHS: &str =
    "SELECT id, document, words FROM library_chunks WHERE id = ANY ($1)";

/// Which of these chunks there are.
pub(super) const THERE: &str = "SELECT id FROM library_chunks WHERE id = ANY ($1)";

pub(super) const MAKER: &str = r#"SELECT maker FROM library_maker WHERE "only" = 1"#;

/// The same; nobody changes it until the end of the transaction.
pub(super) const SHARE_MAKER: &str =
    r#"SELECT maker FROM library_maker WHERE "only" = 1 FOR SHARE"#;

/// The same, for whoever may change it.
pub(super) const HOLD_MAKER: &str =
    r#"SELECT maker FROM library_maker WHERE "only" = 1 FOR UPDATE"#;

pub(super) const INSERT_MAKER: &str = r#"INSERT INTO library_maker ("only", maker) VALUES (1, $1)
     ON CONFLICT ("only") DO NOTHING"#;

pub(super) const SET_MAKER: &str = r#"UPDATE library_maker SET maker = $1 WHERE "only" = 1"#;

/// Gives the chunks that had none.
pub(super) const INSERT_VECTORS: &str = "INSERT INTO library_vectors (chunk, numbers)
     SELECT * FROM unnest($1::bigint[], $2::bytea[]) ON CONFLICT DO NOTHING RETURNING chunk";

pub(super) const VECTORS: &str =
    "SELECT chunk, numbers FROM library_vectors WHERE chunk = ANY ($1)";

/// Gives the chunks that had one.
pub(super) const DELETE_SOME_VECTORS: &str =
    "DELETE FROM library_vectors WHERE chunk = ANY ($1) RETURNING chunk";

pub(super) const BLOCKS_WITH_KEYS: &str =
    "SELECT block, present, bits FROM library_bits WHERE block = ANY ($1)";

pub(super) const BLOCKS: &str =
    "SELECT block, present, bits FROM library_bits WHERE block >= $1 AND block < $2 ORDER BY block";

/// How old the vectors of collections are and how many, and who made all of them.
pub(super) const GENERATIONS: &str = r#"SELECT id, generation, vectors,
            (SELECT maker FROM library_maker WHERE "only" = 1)
       FROM library_collections WHERE id = ANY ($1)"#;

pub(super) const SET_BLOCKS: &str = "INSERT INTO library_bits (block, present, bits)
     SELECT * FROM unnest($1::bigint[], $2::bytea[], $3::bytea[])
     ON CONFLICT (block) DO UPDATE SET present = excluded.present, bits = excluded.bits";

pub(super) const DELETE_BLOCKS: &str = "DELETE FROM library_bits WHERE block = ANY ($1)";

pub(super) const ADD_VECTOR_COUNT: &str = "UPDATE library_collections
        SET vectors = vectors + $2, generation = generation + 1 WHERE id = $1";

/// All of them, when another maker begins.
pub(super) const DELETE_VECTORS: &str = "DELETE FROM library_vectors";
pub(super) const DELETE_BITS: &str = "DELETE FROM library_bits";
pub(super) const NO_VECTORS: &str =
    "UPDATE library_collections SET vectors = 0, generation = generation + 1";

/// Looked for one by one, because all of them would be sorted otherwise.
pub(super) const MISSING_VECTORS: &str = "SELECT id, heading, text FROM library_chunks
      WHERE id > $1
        AND (SELECT chunk FROM library_vectors WHERE chunk = library_chunks.id) IS NULL
      ORDER BY id LIMIT $2";

/// What the index has for each of some words, and in how many chunks that is by the server's statistics, if it is among the
/// most common ones there. It also keeps the rest of the transaction from reading the index' table from end to end, in
/// whatever order, which the planner likes for common words and which unpacks every list of terms.
pub(super) const TERMS: &str =
    "SELECT word.place, term.lexeme, (common.share * common.chunks)::bigint
       FROM set_config('enable_seqscan', 'off', true) AS as_it_is
      CROSS JOIN set_config('enable_indexscan', 'off', true) AS by_key
      CROSS JOIN unnest($1::text[]) WITH ORDINALITY AS word (folded, place)
      CROSS JOIN unnest(to_tsvector('library_words', word.folded)) AS term
       LEFT JOIN (
            SELECT known.term, known.share, pg_class.reltuples AS chunks
              FROM pg_class
              JOIN pg_stats ON schemaname = current_schema() AND tablename = 'library_index' AND attname = 'terms'
             CROSS JOIN unnest(most_common_elems::text::text[], most_common_elem_freqs) AS known (term, share)
             WHERE pg_class.oid = 'library_index'::regclass) AS common ON common.term = term.lexeme
      ORDER BY word.place, term.lexeme";

/// In how many chunks of all collections each term is.
pub(super) const TERM_COUNTS: &str =
    "SELECT (SELECT count(*) FROM library_index WHERE terms @@ asked.term::tsquery)
       FROM unnest($1::text[]) WITH ORDINALITY AS asked (term, place) ORDER BY asked.place";

/// The chunks of some collections that each term is in. A range of keys would say the same as the shift, and the planner would
/// follow it through every list of terms.
pub(super) const POSTINGS: &str = "SELECT coalesce((SELECT array_agg(chunk) FROM library_index
                       WHERE terms @@ asked.term::tsquery AND chunk >> 32 = ANY ($2)), '{}')
       FROM unnest($1::text[]) WITH ORDINALITY AS asked (term, place) ORDER BY asked.place";

pub(super) const ALL_CHUNKS: &str =
    "SELECT coalesce(sum(chunks), 0)::bigint FROM library_collections";

pub(super) const NEWEST_KNOWLEDGE: &str = r#"SELECT version, category, content, tags, document FROM knowledge
      WHERE "user" = $1 AND key = $2 ORDER BY version DESC LIMIT 1"#;

pub(super) const INSERT_KNOWLEDGE: &str = r#"INSERT INTO knowledge ("user", key, version, category, content, tags, source, trust, saved, document)
     VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)"#;

pub(super) const OUTDATE_KNOWLEDGE: &str =
    r#"UPDATE knowledge SET document = NULL WHERE "user" = $1 AND key = $2 AND version = $3"#;

/// All versions under the key whose newest one has this document.
pub(super) const DELETE_KNOWLEDGE: &str = r#"DELETE FROM knowledge
      WHERE "user" = $1 AND key = (SELECT key FROM knowledge WHERE document = $2)"#;

pub(super) const DELETE_LEARNING: &str =
    r#"DELETE FROM learnings WHERE document = $2 AND "user" = $1"#;

pub(super) const KNOWLEDGE_OF_DOCUMENTS: &str = r#"SELECT key, version, category, content, tags, source, trust, saved, document
       FROM knowledge WHERE document = ANY ($2) AND "user" = $1"#;

pub(super) const KNOWLEDGE_VERSIONS: &str = r#"SELECT key, version, category, content, tags, source, trust, saved
       FROM knowledge WHERE "user" = $1 AND key = $2 ORDER BY version DESC LIMIT $3"#;

pub(super) const LEARNING_DOCUMENT: &str = r#"SELECT document FROM learnings
      WHERE "user" = $1 AND hashtextextended(occasion, 0) = hashtextextended($2, 0) AND occasion = $2
        AND hashtextextended(fix, 0) = hashtextextended($3, 0) AND fix = $3"#;

pub(super) const INSERT_LEARNING: &str = r#"INSERT INTO learnings ("user", occasion, fix, error_pattern, confidence, source, trust, saved, document)
     VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)"#;

pub(super) const LEARNINGS_OF_DOCUMENTS: &str = r#"SELECT occasion, fix, error_pattern, confidence, source, trust, saved, document
       FROM learnings WHERE document = ANY ($2) AND "user" = $1"#;

/// What is asked every day.
#[cfg(test)]
pub(in crate::postgres) const EVERYDAY: &[&str] = &[
    INSERT_COLLECTION,
    COLLECTION,
    HOLD_COLLECTIONS,
    VISIBLE,
    ALL_COLLECTIONS,
    COLLECTION_SIZES,
    INSERT_DOCUMENTS,
    DOCUMENT_KEYS,
    COMPLETE_DOCUMENTS,
    TAKE_CHUNK_KEYS,
    ADD_CHUNK_COUNTS,
    INSERT_CHUNKS,
    OWNED_DOCUMENT,
    SOME_CHUNKS,
    DELETE_CHUNKS,
    DELETE_DOCUMENT,
    DOCUMENTS_IN_RANGE,
    DOCUMENTS_NAMED,
    DOCUMENT_BY_ID,
    CHUNKS,
    LENGTHS,
    THERE,
    MAKER,
    SHARE_MAKER,
    HOLD_MAKER,
    INSERT_MAKER,
    SET_MAKER,
    INSERT_VECTORS,
    VECTORS,
    DELETE_SOME_VECTORS,
    BLOCKS_WITH_KEYS,
    BLOCKS,
    GENERATIONS,
    SET_BLOCKS,
    DELETE_BLOCKS,
    ADD_VECTOR_COUNT,
    MISSING_VECTORS,
    NEWEST_KNOWLEDGE,
    INSERT_KNOWLEDGE,
    OUTDATE_KNOWLEDGE,
    DELETE_KNOWLEDGE,
    DELETE_LEARNING,
    KNOWLEDGE_OF_DOCUMENTS,
    KNOWLEDGE_VERSIONS,
    LEARNING_DOCUMENT,
    INSERT_LEARNING,
    LEARNINGS_OF_DOCUMENTS,
];

/// What is asked of the index of words.
#[cfg(test)]
pub(in crate::postgres) const BY_WORDS: &[&str] = &[TERM_COUNTS, POSTINGS];
