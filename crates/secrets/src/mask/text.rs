//! Masks for text in pieces and for JSON.

use super::{MaskStream, Masks};
use serde_json::Value;
use std::borrow::Cow;

/// Masks text that arrives in pieces. Bytes that are not UTF-8 become `�` after they were compared.
#[derive(Debug)]
pub struct MaskText {
    stream: MaskStream,
    /// The beginning of a character.
    rest: Vec<u8>,
}

impl MaskText {
    /// Takes the next piece, and returns the text that is decided.
    pub fn push(&mut self, piece: impl AsRef<[u8]>) -> String {
        let bytes = self.stream.push(piece.as_ref());
        self.rest.extend(bytes);
        let whole = match std::str::from_utf8(&self.rest) {
            Err(error) if error.error_len().is_none() => error.valid_up_to(),
            _ => self.rest.len(),
        };
        let rest = self.rest.split_off(whole);
        lossy(std::mem::replace(&mut self.rest, rest))
    }

    /// Returns the rest after the last piece.
    pub fn finish(&mut self) -> String {
        let mut bytes = std::mem::take(&mut self.rest);
        bytes.extend(self.stream.finish());
        lossy(bytes)
    }
}

impl Masks {
    /// Masks text that arrives in pieces, with the values known now.
    pub fn text_stream(&self) -> MaskText {
        MaskText {
            stream: self.stream(),
            rest: Vec::new(),
        }
    }

    /// Replaces echoes in a text. Returns whether there were any.
    pub fn mask_string(&self, text: &mut String) -> bool {
        let Cow::Owned(masked) = self.mask_text(text) else {
            return false;
        };
        *text = masked;
        true
    }

    /// Replaces echoes in all texts and names of a JSON value. Returns whether there were any.
    pub fn mask_json(&self, value: &mut Value) -> bool {
        match value {
            Value::String(text) => self.mask_string(text),
            Value::Array(items) => {
                let masked = items.iter_mut().map(|item| self.mask_json(item));
                masked.fold(false, |any, one| any | one)
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
                masked.fold(any, |any, one| any | one)
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => false,
        }
    }

    /// Replaces echoes in the bytes of a JSON message. The message becomes empty if an echo is not inside of its texts.
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

    /// Replaces echoes in a text that is JSON in most cases. Numbers stay as they are, so that JSON stays JSON.
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

/// Returns whether masks removed quotes: an echo spanned several texts, as that of a secret that is JSON itself does. An echo
/// in a number removes none.
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
