//! Text that was streamed before it was known to be the answer.

use lango_core::AgentName;

/// The draft that a client has seen so far.
#[derive(Debug, Default)]
pub(crate) struct StreamedText {
    author: Option<AgentName>,
    current: String,
}

/// What to do with a draft when the answer is known.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum AnswerRemainder<'a> {
    /// The draft was the beginning of the answer. This is the rest.
    Continues(&'a str),
    /// The draft was something else. This is the whole answer.
    Replaced(&'a str),
}

impl StreamedText {
    /// Returns whether text by this author can continue the current draft.
    pub(crate) fn is_by(&self, author: &AgentName) -> bool {
        self.author.as_ref().is_none_or(|known| known == author)
    }

    /// Adds text to the draft. A draft by another author must be withdrawn first.
    pub(crate) fn push(&mut self, author: &AgentName, text: &str) {
        self.author = Some(author.clone());
        self.current.push_str(text);
    }

    /// Forgets the draft. Returns whether there was one.
    pub(crate) fn withdraw(&mut self) -> bool {
        self.author = None;
        !std::mem::take(&mut self.current).is_empty()
    }

    /// Compares the draft with the answer.
    pub(crate) fn rest<'a>(&self, answer: &'a str) -> AnswerRemainder<'a> {
        match answer.strip_prefix(self.current.as_str()) {
            Some(rest) => AnswerRemainder::Continues(rest),
            None => AnswerRemainder::Replaced(answer),
        }
    }

    /// Returns the draft.
    pub(crate) fn text(&self) -> &str {
        &self.current
    }
}
