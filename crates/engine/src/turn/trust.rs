//! The trust label of an agent's context: trusted only if everything that the agent has seen is trusted.
//!
//! Each frame has one label. The root frame starts with the combined label of the message, the history and memory; a
//! sub-agent's frame starts with that of the agent that wrote its task. The label is lowered by untrusted results, by
//! the end of a sub-agent whose frame is untrusted, and by an untrusted instruction or tool description. It is never
//! raised. All labels are in the events, so a replayed turn has the same ones. The label of the instruction is stored
//! with each reply, because the agents may have changed when the turn is resumed. An event without a label, as in older
//! logs, is untrusted.

use super::Turn;
use super::frame::Frame;
use super::state::State;
use lango_core::{AgentName, Attachment, FrameId, Text, Trust, TurnSettings};
use std::sync::Arc;

impl State {
    /// Opens the root frame for a message with this label.
    pub(crate) fn begin(
        &mut self,
        question: &Text,
        attachments: &[Attachment],
        settings: Option<&TurnSettings>,
        message: Trust,
    ) {
        if let Some(settings) = settings {
            self.limits = settings.limits;
            self.setup = settings.into();
        }
        self.question = Arc::clone(question);
        let history = settings.map_or(Trust::Untrusted, |settings| settings.history_trust);
        let (id, agent, task) = (FrameId::root(), self.root.clone(), Arc::clone(question));
        let mut frame = Frame::new(id, agent, task, message.and(history));
        frame.attachments = attachments.to_vec();
        self.frames.push(frame);
    }

    /// Returns the label of a frame; untrusted if the frame does not exist.
    pub(crate) fn trust_of(&self, frame: &FrameId) -> Trust {
        self.frame(frame)
            .map_or(Trust::Untrusted, |frame| frame.trust)
    }

    /// Lowers the label of a frame, because its agent has seen something with this label.
    pub(crate) fn lower_trust(&mut self, frame: &FrameId, shown: Trust) {
        self.change(frame, |frame| frame.trust = frame.trust.and(shown));
    }

    /// Returns the label of a text that quotes all frames.
    pub(crate) fn trust_of_all(&self) -> Trust {
        self.frames
            .iter()
            .fold(Trust::Trusted, |trust, frame| trust.and(frame.trust))
    }
}

impl Turn {
    /// Returns the label of an agent's next reply: that of its frame, combined with that of its current instruction and
    /// tools.
    pub(super) fn trust_of_reply(&self, frame: &FrameId, agent: &AgentName) -> Trust {
        let agent = self.tree.agent(agent.as_str());
        let instruction = agent.map_or(Trust::Untrusted, |agent| agent.trust);
        self.state.trust_of(frame).and(instruction)
    }
}
