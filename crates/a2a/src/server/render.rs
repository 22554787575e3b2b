//! Serializes tasks and their updates as JSON. The serialized structs borrow from the task, so leaving out history or
//! artifacts needs no copy. Times always have milliseconds.

use a2a::{Artifact, Message, Task, TaskState, TaskStatus};
use chrono::{DateTime, SecondsFormat, Utc};
use lango_core::Timestamp;
use serde::{Serialize, Serializer};
use serde_json::Value;
use std::collections::HashMap;

/// The parts of a task that a client wants to see.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct View {
    /// How many of the latest messages to include; `None` for all.
    pub history: Option<usize>,
    pub artifacts: ShowArtifacts,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum ShowArtifacts {
    /// Include the list if it is not empty.
    #[default]
    Any,
    /// Include the list even if it is empty.
    Always,
    Never,
}

/// Returns the protocol's name of a state.
pub(super) fn state_name(state: &TaskState) -> &'static str {
    match state {
        TaskState::Unspecified => "TASK_STATE_UNSPECIFIED",
        TaskState::Submitted => "TASK_STATE_SUBMITTED",
        TaskState::Working => "TASK_STATE_WORKING",
        TaskState::Completed => "TASK_STATE_COMPLETED",
        TaskState::Failed => "TASK_STATE_FAILED",
        TaskState::Canceled => "TASK_STATE_CANCELED",
        TaskState::InputRequired => "TASK_STATE_INPUT_REQUIRED",
        TaskState::Rejected => "TASK_STATE_REJECTED",
        TaskState::AuthRequired => "TASK_STATE_AUTH_REQUIRED",
    }
}

/// Converts a time to the protocol's type. Times after the year 9999 become the end of that year.
pub(super) fn time(time: Timestamp) -> DateTime<Utc> {
    const LAST: i64 = 253_402_300_799_999;
    let millis = i64::try_from(time.0).unwrap_or(LAST).min(LAST);
    DateTime::from_timestamp_millis(millis).unwrap_or_default()
}

/// Formats a time as RFC 3339 with milliseconds.
pub(super) fn time_text(time: &DateTime<Utc>) -> String {
    time.to_rfc3339_opts(SecondsFormat::Millis, true)
}

/// Serializes a task.
pub(super) fn task(task: &Task, view: View) -> String {
    let history = task.history.as_deref().unwrap_or_default();
    let count = view.history.unwrap_or(history.len()).min(history.len());
    let artifacts = task.artifacts.as_deref().unwrap_or_default();
    json(&TaskJson {
        id: &task.id,
        context_id: &task.context_id,
        status: StatusJson::of(&task.status),
        artifacts: match view.artifacts {
            ShowArtifacts::Any => Some(artifacts).filter(|artifacts| !artifacts.is_empty()),
            ShowArtifacts::Always => Some(artifacts),
            ShowArtifacts::Never => None,
        },
        history: (count > 0).then(|| &history[history.len() - count..]),
        metadata: task.metadata.as_ref(),
    })
}

/// Serializes an update of a task's status.
pub(super) fn status_update(task: &Task, metadata: &HashMap<String, Value>) -> String {
    json(&UpdateJson::Status(StatusUpdateJson {
        task_id: &task.id,
        context_id: &task.context_id,
        status: StatusJson::of(&task.status),
        metadata: Some(metadata).filter(|metadata| !metadata.is_empty()),
    }))
}

/// Serializes an update of an artifact.
pub(super) fn artifact_update(
    task: &Task,
    artifact: &Artifact,
    is_appended: bool,
    is_last: bool,
) -> String {
    json(&UpdateJson::Artifact(ArtifactUpdateJson {
        task_id: &task.id,
        context_id: &task.context_id,
        artifact,
        append: is_appended,
        last_chunk: is_last,
    }))
}

/// Serializes a value as JSON. This cannot fail, because all keys are strings.
pub(super) fn json(value: &impl Serialize) -> String {
    serde_json::to_string(value).unwrap_or_else(|_| "null".to_owned())
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct TaskJson<'a> {
    id: &'a str,
    context_id: &'a str,
    status: StatusJson<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    artifacts: Option<&'a [Artifact]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    history: Option<&'a [Message]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    metadata: Option<&'a HashMap<String, Value>>,
}

#[derive(Serialize)]
struct StatusJson<'a> {
    state: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<&'a Message>,
    #[serde(
        skip_serializing_if = "Option::is_none",
        serialize_with = "serialize_time"
    )]
    timestamp: Option<&'a DateTime<Utc>>,
}

impl<'a> StatusJson<'a> {
    fn of(status: &'a TaskStatus) -> Self {
        Self {
            state: state_name(&status.state),
            message: status.message.as_ref(),
            timestamp: status.timestamp.as_ref(),
        }
    }
}

fn serialize_time<S: Serializer>(
    time: &Option<&DateTime<Utc>>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    match time {
        Some(time) => serializer.serialize_str(&time_text(time)),
        None => serializer.serialize_none(),
    }
}

#[derive(Serialize)]
enum UpdateJson<'a> {
    #[serde(rename = "statusUpdate")]
    Status(StatusUpdateJson<'a>),
    #[serde(rename = "artifactUpdate")]
    Artifact(ArtifactUpdateJson<'a>),
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct StatusUpdateJson<'a> {
    task_id: &'a str,
    context_id: &'a str,
    status: StatusJson<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    metadata: Option<&'a HashMap<String, Value>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ArtifactUpdateJson<'a> {
    task_id: &'a str,
    context_id: &'a str,
    artifact: &'a Artifact,
    append: bool,
    last_chunk: bool,
}
