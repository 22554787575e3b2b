//! A session as lines of JSON: one for the session, then one for each event of its log, and one for each attachment.
//!
//! The line of an event is the JSON that `run --jsonl` prints with the event's hash at its end, so that the file alone shows
//! whether it is complete and unchanged. The hash covers the bytes of the event's stored text, so the line contains these
//! bytes. If the text does not fit on a line or would move a terminal's cursor, the line has it once more as a string. The
//! first line of a session has a seal over its own bytes.

mod attachment;
mod words;

use super::{LogRow, SessionRecord};
use crate::engine::text::hex;
pub use attachment::{AttachmentLine, of_attachment};
use lango_core::UserId;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use sha2::{Digest as _, Sha256};

const FORM: u32 = 1;

/// The form of a session with attachments, which older versions of lango cannot import.
const FORM_WITH_ATTACHMENTS: u32 = 2;

/// The longest line that is written or read, in bytes.
pub const LONGEST: usize = 64 << 20;

/// Maximum length of an id or a title in a file, in bytes.
const LONGEST_NAME: usize = 512;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Line {
    Session(SessionRecord),
    Event(LogRow),
    Attachment(AttachmentLine),
}

/// The first line of a session, without its [seal](sealed).
#[derive(Serialize, Deserialize)]
pub struct Heading {
    lango_session: u32,
    #[serde(flatten)]
    record: SessionRecord,
}

/// The fields that an event's line must have. Beside them it may have its stored text.
const EVENT_FIELDS: [&str; 7] = ["seq", "session", "turn", "frame", "author", "time", "hash"];

/// The fields that the first line of a session must have, beside its seal.
const SESSION_FIELDS: [&str; 8] = [
    "lango_session",
    "id",
    "user",
    "created",
    "updated",
    "title",
    "events",
    "hash",
];

/// The error of a line that is valid but not as lango writes it.
const CHANGED: &str = "it is not written as lango writes it; bytes of it were changed";

/// Makes the first line of a session that refers to this many attachments.
pub fn heading(record: &SessionRecord, attachments: u64) -> Heading {
    let lango_session = match attachments {
        0 => FORM,
        _ => FORM_WITH_ATTACHMENTS,
    };
    let record = record.clone();
    Heading {
        lango_session,
        record,
    }
}

/// Appends a field `seal` to a JSON object: the hash of the object's bytes before it.
pub fn sealed(object: &str) -> String {
    let open = object.strip_suffix('}').unwrap_or(object);
    format!(
        "{open},\"seal\":\"{}\"}}",
        hex(&Sha256::digest(open.as_bytes()))
    )
}

/// Writes the line of an event with its stored text unchanged. Returns `None` if the text does not fit on a line.
pub fn of_event(row: &LogRow) -> serde_json::Result<Option<String>> {
    let fits = |inner: &&str| !inner.trim().is_empty() && !inner.contains(|letter| letter < ' ');
    let inner = row.body.strip_prefix('{');
    let inner = inner.and_then(|rest| rest.strip_suffix('}')).filter(fits);
    let (beginning, ending) = (beginning(row)?, ending(&row.hash));
    Ok(inner.map(|inner| format!("{beginning}{inner}{ending}")))
}

/// Writes the line of an event whose stored text does not fit on a line: its fields, and the stored text as a JSON string.
pub fn spelled_out(row: &LogRow) -> serde_json::Result<Value> {
    let mut line: Map<String, Value> = serde_json::from_str(&row.body)?;
    if let Value::Object(fields) = serde_json::to_value(row)? {
        line.extend(fields);
    }
    line.insert("stored".to_owned(), row.body.clone().into());
    line.insert("hash".to_owned(), hex(&row.hash).into());
    Ok(Value::Object(line))
}

/// Parses a line. The error is shown after the line's number.
pub fn read(line: &str) -> Result<Line, String> {
    if line.starts_with("{\"lango_session\":") {
        read_session(line).map(Line::Session)
    } else if line.starts_with(attachment::BEGINNING) {
        attachment::read(line).map(Line::Attachment)
    } else {
        read_event(line).map(Line::Event)
    }
}

fn read_session(line: &str) -> Result<SessionRecord, String> {
    let (heading, _) = line
        .rsplit_once(",\"seal\":")
        .ok_or("the seal of the session is missing")?;
    let heading = format!("{heading}}}");
    if sealed(&heading) != line {
        return Err("it does not match its seal; it was changed after it was written".to_owned());
    }
    let heading: Heading = serde_json::from_str(&heading).map_err(|error| {
        words::unread(&heading, &error, "the line of a session", &SESSION_FIELDS)
    })?;
    if !(FORM..=FORM_WITH_ATTACHMENTS).contains(&heading.lango_session) {
        return Err(format!(
            "it has form {}, this lango reads forms {FORM} to {FORM_WITH_ATTACHMENTS}",
            heading.lango_session
        ));
    }
    let SessionRecord {
        id, user, title, ..
    } = &heading.record;
    let id = id.as_str();
    if id.is_empty() || id.len() > LONGEST_NAME || id.contains(is_no_part_of_an_id) {
        return Err("the id of the session cannot be used as an id".to_owned());
    }
    if !user.can_be_kept() {
        return Err(format!(
            "the user of the session cannot be kept: it is empty, longer than {} bytes, or has control characters",
            UserId::LONGEST
        ));
    }
    if title.len() > LONGEST_NAME || title.contains('\n') {
        return Err("the title of the session is no line of text".to_owned());
    }
    Ok(heading.record)
}

fn read_event(line: &str) -> Result<LogRow, String> {
    let mut row: LogRow = serde_json::from_str(line)
        .map_err(|error| words::unread(line, &error, "an event of an export", &EVENT_FIELDS))?;
    if row.author.is_empty() {
        return Err("its author is missing".to_owned());
    }
    row.body = if row.body.is_empty() {
        between(line, &row)?
    } else {
        same_as(line, row.body)?
    };
    Ok(row)
}

/// Returns the bytes of an event's stored text from its line.
fn between(line: &str, row: &LogRow) -> Result<String, String> {
    let beginning = beginning(row).map_err(|error| error.to_string())?;
    let inner = line.strip_prefix(&beginning);
    let inner = inner.and_then(|rest| rest.strip_suffix(&ending(&row.hash)));
    Ok(format!("{{{}}}", inner.ok_or(CHANGED)?))
}

/// Returns the stored text that a line has as a string, if its other fields are the same.
fn same_as(line: &str, stored: String) -> Result<String, String> {
    let parse = |text: &str| {
        let parsed = serde_json::from_str::<Map<String, Value>>(text);
        parsed.map_err(|_| "its stored text is not what an event is stored as".to_owned())
    };
    let (mut shown, meant) = (parse(line)?, parse(&stored)?);
    for name in EVENT_FIELDS.into_iter().chain(["stored"]) {
        shown.remove(name);
    }
    if shown != meant {
        return Err("its fields say something else than its stored text".to_owned());
    }
    Ok(stored)
}

fn beginning(row: &LogRow) -> serde_json::Result<String> {
    let mut text = serde_json::to_string(row)?;
    text.pop();
    text.push(',');
    Ok(text)
}

fn ending(hash: &[u8]) -> String {
    format!(",\"hash\":\"{}\"}}", hex(hash))
}

fn is_no_part_of_an_id(letter: char) -> bool {
    letter.is_control() || letter.is_whitespace()
}

pub(super) mod hash {
    use crate::engine::text::hex;
    use serde::de::Error as _;
    use serde::{Deserialize, Deserializer, Serializer};

    pub(crate) fn serialize<S: Serializer>(hash: &[u8], serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&hex(hash))
    }

    /// Accepts only what [`serialize`] writes.
    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(text: D) -> Result<Vec<u8>, D::Error> {
        let text = String::deserialize(text)?;
        let byte = |at| u8::from_str_radix(text.get(at..at + 2)?, 16).ok();
        let hash: Option<Vec<u8>> = (0..text.len()).step_by(2).map(byte).collect();
        hash.filter(|hash| matches!(hash.len(), 0 | 32) && hex(hash) == text)
            .ok_or_else(|| D::Error::custom("its hash is no hash"))
    }
}
