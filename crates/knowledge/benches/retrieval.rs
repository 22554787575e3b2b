//! Writes the rankings of a collection with known answers, which `scripts/retrieval` evaluates.
//!
//! `retrieval FOLDER OUT [DATABASE]` adds the documents of `FOLDER/docs.jsonl` as files to a library in a temporary
//! database, or in an empty one such as `postgres://…`. It runs the queries of `FOLDER/queries.jsonl` in every mode and
//! writes `OUT`: for each mode and query the ids of the first hundred documents.

#![allow(clippy::unwrap_used, reason = "a broken input ends the measurement")]

use lango_core::{Clock, Timestamp, UserId};
use lango_knowledge::{AddOptions, Library, LibraryQuery, LibrarySearchMode, OfflineEmbedder};
use lango_store::Store;
use serde_json::{Map, Value, json};
use std::collections::HashMap;
use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

/// The number of documents in a ranking.
const DEPTH: usize = 100;

/// The number of requested chunks. It is larger, because a long document may have several hits.
const CHUNKS: usize = 400;

struct FixedClock;

impl Clock for FixedClock {
    fn now(&self) -> Timestamp {
        Timestamp(0)
    }
}

fn main() {
    let arguments: Vec<String> = std::env::args()
        .skip(1)
        .filter(|argument| !argument.starts_with("--"))
        .collect();
    let (folder, out, database) = match arguments.as_slice() {
        [folder, out] => (folder, out, None),
        [folder, out, database] => (folder, out, Some(database.as_str())),
        _ => {
            println!(
                "retrieval: nothing to do without a folder and a file to write; see scripts/retrieval"
            );
            return;
        }
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let runs = runtime.block_on(measure(Path::new(folder), database));
    fs::write(out, serde_json::to_string(&runs).unwrap()).unwrap();
}

async fn measure(folder: &Path, database: Option<&str>) -> Value {
    let place = tempfile::tempdir().unwrap();
    let own = format!("sqlite:{}", place.path().join("lango.db").display());
    let store = Arc::new(Store::at(database.unwrap_or(&own), "lango".into()).unwrap());
    let embedder = Arc::new(OfflineEmbedder::with_frequencies(store.clone()));
    let library = Library::new(store, Some(embedder), Arc::new(FixedClock));
    let user = UserId::from("local");

    let documents = place.path().join("documents");
    let ids = write_documents(&folder.join("docs.jsonl"), &documents);
    let began = Instant::now();
    let report = library
        .add(&user, &[documents], &AddOptions::default(), &|_| {})
        .await
        .unwrap();
    eprintln!(
        "{} documents in {} chunks added in {:.1} s, {} left out",
        report.added,
        report.chunks,
        began.elapsed().as_secs_f64(),
        report.skipped
    );

    let queries = lines(&folder.join("queries.jsonl"));
    let mut runs = Map::new();
    for (name, mode) in [
        ("lexical", LibrarySearchMode::Lexical),
        ("vector", LibrarySearchMode::Vector),
        ("fused", LibrarySearchMode::Fused),
    ] {
        let began = Instant::now();
        let mut run = Map::new();
        for query in &queries {
            let wanted = LibraryQuery {
                text: text(query, &["text", "query", "title"]),
                limit: CHUNKS,
                collections: Vec::new(),
                mode,
            };
            let found = library.search(&user, None, &wanted).await.unwrap();
            let mut ranking: Vec<&str> = Vec::new();
            for hit in &found.hits {
                let id = ids[&*hit.source.name].as_str();
                if !ranking.contains(&id) && ranking.len() < DEPTH {
                    ranking.push(id);
                }
            }
            run.insert(id_of(query), json!(ranking));
        }
        let each = began.elapsed().as_secs_f64() * 1000.0 / queries.len().max(1) as f64;
        eprintln!("{name}: {each:.1} ms a query");
        runs.insert(name.to_owned(), Value::Object(run));
    }
    Value::Object(runs)
}

/// Writes each document as a file. Returns the ids by file name.
fn write_documents(from: &Path, to: &Path) -> HashMap<String, String> {
    fs::create_dir(to).unwrap();
    let to = to.canonicalize().unwrap();
    let mut ids = HashMap::new();
    for (number, document) in lines(from).iter().enumerate() {
        let title = text(document, &["title"]).replace('\n', " ");
        let body = text(document, &["text", "contents", "body", "abstract"]);
        let (name, content) = match title.trim() {
            "" => (format!("{number:07}.txt"), body),
            title => (format!("{number:07}.md"), format!("# {title}\n\n{body}\n")),
        };
        let path = to.join(name);
        fs::write(&path, content).unwrap();
        ids.insert(path.to_str().unwrap().to_owned(), id_of(document));
    }
    ids
}

fn lines(path: &Path) -> Vec<Value> {
    let all = fs::read_to_string(path).unwrap();
    let lines = all.lines().filter(|line| !line.trim().is_empty());
    lines
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

fn text(object: &Value, fields: &[&str]) -> String {
    let found = fields.iter().find_map(|field| object.get(field)?.as_str());
    found.unwrap_or_default().to_owned()
}

fn id_of(object: &Value) -> String {
    let id = ["_id", "id", "doc_id", "query_id", "docid", "qid"]
        .iter()
        .find_map(|field| object.get(field));
    match id {
        Some(Value::String(id)) => id.clone(),
        Some(other) => other.to_string(),
        None => String::new(),
    }
}
