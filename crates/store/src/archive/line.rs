//! The export format, JSON lines: one line for the session, then one for each event of its log and for each attachment.
//!
//! The line of an event is the JSON that `run --jsonl` prints, followed by the event's hash, so that the file alone shows whether
//! it is complete and unchanged. The hash covers the bytes of the event's stored text, so the line contains exactly these bytes.
//! If the text contains line breaks or other control characters, the line has its fields and, in addition, the text as a JSON
//! string. The first line of a session is sealed with a hash of its own bytes.

mod attachment;
mod errors;

use super::{LogRow, SessionRecord};
use crate::backend::text::hex;
pub use attachment::{AttachmentLine, format_attachment};
use lango_core::UserId;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use sha2::{Digest as _, Sha256};

const FORMAT_VERSION: u32 = 1;

/// The format version of a session with attachments, which older versions of lango cannot import.
const FORMAT_WITH_ATTACHMENTS: u32 = 2;

/// Maximum length of a line, in bytes.
pub const MAX_LINE_BYTES: usize = 64 << 20;

/// Maximum length of an id or a title in a file, in bytes.
const MAX_NAME_BYTES: usize = 512;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Line {
    Session(SessionRecord),
    Event(LogRow),
    Attachment(AttachmentLine),
}

/// The first line of a session, without its [seal](add_seal).
#[derive(Serialize, Deserialize)]
pub struct Heading {
    lango_session: u32,
    #[serde(flatten)]
    record: SessionRecord,
}

/// The fields that an event's line must have, in addition to those of the event itself.
const EVENT_FIELDS: [&str; 7] = ["seq", "session", "turn", "frame", "author", "time", "hash"];

/// The fields that the first line of a session must have, in addition to its seal.
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

/// The error for a line that is valid but differs from what lango writes.
const CHANGED: &str = "it is not as lango writes it; it was changed after the export";

/// Builds the first line of a session that refers to this number of attachments.
pub fn heading(record: &SessionRecord, attachments: u64) -> Heading {
    let lango_session = match attachments {
        0 => FORMAT_VERSION,
        _ => FORMAT_WITH_ATTACHMENTS,
    };
    let record = record.clone();
    Heading {
        lango_session,
        record,
    }
}

/// Appends the field `seal` to a JSON object: the hash of all bytes before it.
pub fn add_seal(object: &str) -> String {
    let open = object.strip_suffix('}').unwrap_or(object);
    format!(
        "{open},\"seal\":\"{}\"}}",
        hex(&Sha256::digest(open.as_bytes()))
    )
}

/// Formats the line of an event with its stored text unchanged. Returns `None` if the text contains control characters.
pub fn format_event(row: &LogRow) -> serde_json::Result<Option<String>> {
    let fits = |inner: &&str| !inner.trim().is_empty() && !inner.contains(|letter| letter < ' ');
    let inner = row.body.strip_prefix('{');
    let inner = inner.and_then(|rest| rest.strip_suffix('}')).filter(fits);
    let (line_prefix, line_suffix) = (line_prefix(row)?, line_suffix(&row.hash));
    Ok(inner.map(|inner| format!("{line_prefix}{inner}{line_suffix}")))
}

/// Formats the line of an event whose stored text contains control characters: its fields, and the stored text as a JSON string.
pub fn format_escaped_event(row: &LogRow) -> serde_json::Result<Value> {
    let mut line: Map<String, Value> = serde_json::from_str(&row.body)?;
    if let Value::Object(fields) = serde_json::to_value(row)? {
        line.extend(fields);
    }
    line.insert("stored".to_owned(), row.body.clone().into());
    line.insert("hash".to_owned(), hex(&row.hash).into());
    Ok(Value::Object(line))
}

/// Parses a line. The error message is shown after the line's number.
pub fn parse(line: &str) -> Result<Line, String> {
    if line.starts_with("{\"lango_session\":") {
        parse_session(line).map(Line::Session)
    } else if line.starts_with(attachment::PREFIX) {
        attachment::parse(line).map(Line::Attachment)
    } else {
        parse_event(line).map(Line::Event)
    }
}

fn parse_session(line: &str) -> Result<SessionRecord, String> {
    let (heading, _) = line
        .rsplit_once(",\"seal\":")
        .ok_or("the seal of the session is missing")?;
    let heading = format!("{heading}}}");
    if add_seal(&heading) != line {
        return Err("it does not match its seal; it was changed after it was written".to_owned());
    }
    let heading: Heading = serde_json::from_str(&heading).map_err(|error| {
        errors::describe(&heading, &error, "the line of a session", &SESSION_FIELDS)
    })?;
    if !(FORMAT_VERSION..=FORMAT_WITH_ATTACHMENTS).contains(&heading.lango_session) {
        return Err(format!(
            "its format version is {}, but this version of lango reads {FORMAT_VERSION} to {FORMAT_WITH_ATTACHMENTS}",
            heading.lango_session
        ));
    }
    let SessionRecord {
        id, user, title, ..
    } = &heading.record;
    let id = id.as_str();
    if id.is_empty() || id.len() > MAX_NAME_BYTES || id.contains(is_invalid_in_id) {
        return Err(
            "the id of the session is empty, too long, or has spaces or control characters"
                .to_owned(),
        );
    }
    if !user.is_valid() {
        return Err(format!(
            "the user of the session cannot be stored: it is empty, longer than {} bytes, or has control characters",
            UserId::MAX_BYTES
        ));
    }
    if title.len() > MAX_NAME_BYTES || title.contains('\n') {
        return Err("the title of the session is too long or has line breaks".to_owned());
    }
    Ok(heading.record)
}

fn parse_event(line: &str) -> Result<LogRow, String> {
    let mut row: LogRow = serde_json::from_str(line)
        .map_err(|error| errors::describe(line, &error, "an event of an export", &EVENT_FIELDS))?;
    if row.author.is_empty() {
        return Err("its author is missing".to_owned());
    }
    row.body = if row.body.is_empty() {
        embedded_body(line, &row)?
    } else {
        quoted_body(line, row.body)?
    };
    Ok(row)
}

/// Extracts the bytes of an event's stored text from its line.
fn embedded_body(line: &str, row: &LogRow) -> Result<String, String> {
    let line_prefix = line_prefix(row).map_err(|error| error.to_string())?;
    let inner = line.strip_prefix(&line_prefix);
    let inner = inner.and_then(|rest| rest.strip_suffix(&line_suffix(&row.hash)));
    Ok(format!("{{{}}}", inner.ok_or(CHANGED)?))
}

/// Returns the stored text that a line contains as a JSON string. Fails if the fields of the line differ from that
/// text.
fn quoted_body(line: &str, stored: String) -> Result<String, String> {
    let parse = |text: &str| {
        let parsed = serde_json::from_str::<Map<String, Value>>(text);
        parsed.map_err(|_| "its stored text is not a JSON object".to_owned())
    };
    let (mut shown, original) = (parse(line)?, parse(&stored)?);
    for name in EVENT_FIELDS.into_iter().chain(["stored"]) {
        shown.remove(name);
    }
    if shown != original {
        return Err("its fields differ from its stored text".to_owned());
    }
    Ok(stored)
}

fn line_prefix(row: &LogRow) -> serde_json::Result<String> {
    let mut text = serde_json::to_string(row)?;
    text.pop();
    text.push(',');
    Ok(text)
}

fn line_suffix(hash: &[u8]) -> String {
    format!(",\"hash\":\"{}\"}}", hex(hash))
}

fn is_invalid_in_id(letter: char) -> bool {
    letter.is_control() || letter.is_whitespace()
}

pub(super) mod hash {
    use crate::backend::text::hex;
    use serde::de::Error as _;
    use serde::{Deserialize, Deserializer, Serializer};

    pub(crate) fn serialize<S: Serializer>(hash: &[u8], serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&hex(hash))
    }

    /// Accepts only what [`serialize`] writes.
    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(text: D) -> Result<Vec<u8>, D::Error> {
        let text = String::deserialize(text)?;
        let hash = base16ct::lower::decode_vec(&text).ok();
        hash.filter(|hash| matches!(hash.len(), 0 | 32))
            .ok_or_else(|| D::Error::custom("its hash is not a SHA-256 hash"))
    }
}
