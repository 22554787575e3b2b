//! Measures the tokens of observations, compared with the page's HTML, and the time they take. Opens ten generated
//! pages with the real tools in real Chromium. `--short` measures only three pages and fails if an observation is too
//! large.

#![allow(clippy::unwrap_used, reason = "a measurement that fails should stop")]
#![allow(dead_code, reason = "the tests use the rest")]

#[path = "../tests/it/gallery.rs"]
mod gallery;
#[path = "../tests/it/site.rs"]
mod site;
#[path = "../tests/it/support.rs"]
mod support;

use serde_json::json;
use std::time::{Duration, Instant};
use tiktoken_rs::CoreBPE;

/// Maximum number of tokens of an observation with the default budget.
const MAX_TOKENS: usize = 3500;
/// Runs for each page; the median counts.
const RUNS: usize = 5;

struct Row {
    name: &'static str,
    html_bytes: usize,
    html_tokens: usize,
    bytes: usize,
    tokens: usize,
    whole_tokens: usize,
    navigate: Duration,
    observe: Duration,
}

fn main() {
    let is_short = std::env::args().any(|argument| argument == "--short" || argument == "--test");
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let rows = runtime.block_on(measure(if is_short {
        &gallery::NAMES[..3]
    } else {
        &gallery::NAMES
    }));
    println!(
        "| page | HTML KiB | HTML tokens | observed tokens | bytes/4 | of HTML | whole page | navigate ms | observe ms |"
    );
    println!("|---|---|---|---|---|---|---|---|---|");
    for row in &rows {
        println!(
            "| {} | {} | {} | {} | {} | {:.1} % | {} | {} | {} |",
            row.name,
            row.html_bytes / 1024,
            row.html_tokens,
            row.tokens,
            row.bytes / 4,
            100.0 * row.tokens as f64 / row.html_tokens as f64,
            row.whole_tokens,
            row.navigate.as_millis(),
            row.observe.as_millis()
        );
    }
    for row in rows {
        assert!(
            row.tokens <= MAX_TOKENS,
            "{}: {} tokens",
            row.name,
            row.tokens
        );
    }
}

async fn measure(names: &[&'static str]) -> Vec<Row> {
    let tokenizer = tiktoken_rs::o200k_base().unwrap();
    let bench = support::Bench::new().await;
    // Starts the browser, so that no measurement includes its start.
    bench.open("").await;
    let mut rows = Vec::new();
    for name in names {
        rows.push(measure_page(&bench, &tokenizer, name).await);
    }
    rows
}

async fn measure_page(bench: &support::Bench, tokenizer: &CoreBPE, name: &'static str) -> Row {
    let html = gallery::page(name).unwrap();
    let path = format!("gallery/{name}");
    let (mut navigations, mut observations) = (Vec::new(), Vec::new());
    let mut text = String::new();
    for _ in 0..RUNS {
        let started = Instant::now();
        bench.open(&path).await;
        navigations.push(started.elapsed());
        let started = Instant::now();
        text = bench.text("browser_observe", json!({ "full": true })).await;
        observations.push(started.elapsed());
    }
    let whole = bench
        .text("browser_observe", json!({ "full": true, "budget": 20_000 }))
        .await;
    let count = |text: &str| tokenizer.encode_ordinary(text).len();
    Row {
        name,
        html_bytes: html.len(),
        html_tokens: count(&html),
        bytes: text.len(),
        tokens: count(&text),
        whole_tokens: count(&whole),
        navigate: median(navigations),
        observe: median(observations),
    }
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times[times.len() / 2]
}
