//! The changes that a batch of events makes to the tables beside the log.
//!
//! [`RowChanges::of`] is pure: it maps events to rows. Events of one batch that act on each other (a turn that starts and ends, a
//! request that is answered) become one row in its last state, so that the rows can be written in any order, and in one
//! statement that does not see its own writes.

use crate::engine::text::Words;
use crate::engine::{Failure, Result, stored};
use lango_core::{ApprovalRequest, Event, EventBody, Text};
use serde::Serialize;
use serde_json::Value;
use std::sync::Arc;

/// The rows that a batch of events of one session changes.
#[derive(Debug, Default, PartialEq, Serialize)]
pub(crate) struct RowChanges<'a> {
    /// Turns that start here, in their order.
    pub started: Vec<TurnRow<'a>>,
    /// Changes of the turn that was the last one before, if it has this id.
    pub continued: Vec<TurnRow<'a>>,
    pub session: SessionChange<'a>,
    /// Requests that wait, or were granted at once for later calls.
    pub requested: Vec<ApprovalRow<'a>>,
    /// Earlier requests that were answered for later calls.
    pub granted: Vec<ApprovalRow<'a>>,
    /// Earlier requests that were answered for themselves alone.
    pub answered: Vec<Words<'a>>,
    /// Conversations with remote agents.
    pub threads: Vec<ThreadRow<'a>>,
    /// Remote agents whose earlier task has ended.
    pub ended_threads: Vec<Words<'a>>,
    /// The digests that events refer to, each once.
    pub attachments: Vec<Words<'a>>,
}

#[derive(Debug, PartialEq, Serialize)]
pub(crate) struct TurnRow<'a> {
    /// Its place among the turns that start in the batch.
    pub place: usize,
    pub turn: Words<'a>,
    pub first_seq: i64,
    pub delegation: Option<i64>,
    pub answer: Option<i64>,
    pub finished: i64,
}

/// Changes of a row of `sessions`.
#[derive(Debug, Default, PartialEq, Serialize)]
pub(crate) struct SessionChange<'a> {
    /// The title, if the first turn that starts here is the session's first, and when that was asked.
    pub title: Option<Words<'a>>,
    pub first_asked: Option<i64>,
    /// When a turn last ended here.
    pub last_finished: Option<i64>,
}

/// A row of `approvals` to insert or, for a request of an earlier batch, to change.
#[derive(Debug, PartialEq, Serialize)]
pub(crate) struct ApprovalRow<'a> {
    pub id: Words<'a>,
    pub turn: Words<'a>,
    pub time: i64,
    /// The JSON of the request; of an earlier one the log fills it in.
    pub request: String,
    pub pattern: Option<Words<'a>>,
    pub folder: Option<Words<'a>>,
}

#[derive(Debug, PartialEq, Serialize)]
pub(crate) struct ThreadRow<'a> {
    pub agent: Words<'a>,
    pub context: Words<'a>,
    pub task: Option<Words<'a>>,
}

impl<'a> RowChanges<'a> {
    pub(crate) fn of(events: &'a [Event]) -> Result<Self> {
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
    pub(crate) fn is_of_turn(&self) -> bool {
        self.requested.is_empty()
            && self.granted.is_empty()
            && self.answered.is_empty()
            && self.threads.is_empty()
            && self.ended_threads.is_empty()
            && self.attachments.is_empty()
    }

    fn add(&mut self, event: &'a Event) -> Result<()> {
        let (seq, time) = (stored(event.seq)?, stored(event.time.0)?);
        for attachment in event.body.attachments() {
            let digest = Words(&attachment.digest);
            if !self.attachments.contains(&digest) {
                self.attachments.push(digest);
            }
        }
        match &event.body {
            EventBody::UserMessage { text, .. } => {
                let place = self.started.len();
                if place == 0 {
                    self.session.title = Some(Words(title_of(text)));
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
                let answer = answer.map(stored).transpose()?;
                if let Some(turn) = self.turn(event, seq) {
                    (turn.answer, turn.finished) = (answer, 1);
                }
                self.session.last_finished = Some(time);
            }
            EventBody::ApprovalRequested(request) => self.requested.push(ApprovalRow {
                id: Words(request.id.as_str()),
                turn: Words(event.turn.as_str()),
                time,
                request: serde_json::to_string(request).map_err(unwritten)?,
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
                let agent = Words(event.author.as_str());
                self.threads.retain(|row| row.agent != agent);
                self.ended_threads.retain(|ended| *ended != agent);
                self.threads.push(ThreadRow {
                    agent,
                    context: Words(&thread.context),
                    task: thread.task.as_deref().map(Words),
                });
            }
            EventBody::RemoteReturned { thread: None, .. } => {
                let agent = Words(event.author.as_str());
                match self.threads.iter_mut().find(|row| row.agent == agent) {
                    Some(row) => row.task = None,
                    None => self.ended_threads.push(agent),
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// Returns the row that an event changes: the last turn that started here, or else the last one before, if it has this id.
    fn turn(&mut self, event: &'a Event, seq: i64) -> Option<&mut TurnRow<'a>> {
        let turn = Words(event.turn.as_str());
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

    fn answer(
        &mut self,
        event: &'a Event,
        id: &'a str,
        grant: Option<(&'a Text, Option<&'a Text>)>,
        time: i64,
    ) -> Result<()> {
        let id = Words(id);
        let Some((pattern, folder)) = grant else {
            let count = self.requested.len();
            self.requested.retain(|row| row.id != id);
            if self.requested.len() == count {
                self.answered.push(id);
            }
            return Ok(());
        };
        let (pattern, folder) = (Some(Words(pattern)), folder.map(|folder| Words(folder)));
        if let Some(row) = self.requested.iter_mut().find(|row| row.id == id) {
            row.request = without_arguments(&row.request).map_err(unwritten)?;
            (row.time, row.pattern, row.folder) = (time, pattern, folder);
            return Ok(());
        }
        self.granted.push(ApprovalRow {
            id,
            turn: Words(event.turn.as_str()),
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
            turn: Words(turn),
            first_seq,
            delegation: None,
            answer: None,
            finished: 0,
        }
    }
}

/// The JSON of a request once it is granted for later calls: its arguments are only in the log.
pub(crate) fn without_arguments(request: &str) -> serde_json::Result<String> {
    let mut request: ApprovalRequest = serde_json::from_str(request)?;
    request.arguments = Arc::new(Value::Null);
    serde_json::to_string(&request)
}

fn unwritten(error: serde_json::Error) -> Failure {
    Failure::other(error.to_string())
}

/// Maximum length of a title in characters.
const TITLE_CHARS: usize = 80;

/// Returns the title of a session with this first message: its first line that is not empty, cut between characters.
fn title_of(message: &str) -> &str {
    let line = message.trim_start().lines().next().unwrap_or_default();
    let line = line.trim_end();
    let end = line.char_indices().nth(TITLE_CHARS);
    end.map_or(line, |(end, _)| &line[..end])
}

#[cfg(test)]
mod tests {
    use super::*;
    use lango_core::{Answer, RemoteThread, SessionId};
    use lango_testkit::session_store_contract::{Sketch, attachment};

    fn sketch() -> Sketch {
        Sketch::of(&SessionId::from("s_1"))
    }

    #[test]
    fn events_within_a_turn_change_only_the_log() {
        let events = sketch().say("sketch-root", "", "one").batch();
        assert!(RowChanges::of(&events).unwrap().is_empty());
    }

    #[test]
    fn a_request_that_is_answered_at_once_is_gone_or_granted_without_its_arguments() {
        let pattern = Some(Text::from("*"));
        let always = Answer::Always {
            pattern: "*".into(),
            folder: "/x".into(),
        };
        let events = sketch()
            .request("p_1", pattern.clone())
            .request("p_2", pattern.clone())
            .request("p_3", pattern)
            .answer("p_1", Answer::Once)
            .answer("p_2", always.clone())
            .answer("p_0", always)
            .answer("p_00", Answer::Once)
            .batch();
        let changes = RowChanges::of(&events).unwrap();
        let [granted, waiting] = &changes.requested[..] else {
            panic!("{changes:?}");
        };
        assert_eq!((granted.id, granted.time), (Words("p_2"), 1005));
        assert_eq!(granted.pattern, Some(Words("*")));
        assert!(!granted.request.contains("content"));
        assert_eq!((waiting.id, waiting.pattern), (Words("p_3"), None));
        assert!(waiting.request.contains("content"));
        assert_eq!(changes.granted[0].id, Words("p_0"));
        assert_eq!(changes.answered, [Words("p_00")]);
    }

    #[test]
    fn of_a_conversation_with_a_remote_agent_the_last_state_counts() {
        let thread = |task: Option<&str>| RemoteThread {
            context: "c".into(),
            task: task.map(Into::into),
        };
        let accepted = |task| EventBody::RemoteAccepted {
            thread: thread(task),
        };
        let events = sketch()
            .add("one", "", accepted(Some("k_1")))
            .add("one", "", accepted(Some("k_2")))
            .add("two", "", accepted(None))
            .batch();
        let changes = RowChanges::of(&events).unwrap();
        let tasks = changes.threads.iter().map(|row| (row.agent, row.task));
        let expected = [(Words("one"), Some(Words("k_2"))), (Words("two"), None)];
        assert_eq!(tasks.collect::<Vec<_>>(), expected);
    }

    #[test]
    fn a_file_that_is_referred_to_twice_is_one_reference() {
        let file = attachment("a.txt", "d_1", 1);
        let events = sketch().ask("one").attach(&file).ask("two").attach(&file);
        let events = events.clone().batch();
        let changes = RowChanges::of(&events).unwrap();
        assert_eq!(changes.attachments, [Words("d_1")]);
    }

    #[test]
    fn a_title_is_the_first_line_that_has_words_cut_between_characters() {
        let message = "\n  \n  list the files \r\nand more";
        assert_eq!(title_of(message), "list the files");
        assert_eq!(title_of(" \n "), "");
        let message = "ä€😀".repeat(40);
        assert_eq!(title_of(&message).chars().count(), TITLE_CHARS);
        assert!(message.starts_with(title_of(&message)));
    }
}
