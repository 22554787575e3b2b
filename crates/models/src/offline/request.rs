//! The request as the rules see it: the task, the functions on offer and the results so far.

use lango_core::{Message, ModelRequest};

pub(super) struct Request<'a> {
    pub instruction: &'a str,
    /// The user's message, or the task of a sub-agent.
    pub task: &'a str,
    /// Whether this is a sub-agent's task, so `[REJECT]` is a valid reply.
    pub may_reject: bool,
    /// The runner's notice, if it is the last message.
    pub notice: Option<&'a str>,
    /// Results of the calls made for this task, in order.
    pub results: Vec<CallResult<'a>>,
    functions: Vec<&'a str>,
}

pub(super) struct CallResult<'a> {
    pub name: &'a str,
    pub arguments: &'a str,
    pub text: &'a str,
    pub failed: bool,
}

impl<'a> Request<'a> {
    pub(super) fn read(request: &'a ModelRequest) -> Self {
        let last_user = request
            .messages
            .iter()
            .rposition(|message| matches!(message, Message::User { .. }))
            .unwrap_or(0);
        let (task, may_reject) = match request.messages.get(last_user) {
            Some(Message::User { text, .. }) => match text.split_once("\n## Task\n") {
                Some((_, task)) => (task, true),
                None => (user_text(text), false),
            },
            _ => ("", false),
        };
        let since = request.messages.get(last_user + 1..).unwrap_or_default();
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
                .filter_map(|message| call_result(message, since))
                .collect(),
            functions: request
                .functions
                .iter()
                .map(|function| &*function.name)
                .collect(),
        }
    }

    /// Returns the answer if the runner stopped the task before anything was done: its notice came without functions.
    pub(super) fn stop_message(&self) -> Option<String> {
        let is_stopped = self.functions.is_empty() && self.results.is_empty();
        let notice = self.notice.filter(|_| is_stopped)?;
        Some(format!("Nothing was done. I was told: {notice}"))
    }

    pub(super) fn offers(&self, function: &str) -> bool {
        self.functions.contains(&function)
    }
}

/// Sections that the runner appends to the user's message, in reverse order.
const ADDED: [&str; 3] = [
    "\n\n<answer-schema>\n",
    "\n\n<environment>\n",
    "\n\n<memory>\n",
];

fn user_text(text: &str) -> &str {
    ADDED.iter().fold(text, |text, added| {
        text.rsplit_once(added).map_or(text, |(before, _)| before)
    })
}

fn call_result<'a>(message: &'a Message, all: &'a [Message]) -> Option<CallResult<'a>> {
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
    Some(CallResult {
        name,
        arguments: made.map_or("{}", |made| &*made.arguments),
        text,
        failed: *failed,
    })
}

#[cfg(test)]
mod tests {
    use super::user_text;

    #[test]
    fn sections_that_the_runner_appends_are_not_part_of_the_users_text() {
        let memory = "\n\n<memory>\nlikes rum\n</memory>";
        let environment = "\n\n<environment>\nDate: Monday, 2026-11-16\n</environment>";
        let schema = "\n\n<answer-schema>\n{}\n</answer-schema>\nThe answer is JSON.";
        for added in [
            String::new(),
            memory.to_owned(),
            environment.to_owned(),
            format!("{memory}{environment}"),
            format!("{memory}{environment}{schema}"),
            format!("{environment}{schema}"),
        ] {
            let text = format!("what is\n\nhere?{added}");
            assert_eq!(user_text(&text), "what is\n\nhere?");
        }
    }
}
