//! How a task ended, as an answer or a failure.

use super::draft::{ANSWER_BYTES, Draft};
use super::read::State;
use super::words::one_line;

/// The longest words of a failure.
const REASON_CHARS: usize = 1000;

/// What is known of a task that is over or waits.
pub(crate) struct Ending<'a> {
    pub state: State,
    pub draft: &'a Draft,
    /// The message of the state that it is in.
    pub words: Option<&'a str>,
    /// What it said last before that.
    pub said_before: Option<&'a str>,
}

/// How it ended.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Answer(String),
    /// The words are a question; the task goes on with the reply.
    Question(String),
    Failure(String),
}

impl Ending<'_> {
    /// Nothing while it is not over.
    pub fn verdict(&self) -> Option<Verdict> {
        let verdict = match self.state {
            State::Running => return None,
            State::Completed => Verdict::Answer(self.result()),
            State::InputRequired => Verdict::Question(self.question()),
            // The mark by which lango knows a refusal.
            State::Rejected => Verdict::Answer(format!(
                "[REJECT] {}",
                self.reason().unwrap_or("no reason given".to_owned())
            )),
            State::Failed => Verdict::Failure(self.because("it says that the task failed")),
            State::Canceled => Verdict::Failure(self.because("the task was cancelled there")),
            State::AuthRequired => Verdict::Failure(
                self.because("it needs an authorisation that lango cannot give here"),
            ),
        };
        Some(verdict)
    }

    /// Whether it says anything at all.
    pub fn has_words(&self) -> bool {
        self.words.is_some() || !self.draft.text().is_empty()
    }

    fn result(&self) -> String {
        let artifacts = self.draft.text();
        let text = if artifacts.is_empty() {
            // An empty answer would be asked for again, and the task be done again.
            let spoken = self.words.or(self.said_before);
            spoken
                .unwrap_or("(The task is completed. There was no text.)")
                .to_owned()
        } else {
            artifacts
        };
        bounded(text, self.draft.is_cut())
    }

    /// What there is so far, which the question may be about, and the question.
    fn question(&self) -> String {
        let artifacts = self.draft.text();
        let words = self.words.unwrap_or_default();
        let text = match (artifacts.is_empty(), words.is_empty()) {
            (true, true) => {
                let spoken = self.said_before;
                spoken
                    .unwrap_or("(It waits for more input, and does not say for what.)")
                    .to_owned()
            }
            (true, false) => words.to_owned(),
            (false, _) if artifacts.contains(words.trim()) => artifacts,
            (false, _) => format!("{artifacts}\n\n{words}"),
        };
        bounded(text, self.draft.is_cut())
    }

    fn because(&self, what: &str) -> String {
        match self.reason() {
            Some(reason) => format!("{what}: {reason}"),
            None => what.to_owned(),
        }
    }

    fn reason(&self) -> Option<String> {
        let artifacts = self.draft.text();
        let words = self.words.unwrap_or(&artifacts);
        Some(one_line(words, REASON_CHARS)).filter(|words| !words.is_empty())
    }
}

/// The text up to the longest that an answer may be.
pub(crate) fn bounded(mut text: String, is_cut: bool) -> String {
    if text.len() > ANSWER_BYTES || is_cut {
        text.truncate(text.floor_char_boundary(ANSWER_BYTES));
        text.push_str(
            "\n[cut: the answer was longer than 1 MiB or had too many artifacts or files]",
        );
    }
    text
}
