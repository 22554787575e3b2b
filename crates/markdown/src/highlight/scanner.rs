//! Splits a line of code into tokens.

use super::language::{Language, Quote};
use super::{LineState, Token, TokenKind};

/// Returns the tokens of a line, and what is open at its end.
pub(super) fn scan(language: &Language, line: &str, state: LineState) -> (Vec<Token>, LineState) {
    let mut scanner = Scanner {
        language,
        line,
        at: 0,
        tokens: Vec::new(),
        state,
    };
    scanner.run();
    (scanner.tokens, scanner.state)
}

struct Scanner<'a> {
    language: &'a Language,
    line: &'a str,
    at: usize,
    tokens: Vec<Token>,
    state: LineState,
}

impl<'a> Scanner<'a> {
    fn run(&mut self) {
        if self.language.key_end == Some('=') && self.line.trim_start().starts_with('[') {
            self.push(self.line.len(), TokenKind::Keyword);
        }
        while self.at < self.line.len() {
            match self.state {
                LineState::Comment { rule, depth } => self.comment(0, rule, depth),
                LineState::String { rule } => self.string(0, rule),
                LineState::LineComment => self.line_comment(),
                _ => self.code(),
            }
        }
    }

    fn rest(&self) -> &'a str {
        &self.line[self.at..]
    }

    fn push(&mut self, length: usize, kind: TokenKind) {
        self.tokens.push(Token {
            range: self.at..self.at + length,
            kind,
        });
        self.at += length;
    }

    fn code(&mut self) {
        let rest = self.rest();
        let Some(letter) = rest.chars().next() else {
            return;
        };
        let block_comments = self.language.block_comments.iter();
        let mut rules = block_comments.enumerate();
        if let Some((rule, (start, _))) = rules.find(|(_, (start, _))| rest.starts_with(start)) {
            self.comment(start.len(), rule, 1);
        } else if self.starts_line_comment() {
            self.line_comment();
        } else if let Some((rule, quote)) = self.quote() {
            self.string(quote.start.len(), rule);
        } else if self.language.has_lifetimes && letter == '\'' {
            self.character_or_lifetime();
        } else if letter.is_ascii_digit() {
            self.push(number_length(rest), TokenKind::Literal);
        } else if self.language.sigils.contains(letter) {
            self.variable(letter);
        } else if self.is_name(letter) {
            self.name();
        } else {
            self.at += letter.len_utf8();
        }
    }

    /// Returns whether a comment starts here. A `#` inside a word is no comment.
    fn starts_line_comment(&self) -> bool {
        let is_after_space = self.line[..self.at]
            .chars()
            .next_back()
            .is_none_or(char::is_whitespace);
        self.language.line_comments.iter().any(|start| {
            self.rest().starts_with(start) && (is_after_space || !matches!(*start, "#" | ";" | "%"))
        })
    }

    fn quote(&self) -> Option<(usize, &'static Quote)> {
        let mut quotes = self.language.quotes.iter().enumerate();
        quotes.find(|(_, quote)| self.rest().starts_with(quote.start))
    }

    fn line_comment(&mut self) {
        self.push(self.rest().len(), TokenKind::Comment);
        self.state = LineState::LineComment;
    }

    /// Scans a comment whose start has the length `start`, up to its end or the end of the line.
    fn comment(&mut self, start: usize, rule: usize, mut depth: usize) {
        let (open, close) = self.language.block_comments[rule];
        let rest = self.rest();
        let mut end = start;
        while depth > 0 && end < rest.len() {
            let tail = &rest[end..];
            if tail.starts_with(close) {
                (end, depth) = (end + close.len(), depth - 1);
            } else if self.language.nests_comments && tail.starts_with(open) {
                (end, depth) = (end + open.len(), depth + 1);
            } else {
                end += tail.chars().next().map_or(1, char::len_utf8);
            }
        }
        self.state = match depth {
            0 => LineState::Nothing,
            _ => LineState::Comment { rule, depth },
        };
        self.push(end, TokenKind::Comment);
    }

    /// Scans a string whose start has the length `start`, up to its end or the end of the line.
    fn string(&mut self, start: usize, rule: usize) {
        let quote = &self.language.quotes[rule];
        let rest = self.rest();
        let mut end = start;
        self.state = LineState::String { rule };
        while end < rest.len() {
            let tail = &rest[end..];
            if quote.has_escapes && tail.starts_with('\\') {
                let escaped = tail.chars().nth(1).map_or(0, char::len_utf8);
                end += 1 + escaped;
            } else if tail.starts_with(quote.end) {
                end += quote.end.len();
                self.state = LineState::Nothing;
                break;
            } else {
                end += tail.chars().next().map_or(1, char::len_utf8);
            }
        }
        let after = rest[end..].trim_start();
        let is_key = self
            .language
            .key_end
            .is_some_and(|end| after.starts_with(end));
        let kind = if is_key {
            TokenKind::Name
        } else {
            TokenKind::String
        };
        self.push(end, kind);
    }

    fn character_or_lifetime(&mut self) {
        let rest = &self.rest()[1..];
        let content = match rest.strip_prefix('\\') {
            Some(escaped) => escaped.find('\'').map(|end| 1 + end.max(1)),
            None => rest.chars().next().map(char::len_utf8),
        };
        let is_character =
            |length: &usize| rest.get(*length..).is_some_and(|it| it.starts_with('\''));
        match content.filter(is_character) {
            Some(length) => self.push(length + 2, TokenKind::String),
            None => self.at += 1 + self.name_length(rest),
        }
    }

    fn variable(&mut self, sigil: char) {
        let rest = &self.rest()[sigil.len_utf8()..];
        let length = match (rest.chars().next(), rest.find('}')) {
            (Some('{'), Some(end)) => end + 1,
            _ => self.name_length(rest),
        };
        if length > 0 {
            self.push(sigil.len_utf8() + length, TokenKind::Name);
        } else {
            self.at += sigil.len_utf8();
        }
    }

    fn name(&mut self) {
        let rest = self.rest();
        let length = self.name_length(rest).max(1);
        let (name, after) = rest.split_at(length);
        let is_in = |list: &str| {
            list.split(' ').any(|word| {
                word == name || (self.language.ignores_case && word.eq_ignore_ascii_case(name))
            })
        };
        let is_call =
            self.language.has_calls && (after.starts_with('(') || after.starts_with("!("));
        let kind = if is_in(self.language.keywords) {
            Some(TokenKind::Keyword)
        } else if is_in(self.language.literals) {
            Some(TokenKind::Literal)
        } else if is_call || self.is_key(after) {
            Some(TokenKind::Name)
        } else {
            None
        };
        match kind {
            Some(kind) => self.push(length, kind),
            None => self.at += length,
        }
    }

    /// Returns whether the name before `after` is a key: the first word of its line, apart from list markers.
    fn is_key(&self, after: &str) -> bool {
        let Some(end) = self.language.key_end else {
            return false;
        };
        let before = self.line[..self.at].trim_start();
        let is_first = before.chars().all(|it| "- \t{,".contains(it));
        let value = after.trim_start().strip_prefix(end);
        is_first && value.is_some_and(|value| end == '=' || !value.starts_with(is_name_start))
    }

    fn name_length(&self, text: &str) -> usize {
        text.find(|letter| !self.is_name(letter))
            .unwrap_or(text.len())
    }

    fn is_name(&self, letter: char) -> bool {
        is_name_start(letter)
            || letter.is_ascii_digit()
            || self.language.name_characters.contains(letter)
    }
}

fn is_name_start(letter: char) -> bool {
    letter.is_alphabetic() || letter == '_'
}

fn number_length(text: &str) -> usize {
    let bytes = text.as_bytes();
    let is_part = |index: usize| match bytes[index] {
        b'.' => bytes.get(index + 1).is_some_and(u8::is_ascii_digit),
        byte => byte.is_ascii_alphanumeric() || byte == b'_',
    };
    (0..bytes.len())
        .find(|index| !is_part(*index))
        .unwrap_or(bytes.len())
}
