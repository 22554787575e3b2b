//! Measures how fast documents are added, how long a search takes, and how much memory both need.
//!
//! The documents consist of invented words whose frequencies are like those of a language, about 300 per chunk.
//! `library` adds 10,000 chunks and searches 100,000; `library short` a tenth of that, in seconds.

#![allow(clippy::unwrap_used, reason = "what fails ends the measurement")]

use lango_core::{Clock, Timestamp, UserId};
use lango_knowledge::{AddOptions, Library, LibraryQuery, LibrarySearchMode, OfflineEmbedder};
use lango_store::Store;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

const VOCABULARY: usize = 60_000;
const CHUNKS_PER_FILE: usize = 20;
const WORDS_PER_CHUNK: usize = 280;
const SEARCHES: usize = 500;

struct FixedClock;

impl Clock for FixedClock {
    fn now(&self) -> Timestamp {
        Timestamp(0)
    }
}

fn main() {
    let is_short = std::env::args().any(|argument| argument == "short");
    let (added, searched) = if is_short {
        (1000, 10_000)
    } else {
        (10_000, 100_000)
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    runtime.block_on(measure(added, searched));
}

async fn measure(added: usize, searched: usize) {
    let place = tempfile::tempdir().unwrap();
    let mut language = Language::new();
    let store = Store::open_sqlite(place.path().join("lango.db"), "lango".into()).unwrap();
    let store = Arc::new(store);
    let embedder = Arc::new(OfflineEmbedder::with_frequencies(store.clone()));
    let library = Library::new(store, Some(embedder), Arc::new(FixedClock));

    let folder = language.write(&place.path().join("first"), added);
    let before = memory("VmRSS");
    let (chunks, seconds) = add(&library, folder).await;
    println!(
        "adding {chunks} chunks: {:.0} chunks/s, peak memory {} MB, {} MB of it before",
        chunks as f64 / seconds,
        memory("VmHWM") / 1024,
        before / 1024
    );

    let folder = language.write(&place.path().join("second"), searched - added);
    let (more, _) = add(&library, folder).await;
    let size = fs::metadata(place.path().join("lango.db")).unwrap().len();
    println!(
        "among {} chunks, {} MB of database:",
        chunks + more,
        size / 1_000_000
    );
    for (name, mode, typos) in [
        ("lexical", LibrarySearchMode::Lexical, false),
        ("vector", LibrarySearchMode::Vector, false),
        ("fused", LibrarySearchMode::Fused, false),
        ("fused, misspelled", LibrarySearchMode::Fused, true),
    ] {
        let questions: Vec<String> = (0..SEARCHES).map(|_| language.question(typos)).collect();
        let before = cpu_ms();
        let mut times = search(&library, &questions, mode).await;
        let cpu = (cpu_ms() - before) / times.len() as f64;
        times.sort_by(f64::total_cmp);
        let at = |share: f64| times[((times.len() - 1) as f64 * share) as usize];
        println!(
            "  {name}: p50 {:.1} ms, p99 {:.1} ms, greatest {:.1} ms; CPU {cpu:.1} ms each; memory {} MB",
            at(0.5),
            at(0.99),
            at(1.0),
            memory("VmRSS") / 1024
        );
    }
    forget(&library).await;
}

/// Measures how long deleting a document takes.
async fn forget(library: &Library) {
    let user = UserId::from("local");
    let documents = library.list(&user, 20).await.unwrap();
    let began = Instant::now();
    let mut chunks = 0;
    for document in &documents {
        let forgotten = library
            .forget(&user, &document.id.to_string())
            .await
            .unwrap();
        chunks += forgotten.chunks;
    }
    let ms = began.elapsed().as_secs_f64() * 1000.0;
    println!("  forgetting: {:.2} ms a chunk", ms / chunks as f64);
}

async fn add(library: &Library, folder: PathBuf) -> (usize, f64) {
    let user = UserId::from("local");
    let began = Instant::now();
    let report = library
        .add(&user, &[folder], &AddOptions::default(), &|_| {})
        .await
        .unwrap();
    (report.chunks, began.elapsed().as_secs_f64())
}

async fn search(library: &Library, questions: &[String], mode: LibrarySearchMode) -> Vec<f64> {
    let user = UserId::from("local");
    let mut times = Vec::with_capacity(questions.len());
    for question in questions {
        let query = LibraryQuery {
            text: question.clone(),
            limit: 10,
            collections: Vec::new(),
            mode,
        };
        let began = Instant::now();
        let found = library.search(&user, None, &query).await.unwrap();
        times.push(began.elapsed().as_secs_f64() * 1000.0);
        assert!(!found.hits.is_empty());
    }
    times
}

/// Returns a figure of this process's memory from the system, in KB.
fn memory(name: &str) -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with(name));
    let figure = line.and_then(|line| line.split_whitespace().nth(1)?.parse().ok());
    figure.unwrap_or(0)
}

/// Returns the CPU time of this process so far. On a busy machine it is more reliable than wall-clock time.
fn cpu_ms() -> f64 {
    let stat = fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields = stat
        .rsplit(')')
        .next()
        .unwrap_or_default()
        .split_whitespace();
    let ticks: f64 = fields
        .skip(11)
        .take(2)
        .filter_map(|field| field.parse::<f64>().ok())
        .sum();
    ticks * 10.0
}

/// A generator of words with Zipf's distribution: the second is half as frequent as the first, the third a third.
struct Language {
    words: Vec<String>,
    sums: Vec<f64>,
    state: u64,
}

impl Language {
    fn new() -> Self {
        let syllables = [
            "ba", "ke", "lo", "mi", "nu", "ra", "so", "ti", "ve", "da", "fo", "gu",
        ];
        let word = |mut number: usize| {
            let mut word = String::new();
            for _ in 0..5 {
                word.push_str(syllables[number % syllables.len()]);
                number /= syllables.len();
            }
            word
        };
        let mut sum = 0.0;
        let sums = (1..=VOCABULARY).map(|rank| {
            sum += 1.0 / rank as f64;
            sum
        });
        Self {
            sums: sums.collect(),
            words: (0..VOCABULARY).map(word).collect(),
            state: 88_172_645_463_325_252,
        }
    }

    fn number(&mut self) -> u64 {
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        self.state
    }

    /// Returns a word that is not among the `first` most frequent ones.
    fn word(&mut self, first: usize) -> String {
        let below = if first == 0 {
            0.0
        } else {
            self.sums[first - 1]
        };
        let share = (self.number() >> 11) as f64 / (1_u64 << 53) as f64;
        let at = below + share * (self.sums[VOCABULARY - 1] - below);
        let rank = self.sums.partition_point(|sum| *sum < at);
        self.words[rank.min(VOCABULARY - 1)].clone()
    }

    /// Returns six words, none of them among the hundred most frequent.
    fn question(&mut self, has_typos: bool) -> String {
        let mut words: Vec<String> = (0..6).map(|_| self.word(100)).collect();
        if has_typos {
            for word in words.iter_mut().take(2) {
                word.remove(3);
            }
        }
        words.join(" ")
    }

    /// Writes a folder of files with about this number of chunks.
    fn write(&mut self, folder: &Path, chunks: usize) -> PathBuf {
        fs::create_dir(folder).unwrap();
        for number in 0..chunks / CHUNKS_PER_FILE {
            let mut text = String::new();
            for _ in 0..CHUNKS_PER_FILE {
                for _ in 0..WORDS_PER_CHUNK {
                    text.push_str(&self.word(0));
                    text.push(' ');
                }
                text.push_str(".\n\n");
            }
            fs::write(folder.join(format!("{number:06}.txt")), text).unwrap();
        }
        folder.to_owned()
    }
}
