//! The turn: a state machine that decides everything and performs nothing.
//!
//! [`Turn::ready`] returns the steps that can be performed now; it is a pure function of the state. The result of a
//! step goes into [`Turn::accept`], which decides what follows and returns the events to store. Only [`State::evolve`]
//! changes the state, and it sees only the event. So replaying a turn's events restores exactly the state that the live
//! turn had.
//!
//! Each file has one part of the rules: `replies` handles replies of models, `calls` their calls, `offer` what a model
//! may call next and when it must finish, `ending` the end of the turn, `resume` continuing after a crash, `restored`
//! continuing after a restore from a backup, `request` the contents of model requests, `setup` the settings of all
//! requests, `printed` the output of calls that were stopped, `structured` answers with a schema, `trust` the trust label of
//! an agent's context.

mod approvals;
mod attachments;
mod budget;
mod calls;
mod cut_off;
mod effects;
mod ending;
mod frame;
mod offer;
mod printed;
mod repetition;
mod replies;
mod request;
mod request_size;
mod restored;
mod results;
mod resume;
mod setup;
mod sites;
mod state;
mod steps;
mod structured;
mod trust;

use crate::gate::ApprovalRules;
use crate::history::History;
use crate::mode_switch::ModeSwitch;
use crate::tree::Tree;
pub(crate) use ending::failure_notice;
use lango_core::{
    AgentName, Event, EventBody, FrameId, Limits, Outcome, SessionId, Text, Timestamp, TurnId,
    TurnSettings, UserInput,
};
use offer::Offer;
pub use printed::PrintedOutput;
pub(crate) use printed::{end_of_lines, stopped_result};
pub(crate) use request_size::{RequestSpace, message_bytes, tokens, without_files};
use state::State;
use std::sync::Arc;
pub(crate) use steps::StepKey;
pub use steps::{ModelStep, PartialReply, RemoteStep, ToolStep, TurnInput, TurnStep};

/// One user input and everything up to its answer, without I/O.
pub struct Turn {
    tree: Arc<Tree>,
    session: SessionId,
    id: TurnId,
    history: Arc<History>,
    rules: Arc<ApprovalRules>,
    mode: ModeSwitch,
    state: State,
    next_seq: u64,
    now: Timestamp,
    outbox: Vec<Event>,
}

/// What a turn needs to start.
#[derive(Debug, Clone)]
pub struct TurnStart {
    pub session: SessionId,
    pub turn: TurnId,
    /// The `seq` of the turn's first event.
    pub first_seq: u64,
    /// The earlier turns that the agents may see.
    pub history: Arc<History>,
    /// The rules that allow calls, deny them, or require approval.
    pub rules: Arc<ApprovalRules>,
    /// The permission mode, which can change during the turn.
    pub mode: ModeSwitch,
}

impl Turn {
    /// Starts a turn. The returned events start with the user's message. Its attachments must already be stored.
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
        turn.end_exhausted_frames();
        let events = std::mem::take(&mut turn.outbox);
        (turn, events)
    }

    /// Restores a turn from its events.
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
            mode: start.mode,
            state,
            next_seq: start.first_seq,
            now: Timestamp::default(),
            outbox: Vec::new(),
        }
    }

    /// Processes the result of a step or an external event, and returns the events to store. Ignores everything after
    /// the end of the turn.
    pub fn accept(&mut self, input: TurnInput, now: Timestamp) -> Vec<Event> {
        if self.outcome().is_some() {
            return Vec::new();
        }
        self.now = now;
        match input {
            TurnInput::ModelReplied {
                step,
                reply,
                model,
                inspections,
            } => self.model_replied(&step, reply, &model, inspections),
            TurnInput::ModelFailed { step, error } => self.model_failed(&step, &error),
            TurnInput::ToolReturned {
                step,
                status,
                output,
                trust,
                attachments,
            } => self.tool_returned(&step, status, output, trust, attachments),
            TurnInput::Answered {
                request,
                answer,
                by,
            } => self.answered(&request, &answer, &by),
            TurnInput::RemoteAccepted { step, thread } => self.remote_accepted(&step, thread),
            TurnInput::RemoteReturned {
                step,
                result,
                attachments,
            } => self.remote_returned(&step, result, attachments),
            TurnInput::Cancelled { partial, printed } => self.cancel(partial, &printed),
            TurnInput::TimeSpent { printed } => self.time_spent(&printed),
            TurnInput::Interrupted => self.interrupt(),
            TurnInput::Resumed => self.resume(),
            TurnInput::Expired => self.expire(),
            TurnInput::Restored => self.restored(),
        }
        self.end_exhausted_frames();
        std::mem::take(&mut self.outbox)
    }

    /// Returns the outcome if the turn has ended.
    pub fn outcome(&self) -> Option<&Outcome> {
        self.state.outcome.as_ref()
    }

    pub fn id(&self) -> &TurnId {
        &self.id
    }

    pub fn session(&self) -> &SessionId {
        &self.session
    }

    /// Returns the task of the sub-agent whose answer went straight to the user.
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

    /// Returns the limits of the turn.
    pub fn limits(&self) -> &Limits {
        &self.state.limits
    }

    /// Returns how long the turn has been active, in milliseconds. Waiting for the user does not count.
    pub fn active_ms(&self) -> u64 {
        self.state.active_ms
    }

    /// Returns the `seq` of the next event.
    pub fn next_seq(&self) -> u64 {
        self.next_seq
    }

    /// Creates an event, applies it to the state, and queues it to be stored.
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

    /// Emits an event about the turn, with the root as its author.
    fn emit_as_root(&mut self, frame: FrameId, body: EventBody) -> u64 {
        self.emit(frame, self.tree.root.name.clone(), body)
    }
}

impl PartialEq for Turn {
    /// Turns are equal if they would make the same decisions.
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
