//! Projects a batch of events onto the tables that are derived from the log.
//!
//! [`RowChanges::from_events`] is pure: it maps events to rows. Events of one batch that affect the same row (a turn that starts
//! and ends, a request that is answered) become one row in its final state. So the rows can be written in any order, and in one
//! statement that does not see its own writes.

use crate::backend::text::SqlText;
use crate::backend::{BackendError, Result, checked_i64};
use lango_core::{ApprovalRequest, Event, EventBody, Text};
use serde::Serialize;
use serde_json::Value;
use std::sync::Arc;

/// The rows that a batch of events of one session changes.
#[derive(Debug, Default, PartialEq, Serialize)]
pub(crate) struct RowChanges<'a> {
    /// Turns that start in this batch, in order.
    pub started: Vec<TurnRow<'a>>,
    /// Changes to the session's last turn before this batch. They apply only if it has the given id.
    pub continued: Vec<TurnRow<'a>>,
    /// Other turns before this batch that it undoes.
    pub undone: Vec<UndoneRow<'a>>,
    pub session: SessionChange<'a>,
    /// New requests that are pending, or that this batch already granted for later calls too.
    pub requested: Vec<ApprovalRow<'a>>,
    /// Requests of earlier batches that are now granted for later calls too.
    pub granted: Vec<ApprovalRow<'a>>,
    /// Requests of earlier batches whose answer applies to that one call only.
    pub answered: Vec<SqlText<'a>>,
    /// Conversations with remote agents.
    pub threads: Vec<ThreadRow<'a>>,
    /// Remote agents whose earlier task has ended.
    pub ended_threads: Vec<SqlText<'a>>,
    /// The digests of attachments that events refer to, without duplicates.
    pub attachments: Vec<SqlText<'a>>,
}

#[derive(Debug, PartialEq, Serialize)]
pub(crate) struct TurnRow<'a> {
    /// The index of the turn among those that start in the batch.
    pub place: usize,
    pub turn: SqlText<'a>,
    pub first_seq: i64,
    pub delegation: Option<i64>,
    pub answer: Option<i64>,
    pub finished: i64,
    /// The `seq` of the event that undid the turn.
    pub undone: Option<i64>,
}

/// A turn that is undone, and the `seq` of the event that says so.
#[derive(Debug, PartialEq, Serialize)]
pub(crate) struct UndoneRow<'a> {
    pub turn: SqlText<'a>,
    pub seq: i64,
}

/// Changes to a row of `sessions`.
#[derive(Debug, Default, PartialEq, Serialize)]
pub(crate) struct SessionChange<'a> {
    /// The title of the session, which applies if the first turn that starts in this batch is the session's first turn.
    pub title: Option<SqlText<'a>>,
    /// When the first turn that starts in this batch started.
    pub first_asked: Option<i64>,
    /// When the last turn that ends in this batch ended.
    pub last_finished: Option<i64>,
}

/// A row of `approvals` to insert, or to update for a request of an earlier batch.
#[derive(Debug, PartialEq, Serialize)]
pub(crate) struct ApprovalRow<'a> {
    pub id: SqlText<'a>,
    pub turn: SqlText<'a>,
    pub time: i64,
    /// The request's JSON. For a request of an earlier batch it is empty here, and `complete_grants` fills it in.
    pub request: String,
    pub pattern: Option<SqlText<'a>>,
    pub folder: Option<SqlText<'a>>,
}

#[derive(Debug, PartialEq, Serialize)]
pub(crate) struct ThreadRow<'a> {
    pub agent: SqlText<'a>,
    pub context: SqlText<'a>,
    pub task: Option<SqlText<'a>>,
}

impl<'a> RowChanges<'a> {
    pub(crate) fn from_events(events: &'a [Event]) -> Result<Self> {
        let mut changes = Self::default();
        for event in events {
            changes.add(event)?;
        }
        Ok(changes)
    }

    pub(crate) fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Returns whether only `turns` and `sessions` change.
    pub(crate) fn changes_only_turns(&self) -> bool {
        self.requested.is_empty()
            && self.granted.is_empty()
            && self.answered.is_empty()
            && self.threads.is_empty()
            && self.ended_threads.is_empty()
            && self.attachments.is_empty()
    }

    fn add(&mut self, event: &'a Event) -> Result<()> {
        let (seq, time) = (checked_i64(event.seq)?, checked_i64(event.time.0)?);
        for attachment in event.body.attachments() {
            let digest = SqlText(&attachment.digest);
            if !self.attachments.contains(&digest) {
                self.attachments.push(digest);
            }
        }
        match &event.body {
            EventBody::UserMessage { text, .. } => {
                let place = self.started.len();
                if place == 0 {
                    self.session.title = Some(SqlText(title_of(text)));
                    self.session.first_asked = Some(time);
                }
                let turn = TurnRow::new(place, event.turn.as_str(), seq);
                self.started.push(turn);
            }
            EventBody::AgentDelegated { finish: true, .. } => {
                if let Some(turn) = self.turn(event, seq) {
                    turn.delegation = Some(seq);
                }
            }
            EventBody::TurnFinished { answer, .. } => {
                let answer = answer.map(checked_i64).transpose()?;
                if let Some(turn) = self.turn(event, seq) {
                    (turn.answer, turn.finished) = (answer, 1);
                }
                self.session.last_finished = Some(time);
            }
            EventBody::TurnUndone { undone, .. } => self.undo(undone.as_str(), seq),
            EventBody::ApprovalRequested(request) => self.requested.push(ApprovalRow {
                id: SqlText(request.id.as_str()),
                turn: SqlText(event.turn.as_str()),
                time,
                request: serde_json::to_string(request).map_err(not_serialized)?,
                pattern: None,
                folder: None,
            }),
            EventBody::ApprovalAnswered {
                request, answer, ..
            } => self.answer(event, request.as_str(), answer.grant(), time)?,
            EventBody::RemoteAccepted { thread }
            | EventBody::RemoteReturned {
                thread: Some(thread),
                ..
            } => {
                let agent = SqlText(event.author.as_str());
                self.threads.retain(|row| row.agent != agent);
                self.ended_threads.retain(|ended| *ended != agent);
                self.threads.push(ThreadRow {
                    agent,
                    context: SqlText(&thread.context),
                    task: thread.task.as_deref().map(SqlText),
                });
            }
            EventBody::RemoteReturned { thread: None, .. } => {
                let agent = SqlText(event.author.as_str());
                match self.threads.iter_mut().find(|row| row.agent == agent) {
                    Some(row) => row.task = None,
                    None => self.ended_threads.push(agent),
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// Returns the turn that an event changes: the last one that started in this batch, or else the last one before it. Returns
    /// `None` if that turn has another id.
    fn turn(&mut self, event: &'a Event, seq: i64) -> Option<&mut TurnRow<'a>> {
        let turn = SqlText(event.turn.as_str());
        if let Some(last) = self.started.last_mut() {
            return (last.turn == turn).then_some(last);
        }
        let known = self.continued.iter().position(|row| row.turn == turn);
        let at = known.unwrap_or_else(|| {
            self.continued.push(TurnRow::new(0, turn.0, seq));
            self.continued.len() - 1
        });
        self.continued.get_mut(at)
    }

    /// Marks a turn as undone. A row that the batch already changes is changed only once.
    fn undo(&mut self, turn: &'a str, seq: i64) {
        let turn = SqlText(turn);
        let rows = self.started.iter_mut().chain(&mut self.continued);
        match rows.rev().find(|row| row.turn == turn) {
            Some(row) => row.undone = row.undone.or(Some(seq)),
            None if self.undone.iter().any(|row| row.turn == turn) => {}
            None => self.undone.push(UndoneRow { turn, seq }),
        }
    }

    fn answer(
        &mut self,
        event: &'a Event,
        id: &'a str,
        grant: Option<(&'a Text, Option<&'a Text>)>,
        time: i64,
    ) -> Result<()> {
        let id = SqlText(id);
        let Some((pattern, folder)) = grant else {
            let count = self.requested.len();
            self.requested.retain(|row| row.id != id);
            if self.requested.len() == count {
                self.answered.push(id);
            }
            return Ok(());
        };
        let (pattern, folder) = (Some(SqlText(pattern)), folder.map(|folder| SqlText(folder)));
        if let Some(row) = self.requested.iter_mut().find(|row| row.id == id) {
            row.request = without_arguments(&row.request).map_err(not_serialized)?;
            (row.time, row.pattern, row.folder) = (time, pattern, folder);
            return Ok(());
        }
        self.granted.push(ApprovalRow {
            id,
            turn: SqlText(event.turn.as_str()),
            time,
            request: String::new(),
            pattern,
            folder,
        });
        Ok(())
    }
}

impl<'a> TurnRow<'a> {
    fn new(place: usize, turn: &'a str, first_seq: i64) -> Self {
        Self {
            place,
            turn: SqlText(turn),
            first_seq,
            delegation: None,
            answer: None,
            finished: 0,
            undone: None,
        }
    }
}

/// Returns a request's JSON without its arguments. A request that is granted for later calls has them only in the log.
pub(crate) fn without_arguments(request: &str) -> serde_json::Result<String> {
    let mut request: ApprovalRequest = serde_json::from_str(request)?;
    request.arguments = Arc::new(Value::Null);
    serde_json::to_string(&request)
}

fn not_serialized(error: serde_json::Error) -> BackendError {
    BackendError::other(error.to_string())
}

/// Maximum length of a title in characters.
const TITLE_CHARS: usize = 80;

/// Returns the title of a session: the first non-empty line of its first message, truncated to [`TITLE_CHARS`].
fn title_of(message: &str) -> &str {
    let line = message.trim_start().lines().next().unwrap_or_default();
    let line = line.trim_end();
    let end = line.char_indices().nth(TITLE_CHARS);
    end.map_or(line, |(end, _)| &line[..end])
}

#[cfg(test)]
mod tests {
    use super::*;
    use lango_core::{ApprovalAnswer, Outcome, RemoteThread, SessionId, Trust, TurnId};
    use lango_testkit::session_store_contract::{LogBuilder, attachment};

    fn builder() -> LogBuilder {
        LogBuilder::new(&SessionId::from("s_1"))
    }

    #[test]
    fn events_within_a_turn_change_only_the_log() {
        let events = builder().say("test-root", "", "one").batch();
        assert!(RowChanges::from_events(&events).unwrap().is_empty());
    }

    #[test]
    fn a_request_answered_in_its_own_batch_is_dropped_or_granted_without_its_arguments() {
        let pattern = Some(Text::from("*"));
        let always = ApprovalAnswer::Always {
            pattern: "*".into(),
            folder: "/x".into(),
        };
        let events = builder()
            .request("p_1", pattern.clone())
            .request("p_2", pattern.clone())
            .request("p_3", pattern)
            .answer("p_1", ApprovalAnswer::Once)
            .answer("p_2", always.clone())
            .answer("p_0", always)
            .answer("p_00", ApprovalAnswer::Once)
            .batch();
        let changes = RowChanges::from_events(&events).unwrap();
        let [granted, waiting] = &changes.requested[..] else {
            panic!("{changes:?}");
        };
        assert_eq!((granted.id, granted.time), (SqlText("p_2"), 1005));
        assert_eq!(granted.pattern, Some(SqlText("*")));
        assert!(!granted.request.contains("content"));
        assert_eq!((waiting.id, waiting.pattern), (SqlText("p_3"), None));
        assert!(waiting.request.contains("content"));
        assert_eq!(changes.granted[0].id, SqlText("p_0"));
        assert_eq!(changes.answered, [SqlText("p_00")]);
    }

    #[test]
    fn the_last_state_of_a_remote_conversation_wins() {
        let thread = |task: Option<&str>| RemoteThread {
            context: "c".into(),
            task: task.map(Into::into),
        };
        let accepted = |task| EventBody::RemoteAccepted {
            thread: thread(task),
        };
        let events = builder()
            .add("one", "", accepted(Some("k_1")))
            .add("one", "", accepted(Some("k_2")))
            .add("two", "", accepted(None))
            .batch();
        let changes = RowChanges::from_events(&events).unwrap();
        let tasks = changes.threads.iter().map(|row| (row.agent, row.task));
        let expected = [
            (SqlText("one"), Some(SqlText("k_2"))),
            (SqlText("two"), None),
        ];
        assert_eq!(tasks.collect::<Vec<_>>(), expected);
    }

    #[test]
    fn a_turn_of_the_same_batch_is_undone_in_its_own_row_and_only_once() {
        let undo = |turn: &str| EventBody::TurnUndone {
            undone: TurnId::from(turn),
            restored: Vec::new(),
            skipped: Vec::new(),
            trust: Trust::Trusted,
        };
        let events = builder()
            .at(9)
            .end(Outcome::Cancelled)
            .add("user", "", undo("t_0"))
            .exchange("new", "answer")
            .add("user", "", undo("t_11"))
            .add("user", "", undo("t_11"))
            .add("user", "", undo("t_earlier"))
            .add("user", "", undo("t_earlier"))
            .batch();
        let changes = RowChanges::from_events(&events).unwrap();
        assert_eq!(changes.continued[0].undone, Some(10));
        assert_eq!(changes.started[0].undone, Some(14));
        let earlier = SqlText("t_earlier");
        let expected = UndoneRow {
            turn: earlier,
            seq: 16,
        };
        assert_eq!(changes.undone, [expected]);
        assert!(changes.changes_only_turns());
    }

    #[test]
    fn two_mentions_of_a_file_are_one_reference() {
        let file = attachment("a.txt", "d_1", 1);
        let events = builder().ask("one").attach(&file).ask("two").attach(&file);
        let events = events.clone().batch();
        let changes = RowChanges::from_events(&events).unwrap();
        assert_eq!(changes.attachments, [SqlText("d_1")]);
    }

    #[test]
    fn a_title_is_the_first_non_empty_line_cut_between_characters() {
        let message = "\n  \n  list the files \r\nand more";
        assert_eq!(title_of(message), "list the files");
        assert_eq!(title_of(" \n "), "");
        let message = "ä€😀".repeat(40);
        assert_eq!(title_of(&message).chars().count(), TITLE_CHARS);
        assert!(message.starts_with(title_of(&message)));
    }
}
