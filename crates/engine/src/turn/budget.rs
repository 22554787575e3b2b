//! How many model calls are left to a frame: by number, by tokens and by money.
//!
//! All three are shared by the frames of a turn, and a frame may only spend what those before it in the queue, and the
//! orchestrator that has to answer, leave. Frames that wait for their model are served in the order in which they began to
//! wait, so a call that was started is never overtaken by one that would have spent its place. Tokens and money are
//! reserved before a call by an estimate of what is sent, and where they are limited one model is asked at a time: a turn
//! can overshoot by one call's own answer, not by more.

use super::Turn;
use super::frame::Frame;
use super::state::State;
use lango_core::Limit;

/// How much is left to a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Allowance {
    /// No call.
    None,
    /// One call, which must conclude.
    Last,
    /// More than one.
    More,
}

impl Turn {
    /// The frames whose model can be asked now, if there is an allowance for them.
    pub(super) fn in_line(&self) -> Vec<&Frame> {
        let limits = &self.state.limits;
        if limits.tokens.is_none() && limits.cost_micros.is_none() {
            let frames = self.state.frames.iter();
            return frames.filter(|frame| frame.awaits_model()).collect();
        }
        self.state.first_in_line().into_iter().collect()
    }

    /// What is left to a frame that waits for its model, and the limit that leaves the least.
    pub(super) fn allowance(&self, frame: &Frame) -> (Allowance, Limit) {
        let limits = &self.state.limits;
        let calls = (self.calls_left(frame), Limit::ModelCalls);
        let tokens = limits.tokens.map(|most| {
            let spent = Some(self.state.usage.total());
            let as_they_are = |_: &Frame, tokens: u64| Some(tokens);
            (self.left_of(frame, most, spent, as_they_are), Limit::Tokens)
        });
        let cost = limits.cost_micros.map(|most| {
            let sent = |frame: &Frame, tokens: u64| {
                let price = self.state.setup.price_of(&frame.agent);
                price.map(|price| price.of_prompt(tokens))
            };
            (
                self.left_of(frame, most, self.state.cost_micros, sent),
                Limit::Cost,
            )
        });
        let all = [Some(calls), tokens, cost].into_iter().flatten();
        all.min_by_key(|(allowance, _)| *allowance).unwrap_or(calls)
    }

    /// Whether this limit forbids any call from the start.
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
        // What was lost in crashes never takes the last one, which is for the answer.
        let left = left
            .saturating_sub(self.state.lost_model_calls)
            .max(left.min(1));
        if may_spend_the_last(frame) {
            return match left {
                0 => Allowance::None,
                1 => Allowance::Last,
                _ => Allowance::More,
            };
        }
        let left = usize::try_from(left.saturating_sub(1)).unwrap_or(usize::MAX);
        let frames = || self.state.frames.iter();
        let ahead = frames().filter(|other| goes_before(other, frame)).count();
        let open = frames()
            .filter(|other| other.is_open() && !other.id.is_root() && !other.remote)
            .count();
        match () {
            () if ahead >= left => Allowance::None,
            () if open >= left => Allowance::Last,
            () => Allowance::More,
        }
    }

    /// `price` turns tokens that a frame sends into what is limited; nothing if nobody knows. What is not known is not spent.
    fn left_of(
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
            .filter(|_| !may_spend_the_last(frame));
        // A result that comes while a model is asked must not take back the call that was allowed.
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
    /// The frame that has waited longest for its model.
    fn first_in_line(&self) -> Option<&Frame> {
        let waiting = self.frames.iter().filter(|frame| frame.awaits_model());
        waiting.min_by_key(|frame| (frame.waiting_since, &frame.id))
    }

    /// Notes when the frame that is first in line now came to be first.
    pub(super) fn track_first_in_line(&mut self) {
        let first = self.first_in_line();
        let first = first.map(|frame| (frame.id.clone(), frame.waiting_since));
        if first != self.first {
            self.first = first;
            self.first_since = self.events;
        }
    }
}

/// The root, and a frame whose answer is the person's, may spend the last call. They never wait beside others.
fn may_spend_the_last(frame: &Frame) -> bool {
    frame.id.is_root() || frame.finish
}

fn goes_before(other: &Frame, frame: &Frame) -> bool {
    other.awaits_model() && (other.waiting_since, &other.id) < (frame.waiting_since, &frame.id)
}
