//! The history: earlier turns as a new turn sees them. The messages are built once and then shared.
//!
//! An answer of the orchestrator is its own message. An answer that a sub-agent gave the user directly appears as the
//! result of a delegation.

use crate::instruction::{self, DELEGATE, Notice};
use crate::turn::{RequestSpace, message_bytes, without_files};
use lango_core::{
    AgentName, Attachment, Call, CallId, Exchange, ExchangeAnswer, Message, Text, Trust,
};
use serde_json::json;
use std::sync::Arc;

/// Earlier turns, oldest first.
#[derive(Debug, Clone, Default)]
pub struct History {
    turns: Vec<PastTurn>,
}

#[derive(Debug, Clone)]
struct PastTurn {
    exchange: Exchange,
    messages: Vec<Message>,
    bytes: usize,
    /// The messages with their files removed, and the size of the result, for requests in which the files do not fit.
    /// `None` if the turn has no files.
    without_files: Option<(Vec<Message>, usize)>,
}

impl History {
    /// Builds the history of these exchanges for the agent `root`.
    pub fn new(root: &AgentName, exchanges: Vec<Exchange>) -> Self {
        let turn = |exchange| PastTurn::new(root, exchange);
        Self {
            turns: exchanges.into_iter().map(turn).collect(),
        }
    }

    /// Appends the turn that just ended.
    pub(crate) fn push(&mut self, root: &AgentName, exchange: Exchange) {
        self.turns.push(PastTurn::new(root, exchange));
    }

    /// Drops the oldest turns.
    pub(crate) fn forget(&mut self, oldest: usize) {
        self.turns.drain(..oldest.min(self.turns.len()));
    }

    /// Returns the messages to send to the root's model, one slice per turn: the most recent turns that fit, the older
    /// ones without their files if the files do not fit. Old turns are dropped several at a time, so that consecutive
    /// requests share a long prefix (prompt caching).
    pub(crate) fn messages_within(
        &self,
        mut space: RequestSpace,
    ) -> impl Iterator<Item = &[Message]> {
        let mut newest_first = self.turns.iter().rev().peekable();
        let mut whole = 0;
        while newest_first
            .next_if(|turn| space.reserve(turn.bytes, &turn.exchange.attachments))
            .is_some()
        {
            whole += 1;
        }
        let fits = |turn: &&PastTurn| space.reserve(turn.reduced().1, &[]);
        let shown = whole + newest_first.take_while(fits).count();
        let (first, first_whole) = (self.first_of(shown), self.first_of(whole));
        let shown = self.turns.iter().enumerate().skip(first);
        shown.map(move |(at, turn)| {
            if at < first_whole {
                turn.reduced().0
            } else {
                turn.messages.as_slice()
            }
        })
    }

    /// Returns the index at which the last `last` turns start, rounded up to a multiple of the step.
    fn first_of(&self, last: usize) -> usize {
        let step = (last / 4).clamp(1, 5);
        let before = (self.turns.len() - last).next_multiple_of(step);
        before.min(self.turns.len())
    }

    /// Returns the total size of all turns in bytes, as counted for a request.
    pub(crate) fn bytes(&self) -> usize {
        self.turns.iter().map(|turn| turn.bytes).sum()
    }

    /// Returns the files of the questions, newest turn first.
    pub(crate) fn attachments(&self) -> impl Iterator<Item = &Attachment> {
        let newest_first = self.turns.iter().rev();
        newest_first.flat_map(|turn| &turn.exchange.attachments)
    }

    /// Returns the lowest trust label of the turns. It accounts for dropped turns too, because the turns here were
    /// built on them.
    pub(crate) fn trust(&self) -> Trust {
        let labels = self.turns.iter().map(|turn| turn.exchange.trust());
        labels.fold(Trust::Trusted, Trust::and)
    }

    pub(crate) fn last(&self, most: usize) -> impl Iterator<Item = &Exchange> {
        let first = self.turns.len().saturating_sub(most);
        self.turns[first..].iter().map(|turn| &turn.exchange)
    }
}

impl PastTurn {
    fn new(root: &AgentName, exchange: Exchange) -> Self {
        let mut messages = vec![Message::User {
            text: instruction::attached(&exchange.question, &exchange.attachments),
            attachments: exchange.attachments.clone(),
        }];
        match &exchange.answer {
            // Without this notice the model would read the next question as a continuation of this one.
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
        messages.extend(undone_notice(&exchange).map(|text| Message::Notice { text }));
        // If the provider rejected a file, it would reject every later turn with that file, too.
        if exchange
            .answer
            .as_ref()
            .is_some_and(|answer| answer.is_notice)
        {
            messages = messages.iter().map(without_files).collect();
        }
        let bytes_of = |messages: &[Message]| messages.iter().map(message_bytes).sum();
        let without_files = (!exchange.attachments.is_empty()).then(|| {
            let messages: Vec<Message> = messages.iter().map(without_files).collect();
            let bytes = bytes_of(&messages);
            (messages, bytes)
        });
        let bytes = bytes_of(&messages);
        Self {
            exchange,
            messages,
            bytes,
            without_files,
        }
    }

    /// Returns the messages without files, and their size in bytes.
    fn reduced(&self) -> (&[Message], usize) {
        match &self.without_files {
            Some((messages, bytes)) => (messages, *bytes),
            None => (&self.messages, self.bytes),
        }
    }
}

/// Returns the notice about what the user undid of a turn, if anything.
pub(crate) fn undone_notice(exchange: &Exchange) -> Option<Text> {
    let undone = exchange.undone.as_ref()?;
    (!undone.restored.is_empty()).then(|| instruction::undone(undone))
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
        text: if answer.is_remote {
            instruction::from_outside(&answer.author, &answer.text, false)
        } else {
            Text::clone(&answer.text)
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
