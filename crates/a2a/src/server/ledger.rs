//! One task in memory: what messages and reports make of it, and how long it may get. No I/O and no waiting.

use super::said::Said;
use super::shown::{self, View, moment};
use super::{Piece, Report, ReportError, ServerLimits, Words};
use a2a::{Artifact, Message, Part, PartContent, Role, Task, TaskState, TaskStatus};
use lango_core::{TaskRecord, Text, Timestamp, UserId};
use serde_json::Value;
use std::collections::HashMap;

/// A task, and how many bytes its messages and artifacts have.
#[derive(Debug)]
pub(super) struct Ledger {
    pub task: Task,
    pub updated: Timestamp,
    /// Which writing of it was kept last; 0 before the first.
    pub revision: u64,
    /// How often it was taken up again since a job of it last said something.
    pub attempts: u32,
    bytes: usize,
    limits: ServerLimits,
}

/// What a report changed, for those who listen.
#[derive(Debug, Clone)]
pub(super) struct Update {
    /// As JSON, in the form of the protocol's stream.
    pub json: Text,
    pub state: TaskState,
    /// Whether it is kept before it is shown: the state changed beyond being at work, or somebody is waited for.
    pub is_binding: bool,
}

/// How the task stood, to go back to.
pub(super) struct Mark {
    status: TaskStatus,
    updated: Timestamp,
    bytes: usize,
    metadata: Option<HashMap<String, Value>>,
    /// The messages, where a report could change them.
    history: Option<Option<Vec<Message>>>,
}

/// Whether a task in this state waits for somebody or has ended: nobody is at work on it.
pub(super) fn is_settled(state: &TaskState) -> bool {
    state.is_terminal() || matches!(state, TaskState::InputRequired | TaskState::AuthRequired)
}

impl Ledger {
    /// A new task for a message.
    pub fn open(
        id: String,
        context: String,
        message: Message,
        now: Timestamp,
        limits: ServerLimits,
    ) -> Self {
        let mut ledger = Self {
            task: Task {
                id,
                context_id: context,
                status: TaskStatus {
                    state: TaskState::Submitted,
                    message: None,
                    timestamp: Some(moment(now)),
                },
                artifacts: None,
                history: None,
                metadata: None,
            },
            updated: now,
            revision: 0,
            attempts: 0,
            bytes: 0,
            limits,
        };
        ledger.remember(message);
        ledger
    }

    /// A task as it was kept.
    pub fn read(record: &TaskRecord, limits: ServerLimits) -> serde_json::Result<Self> {
        let task = serde_json::from_str(&record.body)?;
        Ok(Self {
            task,
            updated: record.updated,
            revision: record.revision,
            attempts: record.attempts,
            bytes: record.body.len(),
            limits,
        })
    }

    /// The task as it is to be kept next.
    pub fn record(&self, user: &UserId) -> TaskRecord {
        TaskRecord {
            id: self.task.id.as_str().into(),
            user: user.clone(),
            context: self.task.context_id.as_str().into(),
            state: shown::word(self.state()).into(),
            is_running: !self.is_settled(),
            updated: self.updated,
            body: self.json(View::default()).into(),
            revision: self.revision + 1,
            attempts: self.attempts,
        }
    }

    /// What the client said last: what a job for this task is about.
    pub fn last_said(&self) -> Option<&Message> {
        let history = self.task.history.as_deref().unwrap_or_default();
        let mut latest = history.iter().rev();
        latest.find(|message| message.role == Role::User)
    }

    /// Whether the client has said more than what opened it.
    pub fn has_follow_ups(&self) -> bool {
        let history = self.task.history.as_deref().unwrap_or_default();
        let said = history.iter().filter(|message| message.role == Role::User);
        said.count() > 1
    }

    /// Whether the client has said this before, as far as the task remembers.
    pub fn has_heard(&self, message: &Message) -> bool {
        let history = self.task.history.as_deref().unwrap_or_default();
        history.iter().any(|heard| {
            heard.role == Role::User
                && heard.message_id == message.message_id
                && Said::of(heard) == Said::of(message)
        })
    }

    pub fn state(&self) -> &TaskState {
        &self.task.status.state
    }

    pub fn is_settled(&self) -> bool {
        is_settled(self.state())
    }

    pub fn json(&self, view: View) -> String {
        shown::task(&self.task, view)
    }

    /// Whether a message of the client still has room.
    pub fn has_room_for(&self, message: &Message) -> bool {
        self.bytes + length(message) <= self.limits.task_bytes
    }

    /// Takes up a message of the client: work begins again.
    pub fn take_up(&mut self, message: Message, now: Timestamp) -> Update {
        self.retire_status();
        self.remember(message);
        self.enter(TaskState::Working, None, HashMap::new(), now)
    }

    /// What a report makes of the task.
    pub fn apply(&mut self, report: Report, now: Timestamp) -> Result<Update, ReportError> {
        if self.state().is_terminal() {
            return Err(ReportError::Over {
                id: self.task.id.clone(),
            });
        }
        let (state, words) = match report {
            Report::Artifact(piece) => return self.add(piece),
            Report::Working(words) => (TaskState::Working, words),
            Report::InputRequired(words) => (TaskState::InputRequired, words),
            Report::AuthRequired(words) => (TaskState::AuthRequired, words),
            Report::Completed(words) => (TaskState::Completed, words),
            Report::Failed(words) => (TaskState::Failed, words),
            Report::Rejected(words) => (TaskState::Rejected, words),
            Report::Cancelled(words) => (TaskState::Canceled, words),
        };
        let mut metadata = HashMap::new();
        let mut message = None;
        if words.parts.is_empty() {
            metadata.extend(words.metadata);
        } else {
            message = Some(self.message(words));
        }
        if let Some(said) = &message {
            // How a task ends, or that it waits, is never refused for want of room: then it is said without the words.
            if self.bytes + length(said) > self.limits.task_bytes {
                if !is_settled(&state) {
                    return Err(self.full());
                }
                let note = "(left out: the task has reached its bound)";
                message = Some(self.message(note.into()));
            }
        }
        if is_settled(self.state()) {
            self.retire_status();
        }
        Ok(self.enter(state, message, metadata, now))
    }

    /// How the task stands before a status report. Such a report leaves artifacts alone, and messages unless what was asked
    /// of the client becomes one of them.
    pub fn mark(&self) -> Mark {
        Mark {
            status: self.task.status.clone(),
            updated: self.updated,
            bytes: self.bytes,
            metadata: self.task.metadata.clone(),
            history: self.is_settled().then(|| self.task.history.clone()),
        }
    }

    /// Undoes the last status report: all is as it was at the mark.
    pub fn restore(&mut self, mark: Mark) {
        self.task.status = mark.status;
        self.updated = mark.updated;
        self.bytes = mark.bytes;
        self.task.metadata = mark.metadata;
        if let Some(history) = mark.history {
            self.task.history = history;
        }
    }

    fn enter(
        &mut self,
        state: TaskState,
        message: Option<Message>,
        metadata: HashMap<String, Value>,
        now: Timestamp,
    ) -> Update {
        // That work began binds nobody, and is written with what follows.
        let begins = *self.state() == TaskState::Submitted && state == TaskState::Working;
        let is_binding = (*self.state() != state && !begins) || is_settled(&state);
        self.updated = self.updated.max(now);
        self.task.status = TaskStatus {
            state: state.clone(),
            message,
            timestamp: Some(moment(self.updated)),
        };
        let json = shown::status_update(&self.task, &metadata).into();
        if !metadata.is_empty() {
            // Without words there is no message to carry it.
            let known = self.task.metadata.get_or_insert_default();
            known.extend(metadata);
        }
        Update {
            json,
            state,
            is_binding,
        }
    }

    /// What was asked of the client belongs to the conversation. How work went along does not.
    fn retire_status(&mut self) {
        if let Some(message) = self.task.status.message.take() {
            self.remember(message);
        }
    }

    fn remember(&mut self, mut message: Message) {
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

    fn message(&self, words: Words) -> Message {
        let mut message = Message::new(Role::Agent, words.parts);
        message.task_id = Some(self.task.id.clone());
        message.context_id = Some(self.task.context_id.clone());
        message.metadata =
            (!words.metadata.is_empty()).then(|| words.metadata.into_iter().collect());
        message
    }

    fn add(&mut self, piece: Piece) -> Result<Update, ReportError> {
        if piece.parts.is_empty() {
            return Err(ReportError::Empty {
                artifact: piece.artifact,
            });
        }
        let known = self.task.artifacts.get_or_insert_default();
        let place = known
            .iter()
            .position(|artifact| artifact.artifact_id == piece.artifact);
        let replaced = match place {
            Some(place) if !piece.is_appended => length(&known[place]),
            _ => 0,
        };
        let shown = Artifact {
            artifact_id: piece.artifact,
            name: piece.name,
            description: None,
            parts: piece.parts,
            metadata: None,
            extensions: None,
        };
        let bytes = (self.bytes + length(&shown)).saturating_sub(replaced);
        if bytes > self.limits.task_bytes {
            return Err(self.full());
        }
        self.bytes = bytes;
        // The first piece of an artifact begins it, whatever the agent says: clients have nothing to append to.
        let is_appended = piece.is_appended && place.is_some();
        let json = shown::artifact_update(&self.task, &shown, is_appended, piece.is_last);
        let known = self.task.artifacts.get_or_insert_default();
        match place {
            None => known.push(shown),
            Some(place) if is_appended => append(&mut known[place], shown),
            Some(place) => known[place] = shown,
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

/// Puts a piece after what the artifact has. Plain text goes into the plain text before it, so that a text which came in
/// thousands of pieces is kept as one part.
fn append(artifact: &mut Artifact, piece: Artifact) {
    if piece.name.is_some() {
        artifact.name = piece.name;
    }
    for part in piece.parts {
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

/// How many bytes a value has as JSON.
pub(super) fn length(value: &impl serde::Serialize) -> usize {
    shown::json(value).len()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// A full history and a question, so that the next report removes a message.
    fn waiting() -> Ledger {
        let limits = ServerLimits {
            history: 3,
            ..ServerLimits::default()
        };
        let said = |text: &str| Message::new(Role::User, vec![Part::text(text)]);
        let now = Timestamp(1);
        let mut ledger = Ledger::open("t".into(), "c".into(), said("one"), now, limits);
        for text in ["two", "three"] {
            ledger.take_up(said(text), now);
        }
        let words = Words::none().with("round", json!(1));
        ledger.apply(Report::Working(words), now).unwrap();
        let question = Report::InputRequired("which of them?".into());
        ledger.apply(question, now).unwrap();
        ledger
    }

    #[test]
    fn what_could_not_be_kept_is_undone_wholly() {
        let reports = [
            Report::Working(Words::none().with("round", json!(2))),
            Report::Completed("done, at length".into()),
            Report::Completed(Words::none().with("author", json!("a"))),
        ];
        for report in reports {
            let mut ledger = waiting();
            let before = (ledger.task.clone(), ledger.updated, ledger.bytes);
            let mark = ledger.mark();
            ledger.apply(report, Timestamp(9)).unwrap();
            assert_ne!(ledger.task, before.0);
            assert_eq!(ledger.task.history.as_ref().unwrap().len(), 3);
            ledger.restore(mark);
            assert_eq!((ledger.task, ledger.updated, ledger.bytes), before);
        }
    }
}
