//! Messages that a client sends to `lango serve` again with the same id, through the real binary.

use crate::serve::TestServer;
use rusqlite::Connection;
use serde_json::{Value, json};

fn send(server: &TestServer, context: Option<&Value>, id: &str, text: &str) -> Value {
    let mut message = json!({ "messageId": id, "role": "ROLE_USER", "parts": [{ "text": text }] });
    if let Some(context) = context {
        message["contextId"] = context.clone();
    }
    let mut sent = server.rpc("SendMessage", json!({ "message": message }));
    assert!(sent["result"]["task"].is_object(), "{sent}");
    sent["result"]["task"].take()
}

fn execute(server: &TestServer, sql: &str) {
    let database = Connection::open(server.lango.database()).unwrap();
    database.execute_batch(sql).unwrap();
}

#[test]
fn a_message_id_is_remembered_for_a_day() {
    let server = TestServer::start();
    let first = send(&server, None, "m-1", "hello");
    let age = |hours: u32| {
        let sql = format!("UPDATE tasks SET updated = updated - {hours} * 3600000");
        execute(&server, &sql);
    };
    age(23);
    assert_eq!(send(&server, None, "m-1", "hello")["id"], first["id"]);
    age(2);
    let second = send(&server, None, "m-1", "hello");
    assert_ne!(second["id"], first["id"]);
    assert_eq!(send(&server, None, "m-1", "hello")["id"], second["id"]);
    assert_eq!(server.task_count(), 2);
}

#[test]
fn a_message_whose_turn_was_never_stored_runs_when_it_is_sent_again() {
    let server = TestServer::start();
    // Make the log reject events. Tasks are still stored.
    execute(
        &server,
        "CREATE TRIGGER full BEFORE INSERT ON events BEGIN SELECT RAISE(ABORT, 'no room'); END",
    );
    let failed = send(&server, None, "m-1", "what files are here?");
    assert_eq!(failed["status"]["state"], "TASK_STATE_FAILED", "{failed}");
    execute(&server, "DROP TRIGGER full");
    let done = send(&server, None, "m-1", "what files are here?");
    assert_eq!(done["status"]["state"], "TASK_STATE_COMPLETED", "{done}");
    let again = send(&server, None, "m-1", "what files are here?");
    assert_eq!(again["id"], done["id"]);
}

#[test]
fn a_message_that_a_waiting_conversation_rejected_runs_when_it_is_sent_again() {
    let server = TestServer::start();
    let waiting = send(&server, None, "m-1", "create notes/a.md with the word hi");
    assert_eq!(waiting["status"]["state"], "TASK_STATE_AUTH_REQUIRED");
    let context = &waiting["contextId"];
    let rejected = send(&server, Some(context), "m-2", "hello");
    assert_eq!(
        rejected["status"]["state"], "TASK_STATE_REJECTED",
        "{rejected}"
    );
    let listed = server.lango.run(&["approvals", "list", "--json"]).ok();
    let id = listed.json()["waiting"][0]["id"]
        .as_str()
        .unwrap()
        .to_owned();
    server.lango.run(&["approvals", "answer", &id, "yes"]).ok();
    let done = send(&server, Some(context), "m-2", "hello");
    assert_eq!(done["status"]["state"], "TASK_STATE_COMPLETED", "{done}");
}
