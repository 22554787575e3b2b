//! The budget of a frame: how many model calls are left for it, by number, tokens and money.
//!
//! The frames of a turn share all three budgets. A frame may only spend what the frames ahead of it in the queue and
//! the orchestrator, which must answer at the end, do not need. Frames that wait for their model are served in the
//! order in which they started to wait, so no later call takes the budget of an earlier one. Tokens and money are
//! reserved before a call, by an estimate of the request. If they are limited, one model is called at a time, so a turn
//! can exceed the limit only by the answer of one call.

use super::Turn;
use super::frame::Frame;
use super::state::State;
use lango_core::Limit;

/// The number of model calls left for a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Allowance {
    None,
    /// One call, which must be the final one.
    Last,
    More,
}

impl Turn {
    /// Returns the frames whose model may be called now if they have an allowance.
    pub(super) fn ready_frames(&self) -> Vec<&Frame> {
        let limits = &self.state.limits;
        if limits.tokens.is_none() && limits.cost_micros.is_none() {
            let frames = self.state.frames.iter();
            return frames.filter(|frame| frame.awaits_model()).collect();
        }
        self.state.first_in_queue().into_iter().collect()
    }

    /// Returns what is left for a frame that waits for its model, and the tightest limit.
    pub(super) fn allowance(&self, frame: &Frame) -> (Allowance, Limit) {
        let limits = &self.state.limits;
        let calls = (self.calls_left(frame), Limit::ModelCalls);
        let tokens = limits.tokens.map(|most| {
            let spent = Some(self.state.usage.total());
            let unchanged = |_: &Frame, tokens: u64| Some(tokens);
            (
                self.allowance_under(frame, most, spent, unchanged),
                Limit::Tokens,
            )
        });
        let cost = limits.cost_micros.map(|most| {
            let sent = |frame: &Frame, tokens: u64| {
                let price = self.state.setup.price_of(&frame.agent);
                price.map(|price| price.max_prompt_cost(tokens))
            };
            (
                self.allowance_under(frame, most, self.state.cost_micros, sent),
                Limit::Cost,
            )
        });
        let all = [Some(calls), tokens, cost].into_iter().flatten();
        all.min_by_key(|(allowance, _)| *allowance).unwrap_or(calls)
    }

    /// Whether this limit is 0, so that no call is allowed at all.
    pub(super) fn is_zero(&self, limit: Limit) -> bool {
        let limits = &self.state.limits;
        match limit {
            Limit::ModelCalls => limits.model_calls == 0,
            Limit::Tokens => limits.tokens == Some(0),
            Limit::Cost => limits.cost_micros == Some(0),
            Limit::Rounds | Limit::ToolCalls | Limit::Time => false,
        }
    }

    fn calls_left(&self, frame: &Frame) -> Allowance {
        let left = self.state.limits.model_calls;
        let left = left.saturating_sub(self.state.model_calls);
        // Calls that were lost in crashes never use up the last one, which is for the answer.
        let left = left
            .saturating_sub(self.state.lost_model_calls)
            .max(left.min(1));
        if may_spend_last_call(frame) {
            return match left {
                0 => Allowance::None,
                1 => Allowance::Last,
                _ => Allowance::More,
            };
        }
        let left = usize::try_from(left.saturating_sub(1)).unwrap_or(usize::MAX);
        let frames = || self.state.frames.iter();
        let ahead = frames().filter(|other| is_ahead_of(other, frame)).count();
        let open = frames()
            .filter(|other| other.is_open() && !other.id.is_root() && !other.is_remote)
            .count();
        match () {
            () if ahead >= left => Allowance::None,
            () if open >= left => Allowance::Last,
            () => Allowance::More,
        }
    }

    /// Computes the allowance under one limit. `price` converts the tokens of a frame's request into the limited unit,
    /// or returns `None` if the price is unknown. Then the allowance is [`Allowance::None`], because a call of unknown
    /// cost must not be made.
    fn allowance_under(
        &self,
        frame: &Frame,
        most: u64,
        spent: Option<u64>,
        price: impl Fn(&Frame, u64) -> Option<u64>,
    ) -> Allowance {
        let need_of = |frame: &Frame, until| price(frame, self.estimated_tokens(frame, until));
        let (Some(spent), Some(need)) = (spent, need_of(frame, u32::MAX)) else {
            return Allowance::None;
        };
        let root = self
            .state
            .frames
            .first()
            .filter(|_| !may_spend_last_call(frame));
        // A result that arrives during a model call must not revoke the allowance of that call.
        let reserved = root.and_then(|root| need_of(root, self.state.first_since));
        let reserved = reserved.unwrap_or(0);
        let left = most.saturating_sub(spent).saturating_sub(reserved);
        match () {
            () if need >= left => Allowance::None,
            () if left - need <= need => Allowance::Last,
            () => Allowance::More,
        }
    }
}

impl State {
    /// Returns the frame that has waited longest for its model.
    fn first_in_queue(&self) -> Option<&Frame> {
        let waiting = self.frames.iter().filter(|frame| frame.awaits_model());
        waiting.min_by_key(|frame| (frame.waiting_since, &frame.id))
    }

    /// Records since when the current first frame has been first in the queue.
    pub(super) fn track_first_in_queue(&mut self) {
        let first = self.first_in_queue();
        let first = first.map(|frame| (frame.id.clone(), frame.waiting_since));
        if first != self.first {
            self.first = first;
            self.first_since = self.events;
        }
    }
}

/// Whether a frame may spend the last call. Only the root may, and a frame that answers the user directly. While one of
/// these waits for its model, no other frame does.
fn may_spend_last_call(frame: &Frame) -> bool {
    frame.id.is_root() || frame.finish
}

fn is_ahead_of(other: &Frame, frame: &Frame) -> bool {
    other.awaits_model() && (other.waiting_since, &other.id) < (frame.waiting_since, &frame.id)
}
