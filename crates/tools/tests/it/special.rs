//! Special files: reading them must fail, and must never hang.

use crate::support::{FileFixture, create_special};
use serde_json::json;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

#[test]
fn a_named_pipe_is_refused_without_waiting_for_a_writer() {
    let fixture = FileFixture::new();
    assert!(create_special("mkfifo", &[], &fixture.inside("pipe")));
    let expected = "`pipe` is a named pipe; only regular files can be read";
    assert_eq!(fixture.error("fs_read", json!({"path": "pipe"})), expected);
    fixture.link("to-pipe", "pipe");
    let linked = fixture.error("fs_read", json!({"path": "to-pipe"}));
    assert_eq!(
        linked,
        "`to-pipe` is a named pipe; only regular files can be read"
    );
    assert!(
        fixture
            .text("fs_stat", json!({"path": "pipe"}))
            .starts_with("pipe\nkind: named pipe\n")
    );
    assert!(
        fixture
            .error("fs_list", json!({"path": "pipe"}))
            .starts_with("`pipe`, or a parent of it, is not a folder")
    );
}

#[test]
fn a_socket_is_refused() {
    let fixture = FileFixture::new();
    let _listener = UnixListener::bind(fixture.inside("socket")).unwrap();
    let error = fixture.error("fs_read", json!({"path": "socket"}));
    assert_eq!(
        error,
        "`socket` is a socket; only regular files can be read"
    );
}

#[test]
fn a_device_is_refused() {
    let fixture = FileFixture::new();
    // Creating a device needs privileges; without them there is nothing to test.
    if !create_special("mknod", &["c", "1", "5"], &fixture.inside("zero")) {
        return;
    }
    let error = fixture.error("fs_read", json!({"path": "zero"}));
    assert_eq!(error, "`zero` is a device; only regular files can be read");
    assert!(
        fixture
            .text("fs_list", json!({}))
            .contains("\nzero  device\n")
    );
}

#[test]
fn a_pipe_swapped_in_for_a_file_never_hangs_the_reader() {
    let fixture = FileFixture::new();
    fixture.write("file", "content");
    assert!(create_special("mkfifo", &[], &fixture.inside("pipe")));
    let (file, pipe, door) = (
        fixture.inside("file"),
        fixture.inside("pipe"),
        fixture.inside("door"),
    );
    let stop = Arc::new(AtomicBool::new(false));
    let swapper = std::thread::spawn({
        let stop = Arc::clone(&stop);
        move || {
            while !stop.load(Ordering::Relaxed) {
                for original in [&file, &pipe] {
                    let fresh = door.with_extension("new");
                    std::fs::hard_link(original, &fresh).unwrap();
                    std::fs::rename(&fresh, &door).unwrap();
                    let _ = std::fs::remove_file(&fresh);
                }
            }
        }
    });
    for _ in 0..3000 {
        match fixture.call("fs_read", json!({"path": "door"})) {
            Ok(text) => assert_eq!(text, "content"),
            Err(error) => assert!(
                error.message.contains("named pipe") || error.message.contains("does not exist"),
                "{error}"
            ),
        }
    }
    stop.store(true, Ordering::Relaxed);
    swapper.join().unwrap();
}

#[test]
fn a_file_without_permission_is_refused_as_such() {
    let fixture = FileFixture::new();
    fixture.write("locked", "x");
    std::fs::set_permissions(fixture.inside("locked"), PermissionsExt::from_mode(0o000)).unwrap();
    // Root can read it anyway.
    if std::fs::read(fixture.inside("locked")).is_ok() {
        return;
    }
    let error = fixture.error("fs_read", json!({"path": "locked"}));
    assert_eq!(
        error,
        "lango has no permission to open `locked`; ask the user to change the permissions"
    );
}
