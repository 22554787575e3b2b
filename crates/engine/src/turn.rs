//! A turn decides everything and performs nothing.
//!
//! [`Turn::ready`] gives the steps that can be taken now, and is a pure function of the state. What comes of a step goes
//! into [`Turn::accept`], which decides what follows and gives the events to store. Only [`State::evolve`] changes the
//! state, and it looks at nothing but the event: so replaying a turn's events gives the state that living it gave.
//!
//! The rules, one file each: `replies` judges what a model said, `calls` what it called, `offer` what it may call next and
//! when it must conclude, `ending` how the turn ends, `resume` how it goes on after a crash, `restored` after a restore, `request` what the model is
//! sent, `setup` what holds for all requests, `structured` which answers satisfy the schema of the turn, `trust` which trust
//! label an agent's context has.

mod approvals;
mod attachments;
mod budget;
mod calls;
mod deeds;
mod ending;
mod frame;
mod offer;
mod repetition;
mod replies;
mod request;
mod restored;
mod results;
mod resume;
mod room;
mod setup;
mod sites;
mod state;
mod steps;
mod structured;
mod trust;

use crate::gate::Rules;
use crate::history::LookBack;
use crate::tree::Tree;
use lango_core::{
    AgentName, Event, EventBody, FrameId, Limits, Outcome, SessionId, Text, Timestamp, TurnId,
    TurnSettings, UserInput,
};
use offer::Offer;
pub(crate) use room::{Room, message_bytes, tokens, without_files};
use state::State;
use std::sync::Arc;
pub use steps::{Input, ModelStep, RemoteStep, Step, StepKey, ToolStep};

/// One input of the user and all that follows until the answer, without I/O.
pub struct Turn {
    tree: Arc<Tree>,
    session: SessionId,
    id: TurnId,
    history: Arc<LookBack>,
    rules: Arc<Rules>,
    state: State,
    next_seq: u64,
    now: Timestamp,
    outbox: Vec<Event>,
}

/// What a turn begins with.
#[derive(Debug, Clone)]
pub struct TurnStart {
    /// The session.
    pub session: SessionId,
    /// The new turn.
    pub turn: TurnId,
    /// The `seq` of its first event.
    pub first_seq: u64,
    /// Earlier turns, as far as they are shown to agents.
    pub history: Arc<LookBack>,
    /// Which calls run, which are asked for, which never run.
    pub rules: Arc<Rules>,
}

impl Turn {
    /// Begins a turn. The events hold at least the user's message. Its files are those that are stored.
    pub fn begin(
        tree: Arc<Tree>,
        start: TurnStart,
        question: UserInput,
        settings: TurnSettings,
        now: Timestamp,
    ) -> (Self, Vec<Event>) {
        let mut turn = Self::empty(tree, start);
        turn.now = now;
        let body = EventBody::UserMessage {
            text: question.text,
            origin: Some(question.origin),
            attachments: turn.name_attachments(question.attachments),
            settings: Some(Box::new(settings)),
        };
        turn.emit(FrameId::root(), AgentName::user(), body);
        turn.settle();
        let events = std::mem::take(&mut turn.outbox);
        (turn, events)
    }

    /// The turn that these events tell of.
    pub fn replay(tree: Arc<Tree>, start: TurnStart, events: &[Event]) -> Self {
        let mut turn = Self::empty(tree, start);
        for event in events {
            turn.state.evolve(event);
            turn.next_seq = event.seq + 1;
            turn.now = event.time;
        }
        turn
    }

    fn empty(tree: Arc<Tree>, start: TurnStart) -> Self {
        let state = State::new(tree.root.name.clone(), Limits::default());
        Self {
            tree,
            session: start.session,
            id: start.turn,
            history: start.history,
            rules: start.rules,
            state,
            next_seq: start.first_seq,
            now: Timestamp::default(),
            outbox: Vec::new(),
        }
    }

    /// Takes what came of a step, or what happened to the turn, and gives the events to store. What comes after the end
    /// is ignored.
    pub fn accept(&mut self, input: Input, now: Timestamp) -> Vec<Event> {
        if self.outcome().is_some() {
            return Vec::new();
        }
        self.now = now;
        match input {
            Input::ModelReplied {
                step,
                reply,
                model,
                inspections,
            } => self.model_replied(&step, reply, &model, inspections),
            Input::ModelFailed { step, error } => self.model_failed(&step, &error),
            Input::ToolReturned {
                step,
                status,
                output,
                trust,
                attachments,
            } => self.tool_returned(&step, status, output, trust, attachments),
            Input::Answered {
                request,
                answer,
                by,
            } => self.answered(&request, &answer, &by),
            Input::RemoteAccepted { step, thread } => self.remote_accepted(&step, thread),
            Input::RemoteReturned {
                step,
                result,
                attachments,
            } => self.remote_returned(&step, result, attachments),
            Input::Cancelled => self.cancel(),
            Input::TimeSpent => self.time_spent(),
            Input::Interrupted => self.interrupt(),
            Input::Resumed => self.resume(),
            Input::Expired => self.expire(),
            Input::Restored => self.restored(),
        }
        self.settle();
        std::mem::take(&mut self.outbox)
    }

    /// How the turn ended, if it has.
    pub fn outcome(&self) -> Option<&Outcome> {
        self.state.outcome.as_ref()
    }

    /// Its id.
    pub fn id(&self) -> &TurnId {
        &self.id
    }

    /// The session it belongs to.
    pub fn session(&self) -> &SessionId {
        &self.session
    }

    /// The task of the sub-agent whose answer went to the person as it was.
    pub(crate) fn task_of_answer(&self, author: &AgentName) -> Option<Text> {
        let answered =
            |frame: &&frame::Frame| frame.finish && !frame.is_open() && frame.agent == *author;
        self.state
            .frames
            .iter()
            .rev()
            .find(answered)
            .map(|frame| Arc::clone(&frame.task))
    }

    /// The limits that hold for it.
    pub fn limits(&self) -> &Limits {
        &self.state.limits
    }

    /// How long it has been at work; waiting for a person does not count.
    pub fn active_ms(&self) -> u64 {
        self.state.active_ms
    }

    /// The `seq` that its next event will have.
    pub fn next_seq(&self) -> u64 {
        self.next_seq
    }

    /// Decides one fact: it changes the state and waits to be stored.
    fn emit(&mut self, frame: FrameId, author: AgentName, body: EventBody) -> u64 {
        let event = Event {
            seq: self.next_seq,
            session: self.session.clone(),
            turn: self.id.clone(),
            frame,
            author,
            time: self.now,
            body,
        };
        self.next_seq += 1;
        self.state.evolve(&event);
        let seq = event.seq;
        self.outbox.push(event);
        seq
    }

    /// Decides a fact about the turn, which the root speaks.
    fn emit_as_root(&mut self, frame: FrameId, body: EventBody) -> u64 {
        self.emit(frame, self.tree.root.name.clone(), body)
    }
}

impl PartialEq for Turn {
    /// Two turns are the same when they would decide the same.
    fn eq(&self, other: &Self) -> bool {
        (&self.session, &self.id, self.next_seq, &self.state)
            == (&other.session, &other.id, other.next_seq, &other.state)
    }
}

impl std::fmt::Debug for Turn {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Turn")
            .field("id", &self.id)
            .field("next_seq", &self.next_seq)
            .field("state", &self.state)
            .finish()
    }
}
