//! Checks the specification against the tests: every id has a test, and every id in a test name is listed.

use crate::source::{crates, display_path, files, read, root};
use crate::tidy::assert_none;
use std::collections::{BTreeMap, BTreeSet};

/// Returns the id at the start of a test's name: the letter of a group and two digits, followed by `_`.
fn id_of(test: &str) -> Option<&str> {
    let id = test.get(..3)?;
    let (group, number) = id.split_at_checked(1)?;
    let is_id = "tpcibark".contains(group) && number.bytes().all(|digit| digit.is_ascii_digit());
    (is_id && test[3..].starts_with('_')).then_some(id)
}

/// Returns the ids of the specification, and those that it lists as "Not yet".
fn listed() -> (BTreeSet<String>, BTreeSet<String>) {
    let (mut ready, mut later) = (BTreeSet::new(), BTreeSet::new());
    let mut is_later = false;
    for line in read(&root().join("docs/spec.md")).lines() {
        if let Some(heading) = line.strip_prefix("## ") {
            is_later = heading.starts_with("Not yet");
        }
        let id = line
            .strip_prefix("- `")
            .and_then(|line| line.split_once('`'))
            .map(|(id, _)| id);
        if let Some(id) = id.filter(|id| id_of(&format!("{id}_")) == Some(id)) {
            let list = if is_later { &mut later } else { &mut ready };
            assert!(list.insert(id.to_owned()), "`{id}` is listed twice");
        }
    }
    (ready, later)
}

/// Returns the ids in test names, each with the location of one such test.
fn tested() -> BTreeMap<String, String> {
    // A case of the contract suite is a plain function, which the suite's macro lists by name and turns into tests.
    let suite = read(&root().join("crates/testkit/src/session_store_contract.rs"));
    let cases: BTreeSet<&str> = suite.lines().map(str::trim).collect();
    let mut tested = BTreeMap::new();
    let folders = crates()
        .into_iter()
        .flat_map(|folder| [folder.join("src"), folder.join("tests")]);
    for path in folders.flat_map(|folder| files(&folder, &["rs"])) {
        let mut is_test = false;
        for (number, line) in (1..).zip(read(&path).lines()) {
            let line = line.trim_start();
            is_test |= line.starts_with("#[test]") || line.starts_with("#[tokio::test");
            let function = line
                .trim_start_matches("pub ")
                .trim_start_matches("async ")
                .strip_prefix("fn ");
            if let Some(function) = function {
                let is_case = function
                    .split('(')
                    .next()
                    .is_some_and(|function| cases.contains(function));
                if let Some(id) = id_of(function).filter(|_| is_test || is_case) {
                    tested
                        .entry(id.to_owned())
                        .or_insert_with(|| format!("{}:{number}", display_path(&path)));
                }
                is_test = false;
            }
        }
    }
    tested
}

#[test]
fn every_line_of_the_specification_has_a_test() {
    let ((ready, _), tested) = (listed(), tested());
    assert!(ready.len() > 50, "{ready:?}");
    let missing: Vec<&str> = ready
        .iter()
        .filter(|id| !tested.contains_key(*id))
        .map(String::as_str)
        .collect();
    assert!(
        missing.is_empty(),
        "no test has these ids of docs/spec.md: {}",
        missing.join(", ")
    );
}

#[test]
fn every_id_of_a_test_is_in_the_specification() {
    let (ready, later) = listed();
    let both: Vec<&String> = ready.intersection(&later).collect();
    assert!(
        both.is_empty(),
        "listed both as done and as not yet: {both:?}"
    );
    let unlisted = tested()
        .into_iter()
        .filter(|(id, _)| !ready.contains(id) && !later.contains(id));
    assert_none(
        &unlisted
            .map(|(id, place)| format!("{place}: docs/spec.md has no `{id}`"))
            .collect::<Vec<_>>(),
    );
}

#[test]
fn ids_are_read_from_names() {
    assert_eq!(id_of("t04_agents"), Some("t04"));
    assert_eq!(id_of("a05_x(store: StoreUnderTest)"), Some("a05"));
    assert!(
        ["t4_x", "t04x", "x04_y", "to4_x", "t04", "übe_x", ""]
            .iter()
            .all(|test| id_of(test).is_none())
    );
}
