//! The end of a session in memory, as the next turn sees it.

use super::{MemorySession, MemoryTurn};
use lango_core::{EventBody, Exchange, ExchangeAnswer, FrameId, SessionHead, Text};

impl MemorySession {
    pub(super) fn head(&self) -> SessionHead {
        let turns = self.turns.len() as u64;
        let is_open = self.turns.last().is_some_and(|turn| !turn.finished);
        let start = SessionHead::look_back_start(turns - u64::from(is_open));
        let start = usize::try_from(start).unwrap_or(usize::MAX);
        let shown = self.turns.iter().skip(start).filter(|turn| turn.finished);
        SessionHead {
            user: self.summary.user.clone(),
            next_seq: self.next_seq(),
            turns,
            exchanges: shown.filter_map(|turn| self.exchange(turn)).collect(),
            unfinished: self
                .turns
                .last()
                .filter(|turn| !turn.finished)
                .map(|turn| turn.question),
        }
    }

    fn exchange(&self, turn: &MemoryTurn) -> Option<Exchange> {
        let EventBody::UserMessage {
            text,
            origin,
            attachments,
            ..
        } = &self.event(turn.question)?.body
        else {
            return None;
        };
        let answer = turn.answer.and_then(|seq| self.answer(turn, seq));
        Some(Exchange {
            turn: turn.turn.clone(),
            question: text.clone(),
            origin: *origin,
            attachments: attachments.clone(),
            answer,
        })
    }

    fn answer(&self, turn: &MemoryTurn, seq: u64) -> Option<ExchangeAnswer> {
        let event = self.event(seq)?;
        let text = match &event.body {
            EventBody::AgentMessage { text, .. } => text,
            EventBody::RemoteReturned { output, .. } => output,
            _ => return None,
        };
        let task = turn.delegation.and_then(|seq| self.task(seq, &event.frame));
        Some(ExchangeAnswer {
            author: event.author.clone(),
            text: text.clone(),
            task,
            is_remote: matches!(event.body, EventBody::RemoteReturned { .. }),
            is_notice: matches!(event.body, EventBody::AgentMessage { model: None, .. }),
            trust: event.body.trust(),
        })
    }

    /// The task that opened `frame`, if the delegation at `seq` did.
    fn task(&self, seq: u64, frame: &FrameId) -> Option<Text> {
        match &self.event(seq)?.body {
            EventBody::AgentDelegated { call, task, .. } if FrameId::from(call) == *frame => {
                Some(task.clone())
            }
            _ => None,
        }
    }
}
