//! Refusals: short, with three phrases that work right now.

use super::{FinishedTurn, Mode, TOOLS, ask, done, play};
use lango_models::OfflineModel;

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
    "rename notes.md to n.md",
    "copy src/main.rs to old.rs",
    "summarize notes.md",
    "update `notes.md`, please",
    "write a poem to poem.txt",
    "compare a.md, e.g. with /etc/passwd.txt",
    "translate .env",
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
fn a_command_that_is_part_of_an_unclear_message_is_suggested_in_backticks() {
    for (text, phrase) in [
        ("run ls -a and tell me what is odd", "run `ls -a`"),
        ("run mv a.md b.md. And sing", "run `mv a.md b.md. And sing`"),
        (
            "run for f in *; do echo $f; done",
            "run `for f in *; do echo $f; done`",
        ),
    ] {
        let phrases = suggestions(&ask(text));
        assert_eq!(phrases[0], phrase);
    }
    for text in ["run the tests", "run it again", "execute all tests"] {
        let answer = ask(text).answer;
        assert!(answer.contains("say: run `COMMAND`."), "{answer}");
    }
}

#[test]
fn suggestions_for_a_file_are_about_that_file() {
    for (text, phrases) in [
        (
            "rename notes.md to n.md",
            [
                "run `mv notes.md n.md`",
                "read notes.md",
                "what files are here?",
            ],
        ),
        (
            "summarize notes.md",
            [
                "read notes.md",
                "search for TODO in notes.md",
                "what files are here?",
            ],
        ),
        (
            "update \"docs/Notes.md\", please",
            [
                "read docs/Notes.md",
                "add a line \"call Ada\" to docs/Notes.md",
                "what files are here?",
            ],
        ),
        (
            "write a poem to poem.txt",
            [
                "write poem.txt with the text \"buy milk\"",
                "write todo.md with the text buy milk",
                "what files are here?",
            ],
        ),
    ] {
        assert_eq!(suggestions(&ask(text)), phrases, "{text}");
    }
    for (phrase, call) in [
        ("run `mv notes.md n.md`", "operator exec mv notes.md n.md"),
        (
            "search for TODO in notes.md",
            "operator fs_search notes.md | TODO",
        ),
        (
            "write poem.txt with the text \"buy milk\"",
            "operator fs_write buy milk\n | poem.txt",
        ),
    ] {
        assert_eq!(ask(phrase).calls, [call]);
    }
    // Paths that the tools do not reach, and words that are no paths, are not suggested.
    for text in ["translate .env", "sum up ../a.md", "explain e.g. this"] {
        let phrases = suggestions(&ask(text));
        assert_eq!(phrases, OfflineModel::examples(), "{text}");
    }
}

#[test]
fn the_examples_are_those_of_the_greeting_and_work_without_approval() {
    let examples = OfflineModel::examples();
    let greeting = ask("hello").answer;
    let list = format!(
        "\n- {}\n- {}\n- {}\n",
        examples[0], examples[1], examples[2]
    );
    assert!(greeting.contains(&list), "{greeting}");
    for phrase in examples {
        let turn = ask(phrase);
        assert!(
            !turn.is_refused() && turn.rejections.is_empty(),
            "{turn:#?}"
        );
        let asks = ["fs_write", "fs_edit", "fs_delete", "fs_mkdir", "exec"];
        let mut calls = turn.calls.iter();
        assert!(!calls.any(|call| asks.iter().any(|tool| call.contains(tool))));
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
