//! Deleting and restoring when the trash is on another file system, so that everything is copied.

use crate::canary;
use crate::support::{FileFixture, create_special};
use crate::trash::delete;
use lango_tools::Trash;
use rustix::fs::{XattrFlags, lgetxattr, setxattr};
use serde_json::json;
use std::os::unix::fs::{MetadataExt, PermissionsExt, lchown};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, UNIX_EPOCH};

const ROUNDS: u32 = 150;

/// Creates a fixture with the trash on another file system, if this machine has one.
fn across_file_systems() -> Option<(FileFixture, Trash)> {
    let elsewhere = tempfile::tempdir_in("/dev/shm").ok()?;
    let here = tempfile::tempdir().unwrap();
    if elsewhere.path().metadata().ok()?.dev() == here.path().metadata().ok()?.dev() {
        return None;
    }
    let fixture = FileFixture::in_folder(elsewhere, here, |_, _| {});
    let trash = fixture.trash().clone();
    Some((fixture, trash))
}

#[test]
fn a_folder_on_another_file_system_is_copied_and_restored_unchanged() {
    let Some((fixture, trash)) = across_file_systems() else {
        return;
    };
    fixture.write("data/sub/run.sh", "#!/bin/sh\n");
    std::fs::set_permissions(
        fixture.inside("data/sub/run.sh"),
        PermissionsExt::from_mode(0o750),
    )
    .unwrap();
    fixture.link("data/door", fixture.outside(""));
    let id = delete(&fixture, "data");
    assert!(!fixture.has("data"));
    let copy = trash.path().join(&id);
    assert!(copy.join("door").is_symlink());
    assert!(fixture.outside("secret.txt").exists());
    fixture.restore(&id).unwrap();
    assert_eq!(fixture.read("data/sub/run.sh"), "#!/bin/sh\n");
    let mode = fixture.inside("data/sub/run.sh").metadata().unwrap().mode();
    assert_eq!(mode & 0o777, 0o750);
    assert!(!copy.exists() && trash.list().unwrap().is_empty());
}

#[test]
fn a_copy_has_the_owner_the_times_and_the_extended_attributes_of_the_original() {
    let Some((fixture, trash)) = across_file_systems() else {
        return;
    };
    fixture.write("data/sub/a.txt", "content");
    fixture.link("data/link", "sub");
    let names = ["data", "data/sub", "data/sub/a.txt", "data/link"];
    let set = |path: &Path| setxattr(path, "user.test", b"mine", XattrFlags::empty());
    // Some file systems have no extended attributes.
    let places = [fixture.inside(""), trash.path().with_file_name("")];
    let has_attributes = places.iter().all(|place| set(place).is_ok());
    let is_root = fixture.inside("data").metadata().unwrap().uid() == 0;
    let time = UNIX_EPOCH + Duration::from_secs(1_000_000_000);
    for name in names {
        let path = fixture.inside(name);
        assert_eq!(lchown(&path, Some(1000), Some(1001)).is_ok(), is_root);
        if !path.is_symlink() {
            std::fs::set_permissions(&path, PermissionsExt::from_mode(0o750)).unwrap();
            if has_attributes {
                set(&path).unwrap();
            }
            std::fs::File::open(&path)
                .and_then(|file| file.set_modified(time))
                .unwrap();
        }
    }
    let attributes = |path: PathBuf| {
        let metadata = path.symlink_metadata().unwrap();
        let modified = (!path.is_symlink()).then(|| metadata.modified().unwrap());
        let mut value = [0; 16];
        let size = lgetxattr(&path, "user.test", &mut value).unwrap_or_default();
        let owner = (metadata.uid(), metadata.gid(), metadata.mode());
        (owner, modified, value[..size].to_vec())
    };
    let before = names.map(|name| attributes(fixture.inside(name)));
    let id = delete(&fixture, "data");
    let copy = |name: &str| trash.path().join(name.replacen("data", &id, 1));
    assert_eq!(names.map(|name| attributes(copy(name))), before);
    fixture.restore(&id).unwrap();
    assert_eq!(names.map(|name| attributes(fixture.inside(name))), before);
}

#[test]
fn large_and_special_files_are_not_copied_to_another_file_system() {
    let Some((fixture, trash)) = across_file_systems() else {
        return;
    };
    let file = std::fs::File::create(fixture.inside("huge")).unwrap();
    file.set_len((1 << 30) + 1).unwrap();
    let error = fixture.error("fs_delete", json!({"path": "huge"}));
    assert!(error.contains("larger than 1.0 GB"), "{error}");
    fixture.write("data/a.txt", "");
    assert!(create_special("mkfifo", &[], &fixture.inside("data/pipe")));
    let error = fixture.error("fs_delete", json!({"path": "data"}));
    assert!(error.contains("contains a special file"), "{error}");
    assert!(fixture.has("huge") && fixture.has("data/a.txt"));
    assert_eq!(std::fs::read_dir(trash.path()).unwrap().count(), 0);
}

/// An incomplete copy would look like the whole item if the process ended now.
#[test]
fn an_item_is_in_the_trash_only_when_its_copy_is_complete() {
    let Some((fixture, trash)) = across_file_systems() else {
        return;
    };
    const FILES: usize = 100;
    for number in 0..FILES {
        fixture.write(&format!("data/{number}"), "content");
    }
    let is_done = Arc::new(AtomicBool::new(false));
    let reader = std::thread::spawn({
        let (is_done, trash) = (Arc::clone(&is_done), trash.clone());
        move || {
            let mut counts = Vec::new();
            while !is_done.load(Ordering::Relaxed) {
                for item in trash.list().unwrap() {
                    let files = std::fs::read_dir(trash.path().join(item.id)).unwrap();
                    counts.push(files.count());
                }
            }
            counts
        }
    });
    delete(&fixture, "data");
    is_done.store(true, Ordering::Relaxed);
    let counts = reader.join().unwrap();
    assert!(counts.iter().all(|count| *count == FILES), "{counts:?}");
}

#[test]
fn an_incomplete_copy_is_not_listed_and_not_deleted_when_the_trash_is_emptied() {
    let fixture = FileFixture::new();
    fixture.write("a.txt", "content");
    delete(&fixture, "a.txt");
    let left = fixture.trash().path().join(".0123456789abcdef.lango-new");
    std::fs::create_dir(&left).unwrap();
    std::fs::write(left.join("part"), "").unwrap();
    assert_eq!(fixture.trash().list().unwrap().len(), 1);
    assert_eq!(fixture.trash().empty().unwrap(), 1);
    assert!(left.join("part").exists(), "it may be in progress");
}

/// The user empties the trash again and again while a folder is deleted.
#[test]
fn a_deletion_in_progress_is_not_lost_when_the_trash_is_emptied() {
    let Some((fixture, trash)) = across_file_systems() else {
        return;
    };
    for number in 0..200 {
        fixture.write(&format!("data/{number}"), "content");
    }
    let is_done = Arc::new(AtomicBool::new(false));
    let user = std::thread::spawn({
        let is_done = Arc::clone(&is_done);
        move || {
            let mut emptied = 0;
            while !is_done.load(Ordering::Relaxed) {
                emptied += trash.empty().unwrap();
            }
            emptied
        }
    });
    let result = fixture.call("fs_delete", json!({ "path": "data" }));
    is_done.store(true, Ordering::Relaxed);
    let emptied = user.join().unwrap();
    let count = |folder: PathBuf| std::fs::read_dir(folder).map_or(0, Iterator::count);
    let in_trash: Vec<usize> = fixture
        .trash()
        .list()
        .unwrap()
        .iter()
        .map(|item| count(fixture.trash().path().join(&item.id)))
        .collect();
    let files = count(fixture.inside("data"));
    match result {
        Ok(_) if emptied == 0 => assert_eq!((files, in_trash), (0, vec![200])),
        // It was complete in the trash when the user emptied it.
        Ok(_) => assert_eq!((files, in_trash, emptied), (0, vec![], 1)),
        Err(error) => assert_eq!((files, in_trash), (200, vec![]), "{}", error.message),
    }
}

/// Deletes a path repeatedly while another program saves a file in it, each time at a different moment of the copy.
/// What was saved is where it was saved, or in the trash.
fn race(path: &str, file: &str, save: fn(&Path) -> std::io::Result<()>) {
    let Some((fixture, trash)) = across_file_systems() else {
        return;
    };
    let (mut deleted, mut refused) = (0, 0);
    for round in 0..ROUNDS {
        fixture.write(file, "x".repeat(100_000));
        let editor = std::thread::spawn({
            let (trash, file) = (trash.path().to_owned(), fixture.inside(file));
            let delay = Duration::from_micros(40) * round;
            move || {
                let started = Instant::now();
                while !has_copy(&trash) && started.elapsed() < Duration::from_secs(1) {}
                let started = Instant::now();
                while started.elapsed() < delay {
                    std::hint::spin_loop();
                }
                save(&file).is_ok()
            }
        });
        let result = fixture.call("fs_delete", json!({ "path": path }));
        match &result {
            Ok(_) => deleted += 1,
            Err(_) => refused += 1,
        }
        if editor.join().unwrap() {
            let found = [fixture.inside(""), trash.path().to_owned()]
                .iter()
                .any(|place| {
                    let files = canary::of_tree(place).into_keys();
                    let mut files = files.filter(|path| path.is_file());
                    files.any(|file| std::fs::read(file).unwrap() == b"saved by the user")
                });
            assert!(found, "round {round}: {result:?}");
        }
        trash.empty().unwrap();
        for left in canary::of_tree(&fixture.inside("")).into_keys() {
            let name = left.to_string_lossy();
            assert!(!name.ends_with(".lango-new"), "{name}: {result:?}");
        }
        let _ = std::fs::remove_dir_all(fixture.inside("data"));
        let _ = std::fs::remove_file(fixture.inside("file.txt"));
        fixture.forget_turns();
    }
    println!("{deleted} deleted, {refused} refused");
    assert!(
        deleted > 0 && refused > 0,
        "{deleted} deleted, {refused} refused"
    );
}

/// Whether the trash has an item or a part of one.
fn has_copy(trash: &Path) -> bool {
    let entries = std::fs::read_dir(trash).into_iter().flatten().flatten();
    let mut names = entries.map(|entry| PathBuf::from(entry.file_name()));
    names.any(|name| name.extension().is_none_or(|extension| extension != "json"))
}

#[test]
fn what_another_program_saves_while_a_file_is_deleted_is_never_lost() {
    race("file.txt", "file.txt", |file| {
        let new = file.with_extension("editor");
        std::fs::write(&new, "saved by the user")?;
        std::fs::rename(new, file)
    });
}

#[test]
fn what_another_program_saves_while_a_folder_is_deleted_is_never_lost() {
    race("data", "data/sub/file.txt", |file| {
        std::fs::write(file.with_extension("new"), "saved by the user")
    });
}
