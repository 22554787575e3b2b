//! Measures the quality of main-content extraction on a folder with one subfolder per page: `source.html` is the page,
//! `expected.html` its content. Precision and recall count words, each as often as it occurs.
//!
//! Usage: `readable FOLDER [half] [TEXTS]`. `half` is `even` or `odd`, so that rules can be tuned on one half and
//! measured on the other. `TEXTS` is a folder with a file `NAME.txt` per page; with it, the output of another program
//! is measured.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

#[derive(Default)]
struct Score {
    precision: f64,
    recall: f64,
    f1: f64,
}

fn main() {
    let arguments: Vec<String> = std::env::args()
        .skip(1)
        .filter(|one| one != "--bench")
        .collect();
    let Some(folder) = arguments.first() else {
        return println!("usage: readable FOLDER [even|odd] [TEXTS]");
    };
    let half = arguments
        .iter()
        .find(|one| matches!(one.as_str(), "even" | "odd"));
    let texts = arguments[1..].iter().find(|one| Some(*one) != half);
    let mut pages: Vec<PathBuf> = std::fs::read_dir(folder)
        .expect("the folder can be read")
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|page| page.join("expected.html").exists())
        .collect();
    pages.sort();
    let mut total = Score::default();
    let mut count = 0_u32;
    let mut time = Duration::ZERO;
    for (number, page) in pages.iter().enumerate() {
        let is_even = number % 2 == 0;
        if half.is_some_and(|half| (half == "even") != is_even) {
            continue;
        }
        let name = page.file_name().unwrap_or_default().to_string_lossy();
        let source = read(&page.join("source.html"));
        let started = Instant::now();
        let found = match texts {
            Some(texts) => read(&Path::new(texts).join(format!("{name}.txt"))),
            None => lango_documents::markdown(&source, "https://example.com/a/b").markdown,
        };
        time += started.elapsed();
        let expected = lango_documents::read_html(&read(&page.join("expected.html"))).text;
        let score = compare(&words(&found), &words(&expected));
        println!(
            "{name:40} precision {:.3}  recall {:.3}  F1 {:.3}",
            score.precision, score.recall, score.f1
        );
        total.precision += score.precision;
        total.recall += score.recall;
        total.f1 += score.f1;
        count += 1;
    }
    let mean = |sum: f64| sum / f64::from(count.max(1));
    println!(
        "mean of {count} pages: precision {:.4}  recall {:.4}  F1 {:.4}  in {time:?}",
        mean(total.precision),
        mean(total.recall),
        mean(total.f1)
    );
}

fn read(path: &Path) -> String {
    let bytes = std::fs::read(path).unwrap_or_default();
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Counts the words of a text. Ignores link targets and image descriptions, which the expected texts do not have.
fn words(text: &str) -> HashMap<String, usize> {
    let mut plain = String::new();
    let parts = text.split("[image: ").enumerate();
    let parts = parts.map(|(number, part)| match part.split_once(']') {
        Some((_, after)) if number > 0 => after,
        _ => part,
    });
    let text: String = parts.collect();
    for (number, part) in text.split("](http").enumerate() {
        let part = match part.split_once(')') {
            Some((_, after)) if number > 0 => after,
            _ => part,
        };
        plain.push_str(part);
        plain.push(' ');
    }
    let mut words = HashMap::new();
    for word in plain.split(|one: char| !one.is_alphanumeric()) {
        if !word.is_empty() {
            *words.entry(word.to_lowercase()).or_default() += 1;
        }
    }
    words
}

fn compare(found: &HashMap<String, usize>, expected: &HashMap<String, usize>) -> Score {
    let common: usize = expected
        .iter()
        .map(|(word, count)| found.get(word).copied().unwrap_or(0).min(*count))
        .sum();
    let share = |all: &HashMap<String, usize>| {
        let all: usize = all.values().sum();
        if all == 0 {
            1.0
        } else {
            common as f64 / all as f64
        }
    };
    let (precision, recall) = (share(found), share(expected));
    let f1 = if precision + recall == 0.0 {
        0.0
    } else {
        2.0 * precision * recall / (precision + recall)
    };
    Score {
        precision,
        recall,
        f1,
    }
}
