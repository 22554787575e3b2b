//! What an agent may call next, and when it must conclude.

use super::Turn;
use super::budget::Allowance;
use super::frame::Frame;
use crate::instruction::Notice;
use crate::tree::Mode;
use lango_core::Limit;

/// What a model is offered, and told, in one request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Offer {
    pub delegate: bool,
    pub tools: bool,
    /// Why it is offered less than usual.
    pub notice: Option<Notice>,
    /// The limit behind that.
    pub limit: Option<Limit>,
}

impl Turn {
    /// Replies in a row with calls that cannot run, after which an agent must conclude.
    const FAULTY_REPLIES: u32 = 3;
    /// Replies with unknown agent names, after which delegation is withdrawn.
    const UNKNOWN_AGENT_REPLIES: u32 = 2;

    /// What a frame that waits for its model is offered; nothing if no model call is left for it.
    pub(super) fn offer(&self, frame: &Frame) -> Option<Offer> {
        let conclude = |notice, limit| {
            Some(Offer {
                notice: Some(notice),
                limit,
                ..Offer::default()
            })
        };
        match self.allowance(frame) {
            (Allowance::None, _) => return None,
            (Allowance::Last, limit) => return conclude(Notice::LastCall, Some(limit)),
            (Allowance::More, _) => {}
        }
        if frame.repetition.found {
            return conclude(Notice::Repetition, None);
        }
        if frame.id.is_root() && self.state.unknown_agent_replies >= Self::UNKNOWN_AGENT_REPLIES {
            return conclude(Notice::UnknownAgents, None);
        }
        if frame.faulty_replies >= Self::FAULTY_REPLIES {
            return conclude(Notice::FaultyCalls, None);
        }
        Some(self.open_offer(frame))
    }

    fn open_offer(&self, frame: &Frame) -> Offer {
        let mut offer = Offer::default();
        let holds_tools = self
            .tree
            .agent(frame.agent.as_str())
            .is_some_and(|agent| !agent.tools.is_empty());
        if holds_tools {
            offer.tools = self.state.tool_calls < self.state.limits.tool_calls;
            if !offer.tools {
                (offer.notice, offer.limit) =
                    (Some(Notice::ToolCallsSpent), Some(Limit::ToolCalls));
            }
        }
        if frame.id.is_root() && self.tree.mode == Mode::Multi {
            let anyone_left = self.tree.live(&self.state.refused).next().is_some();
            if self.state.rounds >= self.state.limits.rounds {
                (offer.notice, offer.limit) = (Some(Notice::RoundsSpent), Some(Limit::Rounds));
            } else if anyone_left {
                offer.delegate = true;
            } else if !self.state.refused.is_empty() {
                offer.notice = Some(Notice::EveryoneRefused);
            }
        }
        offer
    }
}
