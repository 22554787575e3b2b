//! The part of a task that clients see: its status, messages and artifacts. Messages and reports are applied here, within
//! the size limits.

use crate::server::message_identity::{self, MessageIdentity};
use crate::server::render::{self, View};
use crate::server::repetition::Repetition;
use crate::server::report::STARTED;
use crate::server::{ArtifactChunk, Report, ReportError, ServerLimits, StatusMessage};
use a2a::{Artifact, Message, Part, PartContent, Role, Task, TaskState, TaskStatus};
use lango_core::{TaskRecord, Text, Timestamp, UserId};
use serde_json::Value;
use std::collections::HashMap;

/// How long the server recognises a repeated message after its task has ended.
const MESSAGE_MEMORY_MS: u64 = 24 * 60 * 60 * 1000;

/// A task as clients see it, with its bookkeeping.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::server) struct TaskDocument {
    pub task: Task,
    pub updated: Timestamp,
    /// The last stored revision; 0 if the task is not stored.
    pub revision: u64,
    /// How many times the task was resumed since the last report of a run.
    pub attempts: u32,
    /// The size of the messages and artifacts as JSON.
    bytes: usize,
    /// The number of agent messages since the document was created or loaded.
    agent_messages: u64,
    limits: ServerLimits,
}

/// A change of a task, for subscribers.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::server) struct Update {
    /// The update as an event of the protocol's stream.
    pub json: Text,
    pub state: TaskState,
    /// Whether the update must be stored before it is published: it changes the state (except from submitted to
    /// working), or settles the task.
    pub is_binding: bool,
}

/// The part of a document that a status report can change, to undo a report that was not stored.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::server) struct Checkpoint {
    status: TaskStatus,
    updated: Timestamp,
    attempts: u32,
    bytes: usize,
    metadata: Option<HashMap<String, Value>>,
    /// The messages, if the report could change them.
    history: Option<Option<Vec<Message>>>,
    /// The artifacts, if the report could change them.
    artifacts: Option<Option<Vec<Artifact>>>,
}

/// Returns whether a task in this state has ended or waits for a message or an approval, so that no run is needed.
pub(in crate::server) fn is_settled(state: &TaskState) -> bool {
    state.is_terminal() || matches!(state, TaskState::InputRequired | TaskState::AuthRequired)
}

impl TaskDocument {
    /// Creates a submitted task with its first message.
    pub(crate) fn open(
        id: String,
        context: String,
        message: Message,
        now: Timestamp,
        limits: ServerLimits,
    ) -> Self {
        let mut document = Self {
            task: Task {
                id,
                context_id: context,
                status: TaskStatus {
                    state: TaskState::Submitted,
                    message: None,
                    timestamp: Some(render::time(now)),
                },
                artifacts: None,
                history: None,
                metadata: None,
            },
            updated: now,
            revision: 0,
            attempts: 0,
            bytes: 0,
            agent_messages: 0,
            limits,
        };
        document.add_to_history(message);
        document
    }

    /// Reads a stored task.
    pub(crate) fn read(record: &TaskRecord, limits: ServerLimits) -> serde_json::Result<Self> {
        let task = serde_json::from_str(&record.body)?;
        Ok(Self {
            task,
            updated: record.updated,
            revision: record.revision,
            attempts: record.attempts,
            bytes: record.body.len(),
            agent_messages: 0,
            limits,
        })
    }

    /// Builds the record of the next revision.
    pub(crate) fn record(&self, user: &UserId) -> TaskRecord {
        TaskRecord {
            id: self.task.id.as_str().into(),
            user: user.clone(),
            context: self.task.context_id.as_str().into(),
            state: render::state_name(self.state()).into(),
            is_running: !self.is_settled(),
            updated: self.updated,
            body: self.json(View::default()).into(),
            revision: self.revision + 1,
            attempts: self.attempts,
        }
    }

    /// Returns the client's last message, which the run handles.
    pub(crate) fn last_user_message(&self) -> Option<&Message> {
        let history = self.task.history.as_deref().unwrap_or_default();
        let mut latest = history.iter().rev();
        latest.find(|message| message.role == Role::User)
    }

    /// Returns whether the client has sent messages after the one that opened the task.
    fn has_follow_ups(&self) -> bool {
        let history = self.task.history.as_deref().unwrap_or_default();
        let sent = history.iter().filter(|message| message.role == Role::User);
        sent.count() > 1
    }

    /// Returns the task that a repeated first message opens, or `None` if the message is a retry of this task. A client
    /// that has sent follow-ups knows this task, so repeating the message is not a retry.
    pub(crate) fn repetition(&self, now: Timestamp) -> Option<Repetition> {
        let is_forgotten = now.0.saturating_sub(self.updated.0) > MESSAGE_MEMORY_MS;
        let is_over = self.state().is_terminal();
        if self.has_follow_ups() || (is_over && is_forgotten) {
            return Some(Repetition::NewWork {
                of: self.task.id.clone(),
            });
        }
        let message = self.last_user_message()?;
        (is_over && self.ended_before_start()).then(|| Repetition::Attempt {
            of: self.task.id.clone(),
            context: self.task.context_id.clone(),
            message: Box::new(message.clone()),
        })
    }

    fn ended_before_start(&self) -> bool {
        let message = self.task.status.message.as_ref();
        let metadata = message.and_then(|message| message.metadata.as_ref());
        metadata.is_some_and(|metadata| metadata.get(STARTED) == Some(&Value::Bool(false)))
    }

    /// Returns whether the history contains this message from the client.
    pub(crate) fn has_message(&self, message: &Message) -> bool {
        let history = self.task.history.as_deref().unwrap_or_default();
        history.iter().any(|known| {
            known.role == Role::User
                && known.message_id == message.message_id
                && MessageIdentity::of(known) == MessageIdentity::of(message)
        })
    }

    pub(crate) fn state(&self) -> &TaskState {
        &self.task.status.state
    }

    pub(crate) fn is_settled(&self) -> bool {
        is_settled(self.state())
    }

    pub(crate) fn json(&self, view: View) -> String {
        render::task(&self.task, view)
    }

    pub(crate) fn limits(&self) -> &ServerLimits {
        &self.limits
    }

    /// Returns whether a message fits within the size limit of the task.
    pub(crate) fn has_room_for(&self, message: &Message) -> bool {
        self.bytes + length(message) <= self.limits.task_bytes
    }

    /// Adds a follow-up message from the client, and sets the task to working.
    pub(crate) fn add_message(&mut self, message: Message, now: Timestamp) -> Update {
        self.archive_status();
        self.add_to_history(message);
        self.enter(TaskState::Working, None, HashMap::new(), now)
    }

    /// Applies a report. Returns the updates in order; a change of status is the last one.
    pub(crate) fn apply(
        &mut self,
        report: Report,
        now: Timestamp,
    ) -> Result<Vec<Update>, ReportError> {
        if self.state().is_terminal() {
            return Err(ReportError::Over {
                id: self.task.id.clone(),
            });
        }
        let mut updates = Vec::new();
        let (state, text) = match report {
            Report::Artifact(chunk) => return Ok(vec![self.add_chunk(chunk)?]),
            Report::Answered(answer, mut text) => {
                match self.add_chunk(answer) {
                    Ok(update) => updates.push(update),
                    Err(_) => {
                        let note = "done; the answer is too long to be stored with the task";
                        text.parts.push(Part::text(note));
                    }
                }
                (TaskState::Completed, text)
            }
            Report::Working(text) => (TaskState::Working, text),
            Report::InputRequired(text) => (TaskState::InputRequired, text),
            Report::AuthRequired(text) => (TaskState::AuthRequired, text),
            Report::Completed(text) => (TaskState::Completed, text),
            Report::Failed(text) => (TaskState::Failed, text),
            Report::Rejected(text) => (TaskState::Rejected, text),
            Report::Cancelled(text) => (TaskState::Canceled, text),
        };
        let mut metadata = HashMap::new();
        let mut message = None;
        if text.parts.is_empty() {
            metadata.extend(text.metadata);
        } else {
            message = Some(self.message(text, now));
        }
        if let Some(status) = &message {
            // An end or a question is never refused because of its size; it is stored without its text.
            if self.bytes + length(status) > self.limits.task_bytes {
                if !is_settled(&state) {
                    return Err(self.full());
                }
                let note = "(text left out: the task has reached its size limit)";
                message = Some(self.message(note.into(), now));
            }
        }
        if is_settled(self.state()) {
            self.archive_status();
        }
        updates.push(self.enter(state, message, metadata, now));
        Ok(updates)
    }

    /// Saves the parts that a status report can change. The history changes only if a question to the client moves into
    /// it.
    pub(crate) fn checkpoint(&self, report: &Report) -> Checkpoint {
        let is_answer = matches!(report, Report::Answered(..));
        Checkpoint {
            status: self.task.status.clone(),
            updated: self.updated,
            attempts: self.attempts,
            bytes: self.bytes,
            metadata: self.task.metadata.clone(),
            history: self.is_settled().then(|| self.task.history.clone()),
            artifacts: is_answer.then(|| self.task.artifacts.clone()),
        }
    }

    /// Undoes the last status report.
    pub(crate) fn restore(&mut self, checkpoint: Checkpoint) {
        self.task.status = checkpoint.status;
        self.updated = checkpoint.updated;
        self.attempts = checkpoint.attempts;
        self.bytes = checkpoint.bytes;
        self.task.metadata = checkpoint.metadata;
        if let Some(history) = checkpoint.history {
            self.task.history = history;
        }
        if let Some(artifacts) = checkpoint.artifacts {
            self.task.artifacts = artifacts;
        }
    }

    fn enter(
        &mut self,
        state: TaskState,
        message: Option<Message>,
        metadata: HashMap<String, Value>,
        now: Timestamp,
    ) -> Update {
        // The start of the work promises nothing to the client, so it is stored with the next write.
        let is_start = *self.state() == TaskState::Submitted && state == TaskState::Working;
        let is_binding = (*self.state() != state && !is_start) || is_settled(&state);
        self.updated = self.updated.max(now);
        self.task.status = TaskStatus {
            state: state.clone(),
            message,
            timestamp: Some(render::time(self.updated)),
        };
        let json = render::status_update(&self.task, &metadata).into();
        if !metadata.is_empty() {
            // The status has no message that could carry the metadata, so the task does.
            let known = self.task.metadata.get_or_insert_default();
            known.extend(metadata);
        }
        Update {
            json,
            state,
            is_binding,
        }
    }

    /// Moves the message of the current status, such as a question to the client, into the history.
    fn archive_status(&mut self) {
        if let Some(message) = self.task.status.message.take() {
            self.add_to_history(message);
        }
    }

    fn add_to_history(&mut self, mut message: Message) {
        message.task_id = Some(self.task.id.clone());
        message.context_id = Some(self.task.context_id.clone());
        self.bytes += length(&message);
        let history = self.task.history.get_or_insert_default();
        history.push(message);
        if history.len() > self.limits.history.max(2) {
            let dropped = history.remove(1);
            self.bytes = self.bytes.saturating_sub(length(&dropped));
        }
    }

    fn message(&mut self, text: StatusMessage, now: Timestamp) -> Message {
        let mut message = Message::new(Role::Agent, text.parts);
        self.agent_messages += 1;
        message.message_id = message_identity::agent_message_id(
            &self.task.id,
            [self.revision, self.agent_messages, now.0],
        );
        message.task_id = Some(self.task.id.clone());
        message.context_id = Some(self.task.context_id.clone());
        message.metadata = (!text.metadata.is_empty()).then(|| text.metadata.into_iter().collect());
        message
    }

    fn add_chunk(&mut self, chunk: ArtifactChunk) -> Result<Update, ReportError> {
        if chunk.parts.is_empty() {
            return Err(ReportError::Empty {
                artifact: chunk.artifact,
            });
        }
        let known = self.task.artifacts.get_or_insert_default();
        let index = known
            .iter()
            .position(|known| known.artifact_id == chunk.artifact);
        let replaced = match index {
            Some(index) if !chunk.is_appended => length(&known[index]),
            _ => 0,
        };
        let artifact = Artifact {
            artifact_id: chunk.artifact,
            name: chunk.name,
            description: None,
            parts: chunk.parts,
            metadata: None,
            extensions: None,
        };
        let bytes = (self.bytes + length(&artifact)).saturating_sub(replaced);
        if bytes > self.limits.task_bytes {
            return Err(self.full());
        }
        self.bytes = bytes;
        // The first chunk always creates the artifact, because clients have nothing to append to.
        let is_appended = chunk.is_appended && index.is_some();
        let json = render::artifact_update(&self.task, &artifact, is_appended, chunk.is_last);
        let known = self.task.artifacts.get_or_insert_default();
        match index {
            None => known.push(artifact),
            Some(index) if is_appended => append(&mut known[index], artifact),
            Some(index) => known[index] = artifact,
        }
        Ok(Update {
            json: json.into(),
            state: self.state().clone(),
            is_binding: false,
        })
    }

    fn full(&self) -> ReportError {
        ReportError::Full {
            id: self.task.id.clone(),
            limit: self.limits.task_bytes,
        }
    }
}

/// Appends a chunk to an artifact. Joins consecutive plain text parts, so that a text of thousands of chunks is one
/// part.
fn append(artifact: &mut Artifact, chunk: Artifact) {
    if chunk.name.is_some() {
        artifact.name = chunk.name;
    }
    for part in chunk.parts {
        match (artifact.parts.last_mut(), part) {
            (Some(last), part) if is_plain(last) && is_plain(&part) => {
                if let (PartContent::Text(text), PartContent::Text(more)) =
                    (&mut last.content, part.content)
                {
                    text.push_str(&more);
                }
            }
            (_, part) => artifact.parts.push(part),
        }
    }
}

fn is_plain(part: &Part) -> bool {
    matches!(part.content, PartContent::Text(_))
        && part.filename.is_none()
        && part.media_type.is_none()
        && part.metadata.is_none()
}

/// Returns the size of a value as JSON, in bytes.
pub(in crate::server) fn length(value: &impl serde::Serialize) -> usize {
    render::json(value).len()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// Returns a document with a full history and a question, so that the next report removes a message.
    fn waiting_document() -> TaskDocument {
        let limits = ServerLimits {
            history: 3,
            ..ServerLimits::default()
        };
        let sent = |text: &str| Message::new(Role::User, vec![Part::text(text)]);
        let now = Timestamp(1);
        let mut document = TaskDocument::open("t".into(), "c".into(), sent("one"), now, limits);
        for text in ["two", "three"] {
            document.add_message(sent(text), now);
        }
        let text = StatusMessage::empty().with("round", json!(1));
        document.apply(Report::Working(text), now).unwrap();
        let question = Report::InputRequired("which of them?".into());
        document.apply(question, now).unwrap();
        document
    }

    #[test]
    fn a_status_that_could_not_be_stored_is_undone_completely() {
        let reports = [
            Report::Working(StatusMessage::empty().with("round", json!(2))),
            Report::Completed("done, at length".into()),
            Report::Completed(StatusMessage::empty().with("author", json!("a"))),
            Report::Answered(ArtifactChunk::text("a", "text"), StatusMessage::empty()),
        ];
        for report in reports {
            let mut document = waiting_document();
            let before = (document.task.clone(), document.updated, document.bytes);
            let checkpoint = document.checkpoint(&report);
            document.apply(report, Timestamp(9)).unwrap();
            assert_ne!(document.task, before.0);
            assert_eq!(document.task.history.as_ref().unwrap().len(), 3);
            document.restore(checkpoint);
            assert_eq!((document.task, document.updated, document.bytes), before);
        }
    }
}
