//! Stored data in unusual conditions: unusual user names, damaged logs, half-moved databases, and PostgreSQL passwords.

use crate::archive::{add_turns, in_other, waiting_session};
use crate::lango::{Lango, RunResult, TIMEOUT, finish, finish_child, text};
use lango_testkit::postgres::Cluster;
use rusqlite::Connection;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Stdio;
use std::time::Instant;

fn as_user<'a>(user: &'a str, arguments: &[&'a str]) -> Vec<&'a str> {
    [&["-c", user], arguments].concat()
}

/// Changes the database directly, without lango.
fn tamper(lango: &Lango, statement: &str) {
    let database = Connection::open(lango.database()).unwrap();
    assert_eq!(database.execute(statement, []).unwrap(), 1, "{statement}");
}

#[test]
fn sessions_of_a_user_with_any_valid_name_are_exported_and_imported() {
    let long = "x".repeat(3000);
    for name in ["Jane Doe", "Ünï • 名", &long] {
        let lango = Lango::new();
        let key = format!("session.user={name}");
        lango.run(&as_user(&key, &["run", "hi"])).ok();
        let export = ["sessions", "export", "--all"];
        let whole = lango.run(&as_user(&key, &export)).ok().stdout;
        let import = in_other(&["sessions", "import", "-"]);
        lango.piped(&as_user(&key, &import), &whole).ok();
        let again = lango.run(&as_user(&key, &in_other(&export))).ok();
        assert_eq!(again.stdout, whole);
    }
}

#[test]
fn an_invalid_user_name_is_refused_at_the_start() {
    let lango = Lango::new();
    let long = "x".repeat(5000);
    for name in ["", "  ", "a\tb", "\u{1}local", &long] {
        for key in ["session.user", "server.user"] {
            let value = format!("{key}={name}");
            let ran = lango.run(&["-c", &value, "run", "hi"]);
            ran.refused(2, &[key, "a name of at most 4096 bytes"]);
        }
    }
    assert!(!lango.database().exists());
}

#[test]
fn a_session_that_could_not_be_imported_is_not_exported() {
    let lango = Lango::new();
    let session = lango.session("hello");
    tamper(
        &lango,
        "UPDATE sessions SET title = 'one' || char(10) || 'two'",
    );
    let ran = lango.run(&["sessions", "export", &session]);
    ran.refused(1, &[&session, "cannot be exported", "title"]);
}

#[test]
fn importing_sessions_of_other_users_says_how_to_list_them() {
    let lango = Lango::new();
    lango.run(&["-c", "session.user=bob", "run", "hi"]).ok();
    lango.run(&["-c", "session.user=bob", "run", "again"]).ok();
    lango.session("mine");
    let bobs = ["-c", "session.user=bob", "sessions", "export", "--all"];
    let whole = lango.run(&bobs).ok().stdout;
    let own = lango.run(&["sessions", "export", "--all"]).ok().stdout;
    let import = in_other(&["sessions", "import", "-"]);
    let ran = lango.piped(&import, format!("{whole}{own}")).ok();
    let expected = "\n  2 sessions of user `bob`: lango -c 'session.user=bob' sessions list";
    assert!(ran.stderr.contains(expected), "{ran:#?}");
    assert!(!ran.stderr.contains("local"), "{ran:#?}");
}

#[test]
fn a_damaged_log_is_not_exported() {
    let lango = Lango::new();
    let session = lango.session("what files are here?");
    tamper(&lango, "UPDATE events SET time = time + 1 WHERE seq = 3");
    let ran = lango.run(&["sessions", "export", &session]);
    ran.refused(1, &[&session, "damaged at event 3"]);
}

#[test]
fn damage_in_one_session_does_not_affect_the_others() {
    let lango = Lango::new();
    let sessions = ["one", "two", "three"].map(|arguments| lango.session(arguments));
    let of_two = format!("WHERE session = '{}' AND seq = 2", sessions[1]);
    tamper(
        &lango,
        &format!("UPDATE events SET body = CAST(x'7bff7d' AS TEXT) {of_two}"),
    );
    tamper(
        &lango,
        &format!(
            "UPDATE sessions SET title = CAST(x'41ff' AS TEXT) WHERE id = '{}'",
            sessions[2]
        ),
    );
    let listed = lango.run(&["sessions", "list"]).ok();
    assert!(
        sessions.iter().all(|id| listed.stdout.contains(id)),
        "{listed:#?}"
    );
    let ran = lango.run(&["sessions", "verify", "--all"]).exits(1);
    assert_eq!(ran.stdout.lines().count(), 3, "{ran:#?}");
    let damaged = format!("damaged: session `{}` is damaged at event 2", sessions[1]);
    assert!(ran.stdout.contains(&damaged), "{ran:#?}");
    assert!(
        ran.stderr.contains("3 sessions checked, 2 damaged"),
        "{ran:#?}"
    );
    let ran = lango.run(&["run", "--session", &sessions[1], "go on"]);
    let step = format!("lango sessions verify {}", sessions[1]);
    ran.refused(1, &["damaged at event 2", &step]);
}

#[test]
fn invalid_lines_of_an_export_are_refused_with_a_clear_reason() {
    let lango = Lango::new();
    lango.session("hello");
    let whole = lango.run(&["sessions", "export", "--all"]).ok().stdout;
    let (first, event) = whole.split_once('\n').unwrap();
    let event = event.lines().next().unwrap();
    let import = |text: &str| -> RunResult {
        lango.piped(
            &in_other(&["sessions", "import", "-"]),
            format!("{first}\n{text}\n"),
        )
    };
    let cut = &event[..event.len() / 2];
    let no_time = event.replace("\"time\":", "\"tine\":");
    let odd_seq = event.replace("\"seq\":1", "\"seq\":\"1\"");
    for (line, arguments) in [
        ("", "line 2: it is empty"),
        (
            "[1, 2]",
            "line 2: it is not an event of an export, which is a JSON object",
        ),
        (
            "hello",
            "line 2: it cannot be read as JSON from column 1 on",
        ),
        (cut, "line 2: it ends too early, after column"),
        (
            &no_time,
            "line 2: it is not an event of an export: `time` is missing",
        ),
        (
            &odd_seq,
            "line 2: it is not an event of an export: `seq` should be a whole number",
        ),
    ] {
        let ran = import(line).refused(2, &[arguments]);
        assert!(!ran.stderr.contains("struct"), "{ran:#?}");
    }
}

#[test]
fn a_reason_is_refused_where_it_would_be_ignored() {
    let lango = Lango::new();
    waiting_session(&lango);
    let listed = lango.run(&["approvals", "list", "--json"]).ok().json();
    let id = text(&listed["waiting"][0]["id"]).to_owned();
    for word in ["yes", "session", "always"] {
        let answer = ["approvals", "answer", &id, word, "--because", "x"];
        lango
            .run(&answer)
            .refused(2, &["--because is only used with `no`", &id]);
    }
    tamper(
        &lango,
        "UPDATE approvals SET request = json_set(request, '$.asks', 'fate')",
    );
    for word in ["retry", "skip"] {
        let answer = ["approvals", "answer", &id, word, "--because", "x"];
        lango.run(&answer).refused(
            2,
            &["--because is only used with `no`", "happened --because"],
        );
    }
    tamper(
        &lango,
        "UPDATE approvals SET request = json_remove(request, '$.asks')",
    );
    lango
        .run(&["approvals", "answer", &id, "no", "--because", "x"])
        .ok();
}

#[test]
fn a_lease_shorter_than_a_second_is_refused() {
    let lango = Lango::new();
    for lease in ["0s", "999ms"] {
        let value = format!("session.lease={lease}");
        let ran = lango.run(&["-c", &value, "config", "check"]);
        ran.refused(2, &["session.lease", "`1s` or longer"]);
    }
    lango
        .run(&["-c", "session.lease=1s", "config", "check"])
        .ok();
}

/// Starts to move everything to `new.db` and kills the process in the middle. Returns the arguments of the command.
fn kill_move(lango: &Lango) -> [String; 4] {
    let session = lango.session("hello");
    for _ in 0..4 {
        add_turns(&lango.database(), &session, 1500);
    }
    let from = format!("sqlite:{}", lango.database().display());
    let arguments = ["store", "move", &from, "sqlite:new.db"].map(str::to_owned);
    let mut command = lango.command(&arguments);
    let command = command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let started = Instant::now();
    // A write lock on the target stops the move in the middle, until the process is killed.
    let stopped = loop {
        assert!(started.elapsed() < TIMEOUT, "the move does not start");
        let Ok(target) = Connection::open(lango.workspace().join("new.db")) else {
            continue;
        };
        let query = "SELECT count(*) FROM events";
        let count = target.query_row(query, [], |row| row.get::<_, i64>(0));
        if count.is_ok_and(|count| count > 0) && target.execute_batch("BEGIN IMMEDIATE").is_ok() {
            break target;
        }
    };
    child.kill().unwrap();
    assert_eq!(finish_child(child, b"").signal, Some(9));
    drop(stopped);
    arguments
}

#[test]
fn the_destination_of_an_unfinished_move_cannot_be_used() {
    let lango = Lango::new();
    let arguments = kill_move(&lango);
    let arguments = arguments.each_ref().map(String::as_str);
    let step = format!("lango store move '{}' 'sqlite:", arguments[2]);
    let new = "session.store=sqlite:new.db";
    let commands: [&[&str]; 9] = [
        &["run", "hello"],
        &["sessions", "list"],
        &["sessions", "verify", "--all"],
        &["sessions", "export", "--all"],
        &["approvals"],
        &["knowledge", "list"],
        &["store", "backup", "copy.db"],
        &["store", "compact"],
        &["store", "move", "sqlite:new.db", "sqlite:third.db"],
    ];
    for command in commands {
        let ran = lango.run(&[&["-c", new], command].concat());
        ran.refused(3, &["is not finished", &step]);
    }
    let ran = lango.run(&["-c", new, "doctor"]).exits(3);
    assert!(ran.stdout.contains(&step), "{ran:#?}");
    // A move from another source is refused because of the unfinished one.
    lango
        .run(&["-c", "session.store=sqlite:second.db", "run", "hi"])
        .ok();
    let other = ["store", "move", "sqlite:second.db", "sqlite:new.db"];
    lango
        .run(&other)
        .refused(2, &["contains part of another move", &step]);
    lango.run(&arguments).ok();
    lango.run(&["-c", new, "run", "hello"]).ok();
}

#[test]
fn a_move_that_cannot_be_resumed_says_which_side_changed_and_what_to_do() {
    let lango = Lango::new();
    let arguments = kill_move(&lango);
    let arguments = arguments.each_ref().map(String::as_str);
    let target = Connection::open(lango.workspace().join("new.db")).unwrap();
    target
        .execute_batch(
            "INSERT INTO sessions (id, user, created, updated) VALUES ('s_0', 'local', 1, 1)",
        )
        .unwrap();
    let ran = lango.run(&arguments);
    let ran = ran.exits(2);
    assert!(ran.stderr.contains("/new.db was written to"), "{ran:#?}");
    assert!(ran.stderr.contains("the source is unchanged"), "{ran:#?}");
    target
        .execute_batch("DELETE FROM sessions WHERE id = 's_0'")
        .unwrap();
    drop(target);
    lango.session("more");
    let ran = lango.run(&arguments).exits(2);
    assert!(ran.stderr.contains("lango.db was written to"), "{ran:#?}");
    assert!(ran.stderr.contains("start the move again"), "{ran:#?}");
}

/// Starts a server that requires the password `s3:cret` of its superuser.
fn password_server() -> Cluster {
    let cluster = Cluster::start(&[]);
    let rules = "local all all trust\nhost all all 127.0.0.1/32 scram-sha-256\n";
    fs::write(cluster.folder().join("data/pg_hba.conf"), rules).unwrap();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let address = cluster.address();
    let connect = || tokio_postgres::connect(&address, tokio_postgres::NoTls);
    runtime.block_on(async {
        let (client, connection) = connect().await.unwrap();
        let connection = tokio::spawn(connection);
        let change = "ALTER USER postgres PASSWORD 's3:cret'; SELECT pg_reload_conf()";
        client.batch_execute(change).await.unwrap();
        drop(client);
        connection.await.unwrap().unwrap();
        let started = Instant::now();
        while connect().await.is_ok() {
            assert!(started.elapsed() < TIMEOUT, "no password is required");
        }
    });
    cluster
}

#[test]
fn user_and_password_come_from_the_usual_postgresql_variables_and_files() {
    let lango = Lango::new();
    let cluster = password_server();
    let address = cluster.address().replace("postgres@", "");
    let store = format!("session.store={address}");
    let run = |variables: &[(&str, &str)]| {
        let mut command = lango.command(&["-c", &store, "run", "-q", "hello"]);
        command.envs(variables.iter().copied());
        finish(&mut command, b"")
    };
    let user = ("PGUSER", "postgres");
    run(&[user]).refused(3, &["password", "PGPASSWORD"]);
    run(&[user, ("PGPASSWORD", "wrong")]).refused(3, &["password authentication failed"]);
    run(&[user, ("PGPASSWORD", "s3:cret")]).ok();
    lango.file("pass", "# who\n*:*:postgres:postgres:s3\\:cret\n");
    let path = lango.workspace().join("pass");
    let file = ("PGPASSFILE", path.to_str().unwrap());
    let set_mode = |mode| fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
    set_mode(0o644);
    run(&[user, file]).refused(3, &["other users can read it", "chmod 600"]);
    set_mode(0o600);
    run(&[user, file]).ok();
    let home = lango.home().with_file_name("me");
    fs::create_dir(&home).unwrap();
    fs::rename(&path, home.join(".pgpass")).unwrap();
    run(&[user, ("HOME", home.to_str().unwrap())]).ok();
}
