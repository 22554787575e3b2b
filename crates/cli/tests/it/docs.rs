//! Executes the README and the pages in `docs/`: commands run, sample outputs are what the commands print, settings are
//! valid, links lead somewhere, and every page is short.
//!
//! CONTRIBUTING says how blocks are marked. `LANGO_UPDATE_DOCS=1` writes what was found instead of comparing it.

mod blocks;
mod configuration;
mod normalize;
mod pages;
mod script;

use crate::lango::{Lango, finish};
use blocks::{Block, Mark};
use normalize::{matches_sample, updated_sample};
use pages::Page;
use script::PageRun;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, OnceLock};

/// The most words of a page outside of blocks; a reader skims about this many in two minutes. A word has a letter or a
/// digit.
const MAX_WORDS: usize = 900;

/// Lists of ids and keys, which are looked up and not read.
const LISTS: [&str; 2] = ["docs/spec.md", "docs/configuration.md"];

/// Pages whose links are checked besides those that are executed.
const OTHER_PAGES: [&str; 3] = ["ARCHITECTURE.md", "CHANGELOG.md", "CONTRIBUTING.md"];

/// Languages of blocks that this test does not interpret. Rust in the README is a doc test of the crate `lango`.
const OTHER_LANGUAGES: [&str; 3] = ["markdown", "python", "rust"];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn is_update() -> bool {
    std::env::var_os("LANGO_UPDATE_DOCS").is_some_and(|value| value == "1")
}

#[track_caller]
fn assert_none(problems: &[String]) {
    assert!(problems.is_empty(), "\n{}\n", problems.join("\n"));
}

/// Runs every page once, two at a time, for all tests that need the outputs.
fn runs() -> &'static [(Page, PageRun)] {
    static RUNS: OnceLock<Vec<(Page, PageRun)>> = OnceLock::new();
    RUNS.get_or_init(|| {
        let waiting = Mutex::new(pages::all().into_iter());
        let done = Mutex::new(Vec::new());
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    loop {
                        let next = waiting.lock().unwrap().next();
                        let Some(page) = next else { return };
                        let run = script::run(&page);
                        done.lock().unwrap().push((page, run));
                    }
                });
            }
        });
        done.into_inner().unwrap()
    })
}

#[test]
fn every_command_block_of_the_readme_and_the_docs_runs() {
    let failures: Vec<String> = runs()
        .iter()
        .filter_map(|(_, run)| run.failure.clone())
        .collect();
    assert_none(&failures);
    let count: usize = runs().iter().map(|(_, run)| run.outputs.len()).sum();
    assert!(count >= 20, "only {count} blocks ran");
}

#[test]
fn sample_outputs_in_the_docs_are_what_the_commands_print() {
    let mut problems = Vec::new();
    for (page, run) in runs() {
        let mut replacements = Vec::new();
        for (index, output) in &run.outputs {
            let Some(sample) = page.sample_after(*index) else {
                continue;
            };
            if matches_sample(&sample.text, output) {
                continue;
            }
            problems.push(format!(
                "{}:{}: this is not what the commands print; they print:\n{output}",
                page.name, sample.line
            ));
            replacements.push((index + 1, updated_sample(&sample.text, output)));
        }
        // A page whose commands fail must not show their errors.
        if is_update() && run.failure.is_none() {
            page.replace(&replacements);
        }
    }
    if !is_update() {
        assert_none(&problems);
    }
}

#[test]
fn every_block_that_is_not_run_says_why_and_is_listed() {
    let list = root().join("crates/cli/tests/it/docs/not_run.txt");
    let mut lines = String::new();
    for page in pages::all() {
        for (index, block) in page.blocks.iter().enumerate() {
            let is_sample = page.is_sample(index);
            match &block.mark {
                Mark::NotRun(reason) | Mark::NotChecked(reason) => {
                    let is_command = ["sh", "text"].contains(&block.language.as_str());
                    let is_run = matches!(block.mark, Mark::NotRun(_));
                    assert_eq!(is_command, is_run, "{}:{}", page.name, block.line);
                    assert!(reason.len() > 5, "{}:{}: no reason", page.name, block.line);
                    lines.push_str(&format!("{} {}: {reason}\n", page.name, block.language));
                }
                Mark::None | Mark::File(_) => assert!(
                    block.language != "text" || is_sample,
                    "{}:{}: no command is before this output; write ```text no-run: REASON",
                    page.name,
                    block.line
                ),
            }
        }
    }
    if is_update() {
        fs::write(list, lines).unwrap();
    } else {
        let listed = fs::read_to_string(list).unwrap_or_default();
        assert_eq!(lines, listed, "LANGO_UPDATE_DOCS=1 writes the list");
    }
}

#[test]
fn every_example_of_settings_in_the_docs_is_valid() {
    let mut problems = Vec::new();
    for page in pages::all() {
        for block in &page.blocks {
            if let Err(problem) = check_example(block) {
                problems.push(format!("{}:{}: {problem}", page.name, block.line));
            }
        }
    }
    assert_none(&problems);
}

/// Returns whether a text of an example can be the name of a variable with a key, which the example needs.
fn is_variable(text: &str) -> bool {
    text.contains('_') && text.bytes().all(|b| b.is_ascii_uppercase() || b == b'_')
}

fn check_example(block: &Block) -> Result<(), String> {
    let is_checked = match &block.mark {
        Mark::NotRun(_) | Mark::NotChecked(_) => false,
        Mark::File(path) => !path.ends_with(".toml") || path.ends_with("lango.toml"),
        Mark::None => true,
    };
    match block.language.as_str() {
        "toml" if is_checked => {
            let lango = Lango::new();
            lango.home_file("lango.toml", &block.text);
            let mut command = lango.command(&["config", "check"]);
            command.env("HOME", lango.home());
            let variables = block.text.split('"').filter(|text| is_variable(text));
            command.envs(variables.map(|name| (name, "value")));
            let ran = finish(&mut command, b"");
            if ran.code == Some(0) {
                return Ok(());
            }
            Err(format!("`lango config check` says: {}", ran.stderr))
        }
        "json" if is_checked => serde_json::from_str::<serde_json::Value>(&block.text)
            .map(drop)
            .map_err(|error| error.to_string()),
        "toml" | "json" | "sh" | "text" => Ok(()),
        other if OTHER_LANGUAGES.contains(&other) => Ok(()),
        other => Err(format!("the block has the unknown language `{other}`")),
    }
}

#[test]
fn the_page_of_settings_lists_what_config_show_prints() {
    let shown = configuration::shown();
    if is_update() {
        pages::rewrite(configuration::PAGE, |page| {
            configuration::updated(page, &shown)
        });
    } else {
        let page = fs::read_to_string(root().join(configuration::PAGE)).unwrap();
        let expected = configuration::updated(&page, &shown);
        assert!(page == expected, "LANGO_UPDATE_DOCS=1 writes the page");
    }
}

#[test]
fn every_page_can_be_skimmed() {
    let is_word = |word: &&str| word.contains(char::is_alphanumeric);
    let long = pages::all().into_iter().filter_map(|page| {
        let words = page.prose().split_whitespace().filter(is_word).count();
        let is_long = words > MAX_WORDS && page.name.starts_with("docs/");
        (is_long && !LISTS.contains(&page.name.as_str()))
            .then(|| format!("{}: {words} words of {MAX_WORDS}", page.name))
    });
    assert_none(&long.collect::<Vec<_>>());
}

#[test]
fn links_between_pages_lead_to_a_page_and_a_heading() {
    let mut problems = Vec::new();
    let mut names: Vec<String> = pages::all().into_iter().map(|page| page.name).collect();
    names.extend(OTHER_PAGES.map(str::to_owned));
    for name in names {
        let path = root().join(&name);
        for link in pages::links(&fs::read_to_string(&path).unwrap()) {
            let (file, heading) = link.split_once('#').unwrap_or((link, ""));
            let target = if file.is_empty() {
                path.clone()
            } else {
                path.parent().unwrap().join(file)
            };
            if !target.exists() {
                problems.push(format!("{name}: `{link}` leads to no file"));
            } else if !heading.is_empty() {
                let text = fs::read_to_string(&target).unwrap();
                let anchors: BTreeSet<String> = pages::anchors(&text).collect();
                if !anchors.contains(heading) {
                    problems.push(format!("{name}: `{link}` leads to no heading"));
                }
            }
        }
    }
    assert_none(&problems);
}
