//! How tasks and their updates are written out. Borrowed from the task, so that leaving out history or artifacts copies
//! nothing, and with times that always have their milliseconds.

use a2a::{Artifact, Message, Task, TaskState, TaskStatus};
use chrono::{DateTime, SecondsFormat, Utc};
use lango_core::Timestamp;
use serde::{Serialize, Serializer};
use serde_json::Value;
use std::collections::HashMap;

/// How much of a task is shown.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct View {
    /// The most messages of its history; all that there are without it.
    pub history: Option<usize>,
    /// Whether its artifacts are there.
    pub artifacts: ShowArtifacts,
}

/// Whether a task is shown with its artifacts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum ShowArtifacts {
    /// With those it has.
    #[default]
    Any,
    /// With those it has, and an empty list if it has none.
    Always,
    /// Without.
    Never,
}

/// The protocol's word for a state.
pub(super) fn word(state: &TaskState) -> &'static str {
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

/// A time as the protocol's types have it. One past the year 9999 is the last there is.
pub(super) fn moment(time: Timestamp) -> DateTime<Utc> {
    const LAST: i64 = 253_402_300_799_999;
    let millis = i64::try_from(time.0).unwrap_or(LAST).min(LAST);
    DateTime::from_timestamp_millis(millis).unwrap_or_default()
}

/// A time as it is written.
pub(super) fn written(time: &DateTime<Utc>) -> String {
    time.to_rfc3339_opts(SecondsFormat::Millis, true)
}

/// A task as JSON.
pub(super) fn task(task: &Task, view: View) -> String {
    let history = task.history.as_deref().unwrap_or_default();
    let kept = view.history.unwrap_or(history.len()).min(history.len());
    let artifacts = task.artifacts.as_deref().unwrap_or_default();
    json(&ShownTask {
        id: &task.id,
        context_id: &task.context_id,
        status: ShownStatus::of(&task.status),
        artifacts: match view.artifacts {
            ShowArtifacts::Any => Some(artifacts).filter(|artifacts| !artifacts.is_empty()),
            ShowArtifacts::Always => Some(artifacts),
            ShowArtifacts::Never => None,
        },
        history: (kept > 0).then(|| &history[history.len() - kept..]),
        metadata: task.metadata.as_ref(),
    })
}

/// An update of a task's status as JSON.
pub(super) fn status_update(task: &Task, metadata: &HashMap<String, Value>) -> String {
    json(&ShownUpdate::Status(ShownStatusUpdate {
        task_id: &task.id,
        context_id: &task.context_id,
        status: ShownStatus::of(&task.status),
        metadata: Some(metadata).filter(|metadata| !metadata.is_empty()),
    }))
}

/// An update of one of a task's artifacts as JSON.
pub(super) fn artifact_update(
    task: &Task,
    artifact: &Artifact,
    is_appended: bool,
    is_last: bool,
) -> String {
    json(&ShownUpdate::Artifact(ShownArtifactUpdate {
        task_id: &task.id,
        context_id: &task.context_id,
        artifact,
        append: is_appended,
        last_chunk: is_last,
    }))
}

/// Anything of ours as JSON. All of it has text for keys, which is the one thing that could go wrong.
pub(super) fn json(value: &impl Serialize) -> String {
    serde_json::to_string(value).unwrap_or_else(|_| "null".to_owned())
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ShownTask<'a> {
    id: &'a str,
    context_id: &'a str,
    status: ShownStatus<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    artifacts: Option<&'a [Artifact]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    history: Option<&'a [Message]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    metadata: Option<&'a HashMap<String, Value>>,
}

#[derive(Serialize)]
struct ShownStatus<'a> {
    state: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<&'a Message>,
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "time")]
    timestamp: Option<&'a DateTime<Utc>>,
}

impl<'a> ShownStatus<'a> {
    fn of(status: &'a TaskStatus) -> Self {
        Self {
            state: word(&status.state),
            message: status.message.as_ref(),
            timestamp: status.timestamp.as_ref(),
        }
    }
}

fn time<S: Serializer>(time: &Option<&DateTime<Utc>>, serializer: S) -> Result<S::Ok, S::Error> {
    match time {
        Some(time) => serializer.serialize_str(&written(time)),
        None => serializer.serialize_none(),
    }
}

#[derive(Serialize)]
enum ShownUpdate<'a> {
    #[serde(rename = "statusUpdate")]
    Status(ShownStatusUpdate<'a>),
    #[serde(rename = "artifactUpdate")]
    Artifact(ShownArtifactUpdate<'a>),
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ShownStatusUpdate<'a> {
    task_id: &'a str,
    context_id: &'a str,
    status: ShownStatus<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    metadata: Option<&'a HashMap<String, Value>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ShownArtifactUpdate<'a> {
    task_id: &'a str,
    context_id: &'a str,
    artifact: &'a Artifact,
    append: bool,
    last_chunk: bool,
}
