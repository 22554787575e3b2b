//! Entries that are no regular files: reading them must fail, and above all never hang.

use crate::support::{Bench, prepared};
use serde_json::json;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

#[test]
fn a_named_pipe_is_refused_without_waiting_for_a_writer() {
    let bench = Bench::new();
    assert!(prepared("mkfifo", &[], &bench.inside("pipe")));
    let expected = "`pipe` is a named pipe; only regular files can be read";
    assert_eq!(bench.error("fs_read", json!({"path": "pipe"})), expected);
    bench.link("to-pipe", "pipe");
    let linked = bench.error("fs_read", json!({"path": "to-pipe"}));
    assert_eq!(
        linked,
        "`to-pipe` is a named pipe; only regular files can be read"
    );
    assert!(
        bench
            .text("fs_stat", json!({"path": "pipe"}))
            .starts_with("pipe\nkind: named pipe\n")
    );
    assert!(
        bench
            .error("fs_list", json!({"path": "pipe"}))
            .starts_with("`pipe` is not a folder")
    );
}

#[test]
fn a_socket_is_refused() {
    let bench = Bench::new();
    let _listener = UnixListener::bind(bench.inside("socket")).unwrap();
    let error = bench.error("fs_read", json!({"path": "socket"}));
    assert_eq!(
        error,
        "`socket` is a socket; only regular files can be read"
    );
}

#[test]
fn a_device_is_refused() {
    let bench = Bench::new();
    // Making a device takes a privilege; without it there is no device to be refused.
    if !prepared("mknod", &["c", "1", "5"], &bench.inside("zero")) {
        return;
    }
    let error = bench.error("fs_read", json!({"path": "zero"}));
    assert_eq!(error, "`zero` is a device; only regular files can be read");
    assert!(
        bench
            .text("fs_list", json!({}))
            .contains("\nzero  device\n")
    );
}

#[test]
fn a_pipe_swapped_in_for_a_file_never_hangs_the_reader() {
    let bench = Bench::new();
    bench.write("file", "content");
    assert!(prepared("mkfifo", &[], &bench.inside("pipe")));
    let (file, pipe, door) = (
        bench.inside("file"),
        bench.inside("pipe"),
        bench.inside("door"),
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
        match bench.call("fs_read", json!({"path": "door"})) {
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
    let bench = Bench::new();
    bench.write("locked", "x");
    std::fs::set_permissions(bench.inside("locked"), PermissionsExt::from_mode(0o000)).unwrap();
    // Root may read it all the same.
    if std::fs::read(bench.inside("locked")).is_ok() {
        return;
    }
    let error = bench.error("fs_read", json!({"path": "locked"}));
    assert_eq!(
        error,
        "lango has no permission to open `locked`; its owner has to allow it"
    );
}
