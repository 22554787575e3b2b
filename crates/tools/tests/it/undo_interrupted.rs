//! Finishing an undo that another process took over or that was killed, after any of its steps.

use crate::canary;
use crate::support::FileFixture;
use lango_tools::{UndoAction, UndoMode};
use serde_json::{Value, json};
use std::cell::Cell;

fn write(path: &str, content: &str) -> (&'static str, Value) {
    ("fs_write", json!({"path": path, "content": content}))
}

fn delete(path: &str) -> (&'static str, Value) {
    ("fs_delete", json!({ "path": path }))
}

#[test]
fn an_undo_that_was_interrupted_after_any_step_can_be_finished() {
    let histories = [
        vec![write("a", "1"), delete("a"), write("a", "2")],
        vec![write("new", "1"), delete("new"), write("new", "2")],
        vec![write("new", "1"), delete("new")],
        vec![
            write("a", "1"),
            delete("a"),
            write("a", "2"),
            write("b", "1"),
            delete("a"),
            write("a", "3"),
        ],
        vec![
            write("d/a", "1"),
            delete("d/a"),
            write("d/a", "2"),
            delete("d/a"),
        ],
    ];
    for (number, history) in histories.iter().enumerate() {
        for steps in 0.. {
            let fixture = FileFixture::new();
            for name in ["a", "b", "d/a"] {
                fixture.write(name, "original");
            }
            let before = canary::of_tree(&fixture.inside(""));
            for (tool, arguments) in history.clone() {
                fixture.text(tool, arguments);
            }
            let record = fixture.record("t_1");
            let asked = Cell::new(0);
            let is_allowed = || asked.replace(asked.get() + 1) < steps;
            let results = record.undo(
                fixture.workspace(),
                fixture.trash(),
                UndoMode::Whole,
                &is_allowed,
            );
            for step in fixture.check_undo("t_1") {
                let is_refused = matches!(step.action, UndoAction::Refuse { .. });
                assert!(!is_refused, "{number} after {steps}: {step:?}");
            }
            fixture.undo_all("t_1");
            let after = canary::of_tree(&fixture.inside(""));
            canary::assert_same(&before, &after, &format!("{number} after {steps}"));
            if steps == results.len() {
                break;
            }
        }
    }
}

#[test]
fn a_version_that_the_turn_did_not_write_is_refused_although_the_trash_was_emptied() {
    let fixture = FileFixture::new();
    fixture.write("a", "original");
    for (tool, arguments) in [write("a", "1"), delete("a"), write("a", "2")] {
        fixture.text(tool, arguments);
    }
    fixture.trash().empty().unwrap();
    for content in ["mine", ""] {
        fixture.write("a", content);
        fixture.undo("t_1", UndoMode::Partial);
        assert_eq!(fixture.read("a"), content);
        let refused = fixture.check_undo("t_1").into_iter();
        let mut refused = refused.map(|step| step.action);
        assert!(refused.any(|action| matches!(action, UndoAction::Refuse { .. })));
    }
}
