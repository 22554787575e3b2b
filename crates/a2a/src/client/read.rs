//! What a server says, read leniently: unknown fields and values are passed over, missing ones have a meaning, and what
//! other servers wrap and this one does not is found all the same.

use super::files::{RemoteFile, file_part, linked_part};
use super::words::{one_line, without_controls};
use serde_json::Value;

/// Where a task is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum State {
    /// Submitted, working, or in a state that lango does not know: not over.
    Running,
    Completed,
    Failed,
    Canceled,
    Rejected,
    InputRequired,
    AuthRequired,
}

/// One thing that a server said.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Item {
    Task {
        names: Names,
        status: Status,
        /// All of them so far.
        artifacts: Vec<Artifact>,
        /// The last words of the agent in the task's history.
        last_said: Option<String>,
    },
    Message {
        names: Names,
        text: String,
        files: Vec<RemoteFile>,
    },
    Status {
        names: Names,
        status: Status,
    },
    Artifact {
        names: Names,
        artifact: Artifact,
        is_more: bool,
    },
}

/// The names a server gave, as far as it did.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Names {
    pub task: Option<String>,
    pub context: Option<String>,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Status {
    pub state: State,
    pub words: Option<String>,
    pub files: Vec<RemoteFile>,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Artifact {
    pub id: String,
    pub pieces: Vec<Piece>,
}

/// A part, as text.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Piece {
    /// Text, which may be a chunk of a longer one: nothing stands between it and its neighbours.
    Text(String),
    /// Data or a file: stands on a line of its own.
    Line(String),
    /// A file with its bytes, and the line that stands for it.
    File(String, RemoteFile),
}

/// The longest name of a task or context that is taken; a longer one is none.
const NAME_BYTES: usize = 1024;

/// What is in a response or a frame; nothing if it is nothing that lango knows.
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
    bare(value)
}

/// The same things without the wrapping that says what they are.
fn bare(value: &Value) -> Option<Item> {
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
    let is_by = |message: &Value, who: &str| {
        let role = message["role"].as_str().unwrap_or_default();
        role.to_ascii_uppercase().ends_with(who)
    };
    // Words before the last ones of ours are no answer to them.
    let history = task["history"].as_array();
    let latest = history.into_iter().flatten().rev();
    let last_said = latest
        .take_while(|message| !is_by(message, "USER"))
        .filter(|message| is_by(message, "AGENT"))
        .find_map(words);
    Item::Task {
        names: names(task, "id"),
        status: status(&task["status"]),
        artifacts: artifacts.into_iter().flatten().map(artifact).collect(),
        last_said,
    }
}

fn message(message: &Value) -> Item {
    Item::Message {
        names: names(message, "taskId"),
        text: words(message).unwrap_or_default(),
        files: files(message),
    }
}

fn status_update(update: &Value) -> Item {
    Item::Status {
        names: names(update, "taskId"),
        status: status(&update["status"]),
    }
}

fn artifact_update(update: &Value) -> Option<Item> {
    let found = object(update, "artifact")?;
    Some(Item::Artifact {
        names: names(update, "taskId"),
        artifact: artifact(found),
        is_more: update["append"] == true,
    })
}

fn names(value: &Value, task: &str) -> Names {
    let name = |field: &str| {
        let text = value[field].as_str()?;
        (!text.is_empty() && text.len() <= NAME_BYTES).then(|| text.to_owned())
    };
    Names {
        task: name(task),
        context: name("contextId"),
    }
}

fn status(status: &Value) -> Status {
    Status {
        state: state(&status["state"]),
        words: words(&status["message"]),
        files: files(&status["message"]),
    }
}

fn state(state: &Value) -> State {
    if let Some(number) = state.as_u64() {
        return match number {
            3 => State::Completed,
            4 => State::Failed,
            5 => State::Canceled,
            6 => State::InputRequired,
            7 => State::Rejected,
            8 => State::AuthRequired,
            _ => State::Running,
        };
    }
    let name = state.as_str().unwrap_or_default();
    let name = name.to_ascii_uppercase().replace('-', "_");
    match name.strip_prefix("TASK_STATE_").unwrap_or(&name) {
        "COMPLETED" => State::Completed,
        "FAILED" => State::Failed,
        "CANCELED" | "CANCELLED" => State::Canceled,
        "INPUT_REQUIRED" => State::InputRequired,
        "REJECTED" => State::Rejected,
        "AUTH_REQUIRED" => State::AuthRequired,
        _ => State::Running,
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

/// The text of a message; nothing if it has none.
fn words(message: &Value) -> Option<String> {
    let parts = message["parts"].as_array()?;
    let mut text = String::new();
    let mut is_after_line = false;
    for piece in parts.iter().filter_map(piece) {
        push(&mut text, &mut is_after_line, &piece);
    }
    (!text.trim().is_empty()).then_some(text)
}

/// The files of a message.
fn files(message: &Value) -> Vec<RemoteFile> {
    let parts = message["parts"].as_array();
    let pieces = parts.into_iter().flatten().filter_map(piece);
    let files = pieces.filter_map(|piece| match piece {
        Piece::File(_, file) => Some(file),
        Piece::Text(_) | Piece::Line(_) => None,
    });
    files.collect()
}

/// Puts a piece after what is there, on a line of its own if it stands for itself.
pub(crate) fn push(text: &mut String, is_after_line: &mut bool, piece: &Piece) {
    let is_line = !matches!(piece, Piece::Text(_));
    if (is_line || *is_after_line) && !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
    let (Piece::Text(words) | Piece::Line(words) | Piece::File(words, _)) = piece;
    text.push_str(words);
    *is_after_line = is_line;
}

fn piece(part: &Value) -> Option<Piece> {
    if let Some(text) = part["text"].as_str() {
        return Some(Piece::Text(without_controls(text)));
    }
    if let Some(data) = part.get("data").filter(|data| !data.is_null()) {
        return Some(Piece::Line(without_controls(&data.to_string())));
    }
    let named = |field: &str, most: usize| {
        let text = one_line(part[field].as_str().unwrap_or_default(), most);
        (!text.is_empty()).then_some(text)
    };
    let line = |place: String| {
        let facts = [named("filename", 200), named("mediaType", 100), Some(place)];
        let facts: Vec<String> = facts.into_iter().flatten().collect();
        format!("[file: {}]", facts.join(", "))
    };
    let Some(raw) = part["raw"].as_str() else {
        let url = part["url"].as_str()?;
        let words = line(one_line(url, 500));
        return Some(Piece::File(words, linked_part(named("filename", 200), url)));
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
    fn states_are_read_in_every_spelling_and_unknown_ones_are_not_over() {
        for (spelled, expected) in [
            (json!("TASK_STATE_COMPLETED"), State::Completed),
            (json!("input-required"), State::InputRequired),
            (json!("cancelled"), State::Canceled),
            (json!(7), State::Rejected),
            (json!("TASK_STATE_PAUSED"), State::Running),
            (json!(99), State::Running),
            (json!(null), State::Running),
            (json!({}), State::Running),
        ] {
            assert_eq!(state(&spelled), expected, "{spelled}");
        }
    }

    #[test]
    fn chunks_join_without_a_seam_and_data_and_files_stand_alone() {
        let message = json!({ "parts": [
            { "text": "Hel" }, { "text": "lo" },
            { "data": { "a": 1 } },
            { "raw": "aGVsbG8=", "filename": "a\nb.txt", "mediaType": "text/plain" },
            { "url": "https://a.example/f" },
            { "hologram": 1 },
            { "text": "bye" },
        ] });
        assert_eq!(
            words(&message).unwrap(),
            "Hello\n{\"a\":1}\n[file: a b.txt, text/plain, 5 bytes]\n[file: https://a.example/f]\nbye"
        );
    }

    #[test]
    fn nonsense_is_nothing_and_does_not_panic() {
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
                    state: State::Running,
                    ..
                },
                ..
            })
        ));
    }
}
