//! The library's SQL, all of it. Each statement finds its rows by a key.

pub(super) const INSERT_COLLECTION: &str =
    "INSERT INTO library_collections (user, name, session) VALUES (?1, ?2, ?3)
     ON CONFLICT DO NOTHING";

pub(super) const COLLECTION: &str =
    "SELECT id FROM library_collections WHERE user = ?1 AND name = ?2 AND session = ?3";

pub(super) const VISIBLE: &str = "SELECT id, name, session, chunks, words, vectors
       FROM library_collections WHERE user = ?1 AND (session = '' OR session = ?2)";

pub(super) const ALL_COLLECTIONS: &str = "SELECT id, name, session, chunks, words, vectors
       FROM library_collections WHERE user = ?1 ORDER BY name, session";

pub(super) const COLLECTION_SIZE: &str =
    "SELECT chunks, words FROM library_collections WHERE id = ?1";

pub(super) const INSERT_DOCUMENT: &str =
    "INSERT INTO library_documents (collection, source, trust, title, hash, size, added)
     VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)";

pub(super) const DOCUMENT_KEY: &str =
    "SELECT id FROM library_documents WHERE collection = ?1 AND source = ?2";

pub(super) const COMPLETE_DOCUMENT: &str =
    "UPDATE library_documents SET complete = 1 WHERE id = ?1";

/// Numbers for new chunks of a collection; gives the first of them.
pub(super) const TAKE_CHUNK_KEYS: &str = "UPDATE library_collections
        SET next_chunk = next_chunk + ?2, chunks = chunks + ?2, words = words + ?3
      WHERE id = ?1 RETURNING next_chunk - ?2";

pub(super) const ADD_CHUNK_COUNTS: &str =
    "UPDATE library_collections SET chunks = chunks + ?2, words = words + ?3 WHERE id = ?1";

pub(super) const INSERT_CHUNK: &str =
    "INSERT INTO library_chunks (id, document, ordinal, position, words, heading, text)
     VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)";

/// The collection of a document, if it is the user's.
pub(super) const OWNED_DOCUMENT: &str =
    "SELECT document.collection FROM library_documents AS document
       JOIN library_collections AS collection ON collection.id = document.collection
      WHERE document.id = ?1 AND collection.user = ?2";

pub(super) const CHUNKS_OF_DOCUMENT: &str =
    "SELECT id, words FROM library_chunks WHERE document = ?1 LIMIT ?2";

pub(super) const DELETE_CHUNK: &str = "DELETE FROM library_chunks WHERE id = ?1";

pub(super) const DELETE_DOCUMENT: &str = "DELETE FROM library_documents WHERE id = ?1";

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

/// A collection's documents whose names are in a range. Without an end it is a blob, which is greater than any text.
pub(super) const DOCUMENTS_IN_RANGE: &str = documents!(
    "WHERE collection.id = ?2 AND collection.user = ?1
       AND document.source >= ?3 AND document.source < coalesce(?4, x'00')
     ORDER BY document.source LIMIT ?5"
);

pub(super) const DOCUMENTS_NAMED: &str =
    documents!("WHERE collection.user = ?1 AND document.source = ?2");

pub(super) const DOCUMENT_BY_ID: &str =
    documents!("WHERE document.id = ?2 AND collection.user = ?1");

pub(super) const CHUNK: &str =
    "SELECT chunk.id, document.id, collection.name, document.source, document.trust, document.title,
            chunk.heading, chunk.text, chunk.ordinal, chunk.position
       FROM library_chunks AS chunk
       JOIN library_documents AS document ON document.id = chunk.document
       JOIN library_collections AS collection ON collection.id = document.collection
      WHERE chunk.id = ?1";

pub(super) const CHUNK_LENGTH: &str = "SELECT document, words FROM library_chunks WHERE id = ?1";

pub(super) const HAS_CHUNK: &str = "SELECT 1 FROM library_chunks WHERE id = ?1";

pub(super) const MAKER: &str = "SELECT maker FROM library_maker WHERE only = 1";

pub(super) const SET_MAKER: &str = "INSERT INTO library_maker (only, maker) VALUES (1, ?1)
     ON CONFLICT (only) DO UPDATE SET maker = excluded.maker";

pub(super) const INSERT_VECTOR: &str =
    "INSERT INTO library_vectors (chunk, numbers) VALUES (?1, ?2) ON CONFLICT DO NOTHING";

pub(super) const VECTOR: &str = "SELECT numbers FROM library_vectors WHERE chunk = ?1";

pub(super) const DELETE_VECTOR: &str = "DELETE FROM library_vectors WHERE chunk = ?1";

pub(super) const BLOCK: &str = "SELECT present, bits FROM library_bits WHERE block = ?1";

pub(super) const BLOCKS: &str =
    "SELECT block, present, bits FROM library_bits WHERE block >= ?1 AND block < ?2";

pub(super) const GENERATION: &str =
    "SELECT generation, vectors FROM library_collections WHERE id = ?1";

pub(super) const SET_BLOCK: &str =
    "INSERT INTO library_bits (block, present, bits) VALUES (?1, ?2, ?3)
     ON CONFLICT (block) DO UPDATE SET present = excluded.present, bits = excluded.bits";

pub(super) const DELETE_BLOCK: &str = "DELETE FROM library_bits WHERE block = ?1";

pub(super) const ADD_VECTOR_COUNT: &str = "UPDATE library_collections
        SET vectors = vectors + ?2, generation = generation + 1 WHERE id = ?1";

/// All of them, when another maker begins.
pub(super) const DELETE_VECTORS: &str = "DELETE FROM library_vectors";
pub(super) const DELETE_BITS: &str = "DELETE FROM library_bits";
pub(super) const NO_VECTORS: &str =
    "UPDATE library_collections SET vectors = 0, generation = generation + 1";

pub(super) const MISSING_VECTORS: &str = "SELECT id, heading, text FROM library_chunks
      WHERE id > ?1 AND NOT EXISTS (SELECT 1 FROM library_vectors WHERE chunk = library_chunks.id)
      ORDER BY id LIMIT ?2";

/// How often a word is there, in all collections.
pub(super) const WORD_COUNT: &str = "SELECT doc, cnt FROM library_words WHERE term = ?1";

/// Where a word is, in all collections, in the order of the chunks.
pub(super) const WORD_PLACES: &str = "SELECT doc FROM library_places WHERE term = ?1";

pub(super) const ALL_CHUNKS: &str = "SELECT coalesce(sum(chunks), 0) FROM library_collections";

/// What is deleted from now on is taken out of the index and wiped from the file, not only marked; and no longer.
pub(super) const BEGIN_WIPING: &str =
    "INSERT INTO library_index (library_index, rank) VALUES ('secure-delete', 1);
     PRAGMA secure_delete = ON";
pub(super) const END_WIPING: &str =
    "INSERT INTO library_index (library_index, rank) VALUES ('secure-delete', 0);
     PRAGMA secure_delete = OFF";

/// A place of the connection's own where words become what the index has for them.
pub(super) const MAKE_QUERY: &str =
    "CREATE VIRTUAL TABLE IF NOT EXISTS temp.library_query USING fts5 (
         text, content = '', tokenize = 'porter unicode61 remove_diacritics 2');
     CREATE VIRTUAL TABLE IF NOT EXISTS temp.library_query_words
         USING fts5vocab ('temp', 'library_query', 'instance');";
pub(super) const HAS_QUERY: &str =
    "SELECT 1 FROM temp.sqlite_schema WHERE name = 'library_query_words'";
pub(super) const ASK: &str = "INSERT INTO temp.library_query (rowid, text) VALUES (?1, ?2)";
pub(super) const ASKED: &str = "SELECT doc, term FROM temp.library_query_words";
pub(super) const FORGET_QUERY: &str =
    "INSERT INTO temp.library_query (library_query) VALUES ('delete-all')";

pub(super) const NEWEST_KNOWLEDGE: &str =
    "SELECT version, category, content, tags, document FROM knowledge
      WHERE user = ?1 AND key = ?2 ORDER BY version DESC LIMIT 1";

pub(super) const INSERT_KNOWLEDGE: &str =
    "INSERT INTO knowledge (user, key, version, category, content, tags, source, trust, saved, document)
     VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)";

pub(super) const OUTDATE_KNOWLEDGE: &str =
    "UPDATE knowledge SET document = NULL WHERE user = ?1 AND key = ?2 AND version = ?3";

/// All versions under the key whose newest one has this document.
pub(super) const DELETE_KNOWLEDGE: &str = "DELETE FROM knowledge
      WHERE user = ?1 AND key = (SELECT key FROM knowledge WHERE document = ?2)";

pub(super) const DELETE_LEARNING: &str = "DELETE FROM learnings WHERE document = ?2 AND user = ?1";

pub(super) const KNOWLEDGE_OF_DOCUMENT: &str =
    "SELECT key, version, category, content, tags, source, trust, saved
       FROM knowledge WHERE document = ?2 AND user = ?1";

pub(super) const KNOWLEDGE_VERSIONS: &str =
    "SELECT key, version, category, content, tags, source, trust, saved
       FROM knowledge WHERE user = ?1 AND key = ?2 ORDER BY version DESC LIMIT ?3";

pub(super) const LEARNING_DOCUMENT: &str =
    "SELECT document FROM learnings WHERE user = ?1 AND occasion = ?2 AND fix = ?3";

pub(super) const SAVE_LEARNING: &str =
    "INSERT INTO learnings (user, occasion, fix, error_pattern, confidence, source, trust, saved, document)
     VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)
     ON CONFLICT (user, occasion, fix) DO UPDATE
        SET error_pattern = excluded.error_pattern, confidence = excluded.confidence,
            source = excluded.source, trust = excluded.trust, saved = excluded.saved,
            document = excluded.document";

pub(super) const LEARNING_OF_DOCUMENT: &str =
    "SELECT occasion, fix, error_pattern, confidence, source, trust, saved
       FROM learnings WHERE document = ?2 AND user = ?1";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sqlite::connection::open_writer;

    const EVERYDAY: [&str; 40] = [
        INSERT_COLLECTION,
        COLLECTION,
        VISIBLE,
        ALL_COLLECTIONS,
        DELETE_KNOWLEDGE,
        DELETE_LEARNING,
        COLLECTION_SIZE,
        INSERT_DOCUMENT,
        DOCUMENT_KEY,
        COMPLETE_DOCUMENT,
        TAKE_CHUNK_KEYS,
        ADD_CHUNK_COUNTS,
        INSERT_CHUNK,
        OWNED_DOCUMENT,
        CHUNKS_OF_DOCUMENT,
        DELETE_CHUNK,
        DELETE_DOCUMENT,
        DOCUMENTS_IN_RANGE,
        DOCUMENTS_NAMED,
        DOCUMENT_BY_ID,
        CHUNK,
        CHUNK_LENGTH,
        HAS_CHUNK,
        MAKER,
        SET_MAKER,
        INSERT_VECTOR,
        VECTOR,
        DELETE_VECTOR,
        BLOCK,
        BLOCKS,
        GENERATION,
        SET_BLOCK,
        DELETE_BLOCK,
        ADD_VECTOR_COUNT,
        MISSING_VECTORS,
        NEWEST_KNOWLEDGE,
        OUTDATE_KNOWLEDGE,
        KNOWLEDGE_VERSIONS,
        LEARNING_DOCUMENT,
        SAVE_LEARNING,
    ];

    #[test]
    fn no_everyday_statement_of_the_library_scans_a_table_or_sorts() {
        let folder = tempfile::tempdir().unwrap();
        let connection = open_writer(&folder.path().join("lango.db")).unwrap();
        for statement in EVERYDAY {
            let mut plan = connection
                .prepare(&format!("EXPLAIN QUERY PLAN {statement}"))
                .unwrap();
            let unbound = vec![rusqlite::types::Null; plan.parameter_count()];
            let lines: Vec<String> = plan
                .query_map(rusqlite::params_from_iter(unbound), |row| row.get("detail"))
                .unwrap()
                .collect::<Result<_, _>>()
                .unwrap();
            let plan = lines.join("\n");
            assert!(
                !plan.contains("SCAN") && !plan.contains("TEMP B-TREE"),
                "{statement}\n{plan}"
            );
        }
    }
}
