//! No path leads out of the workspace.

use crate::support::{FileFixture, SECRET};
use lango_sandbox::Policy;
use lango_testkit::tool::caller;
use lango_tools::{Trash, Workspace, file_tools};
use serde_json::json;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

fn assert_outside(fixture: &FileFixture, path: &str) {
    for tool in ["fs_read", "fs_list"] {
        let error = fixture.error(tool, json!({"path": path}));
        assert!(
            error.contains("is outside the workspace"),
            "{tool} {path}: {error}"
        );
    }
}

#[test]
fn dots_and_absolute_paths_do_not_lead_outside() {
    let fixture = FileFixture::new();
    fixture.write("src/a.txt", "");
    let workspace = fixture
        .inside("")
        .to_str()
        .unwrap()
        .trim_end_matches('/')
        .to_owned();
    let paths = [
        "..".to_owned(),
        "../outside/secret.txt".to_owned(),
        "src/../../outside/secret.txt".to_owned(),
        "./././../outside".to_owned(),
        "/".to_owned(),
        "/etc/passwd".to_owned(),
        fixture.outside("secret.txt").to_str().unwrap().to_owned(),
        format!("{workspace}/../outside/secret.txt"),
        format!("{workspace}x"),
    ];
    for path in paths {
        assert_outside(&fixture, &path);
        let error = fixture.error("fs_stat", json!({"path": path}));
        assert!(
            error.contains("is outside the workspace"),
            "fs_stat {path}: {error}"
        );
    }
}

#[test]
fn links_do_not_lead_outside() {
    let fixture = FileFixture::new();
    fixture.link("file", fixture.outside("secret.txt"));
    fixture.link("relative-file", "../outside/secret.txt");
    fixture.link("folder", fixture.outside(""));
    fixture.link("relative-folder", "../outside");
    fixture.link("chain", "relative-folder");
    fixture.link("root", "/");
    fixture.link("process", "/proc/self/root");
    let paths = [
        "file",
        "relative-file",
        "folder/secret.txt",
        "relative-folder/secret.txt",
    ];
    for path in paths
        .into_iter()
        .chain(["chain/secret.txt", "chain", "root/etc", "process/etc"])
    {
        assert_outside(&fixture, path);
    }
    for path in ["folder/secret.txt", "chain/secret.txt", "root/etc"] {
        let error = fixture.error("fs_stat", json!({"path": path}));
        assert!(
            error.contains("is outside the workspace"),
            "fs_stat {path}: {error}"
        );
    }
}

#[test]
fn links_and_dots_that_stay_inside_are_followed() {
    let fixture = FileFixture::new();
    fixture.write("data/a.txt", "inside");
    fixture.link("data/up", "..");
    fixture.link("short", "data/a.txt");
    for path in [
        "short",
        "data/../data/a.txt",
        "data/up/short",
        "data/up/data/up/data/a.txt",
    ] {
        assert_eq!(
            fixture.text("fs_read", json!({"path": path})),
            "inside",
            "{path}"
        );
    }
}

#[test]
fn a_broken_or_circular_link_is_explained() {
    let fixture = FileFixture::new();
    fixture.link("broken", "nowhere");
    fixture.link("circle", "circle");
    let broken = fixture.error("fs_read", json!({"path": "broken"}));
    assert_eq!(
        broken,
        "`broken` is a link to `nowhere`, which does not exist"
    );
    let circle = fixture.error("fs_read", json!({"path": "circle"}));
    assert!(
        circle.starts_with("`circle` cannot be opened: "),
        "{circle}"
    );
}

#[test]
fn an_absolute_path_inside_the_workspace_works_like_a_relative_one() {
    let fixture = FileFixture::new();
    fixture.write("src/a.txt", "inside");
    let path = fixture.inside("src/a.txt");
    assert_eq!(fixture.text("fs_read", json!({"path": path})), "inside");
    let listing = fixture.text("fs_list", json!({"path": fixture.inside("")}));
    assert_eq!(listing, "1 folder, 0 files in .\nsrc/\n");
}

#[test]
fn a_workspace_given_by_a_link_accepts_both_paths() {
    let fixture = FileFixture::new();
    fixture.write("real/a.txt", "inside");
    fixture.link("alias", "real");
    let workspace = Workspace::open(Policy::of(fixture.inside("alias"))).unwrap();
    assert_eq!(
        workspace.path(),
        fixture.inside("real").canonicalize().unwrap()
    );
    let stat = Arc::clone(&file_tools(&workspace, &Trash::at("nowhere"), None)[2]);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    for name in ["alias/a.txt", "real/a.txt"] {
        let arguments = Arc::new(json!({"path": fixture.inside(name)}));
        let output = runtime.block_on(stat.run(&caller(), arguments)).unwrap();
        assert!(
            output.text.starts_with("a.txt\nkind: file\n"),
            "{}",
            output.text
        );
    }
}

#[test]
fn a_link_swapped_in_while_reading_never_leads_outside() {
    let fixture = FileFixture::new();
    fixture.write("real/secret.txt", "inside");
    let stop = Arc::new(AtomicBool::new(false));
    let door = fixture.inside("door");
    let (outside, inside) = (fixture.outside(""), fixture.inside("real"));
    std::os::unix::fs::symlink("real", &door).unwrap();
    let swapper = std::thread::spawn({
        let stop = Arc::clone(&stop);
        move || {
            while !stop.load(Ordering::Relaxed) {
                swap_in_link(&door, &outside);
                swap_in_link(&door, Path::new(inside.file_name().unwrap()));
            }
        }
    });
    let (mut allowed, mut refused) = (0, 0);
    for _ in 0..3000 {
        match fixture.call("fs_read", json!({"path": "door/secret.txt"})) {
            Ok(text) => {
                assert_ne!(text, SECRET);
                assert_eq!(text, "inside");
                allowed += 1;
            }
            Err(error) => {
                let is_refused = ["is outside the workspace", "leads to another place"]
                    .iter()
                    .any(|reason| error.message.contains(reason));
                assert!(is_refused, "{error}");
                refused += 1;
            }
        }
    }
    stop.store(true, Ordering::Relaxed);
    swapper.join().unwrap();
    assert!(
        allowed > 0 && refused > 0,
        "the swapping had no effect: {allowed} allowed, {refused} refused"
    );
}

fn swap_in_link(door: &Path, target: &Path) {
    let fresh = door.with_extension("new");
    std::os::unix::fs::symlink(target, &fresh).unwrap();
    std::fs::rename(&fresh, door).unwrap();
}
