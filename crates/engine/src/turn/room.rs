//! Making what is sent fit into a model: the oldest turns go first, whole; then the longest-standing results are cut, with a
//! note of how much is missing. A call is never parted from its result.

use lango_core::{Message, ModelRequest};

/// The least a result keeps when there is no room.
const CUT_BYTES: usize = 1000;

/// About as long as the note of what is missing.
const NOTE_BYTES: usize = 100;

/// Bytes of a token: an estimate that errs on the side of too many tokens for prose and code.
const TOKEN_BYTES: u64 = 3;

/// About how many tokens this many bytes are.
pub(super) fn tokens(bytes: usize) -> u64 {
    (bytes as u64).div_ceil(TOKEN_BYTES)
}

/// The bytes of a request, as they count.
pub(super) fn bytes_of(request: &ModelRequest) -> usize {
    let functions = request.functions.iter().map(|function| {
        function.name.len() + function.description.len() + function.parameters.to_string().len()
    });
    request.instruction.len()
        + functions.sum::<usize>()
        + request.messages.iter().map(message_bytes).sum::<usize>()
}

/// The bytes of a message, as they count.
pub(crate) fn message_bytes(message: &Message) -> usize {
    match message {
        Message::User { text, .. } | Message::Notice { text } => text.len(),
        Message::Assistant {
            text,
            calls,
            opaque,
        } => {
            let calls = calls
                .iter()
                .map(|call| call.name.len() + call.arguments.len());
            text.len()
                + calls.sum::<usize>()
                + opaque
                    .as_ref()
                    .map_or(0, |opaque| opaque.data.to_string().len())
        }
        Message::Result { text, name, .. } => text.len() + name.len(),
    }
}

/// The bytes that may be sent to a model that takes this many tokens: a quarter is left for its answer.
pub(super) fn bytes_for(context_tokens: u64) -> usize {
    usize::try_from(context_tokens.saturating_mul(TOKEN_BYTES) / 4 * 3).unwrap_or(usize::MAX)
}

/// Cuts results, the oldest first, until `excess` bytes are saved or nothing is left to cut. No more than that is taken of
/// any of them, and its beginning and end stay.
pub(super) fn cut_results(messages: &mut [Message], mut excess: usize) {
    for message in messages {
        let Message::Result { text, .. } = message else {
            continue;
        };
        if excess == 0 || text.len() <= CUT_BYTES * 2 {
            continue;
        }
        let keep = text
            .len()
            .saturating_sub(excess + NOTE_BYTES)
            .max(CUT_BYTES);
        let head = text.floor_char_boundary(keep * 3 / 4);
        let tail = text.ceil_char_boundary(text.len() - keep / 4);
        let missing = tail - head;
        let cut = format!(
            "{}\n[{missing} of {} bytes left out to make room; ask for a smaller part]\n{}",
            &text[..head],
            text.len(),
            &text[tail..]
        );
        excess = excess.saturating_sub(text.len().saturating_sub(cut.len()));
        *text = cut.into();
    }
}
