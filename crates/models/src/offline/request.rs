//! The request as the rules see it: who asks for what, what is offered, and what has come back so far.

use lango_core::{Message, ModelRequest};

pub(super) struct Request<'a> {
    pub instruction: &'a str,
    /// The words of the person, or the task of a sub-agent.
    pub task: &'a str,
    /// Whether the reply goes to another agent, which is told `[REJECT]` when the task does not fit.
    pub may_reject: bool,
    /// The runner's last word, if it asks to conclude.
    pub notice: Option<&'a str>,
    /// Results of the calls that were made for this task, in order.
    pub results: Vec<Returned<'a>>,
    functions: Vec<&'a str>,
}

pub(super) struct Returned<'a> {
    pub name: &'a str,
    pub arguments: &'a str,
    pub text: &'a str,
    pub failed: bool,
}

impl<'a> Request<'a> {
    pub fn read(request: &'a ModelRequest) -> Self {
        let asked = request
            .messages
            .iter()
            .rposition(|message| matches!(message, Message::User { .. }))
            .unwrap_or(0);
        let (task, may_reject) = match request.messages.get(asked) {
            Some(Message::User { text, .. }) => match text.split_once("\n## Task\n") {
                Some((_, task)) => (task, true),
                None => (words_of_the_person(text), false),
            },
            _ => ("", false),
        };
        let since = request.messages.get(asked + 1..).unwrap_or_default();
        Self {
            instruction: &request.instruction,
            task: task.trim(),
            may_reject,
            notice: match request.messages.last() {
                Some(Message::Notice { text }) => Some(text),
                _ => None,
            },
            results: since
                .iter()
                .filter_map(|message| returned(message, since))
                .collect(),
            functions: request
                .functions
                .iter()
                .map(|function| &*function.name)
                .collect(),
        }
    }

    /// What to say when nothing may be called any more and nothing was done.
    pub fn stopped(&self) -> Option<String> {
        let is_stopped = self.functions.is_empty() && self.results.is_empty();
        let notice = self.notice.filter(|_| is_stopped)?;
        Some(format!("Nothing was done. I was told: {notice}"))
    }

    pub fn offers(&self, function: &str) -> bool {
        self.functions.contains(&function)
    }
}

/// What the runner adds below the words of the person, the last one first.
const ADDED: [&str; 3] = [
    "\n\n<answer-schema>\n",
    "\n\n<environment>\n",
    "\n\n<memory>\n",
];

fn words_of_the_person(text: &str) -> &str {
    ADDED.iter().fold(text, |words, added| {
        words.rsplit_once(added).map_or(words, |(words, _)| words)
    })
}

fn returned<'a>(message: &'a Message, all: &'a [Message]) -> Option<Returned<'a>> {
    let Message::Result {
        call,
        name,
        text,
        failed,
        ..
    } = message
    else {
        return None;
    };
    let calls = all.iter().filter_map(|message| match message {
        Message::Assistant { calls, .. } => Some(calls),
        _ => None,
    });
    let made = calls
        .flat_map(|calls| calls.iter())
        .find(|made| made.id == *call);
    Some(Returned {
        name,
        arguments: made.map_or("{}", |made| &*made.arguments),
        text,
        failed: *failed,
    })
}
