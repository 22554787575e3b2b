//! What the tools say of themselves.

use crate::support::Bench;
use lango_core::{Effect, Risk, Subject};
use lango_sandbox::Policy;
use lango_tools::{Workspace, WorkspaceError};
use serde_json::json;

#[test]
fn every_file_tool_says_what_it_does_to_the_world_and_that_its_path_matters() {
    let bench = Bench::new();
    for (name, effect, risk) in [
        ("fs_list", Effect::Pure, Risk::Safe),
        ("fs_read", Effect::Pure, Risk::Safe),
        ("fs_stat", Effect::Pure, Risk::Safe),
        ("fs_search", Effect::Pure, Risk::Safe),
        ("fs_write", Effect::Idempotent, Risk::Moderate),
        ("fs_edit", Effect::Effect, Risk::Moderate),
        ("fs_mkdir", Effect::Idempotent, Risk::Moderate),
        ("fs_delete", Effect::Effect, Risk::Moderate),
    ] {
        let tool = bench.tool(name);
        assert_eq!(tool.spec().effect, effect, "{name}");
        assert_eq!(tool.spec().risk, risk, "{name}");
        assert_eq!(tool.spec().subject, Subject::Path, "{name}");
    }
}

#[test]
fn the_schema_comes_from_the_argument_type_and_carries_its_descriptions() {
    let bench = Bench::new();
    assert_eq!(
        *bench.tool("fs_stat").spec().parameters,
        json!({
            "type": "object",
            "properties": {
                "path": {"type": "string", "description": "The file or folder, relative to the workspace."},
            },
            "required": ["path"],
            "additionalProperties": false,
        })
    );
    let read = bench.tool("fs_read");
    assert_eq!(read.spec().parameters["required"], json!(["path"]));
    assert_eq!(
        read.spec().parameters["properties"]["first_line"]["minimum"],
        json!(1)
    );
    assert_eq!(
        bench.tool("fs_list").spec().parameters.get("required"),
        None
    );
}

#[test]
fn arguments_that_do_not_fit_are_refused_with_the_reason() {
    let bench = Bench::new();
    let unknown = bench.error("fs_stat", json!({"path": ".", "deep": true}));
    assert!(unknown.contains("unknown field `deep`"), "{unknown}");
    let missing = bench.error("fs_read", json!({}));
    assert!(missing.contains("missing field `path`"), "{missing}");
    let zero = bench.error("fs_read", json!({"path": "x", "first_line": 0}));
    assert!(
        zero.starts_with("the arguments do not fit `fs_read`: "),
        "{zero}"
    );
}

#[test]
fn arguments_left_out_may_also_be_null() {
    let bench = Bench::new();
    bench.write("a.txt", "hello\n");
    assert_eq!(
        bench.text("fs_list", json!({"path": null})),
        "0 folders, 1 file in .\na.txt  6 B\n"
    );
    let arguments = json!({"path": "a.txt", "first_line": null, "skip_bytes": null, "lines": null});
    assert_eq!(bench.text("fs_read", arguments), "hello\n");
}

#[test]
fn a_workspace_that_is_missing_or_no_folder_is_refused() {
    let bench = Bench::new();
    bench.write("file", "");
    let missing = Workspace::open(Policy::of(bench.inside("nowhere"))).unwrap_err();
    assert!(
        matches!(missing, WorkspaceError::Missing { .. }),
        "{missing}"
    );
    let file = Workspace::open(Policy::of(bench.inside("file"))).unwrap_err();
    assert!(matches!(file, WorkspaceError::NotAFolder { .. }), "{file}");
}
