//! Tests of `fs_delete` and of restoring from the trash.

use crate::support::{FileFixture, create_special};
use lango_core::PreviewLength;
use lango_tools::{Trash, TrashError};
use serde_json::json;
use std::os::unix::fs::{MetadataExt, PermissionsExt};

/// Deletes a path and returns its id from the result. The list would not do: the order of two items that were deleted
/// within a millisecond is undefined.
pub(crate) fn delete(fixture: &FileFixture, path: &str) -> String {
    let text = fixture.text("fs_delete", json!({"path": path}));
    let (_, id) = text.trim_end().rsplit_once(' ').unwrap();
    id.to_owned()
}

#[test]
fn a_file_goes_to_the_trash_and_can_be_restored() {
    let fixture = FileFixture::new();
    fixture.write("src/a.txt", "content");
    let text = fixture.text("fs_delete", json!({"path": "src/a.txt"}));
    let [item] = &fixture.trash().list().unwrap()[..] else {
        panic!("one item was deleted");
    };
    assert_eq!(
        text,
        format!(
            "deleted src/a.txt\n1 file, 7 B; it is now in lango's trash as {}\n",
            item.id
        )
    );
    assert!(!fixture.has("src/a.txt"));
    assert_eq!((item.files, item.bytes), (1, 7));
    let workspace = fixture.inside("").canonicalize().unwrap();
    assert_eq!(item.path, workspace.join("src/a.txt"));
    assert!(item.deleted_at.0 > 1_700_000_000_000);
    let mode = fixture
        .trash()
        .path()
        .metadata()
        .unwrap()
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o700);

    std::fs::remove_dir(fixture.inside("src")).unwrap();
    fixture.restore(&item.id).unwrap();
    assert_eq!(fixture.read("src/a.txt"), "content");
    assert!(fixture.trash().list().unwrap().is_empty());
    assert!(matches!(
        fixture.restore(&item.id),
        Err(TrashError::NotFound { .. })
    ));
}

/// Changes what is at a path.
type Swap = fn(&FileFixture);

#[test]
fn nothing_is_deleted_that_is_not_what_the_user_was_asked_about() {
    let swaps: [(&str, &str, Swap); 8] = [
        ("file", "a folder instead", |fixture| {
            std::fs::remove_file(fixture.inside("file")).unwrap();
            fixture.write("file/other", "x");
        }),
        ("file", "other content of the same size", |fixture| {
            fixture.write("file", "B");
        }),
        ("file", "a link instead", |fixture| {
            std::fs::remove_file(fixture.inside("file")).unwrap();
            fixture.link("file", "folder");
        }),
        ("link", "another target", |fixture| {
            std::fs::remove_file(fixture.inside("link")).unwrap();
            fixture.link("link", "folder");
        }),
        ("folder", "one more file", |fixture| {
            fixture.write("folder/new", "")
        }),
        ("folder", "a file in a folder in it", |fixture| {
            fixture.write("folder/sub/new", "");
        }),
        ("folder", "a file with another name", |fixture| {
            let name = |name| fixture.inside("folder").join(name);
            std::fs::rename(name("a"), name("b")).unwrap();
        }),
        (
            "folder",
            "a file with other content of the same size and age",
            |fixture| {
                let path = fixture.inside("folder/a");
                let before = path.metadata().unwrap();
                // The clock of the file system is coarse.
                while path.metadata().unwrap().ctime_nsec() == before.ctime_nsec() {
                    fixture.write("folder/a", "B");
                    let file = std::fs::File::options().write(true).open(&path).unwrap();
                    file.set_modified(before.modified().unwrap()).unwrap();
                }
            },
        ),
    ];
    for (path, change, swap) in swaps {
        let fixture = FileFixture::new();
        fixture.write("file", "A");
        fixture.link("link", "file");
        fixture.write("folder/a", "A");
        fixture.write("folder/sub/c", "A");
        let arguments = json!({ "path": path });
        let inspection = fixture.inspect("fs_delete", arguments.clone());
        swap(&fixture);
        let refused = fixture.call_inspected("fs_delete", arguments.clone(), inspection);
        let refused = refused.expect_err(change).message;
        assert!(
            refused.contains("not as it was when the user was asked"),
            "{change}: {refused}"
        );
        assert!(fixture.has(path) && fixture.trash().list().unwrap().is_empty());
        let inspection = fixture.inspect("fs_delete", arguments.clone());
        let deleted = fixture.call_inspected("fs_delete", arguments, inspection);
        deleted.expect(change);
    }
}

#[test]
fn a_folder_is_deleted_with_its_contents_and_links_as_links() {
    let fixture = FileFixture::new();
    fixture.write("data/sub/a.txt", "a");
    fixture.link("data/door", fixture.outside(""));
    fixture.link("alone", "data");
    let folder = delete(&fixture, "data");
    let link = delete(&fixture, "alone");
    assert!(!fixture.has("data") && !fixture.has("alone"));
    assert!(fixture.outside("secret.txt").exists());
    fixture.restore(&folder).unwrap();
    fixture.restore(&link).unwrap();
    assert_eq!(fixture.read("alone/sub/a.txt"), "a");
    assert!(fixture.inside("data/door").is_symlink());
}

#[test]
fn the_preview_of_a_deletion_lists_the_entries_and_names_the_trash() {
    let fixture = FileFixture::new();
    for number in 0..12 {
        fixture.write(&format!("data/{number:02}"), "x");
    }
    let preview = fixture
        .preview("fs_delete", json!({"path": "data"}))
        .unwrap();
    let trash = fixture.trash().path().display();
    assert!(
        preview.starts_with("Deletes the folder data (12 files, 12 B)\n  00\n  01\n"),
        "{preview}"
    );
    assert!(
        preview.ends_with(&format!(
            "  09\n  [2 more]\nIt is moved to lango's trash, {trash}, and can be restored from there\n"
        )),
        "{preview}"
    );
    let whole = fixture.preview_of("fs_delete", json!({"path": "data"}), PreviewLength::Full);
    let whole = whole.unwrap();
    assert!(whole.contains("  09\n  10\n  11\nIt is moved"), "{whole}");
    assert!(fixture.has("data/00") && fixture.trash().list().unwrap().is_empty());
}

#[test]
fn restoring_never_overwrites_anything() {
    let fixture = FileFixture::new();
    fixture.write("a.txt", "old");
    let id = delete(&fixture, "a.txt");
    fixture.write("a.txt", "new");
    assert!(matches!(
        fixture.restore(&id),
        Err(TrashError::Occupied { .. })
    ));
    assert_eq!(fixture.read("a.txt"), "new");
    std::fs::remove_file(fixture.inside("a.txt")).unwrap();
    fixture.link("a.txt", fixture.outside("secret.txt"));
    assert!(matches!(
        fixture.restore(&id),
        Err(TrashError::Occupied { .. })
    ));
    assert_eq!(fixture.trash().list().unwrap().len(), 1);
}

#[test]
fn nothing_is_restored_through_a_link() {
    let fixture = FileFixture::new();
    fixture.write("data/a.txt", "mine");
    fixture.write("other/b.txt", "");
    let id = delete(&fixture, "data/a.txt");
    std::fs::remove_dir(fixture.inside("data")).unwrap();
    for target in [fixture.outside(""), fixture.inside("other")] {
        fixture.link("data", &target);
        let error = fixture.restore(&id).unwrap_err();
        assert!(matches!(error, TrashError::Refused { .. }), "{error}");
        assert!(!target.join("a.txt").exists());
        std::fs::remove_file(fixture.inside("data")).unwrap();
    }
    fixture.restore(&id).unwrap();
    assert_eq!(fixture.read("data/a.txt"), "mine");
}

#[test]
fn an_id_is_never_treated_as_a_path() {
    let fixture = FileFixture::new();
    fixture.write("a.txt", "");
    delete(&fixture, "a.txt");
    for id in [
        "",
        ".",
        "..",
        "../outside/secret",
        "../../x",
        "aaaaaa",
        "a/../a",
    ] {
        let error = fixture.restore(id).unwrap_err();
        assert!(
            matches!(error, TrashError::NotFound { .. }),
            "{id}: {error}"
        );
    }
}

#[test]
fn emptying_the_trash_deletes_everything_permanently() {
    let fixture = FileFixture::new();
    assert_eq!(fixture.trash().empty().unwrap(), 0);
    assert!(fixture.trash().list().unwrap().is_empty());
    fixture.write("data/a.txt", "");
    fixture.write("b.txt", "");
    fixture.link("data/door", fixture.outside(""));
    delete(&fixture, "data");
    delete(&fixture, "b.txt");
    assert_eq!(fixture.trash().empty().unwrap(), 2);
    let left = std::fs::read_dir(fixture.trash().path()).unwrap().count();
    assert_eq!(left, 0);
    assert!(fixture.outside("secret.txt").exists());
}

#[test]
fn what_must_not_be_deleted_stays() {
    let fixture = FileFixture::new();
    fixture.write("repo/.git/config", "");
    fixture.write("deep/er/.env.local", "");
    assert!(create_special("mkfifo", &[], &fixture.inside("pipe")));
    let delete = |path: &str| fixture.error("fs_delete", json!({"path": path}));
    assert_eq!(
        delete("repo"),
        "`repo` was not deleted: it contains `.git`, which is protected; delete the other entries one by one"
    );
    assert!(delete("deep").contains("it contains `er/.env.local`"));
    assert!(delete("repo/.git").starts_with("`repo/.git` is protected"));
    assert!(delete("pipe").contains("it is a named pipe"));
    for root in ["", ".", "repo/.."] {
        assert!(
            delete(root).contains("a folder that the user opened"),
            "{root}"
        );
    }
    assert!(delete("nowhere").starts_with("`nowhere` does not exist"));
    assert!(fixture.trash().list().unwrap().is_empty());
}

#[test]
fn a_folder_that_contains_the_trash_is_not_deleted() {
    let fixture = FileFixture::new();
    fixture.write("data/a.txt", "");
    let workspace = lango_tools::Workspace::open(lango_sandbox::Policy::of(fixture.inside("")));
    let trash = Trash::at(fixture.inside("data/trash"));
    std::fs::create_dir(trash.path()).unwrap();
    let tools = lango_tools::file_tools(&workspace.unwrap(), &trash, None);
    let delete = tools.iter().find(|tool| tool.spec().name == "fs_delete");
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    let caller = lango_testkit::tool::caller();
    let run = delete.unwrap().run(&caller, json!({"path": "data"}).into());
    let error = runtime.block_on(run).unwrap_err();
    assert!(
        error.message.contains("it contains the trash itself"),
        "{error}"
    );
}
