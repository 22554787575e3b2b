//! Refusals: short, with three phrases that work right now.

use super::{FinishedTurn, Mode, TOOLS, ask, done, play};

/// Messages that the demo cannot do, on many topics.
const REFUSED: &[&str] = &[
    "sing a song",
    "write a poem",
    "fix the bug in main.rs",
    "search the meaning of life",
    "what is 2 + 2?",
    "translate hello into French",
    "run the tests",
    "find me a flat in Porto",
    "create a website",
    "why is the sky blue?",
    "encrypt my password",
    "edit notes.md",
    "asdf",
    "?",
    "find my keys and learn Rust",
];

/// Returns the phrases that a refusal suggests, after checking its form.
fn suggestions(turn: &FinishedTurn) -> Vec<String> {
    let lines: Vec<&str> = turn.answer.lines().collect();
    assert!(lines.len() <= 6, "{turn:#?}");
    let last = "For anything else, connect a real model with `lango setup`.";
    assert_eq!(lines.last(), Some(&last), "{turn:#?}");
    let phrases: Vec<String> = lines
        .iter()
        .filter_map(|line| line.strip_prefix("- "))
        .map(str::to_owned)
        .collect();
    assert_eq!(phrases.len(), 3, "{turn:#?}");
    phrases
}

#[test]
fn every_refusal_ends_with_three_phrases_that_work() {
    let tool_sets: [(Mode, &'static [&'static str]); 8] = [
        (Mode::Specialists, TOOLS),
        (Mode::Classic, TOOLS),
        (Mode::Single, TOOLS),
        (Mode::Single, &[]),
        (Mode::Single, &["exec"]),
        (Mode::Single, &["memory_save", "crypto_hash"]),
        (Mode::Specialists, &["browser_navigate"]),
        (Mode::Specialists, &["crypto_hash", "graph_relate"]),
    ];
    for (mode, tools) in tool_sets {
        for text in REFUSED {
            let turn = play(mode, tools, text, done);
            assert!(turn.is_refused(), "{text}: {turn:#?}");
            let phrases = suggestions(&turn);
            for phrase in &phrases {
                let again = play(mode, tools, phrase, done);
                assert!(
                    !again.is_refused(),
                    "{phrase}, suggested for {text}: {again:#?}"
                );
                assert!(again.rejections.is_empty(), "{phrase}: {again:#?}");
                assert_eq!(phrases.iter().filter(|other| *other == phrase).count(), 1);
            }
        }
    }
}

#[test]
fn suggestions_fit_the_message() {
    for (text, phrase) in [
        ("write a poem", "- write todo.md with the text buy milk"),
        ("run the tests", "- run `ls -la`"),
        ("search the meaning of life", "- search for TODO"),
        (
            "take notes of this meeting",
            "- note that deploys: happen on Monday",
        ),
    ] {
        let turn = ask(text);
        assert!(turn.answer.contains(phrase), "{turn:#?}");
    }
}

#[test]
fn the_phrases_of_help_work() {
    let turn = ask("what can you do?");
    let phrases = turn
        .answer
        .lines()
        .filter_map(|line| line.strip_prefix("- ")?.split_once(": "))
        .flat_map(|(_, phrases)| phrases.split(" · "));
    let mut count = 0;
    for phrase in phrases {
        let again = ask(phrase);
        assert!(!again.is_refused(), "{phrase}: {again:#?}");
        count += 1;
    }
    assert!(count > 20, "{turn:#?}");
    // Nothing is suggested for which there is no tool.
    let turn = play(Mode::Specialists, &["fs_list"], "what can you do?", done);
    assert!(
        !turn.answer.contains("https://") && !turn.answer.contains("remember"),
        "{turn:#?}"
    );
}

#[test]
fn a_missing_search_service_is_named() {
    let turn = ask("search the web for slipstreams");
    assert!(
        turn.answer
            .contains("no search service is set up; set one under `search.providers`"),
        "{turn:#?}"
    );
    suggestions(&turn);
}
