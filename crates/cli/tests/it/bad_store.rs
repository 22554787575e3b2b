//! A database that is foreign, too new, damaged, full or read-only: lango reports it clearly and does not change it.

use crate::disk::Disk;
use crate::lango::{Lango, finish_child, text};
use rusqlite::Connection;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Stdio;

/// Returns commands that need the database.
fn commands() -> [&'static [&'static str]; 4] {
    [
        &["run", "hello"],
        &["run", "--session", "s_1", "hello"],
        &["sessions", "list"],
        &["sessions", "show", "s_1"],
    ]
}

#[test]
fn a_folder_in_place_of_the_database_is_reported() {
    let lango = Lango::new();
    lango.home_file("lango.db/inside", "kept");
    let path = lango.database().display().to_string();
    for command in commands() {
        let names = [&*path, "it is a folder", "session.store", "LANGO_HOME"];
        lango.run(command).refused(3, &names);
    }
    assert_eq!(lango.stored_files().len(), 1);
    lango.run(&["run", "--ephemeral", "hello"]).ok();
}

#[test]
fn the_database_of_another_program_is_not_changed() {
    let lango = Lango::new();
    fs::create_dir(lango.home()).unwrap();
    let connection = Connection::open(lango.database()).unwrap();
    let sql = "CREATE TABLE events (id, text); INSERT INTO events VALUES (1, 'mine')";
    connection.execute_batch(sql).unwrap();
    connection.close().unwrap();
    assert_unchanged(&lango, &["of another program", "session.store"]);
}

#[test]
fn a_file_that_is_not_a_database_is_not_changed() {
    let lango = Lango::new();
    lango.home_file("lango.db", "my diary, longer than a header\n".repeat(200));
    assert_unchanged(&lango, &["not a SQLite database", "session.store"]);
    lango.home_file("lango.db", "x");
    assert_unchanged(&lango, &["is not a lango database", "session.store"]);
}

#[test]
fn a_database_of_a_newer_lango_is_not_changed() {
    let lango = Lango::new();
    lango.session("hello");
    let connection = Connection::open(lango.database()).unwrap();
    connection.pragma_update(None, "user_version", 99).unwrap();
    connection.close().unwrap();
    assert_unchanged(&lango, &["newer lango", "schema 99", "a newer one"]);
}

#[track_caller]
fn assert_unchanged(lango: &Lango, names: &[&str]) {
    let before = lango.stored_files();
    let path = lango.database().display().to_string();
    for command in commands() {
        lango.run(command).refused(3, &[&[&*path], names].concat());
    }
    let doctor = lango.run(&["doctor"]).exits(3);
    assert!(doctor.stdout.contains("✗ sessions"), "{doctor:#?}");
    assert!(doctor.stdout.contains(names[0]), "{doctor:#?}");
    assert_eq!(lango.stored_files(), before);
}

#[test]
fn a_full_disk_is_reported_and_stored_data_stays() {
    let disk = Disk::with_size("2m");
    let lango = Lango::with_home(disk.path());
    let session = lango.session("hello");
    let stored = lango.events(&session);
    let ballast = disk.fill();
    let question = "a long question ".repeat(4000);
    for arguments in [&["run"][..], &["run", "--session", &session]] {
        let ran = lango.piped(arguments, &question);
        ran.refused(1, &["no space left", "lango.db", "free some disk space"]);
    }
    fs::remove_file(ballast).unwrap();
    assert_eq!(lango.events(&session), stored);
    lango.piped(&["run", "--session", &session], &question).ok();
    let events = lango.events(&session);
    assert_eq!(events[..stored.len()], stored);
    assert_eq!(events[stored.len()]["text"], question);
}

#[test]
fn a_disk_that_is_full_from_the_start_is_reported() {
    let disk = Disk::with_size("64k");
    disk.fill();
    let lango = Lango::with_home(disk.path());
    let ran = lango.run(&["run", "hello"]);
    ran.refused(1, &["no space left", "lango.db", "free some disk space"]);
    lango.run(&["run", "--ephemeral", "hello"]).ok();
}

#[test]
fn an_unwritable_home_is_reported_and_ephemeral_still_works() {
    let disk = Disk::with_size("2m");
    let lango = Lango::with_home(disk.path());
    disk.make_read_only();
    let ran = lango.run(&["run", "hello"]);
    ran.refused(
        3,
        &["cannot be written", "lango.db", "LANGO_HOME", "--ephemeral"],
    );
    let listed = lango.run(&["sessions", "list"]).ok();
    assert_eq!(listed.stdout, "no sessions yet; `lango` starts one\n");
    let ran = lango.run(&["run", "--ephemeral", "what files are here?"]);
    assert!(ran.ok().stdout.contains("notes.md"));
}

#[test]
fn an_unwritable_database_is_reported() {
    let disk = Disk::with_size("2m");
    let lango = Lango::with_home(disk.path());
    let session = lango.session("hello");
    let before = lango.stored_files();
    disk.make_read_only();
    let ran = lango.run(&["run", "--session", &session, "again"]);
    ran.refused(3, &["cannot be written", "lango.db", "LANGO_HOME"]);
    assert_eq!(lango.stored_files(), before);
}

#[test]
fn stored_sessions_can_be_read_on_a_read_only_disk() {
    let disk = Disk::with_size("2m");
    let lango = Lango::with_home(disk.path());
    let session = lango.session("hello");
    let reading: [&[&str]; 6] = [
        &["sessions", "list"],
        &["sessions", "show", &session],
        &["sessions", "export", &session],
        &["sessions", "verify", "--all"],
        &["approvals"],
        &["approvals", "list", "--json"],
    ];
    let read = || reading.map(|command| lango.run(command).ok().stdout);
    let whole = read();
    disk.make_read_only();
    assert_eq!(read()[1..], whole[1..]);
    assert!(read()[0].contains(&session));
    let delete = ["sessions", "delete", "--yes", &session];
    lango.run(&delete).refused(3, &["cannot be written"]);
    lango.run(&["doctor"]).exits(3);
}

#[test]
fn a_database_with_a_write_ahead_log_cannot_be_read_on_a_read_only_disk() {
    let disk = Disk::with_size("2m");
    let lango = Lango::with_home(disk.path());
    lango.session("hello");
    fs::write(disk.path().join("lango.db-wal"), "what was not done").unwrap();
    disk.make_read_only();
    let ran = lango.run(&["sessions", "list"]);
    ran.refused(3, &["lango.db"]);
}

#[test]
fn a_damaged_page_is_an_error_and_not_a_panic() {
    let lango = Lango::new();
    let session = lango.session("what files are here?");
    let mut bytes = fs::read(lango.database()).unwrap();
    let half = bytes.len() / 2;
    bytes[half..].fill(0xa5);
    fs::write(lango.database(), &bytes).unwrap();
    let ran = lango.run(&["sessions", "show", &session]);
    assert!(matches!(ran.code, Some(1..=3)), "{ran:#?}");
    assert!(ran.stderr.starts_with("error: "), "{ran:#?}");
    assert!(!ran.stderr.contains("panicked"), "{ran:#?}");
}

#[test]
fn only_the_owner_can_read_the_database() {
    let lango = Lango::new();
    lango.session("hello");
    let mode = |path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(lango.database()), 0o600);
    assert_eq!(mode(lango.home().to_owned()), 0o700);
}

#[test]
fn two_concurrent_processes_both_store_their_turns() {
    let lango = Lango::new();
    let ask = |_| {
        let mut command = lango.command(&["run", "-q", "--json", "what files are here?"]);
        command.stdout(Stdio::piped()).spawn().unwrap()
    };
    let children: Vec<_> = (0..6).map(ask).collect();
    for child in children {
        let summary = finish_child(child, b"").ok().json();
        let events = lango.events(text(&summary["session"]));
        assert_eq!(events.last().unwrap()["outcome"], "answered");
    }
}
