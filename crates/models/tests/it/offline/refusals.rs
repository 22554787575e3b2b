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
    "fix the division by zero in util.py",
    "write better notes.md",
    "write a better todo.md",
    "summarize __init__.py",
    "update src/__init__.py",
    "run the tests",
    "run ls and tell me what is odd",
    "open my big plan.md",
    "summarize a.md and b.md",
    "delete a.md and b.md",
    "find out",
    "find everything",
    "find the name of the author",
    "list the uses of baking soda",
    "find all files with more than 100 lines",
    "which files changed today?",
    "cargo test",
    "docker is great",
    "my code is broken",
    "welche Dateien sind hier?",
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
        .map(|phrase| {
            // A phrase that Markdown would change is code.
            let code = phrase
                .strip_prefix('`')
                .and_then(|code| code.strip_suffix('`'));
            code.unwrap_or(phrase).to_owned()
        })
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
                let names_target = phrase.starts_with("write ") && text.contains(".md");
                assert!(!names_target || !text.contains("todo.md"), "{phrase}");
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
        ("run ls, and sing a song", "run `ls`"),
        ("run mv a.md b.md. And sing", "run `mv a.md b.md`"),
        ("cargo test", "run `cargo test`"),
        ("tail notes.md", "run `tail notes.md`"),
        (
            "run for f in *; do echo $f; done, and sing",
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
            ["find notes.md", "read notes.md", "what files are here?"],
        ),
        (
            "fix the division by zero in util.py",
            ["find util.py", "read util.py", "what files are here?"],
        ),
        (
            "explain src/__init__.py",
            [
                "read src/__init__.py",
                "search for TODO in src/__init__.py",
                "what files are here?",
            ],
        ),
        (
            "write better notes.md",
            [
                "change \"old words\" to \"new words\" in notes.md",
                "add a line \"call Ada\" to notes.md",
                "read notes.md",
            ],
        ),
        (
            "open my big plan.md",
            ["find plan.md", "read plan.md", "what files are here?"],
        ),
        (
            "open big plan.md",
            ["read \"big plan.md\"", "find plan.md", "read plan.md"],
        ),
        (
            "update \"docs/Notes.md\", please",
            [
                "change \"old words\" to \"new words\" in docs/Notes.md",
                "add a line \"call Ada\" to docs/Notes.md",
                "read docs/Notes.md",
            ],
        ),
        (
            "write a poem to poem.txt",
            [
                "change \"old words\" to \"new words\" in poem.txt",
                "add a line \"call Ada\" to poem.txt",
                "read poem.txt",
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
            "change \"old words\" to \"new words\" in poem.txt",
            "operator fs_edit new words | old words | poem.txt",
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

#[test]
fn a_refusal_says_whether_the_rules_or_the_agents_are_missing() {
    for mode in [Mode::Specialists, Mode::Classic, Mode::Single] {
        let turn = play(mode, TOOLS, "sing a song", done);
        let start = "The demo does not understand this: \"sing a song\".";
        assert!(turn.answer.starts_with(start), "{turn:#?}");
    }
    let text = "remember that my editor is helix";
    let turn = play(Mode::Specialists, &["fs_list"], text, done);
    assert!(
        turn.answer.starts_with("No agent here can do that: "),
        "{turn:#?}"
    );
}

#[test]
fn suggestions_keep_the_underscores_of_a_name() {
    let turn = ask("explain __init__.py");
    assert!(
        turn.answer.contains("\n- `find __init__.py`\n"),
        "{turn:#?}"
    );
    assert!(
        turn.answer.contains(": `explain __init__.py`."),
        "{turn:#?}"
    );
}
