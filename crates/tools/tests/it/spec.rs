//! The specifications of the file tools.

use crate::support::FileFixture;
use lango_core::{Effect, Risk, RuleSubject};
use lango_sandbox::Policy;
use lango_tools::{Workspace, WorkspaceError};
use serde_json::json;

#[test]
fn every_file_tool_declares_its_effect_its_risk_and_its_path() {
    let fixture = FileFixture::new();
    for (name, effect, risk) in [
        ("fs_list", Effect::Pure, Risk::Safe),
        ("fs_read", Effect::Pure, Risk::Safe),
        ("fs_stat", Effect::Pure, Risk::Safe),
        ("fs_search", Effect::Pure, Risk::Safe),
        ("fs_write", Effect::Idempotent, Risk::Moderate),
        ("fs_edit", Effect::NonIdempotent, Risk::Moderate),
        ("fs_mkdir", Effect::Idempotent, Risk::Moderate),
        ("fs_delete", Effect::NonIdempotent, Risk::Moderate),
    ] {
        let tool = fixture.tool(name);
        assert_eq!(tool.spec().effect, effect, "{name}");
        assert_eq!(tool.spec().risk, risk, "{name}");
        assert_eq!(tool.spec().subject, RuleSubject::Path, "{name}");
    }
}

#[test]
fn the_schema_is_derived_from_the_argument_type_with_descriptions() {
    let fixture = FileFixture::new();
    assert_eq!(
        *fixture.tool("fs_stat").spec().parameters,
        json!({
            "type": "object",
            "properties": {
                "path": {"type": "string", "description": "The file or folder, relative to the workspace."},
            },
            "required": ["path"],
            "additionalProperties": false,
        })
    );
    let read = fixture.tool("fs_read");
    assert_eq!(read.spec().parameters["required"], json!(["path"]));
    assert_eq!(
        read.spec().parameters["properties"]["first_line"]["minimum"],
        json!(1)
    );
    assert_eq!(
        fixture.tool("fs_list").spec().parameters.get("required"),
        None
    );
}

#[test]
fn arguments_that_do_not_fit_are_refused_with_the_reason() {
    let fixture = FileFixture::new();
    let unknown = fixture.error("fs_stat", json!({"path": ".", "deep": true}));
    assert!(unknown.contains("unknown field `deep`"), "{unknown}");
    let missing = fixture.error("fs_read", json!({}));
    assert!(missing.contains("missing field `path`"), "{missing}");
    let zero = fixture.error("fs_read", json!({"path": "x", "first_line": 0}));
    assert!(
        zero.starts_with("the arguments do not fit `fs_read`: "),
        "{zero}"
    );
}

#[test]
fn optional_arguments_may_be_null() {
    let fixture = FileFixture::new();
    fixture.write("a.txt", "hello\n");
    assert_eq!(
        fixture.text("fs_list", json!({"path": null})),
        "0 folders, 1 file in .\na.txt  6 B\n"
    );
    let arguments = json!({"path": "a.txt", "first_line": null, "skip_bytes": null, "lines": null});
    assert_eq!(fixture.text("fs_read", arguments), "hello\n");
}

#[test]
fn a_workspace_that_is_missing_or_not_a_folder_is_refused() {
    let fixture = FileFixture::new();
    fixture.write("file", "");
    let missing = Workspace::open(Policy::of(fixture.inside("nowhere"))).unwrap_err();
    assert!(
        matches!(missing, WorkspaceError::Missing { .. }),
        "{missing}"
    );
    let file = Workspace::open(Policy::of(fixture.inside("file"))).unwrap_err();
    assert!(matches!(file, WorkspaceError::NotAFolder { .. }), "{file}");
}
