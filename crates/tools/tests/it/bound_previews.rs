//! A question shows only what was inspected: an approval covers nothing else.

use crate::command_fixture::CommandFixture;
use crate::support::FileFixture;
use lango_core::{Inspection, PreviewLength, PreviewRequest};
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::symlink;

const HIDDEN: &str = "What this call would do cannot be shown";

fn shown(fixture: &FileFixture, tool: &str, arguments: &Value, inspection: &Inspection) -> String {
    let request = PreviewRequest {
        length: PreviewLength::Short,
        inspection: inspection.clone(),
    };
    let shown = fixture.preview_inspected(tool, arguments.clone(), request);
    shown.unwrap()
}

#[test]
fn a_preview_does_not_follow_a_link_to_another_file_than_was_inspected() {
    for (tool, arguments) in [
        ("fs_write", json!({"path": "cur", "content": "new"})),
        ("fs_edit", json!({"path": "cur", "old": "text", "new": "x"})),
    ] {
        let fixture = FileFixture::new();
        let link = fixture.inside("cur");
        fs::write(fixture.inside("a.txt"), "text").unwrap();
        fs::write(fixture.inside("scratch.txt"), "text").unwrap();
        symlink("a.txt", &link).unwrap();
        let inspection = fixture.inspect(tool, arguments.clone());
        let before = shown(&fixture, tool, &arguments, &inspection);
        assert!(before.contains("cur → a.txt"), "{before}");
        fs::remove_file(&link).unwrap();
        symlink("scratch.txt", &link).unwrap();
        let after = shown(&fixture, tool, &arguments, &inspection);
        assert!(after.starts_with(HIDDEN), "{after}");
    }
}

#[test]
fn a_preview_does_not_show_other_content_than_was_inspected() {
    for (tool, arguments) in [
        ("fs_write", json!({"path": "a/b", "content": "new"})),
        ("fs_edit", json!({"path": "a/b", "old": "text", "new": "x"})),
        ("fs_delete", json!({"path": "a"})),
    ] {
        let fixture = FileFixture::new();
        fs::create_dir(fixture.inside("a")).unwrap();
        fs::write(fixture.inside("a/b"), "text that matters").unwrap();
        let inspection = fixture.inspect(tool, arguments.clone());
        let before = shown(&fixture, tool, &arguments, &inspection);
        assert!(!before.starts_with(HIDDEN), "{before}");
        fs::rename(fixture.inside("a"), fixture.inside("other")).unwrap();
        fs::create_dir(fixture.inside("a")).unwrap();
        fs::write(fixture.inside("a/b"), "other text").unwrap();
        let after = shown(&fixture, tool, &arguments, &inspection);
        assert!(after.starts_with(HIDDEN), "{tool}: {after}");
    }
}

#[test]
fn a_preview_of_a_command_does_not_show_another_folder_than_was_inspected() {
    let fixture = CommandFixture::new();
    let arguments = json!({"command": "rm -v data", "cwd": "cur"});
    for folder in ["prod", "scratch"] {
        fs::create_dir(fixture.inside(folder)).unwrap();
    }
    symlink("prod", fixture.inside("cur")).unwrap();
    let inspection = fixture.inspect("exec", arguments.clone());
    let preview = |inspection: &Inspection| {
        let shown = fixture.preview_inspected("exec", arguments.clone(), inspection.clone());
        shown.unwrap()
    };
    let before = preview(&inspection);
    assert!(before.contains("/prod"), "{before}");
    fs::remove_file(fixture.inside("cur")).unwrap();
    symlink("scratch", fixture.inside("cur")).unwrap();
    let after = preview(&inspection);
    assert!(after.starts_with(HIDDEN), "{after}");
}

#[test]
fn a_command_that_cannot_run_is_refused_without_a_question() {
    let fixture = CommandFixture::new();
    let inspection = fixture.inspect("exec", json!({"command": "make", "cwd": "later"}));
    let refused = inspection.refused.unwrap();
    assert!(
        refused.contains("`later`") || refused.contains("later"),
        "{refused}"
    );
}
