//! The look back: earlier turns as a new one is shown them, made into messages once and then only shared.
//!
//! What the orchestrator said itself is its own message. An answer that a sub-agent gave the person itself comes back as
//! what it was: the result of a delegation.

use crate::instruction::{self, DELEGATE, Notice};
use crate::turn::message_bytes;
use lango_core::{AgentName, Call, CallId, Exchange, ExchangeAnswer, Message, Text, Trust};
use serde_json::json;
use std::sync::Arc;

/// Earlier turns, oldest first.
#[derive(Debug, Clone, Default)]
pub struct LookBack {
    turns: Vec<Past>,
}

#[derive(Debug, Clone)]
struct Past {
    exchange: Exchange,
    messages: Vec<Message>,
    bytes: usize,
}

impl LookBack {
    /// These exchanges as `root` is shown them.
    pub fn new(root: &AgentName, exchanges: Vec<Exchange>) -> Self {
        let past = |exchange| Past::new(root, exchange);
        Self {
            turns: exchanges.into_iter().map(past).collect(),
        }
    }

    /// Adds the turn that has just ended.
    pub(crate) fn push(&mut self, root: &AgentName, exchange: Exchange) {
        self.turns.push(Past::new(root, exchange));
    }

    /// Lets the oldest turns go.
    pub(crate) fn forget(&mut self, oldest: usize) {
        self.turns.drain(..oldest.min(self.turns.len()));
    }

    /// What the root is shown: as many of the last turns as have room. The oldest are left out in steps of a few turns, so
    /// that what is sent begins with the same bytes from turn to turn.
    pub(crate) fn messages(&self, room: usize) -> impl Iterator<Item = &Message> {
        let mut left = room;
        let fits = |past: &&Past| {
            let fits = past.bytes <= left;
            left = left.saturating_sub(past.bytes);
            fits
        };
        let shown = self.turns.iter().rev().take_while(fits).count();
        let step = (shown / 4).clamp(1, 5);
        let hidden = (self.turns.len() - shown).next_multiple_of(step);
        let first = hidden.min(self.turns.len());
        self.turns[first..].iter().flat_map(|past| &past.messages)
    }

    /// Returns the lowest label of the turns in it. Older turns are in the labels of these, which were shown them.
    pub(crate) fn trust(&self) -> Trust {
        let labels = self.turns.iter().map(|past| past.exchange.trust());
        labels.fold(Trust::Trusted, Trust::and)
    }

    /// The last exchanges.
    pub(crate) fn last(&self, most: usize) -> impl Iterator<Item = &Exchange> {
        let first = self.turns.len().saturating_sub(most);
        self.turns[first..].iter().map(|past| &past.exchange)
    }
}

impl Past {
    fn new(root: &AgentName, exchange: Exchange) -> Self {
        let mut messages = vec![Message::user(Text::clone(&exchange.question))];
        match &exchange.answer {
            // Else the next request would be read as the rest of this one.
            None => messages.push(Message::Notice {
                text: instruction::notice(Notice::StoppedTurn).into(),
            }),
            Some(answer) if answer.author == *root => messages.push(Message::Assistant {
                text: Text::clone(&answer.text),
                calls: Arc::from([]),
                opaque: None,
            }),
            Some(answer) => messages.extend(delegation(&exchange, answer)),
        }
        let bytes = messages.iter().map(message_bytes).sum();
        Self {
            exchange,
            messages,
            bytes,
        }
    }
}

fn delegation(exchange: &Exchange, answer: &ExchangeAnswer) -> [Message; 2] {
    let id = CallId::from(exchange.turn.as_str());
    let task = answer.task.as_ref().unwrap_or(&exchange.question);
    let arguments = json!({ "agent": answer.author, "task": task, "finish": true });
    let call = Call {
        id: id.clone(),
        name: DELEGATE.into(),
        arguments: arguments.to_string().into(),
    };
    let result = Message::Result {
        call: id,
        name: DELEGATE.into(),
        text: match answer.is_remote {
            true => instruction::from_outside(&answer.author, &answer.text, false),
            false => Text::clone(&answer.text),
        },
        failed: false,
        attachments: Vec::new(),
    };
    let calls = Arc::from([call]);
    [
        Message::Assistant {
            text: "".into(),
            calls,
            opaque: None,
        },
        result,
    ]
}
