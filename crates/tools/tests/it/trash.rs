//! `fs_delete`, and the way back from the trash.

use crate::support::{Bench, prepared};
use lango_core::Extent;
use lango_tools::{Trash, TrashError};
use serde_json::json;
use std::os::unix::fs::{MetadataExt, PermissionsExt};

/// Deletes it and gives its id in the trash, which the answer ends with: of two things deleted within a millisecond,
/// the list does not say which was the latest.
fn delete(bench: &Bench, path: &str) -> String {
    let text = bench.text("fs_delete", json!({"path": path}));
    let (_, id) = text.trim_end().rsplit_once(' ').unwrap();
    id.to_owned()
}

#[test]
fn a_file_goes_to_the_trash_and_comes_back() {
    let bench = Bench::new();
    bench.write("src/a.txt", "content");
    let text = bench.text("fs_delete", json!({"path": "src/a.txt"}));
    let [item] = &bench.trash().list().unwrap()[..] else {
        panic!("one thing was deleted");
    };
    assert_eq!(
        text,
        format!(
            "deleted src/a.txt (1 file, 7 B); it is in lango's trash as {}\n",
            item.id
        )
    );
    assert!(!bench.has("src/a.txt"));
    assert_eq!((item.files, item.bytes), (1, 7));
    let workspace = bench.inside("").canonicalize().unwrap();
    assert_eq!(item.path, workspace.join("src/a.txt"));
    assert!(item.deleted_at.0 > 1_700_000_000_000);
    let mode = bench
        .trash()
        .path()
        .metadata()
        .unwrap()
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o700);

    std::fs::remove_dir(bench.inside("src")).unwrap();
    bench.restore(&item.id).unwrap();
    assert_eq!(bench.read("src/a.txt"), "content");
    assert!(bench.trash().list().unwrap().is_empty());
    assert!(matches!(
        bench.restore(&item.id),
        Err(TrashError::NotFound { .. })
    ));
}

#[test]
fn a_folder_goes_with_all_it_holds_and_links_go_as_links() {
    let bench = Bench::new();
    bench.write("data/sub/a.txt", "a");
    bench.link("data/door", bench.outside(""));
    bench.link("alone", "data");
    let folder = delete(&bench, "data");
    let link = delete(&bench, "alone");
    assert!(!bench.has("data") && !bench.has("alone"));
    assert!(bench.outside("secret.txt").exists());
    bench.restore(&folder).unwrap();
    bench.restore(&link).unwrap();
    assert_eq!(bench.read("alone/sub/a.txt"), "a");
    assert!(bench.inside("data/door").is_symlink());
}

#[test]
fn the_preview_of_a_deletion_says_what_goes_and_where_to() {
    let bench = Bench::new();
    for number in 0..12 {
        bench.write(&format!("data/{number:02}"), "x");
    }
    let preview = bench.preview("fs_delete", json!({"path": "data"})).unwrap();
    let trash = bench.trash().path().display();
    assert!(
        preview.starts_with("Deletes the folder data (12 files, 12 B)\n  00\n  01\n"),
        "{preview}"
    );
    assert!(
        preview.ends_with(&format!(
            "  09\n  [2 more]\nIt goes to lango's trash, {trash}, and can be restored from there\n"
        )),
        "{preview}"
    );
    let whole = bench.preview_of("fs_delete", json!({"path": "data"}), Extent::Whole);
    let whole = whole.unwrap();
    assert!(whole.contains("  09\n  10\n  11\nIt goes"), "{whole}");
    assert!(bench.has("data/00") && bench.trash().list().unwrap().is_empty());
}

#[test]
fn nothing_is_restored_over_something_else() {
    let bench = Bench::new();
    bench.write("a.txt", "old");
    let id = delete(&bench, "a.txt");
    bench.write("a.txt", "new");
    assert!(matches!(
        bench.restore(&id),
        Err(TrashError::Occupied { .. })
    ));
    assert_eq!(bench.read("a.txt"), "new");
    std::fs::remove_file(bench.inside("a.txt")).unwrap();
    bench.link("a.txt", bench.outside("secret.txt"));
    assert!(matches!(
        bench.restore(&id),
        Err(TrashError::Occupied { .. })
    ));
    assert_eq!(bench.trash().list().unwrap().len(), 1);
}

#[test]
fn nothing_is_restored_through_a_link() {
    let bench = Bench::new();
    bench.write("data/a.txt", "mine");
    bench.write("other/b.txt", "");
    let id = delete(&bench, "data/a.txt");
    std::fs::remove_dir(bench.inside("data")).unwrap();
    for target in [bench.outside(""), bench.inside("other")] {
        bench.link("data", &target);
        let error = bench.restore(&id).unwrap_err();
        assert!(matches!(error, TrashError::Refused { .. }), "{error}");
        assert!(!target.join("a.txt").exists());
        std::fs::remove_file(bench.inside("data")).unwrap();
    }
    bench.restore(&id).unwrap();
    assert_eq!(bench.read("data/a.txt"), "mine");
}

#[test]
fn an_id_is_no_path() {
    let bench = Bench::new();
    bench.write("a.txt", "");
    delete(&bench, "a.txt");
    for id in [
        "",
        ".",
        "..",
        "../outside/secret",
        "../../x",
        "aaaaaa",
        "a/../a",
    ] {
        let error = bench.restore(id).unwrap_err();
        assert!(
            matches!(error, TrashError::NotFound { .. }),
            "{id}: {error}"
        );
    }
}

#[test]
fn the_trash_is_emptied_for_good() {
    let bench = Bench::new();
    assert_eq!(bench.trash().empty().unwrap(), 0);
    assert!(bench.trash().list().unwrap().is_empty());
    bench.write("data/a.txt", "");
    bench.write("b.txt", "");
    bench.link("data/door", bench.outside(""));
    delete(&bench, "data");
    delete(&bench, "b.txt");
    assert_eq!(bench.trash().empty().unwrap(), 2);
    let left = std::fs::read_dir(bench.trash().path()).unwrap().count();
    assert_eq!(left, 0);
    assert!(bench.outside("secret.txt").exists());
}

#[test]
fn what_may_not_go_stays() {
    let bench = Bench::new();
    bench.write("repo/.git/config", "");
    bench.write("deep/er/.env.local", "");
    assert!(prepared("mkfifo", &[], &bench.inside("pipe")));
    let delete = |path: &str| bench.error("fs_delete", json!({"path": path}));
    assert_eq!(
        delete("repo"),
        "`repo` is not deleted: it holds `.git`, which is kept as it is; delete other entries one by one"
    );
    assert!(delete("deep").contains("it holds `er/.env.local`"));
    assert!(delete("repo/.git").starts_with("`repo/.git` is kept as it is"));
    assert!(delete("pipe").contains("it is a named pipe"));
    for root in ["", ".", "repo/.."] {
        assert!(
            delete(root).contains("a folder that the person opened"),
            "{root}"
        );
    }
    assert!(delete("nowhere").starts_with("`nowhere` does not exist"));
    assert!(bench.trash().list().unwrap().is_empty());
}

#[test]
fn a_trash_inside_of_the_workspace_is_not_put_into_itself() {
    let bench = Bench::new();
    bench.write("data/a.txt", "");
    let workspace = lango_tools::Workspace::open(lango_sandbox::Policy::of(bench.inside("")));
    let trash = Trash::at(bench.inside("data/trash"));
    std::fs::create_dir(trash.path()).unwrap();
    let tools = lango_tools::file_tools(&workspace.unwrap(), &trash);
    let delete = tools.iter().find(|tool| tool.spec().name == "fs_delete");
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    let caller = lango_testkit::tool::caller();
    let run = delete.unwrap().run(&caller, json!({"path": "data"}).into());
    let error = runtime.block_on(run).unwrap_err();
    assert!(
        error.message.contains("it holds the trash itself"),
        "{error}"
    );
}

/// A bench whose workspace is on another file system than its trash, if this machine has one.
fn across_file_systems() -> Option<(Bench, Trash)> {
    let elsewhere = tempfile::tempdir_in("/dev/shm").ok()?;
    let here = tempfile::tempdir().unwrap();
    if elsewhere.path().metadata().ok()?.dev() == here.path().metadata().ok()?.dev() {
        return None;
    }
    let bench = Bench::in_folder(elsewhere, here, |_, _| {});
    let trash = bench.trash().clone();
    Some((bench, trash))
}

#[test]
fn what_is_on_another_file_system_is_copied_and_comes_back_the_same() {
    let Some((bench, trash)) = across_file_systems() else {
        return;
    };
    bench.write("data/sub/run.sh", "#!/bin/sh\n");
    std::fs::set_permissions(
        bench.inside("data/sub/run.sh"),
        PermissionsExt::from_mode(0o750),
    )
    .unwrap();
    bench.link("data/door", bench.outside(""));
    let id = delete(&bench, "data");
    assert!(!bench.has("data"));
    let copy = trash.path().join(&id);
    assert!(copy.join("door").is_symlink());
    assert!(bench.outside("secret.txt").exists());
    bench.restore(&id).unwrap();
    assert_eq!(bench.read("data/sub/run.sh"), "#!/bin/sh\n");
    let mode = bench.inside("data/sub/run.sh").metadata().unwrap().mode();
    assert_eq!(mode & 0o777, 0o750);
    assert!(!copy.exists() && trash.list().unwrap().is_empty());
}

#[test]
fn what_is_large_or_special_is_not_copied_to_another_file_system() {
    let Some((bench, trash)) = across_file_systems() else {
        return;
    };
    let file = std::fs::File::create(bench.inside("huge")).unwrap();
    file.set_len((1 << 30) + 1).unwrap();
    let error = bench.error("fs_delete", json!({"path": "huge"}));
    assert!(error.contains("has more than 1.0 GB"), "{error}");
    bench.write("data/a.txt", "");
    assert!(prepared("mkfifo", &[], &bench.inside("data/pipe")));
    let error = bench.error("fs_delete", json!({"path": "data"}));
    assert!(error.contains("holds a special file"), "{error}");
    assert!(bench.has("huge") && bench.has("data/a.txt"));
    assert_eq!(std::fs::read_dir(trash.path()).unwrap().count(), 0);
}
