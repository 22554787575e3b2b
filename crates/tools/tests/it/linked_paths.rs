//! Paths that lead through links: the inspection reports where they lead, for the rules of the gate, and a call works
//! only on the file that was inspected.

use crate::support::FileFixture;
use lango_core::PathResolution;
use lango_sandbox::Policy;
use lango_testkit::tool::caller;
use lango_tools::{Trash, Workspace, file_tools};
use serde_json::{Value, json};
use std::sync::Arc;

/// A workspace with `secrets/key`, and links to it over several steps.
fn fixture() -> FileFixture {
    let fixture = FileFixture::new();
    fixture.write("secrets/key", "old");
    fixture.write("notes/a.md", "old");
    fixture.link("mid", "secrets");
    fixture.link("pub", "./mid");
    fixture.link("notes/key", "../pub/key");
    fixture
}

fn arguments(tool: &str, path: &str) -> Value {
    match tool {
        "fs_write" => json!({ "path": path, "content": "new" }),
        "fs_edit" => json!({ "path": path, "old": "old", "new": "new" }),
        "fs_search" => json!({ "path": path, "glob": "*" }),
        _ => json!({ "path": path }),
    }
}

fn resolution(fixture: &FileFixture, tool: &str, path: &str) -> Option<(String, Vec<String>)> {
    let found = fixture.inspect(tool, arguments(tool, path)).path;
    found.map(|PathResolution { target, links }| {
        let links = links.iter().map(ToString::to_string).collect();
        (target.to_string(), links)
    })
}

#[test]
fn the_inspection_reports_every_path_that_links_lead_to() {
    let fixture = fixture();
    let linked = |target: &str, links: &[&str]| {
        let links = links.iter().map(|link| (*link).to_owned()).collect();
        Some((target.to_owned(), links))
    };
    for tool in [
        "fs_read",
        "fs_write",
        "fs_edit",
        "fs_delete",
        "fs_stat",
        "fs_search",
    ] {
        assert_eq!(
            resolution(&fixture, tool, "pub/key"),
            linked("secrets/key", &["pub/key", "mid/key"]),
            "{tool}"
        );
    }
    for tool in ["fs_read", "fs_write"] {
        assert_eq!(
            resolution(&fixture, tool, "notes/key"),
            linked("secrets/key", &["notes/key", "pub/key", "mid/key"]),
        );
        assert_eq!(
            resolution(&fixture, tool, "pub/../notes/a.md"),
            linked("notes/a.md", &["pub/../notes/a.md", "mid/../notes/a.md"]),
        );
    }
    assert_eq!(
        resolution(&fixture, "fs_mkdir", "pub/new/deep"),
        linked("secrets/new/deep", &["pub/new/deep", "mid/new/deep"])
    );
    let listed = resolution(&fixture, "fs_list", "pub");
    assert_eq!(listed, linked("secrets", &["pub", "mid"]));
}

#[test]
fn the_inspection_reports_nothing_if_the_text_of_the_path_tells_where_it_leads() {
    let fixture = fixture();
    let absolute = fixture.workspace().path().join("notes/a.md");
    for path in [
        "notes/a.md",
        "./notes//a.md",
        "secrets/../notes/a.md",
        absolute.to_str().unwrap(),
    ] {
        for tool in ["fs_read", "fs_write", "fs_edit", "fs_delete", "fs_stat"] {
            assert_eq!(resolution(&fixture, tool, path), None, "{tool} {path}");
        }
    }
    assert_eq!(resolution(&fixture, "fs_write", "new/folder/file"), None);
    assert_eq!(resolution(&fixture, "fs_list", "."), None);
    // These mean the link itself.
    assert_eq!(resolution(&fixture, "fs_delete", "pub"), None);
    assert_eq!(resolution(&fixture, "fs_stat", "notes/key"), None);
}

#[tokio::test]
async fn the_inspection_reports_a_path_that_starts_with_another_name_of_the_workspace() {
    let fixture = fixture();
    let alias = fixture.outside("alias");
    std::os::unix::fs::symlink(fixture.workspace().path(), &alias).unwrap();
    let workspace = Workspace::open(Policy::of(alias.clone())).unwrap();
    let tools = file_tools(&workspace, &Trash::at("nowhere"), None);
    let read = tools
        .iter()
        .find(|tool| tool.spec().name == "fs_read")
        .unwrap();
    let path = alias.join("secrets/key");
    let arguments = Arc::new(json!({ "path": path.to_str().unwrap() }));
    let found = read.inspect(&caller(), arguments).await.path.unwrap();
    assert_eq!((&*found.target, found.links.len()), ("secrets/key", 0));
}

#[test]
fn links_whose_paths_would_fill_the_log_are_refused() {
    let fixture = FileFixture::new();
    let long = "x/../".repeat(790);
    fixture.write("x/file", "text");
    for number in 0..30 {
        let target = format!("{long}l{}", number + 1);
        fixture.link(&format!("l{number}"), target);
    }
    fixture.link("l30", "x");
    let refused = fixture.error("fs_read", json!({ "path": "l0/file" }));
    assert!(refused.contains("too many folders"), "{refused}");
}

#[test]
fn a_name_that_other_programs_act_on_counts_even_if_its_folder_is_a_link() {
    let fixture = FileFixture::new();
    fixture.write("cargo/x", "x");
    fixture.write("github/workflows/x", "x");
    fixture.link(".cargo", "cargo");
    fixture.link(".github", "github");
    let inspected = fixture.inspect("fs_write", arguments("fs_write", ".cargo/config.toml"));
    assert!(inspected.guarded.is_some());
    let workflow = arguments("fs_write", ".github/workflows/ci.yml");
    assert!(
        fixture
            .inspect("fs_write", workflow)
            .edit
            .unwrap()
            .caution
            .is_some()
    );
}

/// Swaps an entry for something else.
type Swap = fn(&FileFixture);

#[test]
fn a_call_does_nothing_if_its_path_leads_to_another_file_than_when_it_was_inspected() {
    let swaps: [(&str, Swap); 4] = [
        ("notes/b.md", |fixture| {
            std::fs::remove_file(fixture.inside("notes/b.md")).unwrap();
            fixture.link("notes/b.md", "../src/main.py");
        }),
        ("notes/b.md", |fixture| {
            std::fs::rename(fixture.inside("notes"), fixture.inside("moved")).unwrap();
            fixture.link("notes", "src");
            fixture.write("src/b.md", "old secret");
        }),
        ("link", |fixture| {
            std::fs::remove_file(fixture.inside("link")).unwrap();
            fixture.link("link", "src/main.py");
        }),
        ("link", |fixture| {
            std::fs::remove_file(fixture.inside("link")).unwrap();
            fixture.write("link", "old secret");
        }),
    ];
    for tool in ["fs_write", "fs_edit", "fs_read", "fs_search"] {
        for (path, swap) in swaps {
            let fixture = FileFixture::new();
            fixture.write("notes/b.md", "old text");
            fixture.write("src/main.py", "old secret");
            fixture.link("link", "notes/b.md");
            let inspection = fixture.inspect(tool, arguments(tool, path));
            swap(&fixture);
            let refused = fixture.call_inspected(tool, arguments(tool, path), inspection);
            let refused = refused.expect_err(tool).message;
            assert!(refused.contains("leads to another place"), "{refused}");
            assert!(!refused.contains("secret"), "{refused}");
            assert_eq!(fixture.read("src/main.py"), "old secret");
            fixture.text(tool, arguments(tool, path));
        }
    }
}

#[test]
fn a_folder_that_is_swapped_for_a_link_after_the_inspection_keeps_its_files() {
    for (tool, path) in [
        ("fs_delete", "notes/x"),
        ("fs_mkdir", "notes/new"),
        ("fs_list", "notes"),
    ] {
        let fixture = FileFixture::new();
        fixture.write("notes/x", "text");
        fixture.write("src/x", "text");
        let inspection = fixture.inspect(tool, arguments(tool, path));
        std::fs::rename(fixture.inside("notes"), fixture.inside("moved")).unwrap();
        fixture.link("notes", "src");
        let refused = fixture.call_inspected(tool, arguments(tool, path), inspection);
        let refused = refused.expect_err(tool).message;
        assert!(refused.contains("leads to another place"), "{refused}");
        assert!(fixture.has("src/x") && !fixture.has("src/new"));
    }
}

#[test]
fn a_preview_names_the_file_that_links_lead_to() {
    let fixture = fixture();
    for tool in ["fs_write", "fs_edit", "fs_delete"] {
        let shown = fixture.preview(tool, arguments(tool, "pub/key")).unwrap();
        assert!(shown.contains("pub/key → secrets/key"), "{shown}");
    }
    let made = fixture
        .preview("fs_mkdir", arguments("fs_mkdir", "pub/new"))
        .unwrap();
    assert!(made.contains("pub/new → secrets/new"), "{made}");
}
