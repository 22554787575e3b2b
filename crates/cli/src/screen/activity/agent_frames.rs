//! The agents that work on a turn now: one frame per delegation, and the root's.

use super::SLOW_AFTER;
use lango_core::text::sanitize;
use lango_core::{AgentName, FrameId, Timestamp};
use std::time::Instant;

/// The frames that are open, in the order in which they started.
#[derive(Debug, Default)]
pub(super) struct AgentFrames(Vec<AgentFrame>);

/// One agent's part of the turn.
#[derive(Debug)]
pub(super) struct AgentFrame {
    pub id: FrameId,
    pub agent: AgentName,
    pub task: String,
    /// When the agent got its task; `None` for the root.
    pub delegated: Option<Timestamp>,
    pub model: Option<ModelCall>,
    /// Whether other delegations ran at the same time.
    pub is_parallel: bool,
    /// Whether another delegation at the same time went to the same agent, so that its name does not tell them apart.
    pub shares_agent: bool,
    /// Whether the agent's answer goes straight to the user.
    pub is_answer: bool,
    /// The number of calls that wait for an approval.
    pub waiting: usize,
    /// Since when, if there are any.
    waits_since: Timestamp,
    /// How long, in milliseconds, the agent has waited for the user.
    waited_ms: u64,
}

/// A running model call.
#[derive(Debug)]
pub(super) struct ModelCall {
    pub model: String,
    pub started: Instant,
    /// When a plain screen prints the next line about it.
    pub next_notice: Instant,
    pub bytes: usize,
}

impl AgentFrames {
    pub(super) fn clear(&mut self) {
        self.0.clear();
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &AgentFrame> {
        self.0.iter()
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut AgentFrame> {
        self.0.iter_mut()
    }

    /// Returns the frames below the root.
    pub(super) fn delegated(&self) -> impl Iterator<Item = &AgentFrame> {
        self.0.iter().filter(|frame| !frame.id.is_root())
    }

    /// Returns the frame with this id, which starts now if it is not open.
    pub(super) fn enter(&mut self, id: &FrameId, agent: &AgentName) -> &mut AgentFrame {
        let index = self.0.iter().position(|frame| frame.id == *id);
        let index = index.unwrap_or_else(|| {
            self.0.push(AgentFrame::new(id, agent));
            self.0.len() - 1
        });
        &mut self.0[index]
    }

    pub(super) fn find(&mut self, id: &FrameId) -> Option<&mut AgentFrame> {
        self.0.iter_mut().find(|frame| frame.id == *id)
    }

    pub(super) fn remove(&mut self, id: &FrameId) -> Option<AgentFrame> {
        let index = self.0.iter().position(|frame| frame.id == *id)?;
        Some(self.0.remove(index))
    }

    /// Marks the frames that work at the same time, after a delegation to this agent.
    pub(super) fn mark_parallel(&mut self, agent: &AgentName) {
        if self.delegated().count() < 2 {
            return;
        }
        let to_agent = self.delegated().filter(|frame| frame.agent == *agent);
        let shares_agent = to_agent.count() > 1;
        for frame in self.0.iter_mut().filter(|frame| !frame.id.is_root()) {
            frame.is_parallel = true;
            frame.shares_agent |= shares_agent && frame.agent == *agent;
        }
    }
}

impl AgentFrame {
    fn new(id: &FrameId, agent: &AgentName) -> Self {
        Self {
            id: id.clone(),
            agent: agent.clone(),
            task: String::new(),
            delegated: None,
            model: None,
            is_parallel: false,
            shares_agent: false,
            is_answer: id.is_root(),
            waiting: 0,
            waits_since: Timestamp::default(),
            waited_ms: 0,
        }
    }

    /// Counts a call that waits for an approval.
    pub(super) fn start_waiting(&mut self, now: Timestamp) {
        if self.waiting == 0 {
            self.waits_since = now;
        }
        self.waiting += 1;
    }

    /// Counts a call whose approval was answered.
    pub(super) fn stop_waiting(&mut self, now: Timestamp) {
        self.waiting = self.waiting.saturating_sub(1);
        if self.waiting == 0 {
            self.waited_ms += now.0.saturating_sub(self.waits_since.0);
        }
    }

    /// Returns when the agent got its task, moved forward by the time in which it waited for the user; `None` for the
    /// root.
    pub(super) fn started_work(&self) -> Option<Timestamp> {
        let delegated = self.delegated?;
        Some(Timestamp(delegated.0 + self.waited_ms))
    }
}

impl ModelCall {
    /// Returns a call of this model that starts now.
    pub(super) fn start(model: &str) -> Self {
        let started = Instant::now();
        Self {
            model: sanitize(model).into_owned(),
            started,
            next_notice: started + SLOW_AFTER,
            bytes: 0,
        }
    }
}
