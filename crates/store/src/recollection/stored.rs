//! What is remembered on its way to a database and back, whichever that is.

use super::{Generation, MemoryId};
use lango_core::{Exchange, Text};

impl Generation {
    /// As it is stored.
    pub(crate) fn number(self) -> i64 {
        match self {
            Self::Observation => 0,
            Self::First => 1,
            Self::Second => 2,
        }
    }

    /// What a row of this generation is called.
    pub(crate) fn name(self, number: u64) -> MemoryId {
        match self {
            Self::Observation => MemoryId::Observation(number),
            Self::First | Self::Second => MemoryId::Reflection(number),
        }
    }
}

/// The same with a question and an answer of so many bytes at most.
pub(crate) fn exchange_within(mut exchange: Exchange, bytes: usize) -> Exchange {
    exchange.question = cut(exchange.question, bytes);
    if let Some(answer) = &mut exchange.answer {
        answer.text = cut(std::mem::take(&mut answer.text), bytes);
    }
    exchange
}

fn cut(text: Text, bytes: usize) -> Text {
    if text.len() <= bytes {
        return text;
    }
    let kept = &text[..text.floor_char_boundary(bytes)];
    format!("{kept} [cut: {} more bytes]", text.len() - kept.len()).into()
}
