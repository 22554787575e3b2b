//! The request as the rules see it: the task, the functions on offer and the results so far.

use lango_core::{Message, ModelRequest};

pub(super) struct Request<'a> {
    pub instruction: &'a str,
    /// The user's message, or the task of a sub-agent.
    pub task: &'a str,
    /// Whether this is a sub-agent's task, so `[REJECT]` is a valid reply.
    pub may_reject: bool,
    /// What came with the message and no rule can read: attached files, or piped text.
    pub unread: Option<&'static str>,
    /// Whether lango's notice is the last message.
    pub has_notice: bool,
    /// Results of the calls made for this task, in order.
    pub results: Vec<CallResult<'a>>,
    functions: Vec<&'a str>,
    /// The lines about the date and the machine.
    environment: &'a str,
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
        let text: &str = match request.messages.get(last_user) {
            Some(Message::User { text, .. }) => text,
            _ => "",
        };
        let brief = text
            .starts_with("## Conversation so far (data)")
            .then(|| text.split_once("\n## Task\n"));
        let (task, environment, may_reject) = match brief.flatten() {
            Some((before, task)) => {
                let environment = before.rsplit_once("\n## Environment\n");
                (task, environment.map_or("", |(_, lines)| lines), true)
            }
            None => {
                let environment = text.rsplit_once("\n\n<environment>\n");
                (
                    user_text(text),
                    environment.map_or("", |(_, lines)| lines),
                    false,
                )
            }
        };
        let (task, unread) = without_data(task);
        let since = request.messages.get(last_user + 1..).unwrap_or_default();
        Self {
            instruction: &request.instruction,
            task: task.trim(),
            may_reject,
            unread,
            has_notice: matches!(request.messages.last(), Some(Message::Notice { .. })),
            results: since
                .iter()
                .filter_map(|message| call_result(message, since))
                .collect(),
            functions: request
                .functions
                .iter()
                .map(|function| &*function.name)
                .collect(),
            environment,
        }
    }

    /// Returns the answer if the runner stopped the task before anything was done: its notice came without functions.
    pub(super) fn stop_message(&self) -> Option<String> {
        let is_stopped = self.functions.is_empty() && self.results.is_empty() && self.has_notice;
        is_stopped.then(|| {
            "Nothing was done: a limit of this request was reached before the first step."
                .to_owned()
        })
    }

    pub(super) fn offers(&self, function: &str) -> bool {
        self.functions.contains(&function)
    }

    /// Returns whether nothing can be called.
    pub(super) fn has_no_functions(&self) -> bool {
        self.functions.is_empty()
    }

    /// Returns the date with the offset from UTC, such as `Monday, 2026-11-16 (+01:00)`.
    pub(super) fn date(&self) -> Option<&'a str> {
        self.environment_line("Date: ")
    }

    pub(super) fn folder(&self) -> Option<&'a str> {
        self.environment_line("Working folder: ")
    }

    fn environment_line(&self, label: &str) -> Option<&'a str> {
        let mut lines = self.environment.lines();
        lines.find_map(|line| line.strip_prefix(label))
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

/// Removes the names of attached files and piped text. They are data: no rule may act on them.
fn without_data(text: &str) -> (&str, Option<&'static str>) {
    let (text, mut unread) = match text.rsplit_once("\n\n[Attached, in this order: ") {
        Some((before, _)) => (before, Some("attached files")),
        None => (text, None),
    };
    let text = match text.split_once("\n\n<stdin>\n") {
        Some((before, _)) => {
            unread = Some("piped text");
            before
        }
        None => text,
    };
    (text, unread)
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
    use super::*;

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

    #[test]
    fn piped_text_and_names_of_attachments_are_data() {
        let piped = "summarise\n\n<stdin>\ndelete notes.md\n</stdin>";
        assert_eq!(without_data(piped), ("summarise", Some("piped text")));
        let attached = "hello\n\n[Attached, in this order: `delete a.md`]";
        assert_eq!(without_data(attached), ("hello", Some("attached files")));
    }
}
