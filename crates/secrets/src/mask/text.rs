//! Masking of streamed text and of JSON.

use super::{MaskStream, Masks};
use serde_json::Value;
use std::borrow::Cow;

/// Masks text that arrives in chunks. Bytes that are not UTF-8 become `�` after masking.
#[derive(Debug)]
pub struct MaskTextStream {
    stream: MaskStream,
    /// An incomplete character.
    rest: Vec<u8>,
}

impl MaskTextStream {
    /// Adds the next chunk, and returns the output so far that later chunks cannot change.
    pub fn push(&mut self, chunk: impl AsRef<[u8]>) -> String {
        let bytes = self.stream.push(chunk.as_ref());
        self.rest.extend(bytes);
        let whole = match std::str::from_utf8(&self.rest) {
            Err(error) if error.error_len().is_none() => error.valid_up_to(),
            _ => self.rest.len(),
        };
        let rest = self.rest.split_off(whole);
        lossy(std::mem::replace(&mut self.rest, rest))
    }

    /// Starts again after a gap in the text. `hidden` is what follows the gap; it is not part of the output, because a value
    /// that started in the gap may end in it. To be sure, it needs [`Masks::max_echo_bytes`].
    pub fn restart(&mut self, hidden: &str) {
        self.rest.clear();
        self.stream.restart(hidden.as_bytes());
    }

    /// Returns the complete lines of what is held back, as [`MaskStream::end_lines`] does.
    pub fn end_lines(&mut self) -> String {
        let lines = self.stream.end_lines();
        if lines.is_empty() {
            return String::new();
        }
        self.rest.extend(lines);
        // Lines end with a complete character.
        lossy(std::mem::take(&mut self.rest))
    }

    /// Also masks the values that were added since the stream was created. Text that was already returned stays as it is.
    pub fn update(&mut self, masks: &Masks) {
        self.stream.update(masks);
    }

    /// Returns the rest of the output after the last chunk.
    pub fn finish(&mut self) -> String {
        let mut bytes = std::mem::take(&mut self.rest);
        bytes.extend(self.stream.finish());
        lossy(bytes)
    }
}

impl Masks {
    /// Returns a stream that masks text arriving in chunks, with the values known now.
    pub fn text_stream(&self) -> MaskTextStream {
        MaskTextStream {
            stream: self.stream(),
            rest: Vec::new(),
        }
    }

    /// Replaces echoes in a string. Returns whether there were any.
    pub fn mask_string(&self, text: &mut String) -> bool {
        let Cow::Owned(masked) = self.mask_text(text) else {
            return false;
        };
        *text = masked;
        true
    }

    /// Replaces echoes in all strings and field names of a JSON value. Returns whether there were any.
    pub fn mask_json(&self, value: &mut Value) -> bool {
        match value {
            Value::String(text) => self.mask_string(text),
            Value::Array(items) => {
                let masked = items.iter_mut().map(|item| self.mask_json(item));
                masked.fold(false, |any, is_masked| any | is_masked)
            }
            Value::Object(fields) => {
                let is_echo = |name: &String| matches!(self.mask_text(name), Cow::Owned(_));
                let mut any = false;
                if fields.keys().any(is_echo) {
                    any = true;
                    let all = std::mem::take(fields).into_iter();
                    *fields = all
                        .map(|(name, value)| (self.mask_text(&name).into_owned(), value))
                        .collect();
                }
                let masked = fields.values_mut().map(|field| self.mask_json(field));
                masked.fold(any, |any, is_masked| any | is_masked)
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => false,
        }
    }

    /// Replaces echoes in the bytes of a JSON message. Returns an empty message if it is not valid JSON or if an echo
    /// spans several strings.
    pub fn mask_json_bytes<'a>(&self, bytes: &'a [u8]) -> Cow<'a, [u8]> {
        let Cow::Owned(masked) = self.mask_bytes(bytes) else {
            return Cow::Borrowed(bytes);
        };
        let Ok(mut value) = serde_json::from_slice::<Value>(bytes) else {
            return Cow::Owned(Vec::new());
        };
        if self.mask_json(&mut value) {
            Cow::Owned(value.to_string().into_bytes())
        } else if spans_texts(bytes, &masked) {
            Cow::Owned(Vec::new())
        } else {
            Cow::Borrowed(bytes)
        }
    }

    /// Replaces echoes in a text that is usually JSON. Numbers are left unchanged, so that JSON stays valid. Returns
    /// `None` if nothing changes.
    pub fn mask_json_text(&self, text: &str) -> Option<String> {
        let Cow::Owned(masked) = self.mask_text(text) else {
            return None;
        };
        if let Ok(mut value) = serde_json::from_str::<Value>(text) {
            if self.mask_json(&mut value) {
                return Some(value.to_string());
            }
            if !spans_texts(text.as_bytes(), masked.as_bytes()) {
                return None;
            }
        }
        Some(masked)
    }
}

/// Returns whether masking removed quotes, because an echo spanned several strings. That happens if the secret itself
/// is JSON. An echo in a number removes no quotes.
fn spans_texts(original: &[u8], masked: &[u8]) -> bool {
    let quotes = |bytes: &[u8]| bytes.iter().filter(|byte| **byte == b'"').count();
    quotes(masked) < quotes(original)
}

fn lossy(bytes: Vec<u8>) -> String {
    match String::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) => String::from_utf8_lossy(error.as_bytes()).into_owned(),
    }
}
