//! Parses what a server sends, leniently: ignores unknown fields and values, gives missing ones a default, and also
//! accepts items without the wrapper that the protocol requires.

use super::files::{RemoteFile, file_part, linked_part};
use super::sanitize::{one_line, without_controls};
use serde_json::Value;

/// The state of a remote task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RemoteState {
    /// Submitted, working, or in a state that lango does not know.
    Running,
    Completed,
    Failed,
    Canceled,
    Rejected,
    InputRequired,
    AuthRequired,
}

/// One item that a server sent.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Item {
    Task {
        ids: TaskIds,
        status: Status,
        /// All artifacts so far.
        artifacts: Vec<Artifact>,
        /// The text of the agent's last message in the task's history.
        last_text: Option<String>,
    },
    Message {
        ids: TaskIds,
        text: String,
        files: Vec<RemoteFile>,
    },
    Status {
        ids: TaskIds,
        status: Status,
    },
    Artifact {
        ids: TaskIds,
        artifact: Artifact,
        is_more: bool,
    },
}

/// The ids of a task and its conversation, if the server named them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct TaskIds {
    pub task: Option<String>,
    pub context: Option<String>,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Status {
    pub state: RemoteState,
    pub text: Option<String>,
    pub files: Vec<RemoteFile>,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Artifact {
    pub id: String,
    pub pieces: Vec<Piece>,
}

/// A part of a message or artifact.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Piece {
    /// Text. It may be a chunk of a longer text, so it is joined with its neighbours without a separator.
    Text(String),
    /// Data, or a file that cannot be attached: a description on a separate line.
    Line(String),
    /// A file, and the line that describes it.
    File(String, RemoteFile),
}

/// The maximum length of an id, in bytes. Longer ids are ignored.
const ID_BYTES: usize = 1024;

/// Parses a response or an event of a stream. Returns `None` if lango does not recognise it.
pub(crate) fn item(value: &Value) -> Option<Item> {
    if let Some(update) = object(value, "statusUpdate") {
        return Some(status_update(update));
    }
    if let Some(update) = object(value, "artifactUpdate") {
        return artifact_update(update);
    }
    if let Some(task) = object(value, "task") {
        return Some(self::task(task));
    }
    if let Some(message) = object(value, "message") {
        return Some(self::message(message));
    }
    unwrapped_item(value)
}

/// Parses an item without the wrapper that says what it is.
fn unwrapped_item(value: &Value) -> Option<Item> {
    if value["artifact"].is_object() {
        artifact_update(value)
    } else if value["status"].is_object() && value["id"].is_string() {
        Some(task(value))
    } else if value["status"].is_object() && value["taskId"].is_string() {
        Some(status_update(value))
    } else if value["parts"].is_array() {
        Some(message(value))
    } else {
        None
    }
}

fn object<'a>(value: &'a Value, field: &str) -> Option<&'a Value> {
    value.get(field).filter(|found| found.is_object())
}

fn task(task: &Value) -> Item {
    let artifacts = task["artifacts"].as_array();
    let is_from = |message: &Value, role_name: &str| {
        let role = message["role"].as_str().unwrap_or_default();
        role.to_ascii_uppercase().ends_with(role_name)
    };
    // Only messages after our last one can be an answer to it.
    let history = task["history"].as_array();
    let latest = history.into_iter().flatten().rev();
    let last_text = latest
        .take_while(|message| !is_from(message, "USER"))
        .filter(|message| is_from(message, "AGENT"))
        .find_map(message_text);
    Item::Task {
        ids: ids(task, "id"),
        status: status(&task["status"]),
        artifacts: artifacts.into_iter().flatten().map(artifact).collect(),
        last_text,
    }
}

fn message(message: &Value) -> Item {
    Item::Message {
        ids: ids(message, "taskId"),
        text: message_text(message).unwrap_or_default(),
        files: files(message),
    }
}

fn status_update(update: &Value) -> Item {
    Item::Status {
        ids: ids(update, "taskId"),
        status: status(&update["status"]),
    }
}

fn artifact_update(update: &Value) -> Option<Item> {
    let found = object(update, "artifact")?;
    Some(Item::Artifact {
        ids: ids(update, "taskId"),
        artifact: artifact(found),
        is_more: update["append"] == true,
    })
}

fn ids(value: &Value, task: &str) -> TaskIds {
    let id = |field: &str| {
        let text = value[field].as_str()?;
        (!text.is_empty() && text.len() <= ID_BYTES).then(|| text.to_owned())
    };
    TaskIds {
        task: id(task),
        context: id("contextId"),
    }
}

fn status(status: &Value) -> Status {
    Status {
        state: state(&status["state"]),
        text: message_text(&status["message"]),
        files: files(&status["message"]),
    }
}

fn state(state: &Value) -> RemoteState {
    if let Some(number) = state.as_u64() {
        return match number {
            3 => RemoteState::Completed,
            4 => RemoteState::Failed,
            5 => RemoteState::Canceled,
            6 => RemoteState::InputRequired,
            7 => RemoteState::Rejected,
            8 => RemoteState::AuthRequired,
            _ => RemoteState::Running,
        };
    }
    let name = state.as_str().unwrap_or_default();
    let name = name.to_ascii_uppercase().replace('-', "_");
    match name.strip_prefix("TASK_STATE_").unwrap_or(&name) {
        "COMPLETED" => RemoteState::Completed,
        "FAILED" => RemoteState::Failed,
        "CANCELED" | "CANCELLED" => RemoteState::Canceled,
        "INPUT_REQUIRED" => RemoteState::InputRequired,
        "REJECTED" => RemoteState::Rejected,
        "AUTH_REQUIRED" => RemoteState::AuthRequired,
        _ => RemoteState::Running,
    }
}

fn artifact(artifact: &Value) -> Artifact {
    let parts = artifact["parts"].as_array();
    Artifact {
        id: artifact["artifactId"]
            .as_str()
            .unwrap_or_default()
            .to_owned(),
        pieces: parts.into_iter().flatten().filter_map(piece).collect(),
    }
}

/// Returns the text of a message, or `None` if it has no text.
fn message_text(message: &Value) -> Option<String> {
    let parts = message["parts"].as_array()?;
    let mut text = String::new();
    let mut is_after_line = false;
    for piece in parts.iter().filter_map(piece) {
        push(&mut text, &mut is_after_line, &piece);
    }
    (!text.trim().is_empty()).then_some(text)
}

fn files(message: &Value) -> Vec<RemoteFile> {
    let parts = message["parts"].as_array();
    let pieces = parts.into_iter().flatten().filter_map(piece);
    let files = pieces.filter_map(|piece| match piece {
        Piece::File(_, file) => Some(file),
        Piece::Text(_) | Piece::Line(_) => None,
    });
    files.collect()
}

/// Appends a piece to a text. Data and files get a separate line.
pub(crate) fn push(text: &mut String, is_after_line: &mut bool, piece: &Piece) {
    let is_line = !matches!(piece, Piece::Text(_));
    if (is_line || *is_after_line) && !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
    let (Piece::Text(content) | Piece::Line(content) | Piece::File(content, _)) = piece;
    text.push_str(content);
    *is_after_line = is_line;
}

fn piece(part: &Value) -> Option<Piece> {
    if let Some(text) = part["text"].as_str() {
        return Some(Piece::Text(without_controls(text)));
    }
    if let Some(data) = part.get("data").filter(|data| !data.is_null()) {
        return Some(Piece::Line(without_controls(&data.to_string())));
    }
    let named = |field: &str, max: usize| {
        let text = one_line(part[field].as_str().unwrap_or_default(), max);
        (!text.is_empty()).then_some(text)
    };
    let line = |detail: String| {
        let facts = [
            named("filename", 200),
            named("mediaType", 100),
            Some(detail),
        ];
        let facts: Vec<String> = facts.into_iter().flatten().collect();
        format!("[file: {}]", facts.join(", "))
    };
    let Some(raw) = part["raw"].as_str() else {
        let url = part["url"].as_str()?;
        let line = line(one_line(url, 500));
        return Some(Piece::File(line, linked_part(named("filename", 200), url)));
    };
    Some(match file_part(named("filename", 200), raw) {
        Ok(file) => Piece::File(line(format!("{} bytes", file.len())), file),
        Err(problem) => Piece::Line(line(problem)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn states_are_parsed_in_every_spelling_and_unknown_ones_count_as_running() {
        for (spelled, expected) in [
            (json!("TASK_STATE_COMPLETED"), RemoteState::Completed),
            (json!("input-required"), RemoteState::InputRequired),
            (json!("cancelled"), RemoteState::Canceled),
            (json!(7), RemoteState::Rejected),
            (json!("TASK_STATE_PAUSED"), RemoteState::Running),
            (json!(99), RemoteState::Running),
            (json!(null), RemoteState::Running),
            (json!({}), RemoteState::Running),
        ] {
            assert_eq!(state(&spelled), expected, "{spelled}");
        }
    }

    #[test]
    fn chunks_are_joined_and_data_and_files_get_separate_lines() {
        let message = json!({ "parts": [
            { "text": "Hel" }, { "text": "lo" },
            { "data": { "a": 1 } },
            { "raw": "aGVsbG8=", "filename": "a\nb.txt", "mediaType": "text/plain" },
            { "url": "https://a.example/f" },
            { "hologram": 1 },
            { "text": "bye" },
        ] });
        assert_eq!(
            message_text(&message).unwrap(),
            "Hello\n{\"a\":1}\n[file: a b.txt, text/plain, 5 bytes]\n[file: https://a.example/f]\nbye"
        );
    }

    #[test]
    fn malformed_items_are_ignored() {
        for value in [
            json!(null),
            json!(1),
            json!([]),
            json!("x"),
            json!({}),
            json!({ "task": 1 }),
            json!({ "artifactUpdate": {} }),
            json!({ "surprise": {} }),
        ] {
            assert_eq!(item(&value), None, "{value}");
        }
        let odd = json!({ "task": { "id": 7, "status": "x", "artifacts": [1, { "parts": 2 }], "history": [3] } });
        assert!(matches!(
            item(&odd),
            Some(Item::Task {
                status: Status {
                    state: RemoteState::Running,
                    ..
                },
                ..
            })
        ));
    }
}
