//! Answers after calls: what tools write for models never reaches the user.

use super::{Mode, TOOLS, done, play};
use lango_core::ToolError;
use serde_json::Value;

/// A folder with `todo.md`, which has two lines, and nothing else.
fn folder(tool: &str, arguments: &Value) -> Result<String, ToolError> {
    let path = arguments["path"].as_str().unwrap_or_default();
    match (tool, path) {
        ("fs_read", "todo.md") => Ok("buy milk\ncall Ada\n".to_owned()),
        ("fs_stat", "todo.md") => Ok("todo.md\nkind: file\nsize: 18 B (18 bytes)\n".to_owned()),
        ("fs_read" | "fs_stat", "empty.md") => Ok(format!("[{path} is empty]\n")),
        ("fs_read" | "fs_stat", _) => Err(ToolError::new(format!(
            "`{path}` does not exist; list the folder with `fs_list`"
        ))),
        _ => Ok(format!("changed {path}")),
    }
}

#[test]
fn a_line_is_added_after_the_last_one() {
    let add = |text: &str| play(Mode::Specialists, TOOLS, text, folder).calls;
    for text in [
        "add a line \"buy tea\" to todo.md",
        "append buy tea to todo.md",
        "add the line buy tea to the end of todo.md",
        "Please add buy tea to todo.md.",
        "add a line to todo.md: buy tea",
        "put \"buy tea\" into todo.md",
    ] {
        assert_eq!(
            add(text),
            [
                "operator fs_read todo.md",
                "operator fs_edit call Ada\nbuy tea | call Ada | todo.md"
            ],
            "{text}"
        );
    }
    for path in ["new.md", "empty.md"] {
        assert_eq!(
            add(&format!("append \"buy tea\" to {path}")),
            [
                format!("operator fs_read {path}"),
                format!("operator fs_write buy tea\n | {path}")
            ]
        );
    }
}

#[test]
fn several_files_are_read_together_and_each_is_named() {
    let turn = play(Mode::Specialists, TOOLS, "read todo.md and no.md", folder);
    assert_eq!(
        turn.answer,
        "todo.md:\n\n```md\nbuy milk\ncall Ada\n```\n\nI could not read no.md: `no.md` does not exist."
    );
}

#[test]
fn an_empty_file_is_created_only_where_nothing_is() {
    let create = |text: &str| play(Mode::Specialists, TOOLS, text, folder);
    assert_eq!(
        create("create an empty file called new.md").calls,
        ["operator fs_stat new.md", "operator fs_write  | new.md"]
    );
    let turn = create("touch todo.md");
    assert_eq!(turn.calls, ["operator fs_stat todo.md"]);
    assert_eq!(
        turn.answer,
        "todo.md already exists, so I did not change it."
    );
}

#[test]
fn calls_with_an_effect_are_made_one_after_another_and_stop_at_a_failure() {
    fn failing(tool: &str, _: &Value) -> Result<String, ToolError> {
        match tool {
            "fs_edit" => Err(ToolError::new(
                "`a.md` does not exist; list the folder with `fs_list`",
            )),
            _ => Ok("done".to_owned()),
        }
    }
    let text = "change \"a\" to \"b\" in a.md, and then delete b.md";
    let turn = play(Mode::Specialists, TOOLS, text, failing);
    assert_eq!(turn.calls, ["operator fs_edit b | a | a.md"]);
    assert_eq!(
        turn.answer,
        "I could not change a.md: `a.md` does not exist.\n\nI stopped before this: \"delete b.md\"."
    );
    let turn = play(Mode::Specialists, TOOLS, text, done);
    assert_eq!(turn.calls.len(), 2);
}

#[test]
fn advice_for_models_never_reaches_the_user() {
    fn broken(tool: &str, _: &Value) -> Result<String, ToolError> {
        Err(ToolError::new(format!(
            "`{tool}` failed; pass a smaller `limit`; do not repeat it, tell the user"
        )))
    }
    fn marked(_: &str, _: &Value) -> Result<String, ToolError> {
        let id = r#"{"id":"m_1","date":"2026-11-16","by":"note of chronicler","trust":"trusted","text":"tea"}"#;
        Ok(id.to_owned())
    }
    for text in [
        "read a.md",
        "recall tea",
        "list src, and recall tea",
        "hash the text x",
    ] {
        for mode in [Mode::Specialists, Mode::Single, Mode::Classic] {
            let answer = play(mode, TOOLS, text, broken).answer;
            assert!(answer.contains("I could not "), "{answer}");
            for advice in ["pass a", "do not repeat", "tell the user"] {
                assert!(!answer.contains(advice), "{answer}");
            }
        }
    }
    let turn = play(Mode::Specialists, TOOLS, "recall tea", marked);
    assert_eq!(turn.answer, "tea (2026-11-16)");
}

/// Tools whose results contain names and texts that Markdown would change.
fn odd_names(tool: &str, arguments: &Value) -> Result<String, ToolError> {
    let path = arguments["path"].as_str().unwrap_or_default();
    Ok(match tool {
        "fs_list" => "0 folders, 2 files in odd\n# title.md  1 B\n__init__.py  3 B\n".to_owned(),
        "fs_edit" => format!("edited {path} +1 −1\n@@ -1 +1 @@\n-__all__ = ['a']\n+x\n"),
        "fs_write" => format!("created {path} +1\n1 line, 3 B\n"),
        "fs_search" => "__init__.py\na*b*c.txt\n".to_owned(),
        "memory_save" => "Saved as `m_6`.".to_owned(),
        "memory_recall" => {
            r#"{"id":"m_6","date":"2026-11-16","by":"x","trust":"trusted","text":"__init__.py and *stars*"}"#
                .to_owned()
        }
        "rag_retrieve" => "1. [untrusted: a.md] Notes (at 1)\n  Buy *bread*.\n".to_owned(),
        _ => "done".to_owned(),
    })
}

#[test]
fn names_and_texts_that_markdown_would_change_are_shown_as_code() {
    for (text, answer) in [
        (
            "list odd",
            "```text\n0 folders, 2 files in odd\n# title.md  1 B\n__init__.py  3 B\n```",
        ),
        (
            "change \"a\" to \"b\" in odd/__init__.py",
            "`edited odd/__init__.py +1 −1`\n\n```diff\n@@ -1 +1 @@\n-__all__ = ['a']\n+x\n```",
        ),
        (
            "write __init__.py with the text \"x\"",
            "```text\ncreated __init__.py +1\n1 line, 3 B\n```",
        ),
        (
            "find all text files",
            "```text\n__init__.py\na*b*c.txt\n```",
        ),
        (
            "remember that __init__.py and *stars* matter",
            "Saved as `m_6`: `__init__.py and *stars* matter`",
        ),
        (
            "recall stars",
            "```text\n__init__.py and *stars* (2026-11-16)\n```",
        ),
        (
            "what do you know about bread?",
            "```text\n1. Notes (from a.md)\n  Buy *bread*.\n```",
        ),
    ] {
        let turn = play(Mode::Specialists, TOOLS, text, odd_names);
        assert_eq!(turn.answer, answer, "{text}");
    }
    for (text, answer) in [
        (
            "write notes/a.md with the word hi",
            "created notes/a.md +1\n1 line, 3 B",
        ),
        (
            "remember that the release is on Friday",
            "Saved as `m_6`: the release is on Friday",
        ),
    ] {
        let turn = play(Mode::Specialists, TOOLS, text, odd_names);
        assert_eq!(turn.answer, answer, "{text}");
    }
}

#[test]
fn a_missing_file_whose_name_may_contain_spaces_is_suggested_in_quotation_marks() {
    let turn = play(Mode::Specialists, TOOLS, "read a b.txt", folder);
    assert_eq!(
        turn.answer,
        "I could not read b.txt: `b.txt` does not exist. A name with spaces needs quotation marks: read \"a b.txt\""
    );
    let turn = play(Mode::Specialists, TOOLS, "read the file b.txt", folder);
    assert!(!turn.answer.contains("quotation marks"), "{turn:#?}");
}

#[test]
fn a_text_that_occurs_several_times_asks_for_a_longer_one() {
    fn twice(_: &str, _: &Value) -> Result<String, ToolError> {
        Err(ToolError::new(
            "`a.md` contains the text in `old` 2 times, at lines 1 and 4; pass a longer `old` with more surrounding \
             lines",
        ))
    }
    let text = "replace \"x\" with \"y\" in a.md";
    let turn = play(Mode::Specialists, TOOLS, text, twice);
    assert_eq!(
        turn.answer,
        "I could not change a.md: `a.md` contains \"x\" 2 times, at lines 1 and 4. Give a longer text that occurs only once."
    );
}

#[test]
fn an_empty_memory_is_named() {
    fn nothing(_: &str, _: &Value) -> Result<String, ToolError> {
        Ok("no memory contains any of these words".to_owned())
    }
    for (text, answer) in [
        ("recall everything", "I remember nothing yet."),
        ("when is the release?", "I remember nothing about that."),
    ] {
        assert_eq!(play(Mode::Specialists, TOOLS, text, nothing).answer, answer);
    }
}
