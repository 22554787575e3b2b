//! Rows of the vault's tables that were deleted outside lango: it reports what is missing, and never creates a new
//! vault over the rest.

use crate::lango::Lango;
use crate::secrets::{listed, run, set};
use lango_testkit::postgres;
use rusqlite::Connection;

/// A database whose rows a test deletes.
struct Database {
    lango: Lango,
    execute: Box<dyn Fn(&str)>,
}

fn sqlite_database() -> Database {
    let lango = Lango::new();
    let path = lango.database();
    let execute = move |statements: &str| {
        let database = Connection::open(&path).unwrap();
        database.execute_batch(statements).unwrap();
    };
    Database {
        lango,
        execute: Box::new(execute),
    }
}

fn postgres_database() -> Database {
    let lango = Lango::new();
    let address = postgres::fresh_schema();
    lango.home_file("lango.toml", format!("session.store = '{address}'"));
    let execute = move |statements: &str| {
        let runtime = tokio::runtime::Runtime::new().unwrap();
        runtime.block_on(async {
            let connected = tokio_postgres::connect(&address, tokio_postgres::NoTls).await;
            let (client, connection) = connected.unwrap();
            let connection = tokio::spawn(connection);
            client.batch_execute(statements).await.unwrap();
            drop(client);
            connection.await.unwrap().unwrap();
        });
    };
    Database {
        lango,
        execute: Box::new(execute),
    }
}

const HEAD_MISSING: &str = "the head of the vault of `local`";

fn delete_each_table(Database { lango, execute }: Database) {
    for tables in [
        &["vaults"][..],
        &["vaults", "vault_records"],
        &["vaults", "vault_events"],
    ] {
        set(&lango, "KEY", "first value").ok();
        for table in tables {
            execute(&format!("DELETE FROM {table}"));
        }
        for arguments in [
            &["secrets", "list"][..],
            &["secrets", "init", "--passphrase"],
            &["secrets", "bind", "KEY", "--host", "a.example"],
            &["secrets", "unlock"],
        ] {
            let ran = run(&lango, arguments).refused(1, &[HEAD_MISSING, "backup"]);
            assert!(!ran.stderr.contains("no vault yet"), "{tables:?} {ran:#?}");
        }
        set(&lango, "OTHER", "second value").refused(1, &[HEAD_MISSING]);
        let doctor = lango.run(&["doctor"]).exits(3);
        assert!(doctor.stdout.contains(HEAD_MISSING), "{doctor:#?}");
        run(&lango, &["secrets", "destroy", "--yes"]).ok();
        assert!(
            !run(&lango, &["secrets", "list"])
                .ok()
                .stdout
                .contains("KEY")
        );
    }
    set(&lango, "KEY", "first value").ok();
    execute("DELETE FROM vault_events");
    assert_eq!(listed(&lango), [("KEY".to_owned(), 1)]);
    execute("DELETE FROM vault_records");
    let missing = "the stored record of `KEY` is missing: it was deleted outside lango";
    let ran = run(&lango, &["secrets", "list"]).exits(1);
    assert!(ran.stderr.contains(missing), "{ran:#?}");
    set(&lango, "KEY", "second value").ok();
    assert_eq!(listed(&lango), [("KEY".to_owned(), 2)]);
}

#[test]
fn a_partly_deleted_vault_in_a_file_is_never_treated_as_missing() {
    delete_each_table(sqlite_database());
}

#[test]
fn a_partly_deleted_vault_on_a_server_is_never_treated_as_missing() {
    delete_each_table(postgres_database());
}
