//! Turns the bytes of a terminal into keys.

use super::Key;

const PASTE_START: &[u8] = b"\x1b[200~";
const PASTE_END: &[u8] = b"\x1b[201~";

/// The size in bytes from which a paste is returned in parts.
const MAX_PASTE: usize = 1 << 20;

/// The maximum length of an escape sequence. A longer one is discarded, and so is everything that was read with it.
const MAX_SEQUENCE: usize = 64;

/// The maximum length of a reply of the terminal.
const MAX_REPLY: usize = 4096;

/// Splits the bytes of a terminal into keys.
#[derive(Debug, Default)]
pub(super) struct KeyParser {
    bytes: Vec<u8>,
    /// During a paste: how many of the bytes were already searched for its end.
    pasted: Option<usize>,
}

/// What a parser found at the start of the bytes.
enum Parsed {
    /// A sequence of this length: a key, or `None` if lango does not use it.
    Key(Option<Key>, usize),
    PasteStart,
    /// The sequence is incomplete.
    Incomplete,
}

impl KeyParser {
    /// Adds bytes that were read.
    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// Adds bytes that were read right after a paste, and treats them as pasted text: a hostile text can contain the
    /// sequence that ends a paste, followed by keys.
    pub(super) fn push_pasted(&mut self, bytes: &[u8]) {
        self.pasted.get_or_insert(0);
        self.bytes.extend_from_slice(bytes);
        self.bytes.extend_from_slice(PASTE_END);
    }

    /// Whether a paste has started but not ended.
    pub(super) fn is_pasting(&self) -> bool {
        self.pasted.is_some()
    }

    /// Whether the last sequence is incomplete. It may also be the Escape key, whose byte starts every sequence.
    pub(super) fn is_incomplete(&self) -> bool {
        !self.bytes.is_empty() && self.pasted.is_none()
    }

    /// Whether the bytes may be a key that is also the start of longer sequences: Escape, or Alt with a bracket or an O.
    pub(super) fn may_be_escape(&self) -> bool {
        matches!(self.bytes[..], [0x1b] | [0x1b, b'[' | b'O'])
    }

    /// Whether the bytes are the start of a reply of the terminal, or Alt with the letter that starts one.
    pub(super) fn may_start_reply(&self) -> bool {
        matches!(self.bytes[..], [0x1b, b']' | b'P' | b'_' | b'^' | b'X'])
    }

    /// Returns the next key.
    pub(super) fn next_key(&mut self) -> Option<Key> {
        self.parse(false)
    }

    /// Returns the next key. An incomplete sequence counts as complete, because no more bytes arrived.
    pub(super) fn last_key(&mut self) -> Option<Key> {
        self.parse(true)
    }

    fn parse(&mut self, is_last: bool) -> Option<Key> {
        while !self.bytes.is_empty() {
            if self.pasted.is_some() {
                return self.take_paste();
            }
            match parse(&self.bytes, is_last) {
                Parsed::Key(key, length) => {
                    self.bytes.drain(..length);
                    if key.is_some() {
                        return key;
                    }
                }
                Parsed::PasteStart => {
                    self.bytes.drain(..PASTE_START.len());
                    self.pasted = Some(0);
                }
                Parsed::Incomplete => return None,
            }
        }
        None
    }

    /// Returns the pasted text once the paste has ended, or a part of it if it is long. Bytes after the end are pasted
    /// text too.
    fn take_paste(&mut self) -> Option<Key> {
        let searched = self.pasted.unwrap_or(0);
        let mut rest = self.bytes[searched..].windows(PASTE_END.len());
        let has_end = rest.any(|bytes| bytes == PASTE_END);
        let text = if has_end {
            self.pasted = None;
            std::mem::take(&mut self.bytes)
        } else {
            // The end may have arrived in part.
            let searched = self.bytes.len().saturating_sub(PASTE_END.len() - 1);
            self.pasted = Some(searched);
            if searched < MAX_PASTE {
                return None;
            }
            self.pasted = Some(0);
            let length = start_of_character(&self.bytes, searched);
            self.bytes.drain(..length).collect()
        };
        let text = String::from_utf8_lossy(&text);
        let marks = [PASTE_START, PASTE_END].map(String::from_utf8_lossy);
        let [start, end] = marks;
        Some(Key::Paste(text.replace(&*start, "").replace(&*end, "")))
    }
}

/// Returns the start of the character at `position`.
fn start_of_character(bytes: &[u8], position: usize) -> usize {
    let first = position.saturating_sub(3);
    let is_start = |at: &usize| bytes[*at] & 0xc0 != 0x80;
    (first..=position).rev().find(is_start).unwrap_or(position)
}

/// Parses the first key. With `is_last`, an incomplete sequence counts as complete.
fn parse(bytes: &[u8], is_last: bool) -> Parsed {
    match bytes {
        [0x1b] if is_last => Parsed::Key(Some(Key::Escape), 1),
        [0x1b] => Parsed::Incomplete,
        [0x1b, 0x1b, ..] => Parsed::Key(Some(Key::Escape), 1),
        [0x1b, b'[' | b'O'] if is_last => Parsed::Key(Some(Key::Alt(char::from(bytes[1]))), 2),
        [0x1b, b'['] | [0x1b, b'O'] | [0x1b, b'[', b'['] if !is_last => Parsed::Incomplete,
        // A report of the mouse: three bytes follow.
        [0x1b, b'[', b'M', rest @ ..] if rest.len() < 3 && !is_last => Parsed::Incomplete,
        [0x1b, b'[', b'M', rest @ ..] => Parsed::Key(None, 3 + rest.len().min(3)),
        // Function keys of the Linux console.
        [0x1b, b'[', b'[', ..] => Parsed::Key(None, bytes.len().min(4)),
        [0x1b, b'[', rest @ ..] => parse_sequence(rest, is_last),
        [0x1b, b']' | b'P' | b'_' | b'^' | b'X', rest @ ..] => parse_reply(bytes[1], rest, is_last),
        // Enter of the number block.
        [0x1b, b'O', b'M', ..] => Parsed::Key(Some(Key::Enter), 3),
        [0x1b, b'O', letter, ..] => Parsed::Key(named_key(*letter, Modifiers::default()), 3),
        [0x1b, rest @ ..] => match parse_character(rest, is_last) {
            Parsed::Key(key, length) => Parsed::Key(key.map(with_alt), length + 1),
            other => other,
        },
        bytes => parse_character(bytes, is_last),
    }
}

/// Skips a reply of the terminal (OSC, DCS or APC). It ends with a bell, or with `ESC` and a backslash. No other control
/// character is part of one: it is a key, which was pressed after Alt and the letter that starts a reply.
fn parse_reply(kind: u8, rest: &[u8], is_last: bool) -> Parsed {
    let end = (0..rest.len()).find_map(|at| match rest[at..] {
        [0x07, ..] => Some(at + 1),
        [0x1b, b'\\', ..] => Some(at + 2),
        [byte, ..] if byte.is_ascii_control() && byte != 0x1b => Some(at),
        _ => None,
    });
    match end {
        Some(end) => Parsed::Key(None, end + 2),
        _ if rest.is_empty() && is_last => Parsed::Key(Some(Key::Alt(char::from(kind))), 2),
        _ if is_last || rest.len() > MAX_REPLY => Parsed::Key(None, rest.len() + 2),
        _ => Parsed::Incomplete,
    }
}

/// Parses a character or a control character.
fn parse_character(bytes: &[u8], is_last: bool) -> Parsed {
    let key = match bytes[0] {
        b'\r' => Key::Enter,
        // Ctrl-J.
        b'\n' => Key::NewLine,
        b'\t' => Key::Tab,
        0x7f => Key::Backspace,
        // Ctrl-H is what some terminals send for Ctrl-Backspace.
        0x08 => Key::DeleteWord,
        0 => Key::Ctrl(' '),
        letter @ 0x01..=0x1a => Key::Ctrl(char::from(letter - 1 + b'a')),
        digit @ 0x1b..=0x1f => Key::Ctrl(char::from(digit - 0x1c + b'4')),
        first => {
            let length = match first {
                0x00..=0x7f => 1,
                0xc0..=0xdf => 2,
                0xe0..=0xef => 3,
                0xf0..=0xf7 => 4,
                _ => return Parsed::Key(None, 1),
            };
            let Some(character) = bytes.get(..length) else {
                return if is_last {
                    Parsed::Key(None, 1)
                } else {
                    Parsed::Incomplete
                };
            };
            let Ok(character) = std::str::from_utf8(character) else {
                return Parsed::Key(None, 1);
            };
            return Parsed::Key(character.chars().next().map(Key::Char), length);
        }
    };
    Parsed::Key(Some(key), 1)
}

fn with_alt(key: Key) -> Key {
    match key {
        Key::Char(letter) => Key::Alt(letter),
        Key::Enter => Key::NewLine,
        Key::Backspace => Key::DeleteWord,
        key => key,
    }
}

/// Parses a control sequence after its `ESC [`: parameters, then a letter.
fn parse_sequence(rest: &[u8], is_last: bool) -> Parsed {
    let ends = |byte: &u8| !(0x20..0x40).contains(byte);
    let end = match rest.iter().take(MAX_SEQUENCE).position(ends) {
        Some(end) => end,
        None if is_last || rest.len() >= MAX_SEQUENCE => {
            return Parsed::Key(None, rest.len() + 2);
        }
        None => return Parsed::Incomplete,
    };
    let last = rest[end];
    if !(0x40..0x7f).contains(&last) {
        // The sequence was broken off; what follows is a key of its own.
        return Parsed::Key(None, end + 2);
    }
    let length = end + 3;
    // No key, but a reply of the terminal, or its mouse.
    if let [b'<'..=b'?', ..] = rest {
        return Parsed::Key(None, length);
    }
    let text = std::str::from_utf8(&rest[..end]).unwrap_or_default();
    let number = |text: &str| text.split(':').next().and_then(|text| text.parse().ok());
    let mut numbers = text.split(';').map(|text| number(text).unwrap_or(1u32));
    let first = numbers.next().unwrap_or(1);
    let second = numbers.next().unwrap_or(1);
    let modifiers = Modifiers::of(second);
    // A program that used the terminal before may have made it report when keys are released, too.
    if text
        .split(';')
        .nth(1)
        .is_some_and(|text| text.ends_with(":3"))
    {
        return Parsed::Key(None, length);
    }
    let key = match last {
        b'~' if first == 200 => return Parsed::PasteStart,
        b'~' => match first {
            1 | 7 => Some(Key::Home),
            4 | 8 => Some(Key::End),
            3 => Some(Key::Delete),
            5 => Some(Key::PageUp),
            6 => Some(Key::PageDown),
            // How xterm sends other keys with modifiers.
            27 => numbers.next().and_then(|code| coded_key(code, modifiers)),
            _ => None,
        },
        // How newer terminals send keys with modifiers.
        b'u' => coded_key(first, modifiers),
        letter => named_key(letter, modifiers),
    };
    Parsed::Key(key, length)
}

/// The modifiers that were held with a key.
#[derive(Debug, Clone, Copy, Default)]
struct Modifiers {
    shift: bool,
    alt: bool,
    ctrl: bool,
}

impl Modifiers {
    fn of(parameter: u32) -> Self {
        let bits = parameter.saturating_sub(1);
        Self {
            shift: bits & 1 != 0,
            alt: bits & 2 != 0,
            ctrl: bits & 4 != 0,
        }
    }
}

/// Returns the key for the final letter of a control sequence.
fn named_key(letter: u8, modifiers: Modifiers) -> Option<Key> {
    let jumps = modifiers.ctrl || modifiers.alt;
    Some(match letter {
        b'A' => Key::Up,
        b'B' => Key::Down,
        b'C' if jumps => Key::WordRight,
        b'C' => Key::Right,
        b'D' if jumps => Key::WordLeft,
        b'D' => Key::Left,
        b'H' => Key::Home,
        b'F' => Key::End,
        b'Z' => Key::BackTab,
        _ => return None,
    })
}

/// Returns the key for a code point with modifiers.
fn coded_key(code: u32, modifiers: Modifiers) -> Option<Key> {
    let Modifiers { shift, alt, ctrl } = modifiers;
    Some(match char::from_u32(code)? {
        '\r' if alt || shift => Key::NewLine,
        '\r' => Key::Enter,
        '\t' if shift => Key::BackTab,
        '\t' => Key::Tab,
        '\u{1b}' => Key::Escape,
        '\u{8}' | '\u{7f}' if ctrl || alt => Key::DeleteWord,
        '\u{8}' | '\u{7f}' => Key::Backspace,
        'j' if ctrl => Key::NewLine,
        letter if ctrl => Key::Ctrl(letter.to_ascii_lowercase()),
        letter if alt => Key::Alt(letter),
        letter if letter.is_control() => return None,
        letter if shift => letter.to_uppercase().next().map(Key::Char)?,
        letter => Key::Char(letter),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(pieces: &[&[u8]]) -> Vec<Key> {
        let mut parser = KeyParser::default();
        let mut keys = Vec::new();
        for piece in pieces {
            parser.push(piece);
            keys.extend(std::iter::from_fn(|| parser.next_key()));
        }
        keys.extend(std::iter::from_fn(|| parser.last_key()));
        keys
    }

    #[test]
    fn only_escape_and_what_alt_sends_may_be_whole_keys() {
        for (bytes, may_be_key) in [
            ("\u{1b}", true),
            ("\u{1b}[", true),
            ("\u{1b}O", true),
            ("\u{1b}[20", false),
            ("\u{1b}[M", false),
            ("\u{1b}]11;rgb:", false),
            ("\u{1b}P", false),
        ] {
            let mut parser = KeyParser::default();
            parser.push(bytes.as_bytes());
            assert_eq!(parser.next_key(), None);
            assert_eq!(parser.may_be_escape(), may_be_key, "{bytes:?}");
        }
    }

    #[test]
    fn every_key_is_told_from_the_bytes_that_terminals_send() {
        for (bytes, key) in [
            ("a", Key::Char('a')),
            ("é", Key::Char('é')),
            ("世", Key::Char('世')),
            ("\r", Key::Enter),
            ("\n", Key::NewLine),
            ("\u{1b}\r", Key::NewLine),
            ("\u{1b}[13;2u", Key::NewLine),
            ("\u{1b}[121;1:1u", Key::Char('y')),
            ("\u{1b}[27;2;13~", Key::NewLine),
            ("\t", Key::Tab),
            ("\u{1b}[Z", Key::BackTab),
            ("\u{1b}", Key::Escape),
            ("\u{1b}[27u", Key::Escape),
            ("\u{3}", Key::Ctrl('c')),
            ("\u{1b}[99;5u", Key::Ctrl('c')),
            ("\u{4}", Key::Ctrl('d')),
            ("\u{1c}", Key::Ctrl('4')),
            ("\u{1b}b", Key::Alt('b')),
            ("\u{1b}[", Key::Alt('[')),
            ("\u{7f}", Key::Backspace),
            ("\u{8}", Key::DeleteWord),
            ("\u{1b}\u{7f}", Key::DeleteWord),
            ("\u{1b}[A", Key::Up),
            ("\u{1b}OB", Key::Down),
            ("\u{1b}[C", Key::Right),
            ("\u{1b}[1;5C", Key::WordRight),
            ("\u{1b}[1;3D", Key::WordLeft),
            ("\u{1b}[H", Key::Home),
            ("\u{1b}[4~", Key::End),
            ("\u{1b}[3~", Key::Delete),
            ("\u{1b}[5~", Key::PageUp),
            ("\u{1b}[6~", Key::PageDown),
        ] {
            let expected = [key];
            assert_eq!(keys(&[bytes.as_bytes()]), expected, "{bytes:?}");
            let split: Vec<&[u8]> = bytes.as_bytes().chunks(1).collect();
            assert_eq!(keys(&split), expected, "{bytes:?} byte by byte");
        }
    }

    #[test]
    fn what_no_key_sends_is_skipped_without_the_keys_around_it() {
        for unknown in [
            &b"\x1b[?62;22c"[..],
            b"\x1b[<0;10;10M",
            b"\x1b[M yy",
            b"\x1b[[A",
            b"\x1bOP",
            b"\x1b[15~",
            b"\x1b[121;1:3u",
            b"\xff\xfe",
            b"\xe4\xb8",
            b"\x1b]11;rgb:yy/yy/yy\x07",
            b"\x1bP>|kitty(0.35.2)\x1b\\",
            b"\x1b_Gi=31;ENOENT:y\x1b\\",
        ] {
            let typed = [&b"a"[..], unknown, b"\x1b[B"].concat();
            assert_eq!(keys(&[&typed]), [Key::Char('a'), Key::Down], "{unknown:?}");
        }
        assert_eq!(keys(&[b"\x1b[12\x03"]), [Key::Ctrl('c')]);
        assert_eq!(keys(&[b"\x1b\x1b[A"]), [Key::Escape, Key::Up]);
        let endless = [&b"\x1b["[..], &[b'1'; 70], b"y"].concat();
        assert_eq!(keys(&[&endless]), []);
        assert_eq!(keys(&[b"\x1b]52;c;y"]), []);
    }

    #[test]
    fn a_control_character_after_alt_and_the_start_of_a_reply_is_a_key() {
        for start in [b"\x1b]", b"\x1bP", b"\x1b_", b"\x1b^", b"\x1bX"] {
            let mut parser = KeyParser::default();
            parser.push(start);
            assert!(parser.may_start_reply());
            parser.push(b"typed");
            assert!(!parser.may_start_reply());
            assert_eq!(parser.next_key(), None);
            parser.push(b"\x03y");
            assert_eq!(parser.next_key(), Some(Key::Ctrl('c')));
            assert_eq!(parser.next_key(), Some(Key::Char('y')));
        }
    }

    #[test]
    fn pasted_text_is_never_taken_for_keys() {
        let paste = b"x\x1b[200~one\r\x03two\x1b[A\x1b[201~";
        let pasted = Key::Paste("one\r\u{3}two\u{1b}[A".to_owned());
        let expected = [Key::Char('x'), pasted];
        assert_eq!(keys(&[paste]), expected);
        let split: Vec<&[u8]> = paste.chunks(1).collect();
        assert_eq!(keys(&split), expected);
        let hostile = b"\x1b[200~harmless\x1b[201~y\r\x1b[201~";
        assert_eq!(keys(&[hostile]), [Key::Paste("harmlessy\r".to_owned())]);
        let mut parser = KeyParser::default();
        parser.push_pasted(b"y\r\x1b[201~");
        assert_eq!(parser.next_key(), Some(Key::Paste("y\r".to_owned())));
        assert_eq!(parser.next_key(), None);
    }

    #[test]
    fn nothing_of_a_long_paste_is_lost() {
        let text = "aé世🙂\n".repeat(300_000);
        let bytes = [PASTE_START, text.as_bytes(), PASTE_END].concat();
        let pieces: Vec<&[u8]> = bytes.chunks(4093).collect();
        let mut pasted = String::new();
        for key in keys(&pieces) {
            let Key::Paste(part) = key else {
                panic!("{key:?} is not pasted");
            };
            assert!(part.len() <= MAX_PASTE + 4096, "{}", part.len());
            pasted.push_str(&part);
        }
        assert!(pasted == text, "{} of {} bytes", pasted.len(), text.len());
    }
}
