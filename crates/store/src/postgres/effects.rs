//! What follows from a batch of events on the tables beside the log, worked out before anything is sent.
//!
//! A statement does not see what another part of it writes, so events of one batch that act on each other (a turn that
//! begins and ends, a request that is answered) are joined here into their last state.

use super::failure::Failure;
use super::text::Words;
use crate::title::title_of;
use lango_core::{ApprovalRequest, Event, EventBody, Text};
use serde_json::Value;
use std::sync::Arc;

/// Rows to write, column by column as the statement takes them.
#[derive(Debug, Default)]
pub(super) struct Effects<'a> {
    /// Turns that begin here.
    pub began: Turns<'a>,
    /// What happens to the turn that was there before, if it is the one that is named.
    pub went_on: Turns<'a>,
    /// What the session is called, if this is its first question, and when that was asked.
    pub title: Option<Words<'a>>,
    pub first_asked: Option<i64>,
    /// When a turn last ended here.
    pub last_ended: Option<i64>,
    /// Requests that wait, or were answered for calls to come at once.
    pub asked: Asked<'a>,
    /// Earlier requests that were answered for calls to come.
    pub granted: Granted<'a>,
    /// Earlier requests that were answered for themselves alone.
    pub answered: Vec<Words<'a>>,
    /// Where conversations with remote agents stand.
    pub called: Called<'a>,
    /// Remote agents whose earlier task is over.
    pub returned: Vec<Words<'a>>,
    /// The digests that events refer to, each once.
    pub attachments: Vec<Words<'a>>,
}

/// Rows of `turns`.
#[derive(Debug, Default)]
pub(super) struct Turns<'a> {
    pub turn: Vec<Words<'a>>,
    pub seq: Vec<i64>,
    pub delegation: Vec<Option<i64>>,
    pub answer: Vec<Option<i64>>,
    pub finished: Vec<i64>,
}

impl<'a> Turns<'a> {
    fn push(&mut self, turn: &'a str, seq: i64) {
        self.turn.push(Words(turn));
        self.seq.push(seq);
        self.delegation.push(None);
        self.answer.push(None);
        self.finished.push(0);
    }

    /// The place of the row that events of this turn act on: the last one, if it is theirs.
    fn last(&self, turn: &str) -> Option<usize> {
        let last = self.turn.len().checked_sub(1)?;
        (self.turn[last].0 == turn).then_some(last)
    }
}

/// Rows of `approvals` to insert.
#[derive(Debug, Default)]
pub(super) struct Asked<'a> {
    pub id: Vec<Words<'a>>,
    pub turn: Vec<Words<'a>>,
    pub time: Vec<i64>,
    pub request: Vec<String>,
    pub pattern: Vec<Option<Words<'a>>>,
    pub folder: Vec<Option<Words<'a>>>,
    requests: Vec<&'a ApprovalRequest>,
}

impl Asked<'_> {
    fn remove(&mut self, at: usize) {
        self.id.remove(at);
        self.turn.remove(at);
        self.time.remove(at);
        self.request.remove(at);
        self.pattern.remove(at);
        self.folder.remove(at);
        self.requests.remove(at);
    }
}

/// Rows of `approvals` to change.
#[derive(Debug, Default)]
pub(super) struct Granted<'a> {
    pub id: Vec<Words<'a>>,
    pub time: Vec<i64>,
    pub pattern: Vec<Words<'a>>,
    pub folder: Vec<Option<Words<'a>>>,
    /// What was asked for, which is in the database, as it is kept from now on.
    pub request: Vec<String>,
}

/// Rows of `remote_threads`.
#[derive(Debug, Default)]
pub(super) struct Called<'a> {
    pub agent: Vec<Words<'a>>,
    pub context: Vec<Words<'a>>,
    pub task: Vec<Option<Words<'a>>>,
}

impl<'a> Effects<'a> {
    /// Of a batch of one session.
    pub(super) fn of(events: &'a [Event]) -> Result<Self, Failure> {
        let mut effects = Self::default();
        for event in events {
            effects.note(event)?;
        }
        Ok(effects)
    }

    fn note(&mut self, event: &'a Event) -> Result<(), Failure> {
        let (seq, time) = (stored(event.seq)?, stored(event.time.0)?);
        for attachment in event.body.attachments() {
            if !self
                .attachments
                .iter()
                .any(|known| known.0 == &*attachment.digest)
            {
                self.attachments.push(Words(&attachment.digest));
            }
        }
        match &event.body {
            EventBody::UserMessage { text, .. } => {
                if self.began.turn.is_empty() {
                    self.title = Some(Words(title_of(text)));
                    self.first_asked = Some(time);
                }
                self.began.push(event.turn.as_str(), seq);
            }
            EventBody::AgentDelegated { finish: true, .. } => {
                if let Some((turns, at)) = self.turn(event, seq) {
                    turns.delegation[at] = Some(seq);
                }
            }
            EventBody::TurnFinished { answer, .. } => {
                let answer = answer.map(stored).transpose()?;
                if let Some((turns, at)) = self.turn(event, seq) {
                    (turns.answer[at], turns.finished[at]) = (answer, 1);
                }
                self.last_ended = Some(time);
            }
            EventBody::ApprovalRequested(request) => {
                self.asked.id.push(Words(request.id.as_str()));
                self.asked.turn.push(Words(event.turn.as_str()));
                self.asked.time.push(time);
                self.asked.request.push(json(request)?);
                self.asked.pattern.push(None);
                self.asked.folder.push(None);
                self.asked.requests.push(request);
            }
            EventBody::ApprovalAnswered {
                request, answer, ..
            } => self.answer(request.as_str(), answer.grant(), time)?,
            EventBody::RemoteAccepted { thread }
            | EventBody::RemoteReturned {
                thread: Some(thread),
                ..
            } => {
                self.forget_call(event.author.as_str());
                self.called.agent.push(Words(event.author.as_str()));
                self.called.context.push(Words(&thread.context));
                self.called.task.push(thread.task.as_deref().map(Words));
            }
            EventBody::RemoteReturned { thread: None, .. } => {
                let agent = event.author.as_str();
                match self.call(agent) {
                    Some(at) => self.called.task[at] = None,
                    None => self.returned.push(Words(agent)),
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// The row that an event of a turn acts on: of a turn that began here, or of the one before.
    fn turn(&mut self, event: &'a Event, seq: i64) -> Option<(&mut Turns<'a>, usize)> {
        let turn = event.turn.as_str();
        if !self.began.turn.is_empty() {
            let at = self.began.last(turn)?;
            return Some((&mut self.began, at));
        }
        let earlier = &mut self.went_on;
        let known = earlier.turn.iter().position(|known| known.0 == turn);
        let at = known.unwrap_or_else(|| {
            earlier.push(turn, seq);
            earlier.turn.len() - 1
        });
        Some((earlier, at))
    }

    fn answer(
        &mut self,
        id: &'a str,
        grant: Option<(&'a Text, Option<&'a Text>)>,
        time: i64,
    ) -> Result<(), Failure> {
        let at = self.asked.id.iter().position(|asked| asked.0 == id);
        match (at, grant) {
            (Some(at), None) => self.asked.remove(at),
            (Some(at), Some((pattern, folder))) => {
                self.asked.request[at] = without_arguments(self.asked.requests[at].clone())?;
                self.asked.time[at] = time;
                self.asked.pattern[at] = Some(Words(pattern));
                self.asked.folder[at] = folder.map(|folder| Words(folder));
            }
            (None, None) => self.answered.push(Words(id)),
            (None, Some((pattern, folder))) => {
                self.granted.id.push(Words(id));
                self.granted.time.push(time);
                self.granted.pattern.push(Words(pattern));
                self.granted.folder.push(folder.map(|folder| Words(folder)));
                self.granted.request.push(String::new());
            }
        }
        Ok(())
    }

    fn call(&self, agent: &str) -> Option<usize> {
        self.called
            .agent
            .iter()
            .position(|called| called.0 == agent)
    }

    /// A later word on where a conversation stands takes the place of an earlier one.
    fn forget_call(&mut self, agent: &str) {
        if let Some(at) = self.call(agent) {
            self.called.agent.remove(at);
            self.called.context.remove(at);
            self.called.task.remove(at);
        }
        self.returned.retain(|returned| returned.0 != agent);
    }
}

/// A request as it is kept once it is granted for calls to come: what it was about in particular is in the log.
pub(super) fn without_arguments(mut request: ApprovalRequest) -> Result<String, Failure> {
    request.arguments = Arc::new(Value::Null);
    json(&request)
}

fn json(request: &ApprovalRequest) -> Result<String, Failure> {
    serde_json::to_string(request).map_err(|error| Failure::other(error.to_string()))
}

/// A number as PostgreSQL stores it, which has one bit less.
pub(super) fn stored(number: u64) -> Result<i64, Failure> {
    i64::try_from(number)
        .map_err(|_| Failure::other(format!("{number} is more than the database can hold")))
}
