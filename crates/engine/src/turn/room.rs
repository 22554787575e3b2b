//! Making what is sent fit into a model: the oldest turns lose their files, then go, whole; then files and texts of the
//! longest-standing results are cut, with a note of what is missing; the files of the question are the last. A call is never
//! parted from its result.

use lango_core::{Attachment, Message, ModelRequest};
use std::fmt::Write;

/// The least a result keeps when there is no room.
const CUT_BYTES: usize = 1000;

/// About as long as the note of what is missing.
const NOTE_BYTES: usize = 100;

/// Bytes of a token: an estimate that errs on the side of too many tokens for prose and code.
const TOKEN_BYTES: u64 = 3;

/// An image as it counts: about 1,600 tokens.
const IMAGE_BYTES: usize = 1600 * TOKEN_BYTES as usize;

/// What a request has room for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Room {
    /// Bytes, as they count.
    pub bytes: usize,
    /// Images.
    pub images: usize,
    /// Bytes of files. In base64 a third is added, and providers take about 30 MB.
    pub file_bytes: u64,
}

impl Room {
    /// What every request has room for, whatever its model takes.
    pub const MOST: Self = Self {
        bytes: usize::MAX,
        images: 20,
        file_bytes: 20_000_000,
    };

    /// Takes the room for messages of so many bytes, as they count, and their files, if there is enough for all of them.
    pub fn take(&mut self, bytes: usize, files: &[Attachment]) -> bool {
        let mut left = *self;
        let fits = bytes <= left.bytes && files.iter().all(|file| left.take_file(file));
        if fits {
            left.bytes -= bytes;
            *self = left;
        }
        fits
    }

    fn take_file(&mut self, file: &Attachment) -> bool {
        let images = usize::from(file.is_image());
        let fits = images <= self.images && file.size <= self.file_bytes;
        if fits {
            self.images -= images;
            self.file_bytes -= file.size;
        }
        fits
    }

    /// Takes the room for the files of messages: the question's, then those of results, the newest first. What has none is
    /// left out.
    pub fn take_files(&mut self, messages: &mut [Message]) {
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
            leave_out(message, |file| !self.take_file(file));
        }
    }
}

/// About how many tokens this many bytes are.
pub(crate) fn tokens(bytes: usize) -> u64 {
    (bytes as u64).div_ceil(TOKEN_BYTES)
}

/// The bytes of a request, as they count.
pub(super) fn bytes_of(request: &ModelRequest) -> usize {
    let functions = request.functions.iter().map(|function| {
        function.name.len() + function.description.len() + function.parameters.text().len()
    });
    request.instruction.len()
        + functions.sum::<usize>()
        + request.messages.iter().map(message_bytes).sum::<usize>()
}

/// The bytes of a message, as they count.
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

/// The bytes of a file, as they count.
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

/// The message without its files, if it has some.
pub(crate) fn without_files(message: &Message) -> Message {
    let mut message = message.clone();
    leave_out(&mut message, |_| true);
    message
}

/// Puts a note in the place of some of a message's files, and returns the bytes that this saves.
fn leave_out(message: &mut Message, mut is_left_out: impl FnMut(&Attachment) -> bool) -> usize {
    let (Message::User { text, attachments }
    | Message::Result {
        text, attachments, ..
    }) = message
    else {
        return 0;
    };
    let (mut notes, mut saved) = (String::new(), 0_usize);
    attachments.retain(|file| {
        let is_left_out = is_left_out(file);
        if is_left_out {
            let (name, kind, size) = (&file.name, &file.media_type, file.size);
            let _ = write!(
                notes,
                "\n[`{name}` ({kind}, {size} bytes) is left out to make room]"
            );
            saved = saved.saturating_add(file_bytes(file));
        }
        !is_left_out
    });
    if !notes.is_empty() {
        *text = format!("{text}{notes}").into();
    }
    saved.saturating_sub(notes.len())
}

/// The bytes that may be sent to a model that takes this many tokens: a quarter is left for its answer.
pub(super) fn bytes_for(context_tokens: u64) -> usize {
    usize::try_from(context_tokens.saturating_mul(TOKEN_BYTES) / 4 * 3).unwrap_or(usize::MAX)
}

/// Cuts what is sent until `excess` bytes are saved or nothing is left to cut.
pub(super) fn cut(messages: &mut [Message], mut excess: usize) {
    for message in messages.iter_mut() {
        if excess > 0 && matches!(message, Message::Result { .. }) {
            let saved = leave_out(message, |_| true);
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
            let saved = leave_out(message, |file| file.name == largest);
            excess = excess.saturating_sub(saved);
        }
    }
}

/// Whether less can be sent in place of a request: earlier turns, files, or results that are longer than the cut.
pub(super) fn can_be_shorter(request: &ModelRequest) -> bool {
    let mut questions = 0;
    request.messages.iter().any(|message| match message {
        Message::User { attachments, .. } => {
            questions += 1;
            questions > 1 || !attachments.is_empty()
        }
        Message::Result {
            text, attachments, ..
        } => text.len() > 2 * CUT_BYTES || !attachments.is_empty(),
        Message::Assistant { .. } | Message::Notice { .. } => false,
    })
}

/// Cuts results, the oldest first, until `excess` bytes are saved or nothing is left to cut, and returns what is still too
/// much. No more than that is taken of any of them, and its beginning and end stay.
fn cut_results(messages: &mut [Message], mut excess: usize) -> usize {
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
    excess
}
