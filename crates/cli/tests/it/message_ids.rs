//! Messages that a caller of `lango serve` sends again under the same id, through the real binary.

use crate::serve::Serving;
use rusqlite::Connection;
use serde_json::{Value, json};

fn send(serving: &Serving, context: Option<&Value>, id: &str, text: &str) -> Value {
    let mut message = json!({ "messageId": id, "role": "ROLE_USER", "parts": [{ "text": text }] });
    if let Some(context) = context {
        message["contextId"] = context.clone();
    }
    let mut sent = serving.rpc("SendMessage", json!({ "message": message }));
    assert!(sent["result"]["task"].is_object(), "{sent}");
    sent["result"]["task"].take()
}

fn execute(serving: &Serving, sql: &str) {
    let database = Connection::open(serving.lango.database()).unwrap();
    database.execute_batch(sql).unwrap();
}

#[test]
fn a_message_id_is_remembered_for_a_day() {
    let serving = Serving::start();
    let first = send(&serving, None, "m-1", "hello");
    let age = |hours: u32| {
        let sql = format!("UPDATE tasks SET updated = updated - {hours} * 3600000");
        execute(&serving, &sql);
    };
    age(23);
    assert_eq!(send(&serving, None, "m-1", "hello")["id"], first["id"]);
    age(2);
    let second = send(&serving, None, "m-1", "hello");
    assert_ne!(second["id"], first["id"]);
    assert_eq!(send(&serving, None, "m-1", "hello")["id"], second["id"]);
    assert_eq!(serving.requests_of_tasks(), 2);
}

#[test]
fn a_message_whose_turn_was_never_stored_runs_when_it_is_sent_again() {
    let serving = Serving::start();
    // The log rejects events, but tasks are stored.
    execute(
        &serving,
        "CREATE TRIGGER full BEFORE INSERT ON events BEGIN SELECT RAISE(ABORT, 'no room'); END",
    );
    let failed = send(&serving, None, "m-1", "what files are here?");
    assert_eq!(failed["status"]["state"], "TASK_STATE_FAILED", "{failed}");
    execute(&serving, "DROP TRIGGER full");
    let done = send(&serving, None, "m-1", "what files are here?");
    assert_eq!(done["status"]["state"], "TASK_STATE_COMPLETED", "{done}");
    let again = send(&serving, None, "m-1", "what files are here?");
    assert_eq!(again["id"], done["id"]);
}

#[test]
fn a_message_that_a_waiting_conversation_rejected_runs_when_it_is_sent_again() {
    let serving = Serving::start();
    let waiting = send(&serving, None, "m-1", "create notes/a.md with the word hi");
    assert_eq!(waiting["status"]["state"], "TASK_STATE_AUTH_REQUIRED");
    let context = &waiting["contextId"];
    let rejected = send(&serving, Some(context), "m-2", "hello");
    assert_eq!(
        rejected["status"]["state"], "TASK_STATE_REJECTED",
        "{rejected}"
    );
    let listed = serving.lango.run(&["approvals", "list", "--json"]).ok();
    let id = listed.json()["waiting"][0]["id"]
        .as_str()
        .unwrap()
        .to_owned();
    serving.lango.run(&["approvals", "answer", &id, "yes"]).ok();
    let done = send(&serving, Some(context), "m-2", "hello");
    assert_eq!(done["status"]["state"], "TASK_STATE_COMPLETED", "{done}");
}
