//! The outcome of a remote task: an answer, a question or a failure.

use super::draft::{ANSWER_BYTES, Draft};
use super::read::RemoteState;
use super::sanitize::one_line;

/// The maximum length of the reason of a failure, in characters.
const REASON_CHARS: usize = 1000;

/// The last known status of a task, and the content that it has sent.
pub(crate) struct FinalStatus<'a> {
    pub state: RemoteState,
    pub draft: &'a Draft,
    /// The message of the current status.
    pub text: Option<&'a str>,
    /// The last message before the current status.
    pub earlier_text: Option<&'a str>,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum TaskOutcome {
    Answer(String),
    /// The agent asks a question. The task continues with the reply.
    Question(String),
    Failure(String),
}

impl FinalStatus<'_> {
    /// Returns the outcome, or `None` while the task is running.
    pub(super) fn outcome(&self) -> Option<TaskOutcome> {
        let outcome = match self.state {
            RemoteState::Running => return None,
            RemoteState::Completed => TaskOutcome::Answer(self.result()),
            RemoteState::InputRequired => TaskOutcome::Question(self.question()),
            // lango recognises a rejection by this prefix.
            RemoteState::Rejected => TaskOutcome::Answer(format!(
                "[REJECT] {}",
                self.reason().unwrap_or("no reason given".to_owned())
            )),
            RemoteState::Failed => {
                TaskOutcome::Failure(self.with_reason("it reports that the task failed"))
            }
            RemoteState::Canceled => {
                TaskOutcome::Failure(self.with_reason("it reports that the task was cancelled"))
            }
            RemoteState::AuthRequired => TaskOutcome::Failure(
                self.with_reason("it needs an authorization that lango cannot give"),
            ),
        };
        Some(outcome)
    }

    pub(super) fn has_text(&self) -> bool {
        self.text.is_some() || !self.draft.text().is_empty()
    }

    fn result(&self) -> String {
        let artifacts = self.draft.text();
        let text = if artifacts.is_empty() {
            // The answer must not be empty: lango would ask again, and the task would run twice.
            let text = self.text.or(self.earlier_text);
            text.unwrap_or("(The task completed without any text.)")
                .to_owned()
        } else {
            artifacts
        };
        truncate(text, self.draft.is_truncated())
    }

    /// Returns the artifacts so far, which the question may refer to, followed by the question.
    fn question(&self) -> String {
        let artifacts = self.draft.text();
        let question = self.text.unwrap_or_default();
        let text = match (artifacts.is_empty(), question.is_empty()) {
            (true, true) => {
                let earlier = self.earlier_text;
                earlier
                    .unwrap_or("(The agent needs more input, but does not say which.)")
                    .to_owned()
            }
            (true, false) => question.to_owned(),
            (false, _) if artifacts.contains(question.trim()) => artifacts,
            (false, _) => format!("{artifacts}\n\n{question}"),
        };
        truncate(text, self.draft.is_truncated())
    }

    fn with_reason(&self, what: &str) -> String {
        match self.reason() {
            Some(reason) => format!("{what}: {reason}"),
            None => what.to_owned(),
        }
    }

    fn reason(&self) -> Option<String> {
        let artifacts = self.draft.text();
        let text = self.text.unwrap_or(&artifacts);
        Some(one_line(text, REASON_CHARS)).filter(|text| !text.is_empty())
    }
}

/// Truncates a text to the maximum length of an answer. Adds a note if that, or an earlier truncation, dropped
/// something.
pub(crate) fn truncate(mut text: String, is_truncated: bool) -> String {
    if text.len() > ANSWER_BYTES || is_truncated {
        text.truncate(text.floor_char_boundary(ANSWER_BYTES));
        text.push_str(
            "\n[cut: the answer was longer than 1 MiB or had too many artifacts or files]",
        );
    }
    text
}
