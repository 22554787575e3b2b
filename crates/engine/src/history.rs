//! The look back: earlier turns as a new one is shown them, made into messages once and then only shared.
//!
//! What the orchestrator said itself is its own message. An answer that a sub-agent gave the person itself comes back as
//! what it was: the result of a delegation.

use crate::instruction::{self, DELEGATE, Notice};
use crate::turn::{Room, message_bytes, without_files};
use lango_core::{
    AgentName, Attachment, Call, CallId, Exchange, ExchangeAnswer, Message, Text, Trust,
};
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
    /// The same where there is no room for the files; none if it has no files.
    without_files: Option<(Vec<Message>, usize)>,
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

    /// Returns the messages to send to the root's model, one slice per turn: the most recent turns that fit, the older ones without
    /// their files if the files do not fit. Old turns are dropped several at a time, so that consecutive requests share a long prefix
    /// (prompt caching).
    pub(crate) fn shown(&self, mut room: Room) -> impl Iterator<Item = &[Message]> {
        let mut newest_first = self.turns.iter().rev().peekable();
        let mut whole = 0;
        while newest_first
            .next_if(|past| room.take(past.bytes, &past.exchange.attachments))
            .is_some()
        {
            whole += 1;
        }
        let fits = |past: &&Past| room.take(past.reduced().1, &[]);
        let shown = whole + newest_first.take_while(fits).count();
        let (first, first_whole) = (self.first_of(shown), self.first_of(whole));
        let shown = self.turns.iter().enumerate().skip(first);
        shown.map(move |(at, past)| match at < first_whole {
            true => past.reduced().0,
            false => past.messages.as_slice(),
        })
    }

    /// The first of this many last turns, moved on to the next step.
    fn first_of(&self, last: usize) -> usize {
        let step = (last / 4).clamp(1, 5);
        let before = (self.turns.len() - last).next_multiple_of(step);
        before.min(self.turns.len())
    }

    /// Returns the total size of all turns in bytes, as counted for a request.
    pub(crate) fn bytes(&self) -> usize {
        self.turns.iter().map(|past| past.bytes).sum()
    }

    /// The files of the questions, the newest first.
    pub(crate) fn attachments(&self) -> impl Iterator<Item = &Attachment> {
        let newest_first = self.turns.iter().rev();
        newest_first.flat_map(|past| &past.exchange.attachments)
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
        let mut messages = vec![Message::User {
            text: instruction::attached(&exchange.question, &exchange.attachments),
            attachments: exchange.attachments.clone(),
        }];
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
        // A file that the provider refused would fail every later turn as well.
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

    /// Its messages without files, and their bytes.
    fn reduced(&self) -> (&[Message], usize) {
        match &self.without_files {
            Some((messages, bytes)) => (messages, *bytes),
            None => (&self.messages, self.bytes),
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
