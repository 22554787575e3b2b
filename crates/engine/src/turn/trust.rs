//! The trust label of an agent's context: trusted only if everything the agent was shown is.
//!
//! Each frame carries one label. It starts with the label of the message, of the earlier turns and of memory; a sub-agent's
//! with that of the agent that wrote its task. It is lowered by each result from outside, by the end of a sub-agent that
//! was shown something from outside, and by an instruction or a tool that describes itself in words from outside. It is
//! never raised. All of it is in the events, so a replayed turn has the same labels: the instruction's part is stored with
//! each reply, because the agents may be others when the turn goes on. An event without a label, as older logs have them,
//! is untrusted.

use super::Turn;
use super::frame::Frame;
use super::state::State;
use lango_core::{AgentName, Attachment, FrameId, Text, Trust, TurnSettings};
use std::sync::Arc;

impl State {
    /// Opens the root's frame over a message with this label.
    pub fn begin(
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

    /// The label of a frame; one that does not exist is untrusted.
    pub fn trust_of(&self, frame: &FrameId) -> Trust {
        self.frame(frame)
            .map_or(Trust::Untrusted, |frame| frame.trust)
    }

    /// Notes that the agent of a frame was shown something with this label.
    pub fn lower_trust(&mut self, frame: &FrameId, shown: Trust) {
        self.change(frame, |frame| frame.trust = frame.trust.and(shown));
    }

    /// The label of a text that quotes every frame.
    pub fn trust_of_all(&self) -> Trust {
        self.frames
            .iter()
            .fold(Trust::Trusted, |trust, frame| trust.and(frame.trust))
    }
}

impl Turn {
    /// The label of what an agent says next: all that its frame was shown, and its instruction and tools as they are now.
    pub(super) fn trust_of_reply(&self, frame: &FrameId, agent: &AgentName) -> Trust {
        let agent = self.tree.agent(agent.as_str());
        let instruction = agent.map_or(Trust::Untrusted, |agent| agent.trust);
        self.state.trust_of(frame).and(instruction)
    }
}
