//! Key names, and the events that a keyboard sends for them.

use super::site::focused_frame;
use crate::{BrowserError, Page};
use serde_json::{Value, json};

/// A key with its modifiers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct KeyPress {
    key: String,
    code: String,
    virtual_key: u32,
    /// The text that the key inserts into a field.
    text: Option<String>,
    modifiers: u32,
}

/// The modifier keys, each with its bit, code and virtual key code in the DevTools protocol.
const MODIFIERS: [(&str, u32, &str, u32); 4] = [
    ("Alt", 1, "AltLeft", 18),
    ("Control", 2, "ControlLeft", 17),
    ("Meta", 4, "MetaLeft", 91),
    ("Shift", 8, "ShiftLeft", 16),
];

/// The named keys, each with its virtual key code and the text that it inserts.
const NAMED_KEYS: [(&str, u32, Option<&str>); 17] = [
    ("Enter", 13, Some("\r")),
    ("Tab", 9, None),
    ("Escape", 27, None),
    ("Backspace", 8, None),
    ("Delete", 46, None),
    ("Insert", 45, None),
    ("ArrowLeft", 37, None),
    ("ArrowUp", 38, None),
    ("ArrowRight", 39, None),
    ("ArrowDown", 40, None),
    ("Home", 36, None),
    ("End", 35, None),
    ("PageUp", 33, None),
    ("PageDown", 34, None),
    ("Space", 32, Some(" ")),
    ("CapsLock", 20, None),
    ("ContextMenu", 93, None),
];

/// Returns the protocol's bit mask for modifier keys.
pub(super) fn modifier_bits(names: &[String]) -> Result<u32, BrowserError> {
    names.iter().try_fold(0, |bits, name| {
        Ok(bits | modifier(name).ok_or_else(|| unknown(name))?.1)
    })
}

fn modifier(name: &str) -> Option<&'static (&'static str, u32, &'static str, u32)> {
    let name = match name.to_ascii_lowercase().as_str() {
        "ctrl" => "Control",
        "cmd" | "command" => "Meta",
        "option" => "Alt",
        _ => name,
    };
    MODIFIERS
        .iter()
        .find(|(own, ..)| own.eq_ignore_ascii_case(name))
}

impl KeyPress {
    /// Parses a key with modifiers, such as `Enter`, `a` or `Control+Shift+K`.
    pub(super) fn parse(text: &str) -> Result<Self, BrowserError> {
        // A trailing `+` is the key itself.
        let (modifier_names, key) = match text.char_indices().rev().skip(1).find(|(_, c)| *c == '+')
        {
            Some((at, _)) => (&text[..at], &text[at + 1..]),
            None => ("", text),
        };
        let names: Vec<String> = modifier_names
            .split('+')
            .filter(|name| !name.is_empty())
            .map(str::to_owned)
            .collect();
        let modifiers = modifier_bits(&names)?;
        let mut press = Self::of_key(key).ok_or_else(|| unknown(text))?;
        press.modifiers = modifiers;
        // With these modifiers a key is a command and inserts no text.
        if modifiers & (1 | 2 | 4) != 0 {
            press.text = None;
        } else if modifiers == 8
            && press
                .text
                .as_ref()
                .is_some_and(|text| text.len() == 1 && text != "\r")
        {
            press.text = press.text.map(|text| text.to_uppercase());
            press.key = press.key.to_uppercase();
        }
        Ok(press)
    }

    /// Returns the key that types a character.
    pub(super) fn of_character(c: char) -> Self {
        let upper = c.to_ascii_uppercase();
        let (code, virtual_key) = match c {
            'a'..='z' | 'A'..='Z' => (format!("Key{upper}"), u32::from(upper)),
            '0'..='9' => (format!("Digit{c}"), u32::from(c)),
            ' ' => ("Space".to_owned(), 32),
            _ => (String::new(), 0),
        };
        Self {
            key: c.to_string(),
            code,
            virtual_key,
            text: Some(c.to_string()),
            modifiers: 0,
        }
    }

    fn of_key(key: &str) -> Option<Self> {
        let alias = match key {
            "Return" => "Enter",
            "Esc" => "Escape",
            "Del" => "Delete",
            "Left" => "ArrowLeft",
            "Up" => "ArrowUp",
            "Right" => "ArrowRight",
            "Down" => "ArrowDown",
            " " => "Space",
            key => key,
        };
        let named = NAMED_KEYS
            .iter()
            .find(|(name, ..)| name.eq_ignore_ascii_case(alias));
        if let Some((name, virtual_key, text)) = named {
            return Some(Self {
                key: if *name == "Space" {
                    " ".to_owned()
                } else {
                    (*name).to_owned()
                },
                code: (*name).to_owned(),
                virtual_key: *virtual_key,
                text: text.map(str::to_owned),
                modifiers: 0,
            });
        }
        let function: Option<u32> = alias
            .strip_prefix(['F', 'f'])
            .and_then(|number| number.parse().ok());
        if let Some(number @ 1..=12) = function {
            return Some(Self {
                key: format!("F{number}"),
                code: format!("F{number}"),
                virtual_key: 111 + number,
                text: None,
                modifiers: 0,
            });
        }
        if let Some((name, bit, code, virtual_key)) = modifier(alias) {
            return Some(Self {
                key: (*name).to_owned(),
                code: (*code).to_owned(),
                virtual_key: *virtual_key,
                text: None,
                modifiers: *bit,
            });
        }
        let mut characters = alias.chars();
        let first = characters.next()?;
        characters
            .next()
            .is_none()
            .then(|| Self::of_character(first))
    }

    /// Converts the key to an argument of the script that types text.
    pub(super) fn to_json(&self) -> Value {
        json!([self.key, self.code, self.virtual_key])
    }

    fn event(&self, kind: &str) -> Value {
        let mut event = json!({
            "type": kind,
            "key": self.key,
            "code": self.code,
            "windowsVirtualKeyCode": self.virtual_key,
            "modifiers": self.modifiers,
        });
        if kind == "keyDown"
            && let Some(text) = &self.text
        {
            event["text"] = json!(text);
            event["unmodifiedText"] = json!(text);
        }
        event
    }
}

fn unknown(key: &str) -> BrowserError {
    BrowserError::Argument {
        message: format!(
            "unknown key `{}`; use a character, Enter, Tab, Escape, Backspace, Delete, Arrow keys, Home, End, PageUp, \
             PageDown, Space or F1 to F12, optionally after Control, Shift, Alt or Meta, such as `Control+A`",
            crate::notice::shorten(key)
        ),
    }
}

impl Page {
    /// Presses and releases a key in the focused frame, which must belong to the host that the call may contact. Sends
    /// the key to that frame's session, so a key for an out-of-process frame reaches no other frame. The main process
    /// forwards a key to the element that is focused when the key arrives, so the host is checked immediately before
    /// sending. A frame that takes the focus in between gets the key.
    pub(super) async fn press(
        &self,
        press: &KeyPress,
        host: Option<&str>,
    ) -> Result<(), BrowserError> {
        self.expect_alive()?;
        let frame = focused_frame(self).await?;
        if let Some(host) = host
            && frame.host.as_deref() != Some(host)
        {
            return Err(BrowserError::FocusMoved {
                host: frame.host.unwrap_or_default(),
            });
        }
        // For keys without text the browser expects the raw event.
        let down = if press.text.is_some() {
            "keyDown"
        } else {
            "rawKeyDown"
        };
        for kind in [down, "keyUp"] {
            let _: Value = frame
                .session
                .call("Input.dispatchKeyEvent", press.event(kind))
                .await?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_parsed_with_their_modifiers() {
        let press = KeyPress::parse("Control+Shift+k").unwrap();
        assert_eq!(
            (press.code.as_str(), press.modifiers, press.text),
            ("KeyK", 10, None)
        );
        let press = KeyPress::parse("Enter").unwrap();
        assert_eq!((press.virtual_key, press.text.as_deref()), (13, Some("\r")));
        assert_eq!(KeyPress::parse("+").unwrap().text.as_deref(), Some("+"));
        assert_eq!(KeyPress::parse("Control++").unwrap().key, "+");
        assert_eq!(
            KeyPress::parse("Shift+a").unwrap().text.as_deref(),
            Some("A")
        );
        assert_eq!(KeyPress::parse("ctrl+ArrowDown").unwrap().modifiers, 2);
        assert_eq!(KeyPress::parse("F12").unwrap().virtual_key, 123);
        assert_eq!(KeyPress::parse("ä").unwrap().text.as_deref(), Some("ä"));
    }

    #[test]
    fn an_unknown_key_is_an_error_that_names_the_known_ones() {
        for text in ["", "Hyper+a", "Entre", "F13", "ab"] {
            let error = KeyPress::parse(text).unwrap_err().to_string();
            assert!(error.contains("PageDown"), "{text}: {error}");
        }
    }
}
