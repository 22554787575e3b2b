//! Decides what an agent may call next, and when it must finish.

use super::Turn;
use super::budget::Allowance;
use super::frame::Frame;
use crate::instruction::Notice;
use crate::tree::TreeMode;
use lango_core::Limit;

/// The functions and the notice in one request to a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Offer {
    pub delegate: bool,
    pub tools: bool,
    /// Why the model is offered less than usual.
    pub notice: Option<Notice>,
    /// The limit that caused the notice.
    pub limit: Option<Limit>,
}

impl Turn {
    /// The number of consecutive replies with calls that cannot run, after which an agent must finish.
    const FAULTY_REPLIES: u32 = 3;
    /// The number of replies with unknown agents, after which `delegate` is no longer offered.
    const UNKNOWN_AGENT_REPLIES: u32 = 2;

    /// Returns the offer for a frame that waits for its model; `None` if no model call is left for it.
    pub(super) fn offer(&self, frame: &Frame) -> Option<Offer> {
        let finish = |notice, limit| {
            Some(Offer {
                notice: Some(notice),
                limit,
                ..Offer::default()
            })
        };
        match self.allowance(frame) {
            (Allowance::None, _) => return None,
            (Allowance::Last, limit) => return finish(Notice::LastCall, Some(limit)),
            (Allowance::More, _) => {}
        }
        if frame.repetition.found {
            return finish(Notice::Repetition, None);
        }
        if frame.id.is_root() && self.state.unknown_agent_replies >= Self::UNKNOWN_AGENT_REPLIES {
            return finish(Notice::UnknownAgents, None);
        }
        if frame.faulty_replies >= Self::FAULTY_REPLIES {
            return finish(Notice::FaultyCalls, None);
        }
        Some(self.usual_offer(frame))
    }

    fn usual_offer(&self, frame: &Frame) -> Offer {
        let mut offer = Offer::default();
        let has_tools = self
            .tree
            .agent(frame.agent.as_str())
            .is_some_and(|agent| !agent.tools.is_empty());
        if has_tools {
            offer.tools = self.state.tool_calls < self.state.limits.tool_calls;
            if !offer.tools {
                (offer.notice, offer.limit) =
                    (Some(Notice::ToolCallsSpent), Some(Limit::ToolCalls));
            }
        }
        if frame.id.is_root() && self.tree.mode == TreeMode::Multi {
            let has_available_agent = self
                .tree
                .available_agents(&self.state.rejected_by)
                .next()
                .is_some();
            if self.state.rounds >= self.state.limits.rounds {
                (offer.notice, offer.limit) = (Some(Notice::RoundsSpent), Some(Limit::Rounds));
            } else if has_available_agent {
                offer.delegate = true;
            } else if !self.state.rejected_by.is_empty() {
                offer.notice = Some(Notice::AllRejected);
            }
        }
        offer
    }
}
