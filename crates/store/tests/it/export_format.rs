//! The lines of an exported session: their fields, and that a change of any byte is detected.

use lango_core::{SessionId, Timestamp, UserId};
use lango_store::LogVerifier;
use lango_store::archive::line::{self, Line};
use lango_store::archive::{LogRow, SessionRecord};
use lango_testkit::session_store_contract::every_kind_of_event;

#[test]
fn a_change_of_any_byte_of_an_export_is_detected() {
    let id = SessionId::from("s_1");
    let mut chain_end = Vec::new();
    let mut rows = Vec::new();
    for event in every_kind_of_event(&id).iter() {
        let mut row = LogRow {
            session: id.clone(),
            seq: event.seq,
            turn: event.turn.as_str().into(),
            frame: event.frame.as_str().into(),
            author: event.author.as_str().into(),
            time: event.time,
            body: serde_json::to_string(&event.body).unwrap(),
            hash: Vec::new(),
        };
        row.hash = hash_after(&row, &chain_end);
        chain_end.clone_from(&row.hash);
        rows.push(row);
    }
    let record = SessionRecord {
        id: id.clone(),
        user: UserId::from("local"),
        title: "a title".to_owned(),
        created: Timestamp(7),
        updated: Timestamp(8),
        events: rows.len() as u64,
        hash: chain_end,
    };
    let heading = serde_json::to_string(&line::heading(&record, 0)).unwrap();
    // Other versions of lango read these lines, so neither field names nor their order may change.
    let known = r#"{"lango_session":1,"id":"s_1","user":"local","created":7,"updated":8,"title":"a title","events":35,"hash":""#;
    assert!(heading.starts_with(known), "{heading}");
    let known =
        r#"{"seq":1,"session":"s_1","turn":"t_1","frame":"","author":"user","time":1001,"type":"#;
    let first = line::format_event(&rows[0]).unwrap().unwrap();
    assert!(first.starts_with(known), "{first}");
    let heading = line::add_seal(&heading);
    assert_eq!(line::parse(&heading), Ok(Line::Session(record)));
    for at in 0..heading.len() {
        let mut bytes = heading.clone().into_bytes();
        bytes[at] ^= 1;
        let text = String::from_utf8(bytes).unwrap();
        assert!(line::parse(&text).is_err(), "{text}");
    }
    let mut chain = LogVerifier::new(&id);
    for row in &rows {
        let text = line::format_event(row).unwrap().unwrap();
        for at in 0..text.len() {
            let mut bytes = text.clone().into_bytes();
            bytes[at] ^= 1;
            let Ok(text) = String::from_utf8(bytes) else {
                continue;
            };
            let mut chain = chain_copy(&chain, &id, &rows);
            let is_detected = match line::parse(&text) {
                Ok(Line::Event(row)) => chain.verify(&row).is_err(),
                _ => true,
            };
            assert!(is_detected, "{text}");
        }
        chain.verify(row).unwrap();
    }
}

/// Copies a verifier, which has no `Clone`, by verifying the same rows again.
fn chain_copy(chain: &LogVerifier, id: &SessionId, rows: &[LogRow]) -> LogVerifier {
    let mut copy = LogVerifier::new(id);
    for row in rows.iter().take(chain.count() as usize) {
        copy.verify(row).unwrap();
    }
    copy
}

/// Computes the hash of a row independently, because the fields that it covers are part of the export format.
fn hash_after(row: &LogRow, previous: &[u8]) -> Vec<u8> {
    use sha2::{Digest, Sha256};
    let (seq, time) = (
        (row.seq as i64).to_be_bytes(),
        (row.time.0 as i64).to_be_bytes(),
    );
    let fields: [&[u8]; 8] = [
        previous,
        &seq,
        &time,
        row.session.as_str().as_bytes(),
        row.turn.as_bytes(),
        row.frame.as_bytes(),
        row.author.as_bytes(),
        row.body.as_bytes(),
    ];
    let mut hasher = Sha256::new();
    for field in fields {
        hasher.update((field.len() as u64).to_be_bytes());
        hasher.update(field);
    }
    hasher.finalize().to_vec()
}
