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
pub(crate) enum Rest<'a> {
    /// The draft was the beginning of the answer, and this follows.
    Continues(&'a str),
    /// The draft was something else: the whole answer follows.
    Replaced(&'a str),
}

impl StreamedText {
    /// Returns whether text of this author belongs to the draft so far.
    pub fn is_by(&self, author: &AgentName) -> bool {
        self.author.as_ref().is_none_or(|known| known == author)
    }

    /// Adds a part of a draft, after an earlier one of another author was withdrawn.
    pub fn push(&mut self, author: &AgentName, text: &str) {
        self.author = Some(author.clone());
        self.current.push_str(text);
    }

    /// Forgets the draft. Returns whether there was one.
    pub fn withdraw(&mut self) -> bool {
        self.author = None;
        !std::mem::take(&mut self.current).is_empty()
    }

    /// Compares the draft with the answer.
    pub fn rest<'a>(&self, answer: &'a str) -> Rest<'a> {
        match answer.strip_prefix(self.current.as_str()) {
            Some(rest) => Rest::Continues(rest),
            None => Rest::Replaced(answer),
        }
    }

    /// Returns the draft.
    pub fn text(&self) -> &str {
        &self.current
    }
}
