//! Trims a request to the model's context window. First the oldest turns lose their files, then they are dropped
//! completely. Then files and texts of the oldest results are cut, with a note about what is missing, and finally files
//! of the question. A call always stays together with its result.

use lango_core::{Attachment, Message, ModelRequest};
use std::fmt::Write;

/// The minimum length of a result after cutting.
const MIN_RESULT_BYTES: usize = 1000;

/// The approximate length of the note about missing text.
const NOTE_BYTES: usize = 100;

/// Bytes per token. For prose and code this estimate yields too many tokens rather than too few.
const TOKEN_BYTES: u64 = 3;

/// The estimated size of an image: about 1,600 tokens.
const IMAGE_BYTES: usize = 1600 * TOKEN_BYTES as usize;

/// The space that is left in a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RequestSpace {
    /// The estimated number of bytes.
    pub bytes: usize,
    pub images: usize,
    /// Bytes of files. Base64 adds a third, and providers accept about 30 MB.
    pub file_bytes: u64,
}

impl RequestSpace {
    /// The limits of every request, regardless of the model.
    pub(crate) const MAX: Self = Self {
        bytes: usize::MAX,
        images: 20,
        file_bytes: 20_000_000,
    };

    /// Reserves space for messages with this estimated size and these files. Returns whether everything fits; if not,
    /// reserves nothing.
    pub(crate) fn reserve(&mut self, bytes: usize, files: &[Attachment]) -> bool {
        let mut left = *self;
        let fits = bytes <= left.bytes && files.iter().all(|file| left.reserve_file(file));
        if fits {
            left.bytes -= bytes;
            *self = left;
        }
        fits
    }

    fn reserve_file(&mut self, file: &Attachment) -> bool {
        let images = usize::from(file.is_image());
        let fits = images <= self.images && file.size <= self.file_bytes;
        if fits {
            self.images -= images;
            self.file_bytes -= file.size;
        }
        fits
    }

    /// Reserves space for the files of messages: first those of the question, then those of results, newest first.
    /// Drops files that do not fit.
    pub(crate) fn reserve_files(&mut self, messages: &mut [Message]) {
        if messages
            .iter()
            .all(|message| attachments(message).is_empty())
        {
            return;
        }
        let Some((question, results)) = messages.split_first_mut() else {
            return;
        };
        for message in std::iter::once(question).chain(results.iter_mut().rev()) {
            drop_files(message, |file| !self.reserve_file(file));
        }
    }
}

/// Estimates the number of tokens in this many bytes.
pub(crate) fn tokens(bytes: usize) -> u64 {
    (bytes as u64).div_ceil(TOKEN_BYTES)
}

/// Returns the estimated size of a request in bytes.
pub(super) fn bytes_of(request: &ModelRequest) -> usize {
    let functions = request.functions.iter().map(|function| {
        function.name.len() + function.description.len() + function.parameters.text().len()
    });
    request.instruction.len()
        + functions.sum::<usize>()
        + request.messages.iter().map(message_bytes).sum::<usize>()
}

/// Returns the estimated size of a message in bytes.
pub(crate) fn message_bytes(message: &Message) -> usize {
    let attached = attachments(message).iter().map(file_bytes).sum::<usize>();
    attached
        + match message {
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

/// Returns the estimated size of a file in bytes.
fn file_bytes(file: &Attachment) -> usize {
    if file.is_image() {
        IMAGE_BYTES
    } else {
        usize::try_from(file.size).unwrap_or(usize::MAX)
    }
}

fn attachments(message: &Message) -> &[Attachment] {
    match message {
        Message::User { attachments, .. } | Message::Result { attachments, .. } => attachments,
        Message::Assistant { .. } | Message::Notice { .. } => &[],
    }
}

/// Returns the message with notes in place of its files.
pub(crate) fn without_files(message: &Message) -> Message {
    let mut message = message.clone();
    drop_files(&mut message, |_| true);
    message
}

/// Replaces some files of a message with notes, and returns the number of bytes saved.
fn drop_files(message: &mut Message, mut is_dropped: impl FnMut(&Attachment) -> bool) -> usize {
    let (Message::User { text, attachments }
    | Message::Result {
        text, attachments, ..
    }) = message
    else {
        return 0;
    };
    let (mut notes, mut saved) = (String::new(), 0_usize);
    attachments.retain(|file| {
        let is_dropped = is_dropped(file);
        if is_dropped {
            let (name, kind, size) = (&file.name, &file.media_type, file.size);
            let _ = write!(
                notes,
                "\n[`{name}` ({kind}, {size} bytes) is left out to make room]"
            );
            saved = saved.saturating_add(file_bytes(file));
        }
        !is_dropped
    });
    if !notes.is_empty() {
        *text = format!("{text}{notes}").into();
    }
    saved.saturating_sub(notes.len())
}

/// Returns the maximum size of a request to a model with this context window. A quarter of the window is left for the
/// answer.
pub(super) fn bytes_for(context_tokens: u64) -> usize {
    usize::try_from(context_tokens.saturating_mul(TOKEN_BYTES) / 4 * 3).unwrap_or(usize::MAX)
}

/// Cuts the messages until `excess` bytes are saved or nothing is left to cut.
pub(super) fn cut(messages: &mut [Message], mut excess: usize) {
    for message in messages.iter_mut() {
        if excess > 0 && matches!(message, Message::Result { .. }) {
            let saved = drop_files(message, |_| true);
            excess = excess.saturating_sub(saved);
        }
    }
    excess = cut_results(messages, excess);
    for message in messages.iter_mut() {
        while excess > 0 {
            let largest = attachments(message)
                .iter()
                .max_by_key(|file| file_bytes(file));
            let Some(largest) = largest.map(|file| file.name.clone()) else {
                break;
            };
            let saved = drop_files(message, |file| file.name == largest);
            excess = excess.saturating_sub(saved);
        }
    }
}

/// Whether the request can be shortened: it has earlier turns, files, or results longer than the minimum.
pub(super) fn can_be_shorter(request: &ModelRequest) -> bool {
    let mut questions = 0;
    request.messages.iter().any(|message| match message {
        Message::User { attachments, .. } => {
            questions += 1;
            questions > 1 || !attachments.is_empty()
        }
        Message::Result {
            text, attachments, ..
        } => text.len() > 2 * MIN_RESULT_BYTES || !attachments.is_empty(),
        Message::Assistant { .. } | Message::Notice { .. } => false,
    })
}

/// Cuts results, oldest first, until `excess` bytes are saved or nothing is left to cut. Returns the remaining excess.
/// Takes no more than necessary from each result, and keeps its beginning and end.
fn cut_results(messages: &mut [Message], mut excess: usize) -> usize {
    for message in messages {
        let Message::Result { text, .. } = message else {
            continue;
        };
        if excess == 0 || text.len() <= MIN_RESULT_BYTES * 2 {
            continue;
        }
        let keep = text
            .len()
            .saturating_sub(excess + NOTE_BYTES)
            .max(MIN_RESULT_BYTES);
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
    excess
}
