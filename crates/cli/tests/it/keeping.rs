//! What people have stored under names of all kinds, in logs that are damaged, and in databases that are half moved.

use crate::archive::{add_turns, in_other, waiting};
use crate::lango::{Lango, PATIENCE, Ran, finish, finish_child, text};
use lango_testkit::postgres::Cluster;
use rusqlite::Connection;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Stdio;
use std::time::Instant;

fn as_user<'a>(user: &'a str, arguments: &[&'a str]) -> Vec<&'a str> {
    [&["-c", user], arguments].concat()
}

/// Changes the database behind lango's back.
fn tamper(lango: &Lango, statement: &str) {
    let database = Connection::open(lango.database()).unwrap();
    assert_eq!(database.execute(statement, []).unwrap(), 1, "{statement}");
}

#[test]
fn sessions_of_a_user_of_any_kept_name_are_exported_and_imported() {
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
fn a_user_that_no_store_keeps_is_refused_at_the_start() {
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
fn what_nobody_could_import_is_not_exported() {
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
fn sessions_of_others_are_named_when_they_are_imported() {
    let lango = Lango::new();
    lango.run(&["-c", "session.user=bob", "run", "hi"]).ok();
    lango.run(&["-c", "session.user=bob", "run", "again"]).ok();
    lango.session("mine");
    let bobs = ["-c", "session.user=bob", "sessions", "export", "--all"];
    let whole = lango.run(&bobs).ok().stdout;
    let own = lango.run(&["sessions", "export", "--all"]).ok().stdout;
    let import = in_other(&["sessions", "import", "-"]);
    let ran = lango.piped(&import, format!("{whole}{own}")).ok();
    let said = "\n  2 sessions of user `bob`: lango -c 'session.user=bob' sessions list";
    assert!(ran.stderr.contains(said), "{ran:#?}");
    assert!(!ran.stderr.contains("local"), "{ran:#?}");
}

#[test]
fn nothing_of_a_damaged_log_is_exported() {
    let lango = Lango::new();
    let session = lango.session("what files are here?");
    tamper(&lango, "UPDATE events SET time = time + 1 WHERE seq = 3");
    let ran = lango.run(&["sessions", "export", &session]);
    ran.refused(1, &[&session, "damaged at event 3"]);
}

#[test]
fn damage_in_one_session_keeps_nobody_from_the_others() {
    let lango = Lango::new();
    let sessions = ["one", "two", "three"].map(|words| lango.session(words));
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
fn lines_that_are_no_lines_of_an_export_are_refused_in_plain_words() {
    let lango = Lango::new();
    lango.session("hello");
    let whole = lango.run(&["sessions", "export", "--all"]).ok().stdout;
    let (first, event) = whole.split_once('\n').unwrap();
    let event = event.lines().next().unwrap();
    let import = |text: &str| -> Ran {
        lango.piped(
            &in_other(&["sessions", "import", "-"]),
            format!("{first}\n{text}\n"),
        )
    };
    let cut = &event[..event.len() / 2];
    let no_time = event.replace("\"time\":", "\"tine\":");
    let odd_seq = event.replace("\"seq\":1", "\"seq\":\"1\"");
    for (line, words) in [
        ("", "line 2: it is empty"),
        (
            "[1, 2]",
            "line 2: it is not an event of an export, which stands in curly brackets",
        ),
        (
            "hello",
            "line 2: it cannot be read as JSON from column 1 on",
        ),
        (cut, "line 2: it is cut off after column"),
        (
            &no_time,
            "line 2: it is not an event of an export: `time` is missing",
        ),
        (
            &odd_seq,
            "line 2: it is not an event of an export: `seq` should be a whole number",
        ),
    ] {
        let ran = import(line).refused(2, &[words]);
        assert!(!ran.stderr.contains("struct"), "{ran:#?}");
    }
}

#[test]
fn a_reason_that_nobody_would_hear_of_is_refused() {
    let lango = Lango::new();
    waiting(&lango);
    let listed = lango.run(&["approvals", "list", "--json"]).ok().json();
    let id = text(&listed["waiting"][0]["id"]).to_owned();
    for word in ["yes", "session", "always"] {
        let answer = ["approvals", "answer", &id, word, "--because", "x"];
        lango
            .run(&answer)
            .refused(2, &["a reason goes with `no`", &id]);
    }
    tamper(
        &lango,
        "UPDATE approvals SET request = json_set(request, '$.asks', 'fate')",
    );
    for word in ["retry", "skip"] {
        let answer = ["approvals", "answer", &id, word, "--because", "x"];
        lango
            .run(&answer)
            .refused(2, &["a reason goes with `no`", "happened --because"]);
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
fn a_lease_that_is_over_at_once_is_refused() {
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

/// Begins to move everything to `new.db` and kills the process in the middle.
fn half_moved(lango: &Lango) -> [String; 4] {
    let session = lango.session("hello");
    for _ in 0..4 {
        add_turns(&lango.database(), &session, 1500);
    }
    let from = format!("sqlite:{}", lango.database().display());
    let arguments = ["store", "move", &from, "sqlite:new.db"].map(str::to_owned);
    let mut command = lango.command(&arguments);
    let command = command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let began = Instant::now();
    // Whoever has the file to write keeps the move in its middle until it is killed.
    let stopped = loop {
        assert!(began.elapsed() < PATIENCE, "it does not begin");
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
fn a_destination_is_used_by_nobody_before_its_move_is_done() {
    let lango = Lango::new();
    let arguments = half_moved(&lango);
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
    // Another source is told of the one that is under way.
    lango
        .run(&["-c", "session.store=sqlite:second.db", "run", "hi"])
        .ok();
    let other = ["store", "move", "sqlite:second.db", "sqlite:new.db"];
    lango
        .run(&other)
        .refused(2, &["part of another move", &step]);
    lango.run(&arguments).ok();
    lango.run(&["-c", new, "run", "hello"]).ok();
}

#[test]
fn a_move_that_cannot_go_on_says_which_side_changed_and_what_to_do() {
    let lango = Lango::new();
    let arguments = half_moved(&lango);
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
    assert!(ran.stderr.contains("the source is as it was"), "{ran:#?}");
    target
        .execute_batch("DELETE FROM sessions WHERE id = 's_0'")
        .unwrap();
    drop(target);
    lango.session("more");
    let ran = lango.run(&arguments).exits(2);
    assert!(ran.stderr.contains("lango.db was written to"), "{ran:#?}");
    assert!(
        ran.stderr.contains("move again from the beginning"),
        "{ran:#?}"
    );
}

/// A server that asks its superuser for the password `s3:cret`.
fn asking_server() -> Cluster {
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
        let began = Instant::now();
        while connect().await.is_ok() {
            assert!(began.elapsed() < PATIENCE, "nobody is asked for a password");
        }
    });
    cluster
}

#[test]
fn users_and_passwords_are_found_as_postgresql_s_own_programs_find_them() {
    let lango = Lango::new();
    let cluster = asking_server();
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
    run(&[user, file]).refused(3, &["others can read it", "chmod 600"]);
    set_mode(0o600);
    run(&[user, file]).ok();
    let home = lango.home().with_file_name("me");
    fs::create_dir(&home).unwrap();
    fs::rename(&path, home.join(".pgpass")).unwrap();
    run(&[user, ("HOME", home.to_str().unwrap())]).ok();
}
