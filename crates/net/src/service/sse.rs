//! A parser for server-sent events that buffers at most one event of a given size.

use std::collections::VecDeque;
use std::fmt;

/// One event of a stream.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SseEvent {
    /// The field `event`.
    pub kind: Option<String>,
    /// The `data` lines, joined with line feeds; `None` if the event has none.
    pub data: Option<String>,
    pub id: Option<String>,
    /// How long to wait before reconnecting, in milliseconds.
    pub retry: Option<u64>,
}

impl SseEvent {
    fn bytes(&self) -> usize {
        let length = |text: &Option<String>| text.as_ref().map_or(0, String::len);
        length(&self.kind) + length(&self.data) + length(&self.id)
    }
}

/// The error for an event that is longer than the limit of its parser.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EventTooLong {
    /// In bytes.
    pub limit: usize,
}

impl fmt::Display for EventTooLong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "an event of more than {} bytes", self.limit)
    }
}

impl std::error::Error for EventTooLong {}

/// Splits a byte stream into events. Chunks may end anywhere, even inside a character or a line end.
pub struct SseParser {
    limit: usize,
    accepts_bare_json: bool,
    line: Vec<u8>,
    /// Whether the last byte was a carriage return, so a line feed after it is part of the same line end.
    is_after_return: bool,
    event: SseEvent,
    /// Whether the current event consists of JSON without `data:`.
    is_bare: bool,
    complete: VecDeque<SseEvent>,
}

impl SseParser {
    /// Creates a parser for events of at most `limit` bytes.
    pub fn new(limit: usize) -> Self {
        Self {
            limit,
            accepts_bare_json: false,
            line: Vec::new(),
            is_after_return: false,
            event: SseEvent::default(),
            is_bare: false,
            complete: VecDeque::new(),
        }
    }

    /// Also accepts JSON without `data:` as the data of an event. Some model servers send errors like that in
    /// mid-stream.
    #[must_use]
    pub fn with_bare_json(mut self) -> Self {
        self.accepts_bare_json = true;
        self
    }

    /// Adds the next bytes of the stream.
    pub fn push(&mut self, mut bytes: &[u8]) -> Result<(), EventTooLong> {
        while let Some(&first) = bytes.first() {
            if std::mem::take(&mut self.is_after_return) && first == b'\n' {
                bytes = &bytes[1..];
                continue;
            }
            let end = bytes.iter().position(|byte| matches!(byte, b'\n' | b'\r'));
            let more = &bytes[..end.unwrap_or(bytes.len())];
            if self.event.bytes() + self.line.len() + more.len() > self.limit {
                return Err(EventTooLong { limit: self.limit });
            }
            self.line.extend_from_slice(more);
            let Some(end) = end else { return Ok(()) };
            self.is_after_return = bytes[end] == b'\r';
            self.end_line();
            bytes = &bytes[end + 1..];
        }
        Ok(())
    }

    /// Returns the next complete event.
    pub fn next_event(&mut self) -> Option<SseEvent> {
        self.complete.pop_front()
    }

    /// Returns the data of the next complete event that has data.
    pub fn next_data(&mut self) -> Option<String> {
        std::iter::from_fn(|| self.next_event()).find_map(|event| event.data)
    }

    /// Completes the last event at the end of the stream. Some servers omit the empty line after it.
    pub fn finish(&mut self) {
        if !self.line.is_empty() {
            self.end_line();
        }
        self.end_event();
    }

    fn end_line(&mut self) {
        let line = std::mem::take(&mut self.line);
        if line.is_empty() {
            self.end_event();
            return;
        }
        let line = String::from_utf8_lossy(&line);
        let line = line.trim_start_matches('\u{feff}');
        let starts_bare =
            self.accepts_bare_json && line.starts_with('{') && self.event.data.is_none();
        if self.is_bare || starts_bare {
            self.is_bare = true;
            self.event.data.get_or_insert_default().push_str(line);
            return;
        }
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "data" => match &mut self.event.data {
                Some(data) => {
                    data.push('\n');
                    data.push_str(value);
                }
                None => self.event.data = Some(value.to_owned()),
            },
            "event" => self.event.kind = Some(value.to_owned()),
            "id" if !value.contains('\0') => self.event.id = Some(value.to_owned()),
            "retry" => self.event.retry = value.parse().ok(),
            // Comments and unknown fields are ignored.
            _ => {}
        }
    }

    fn end_event(&mut self) {
        self.is_bare = false;
        let event = std::mem::take(&mut self.event);
        if event != SseEvent::default() {
            self.complete.push_back(event);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(mut parser: SseParser, chunks: &[&[u8]]) -> Vec<SseEvent> {
        for chunk in chunks {
            parser.push(chunk).unwrap();
        }
        parser.finish();
        std::iter::from_fn(|| parser.next_event()).collect()
    }

    fn data(text: &str) -> SseEvent {
        SseEvent {
            data: Some(text.to_owned()),
            ..SseEvent::default()
        }
    }

    #[test]
    fn events_are_the_same_wherever_the_bytes_are_split() {
        let text = "\u{feff}: hi\nevent: a\ndata: one\ndata:two\n\n\r\nid: 7\r\nretry: 50\r\ndata: {\"é\":1}\r\n\r\n\rdata: last"
            .as_bytes();
        let expected = [
            SseEvent {
                kind: Some("a".to_owned()),
                ..data("one\ntwo")
            },
            SseEvent {
                id: Some("7".to_owned()),
                retry: Some(50),
                ..data("{\"é\":1}")
            },
            data("last"),
        ];
        for split in 0..=text.len() {
            let (first, second) = text.split_at(split);
            let events = parsed(SseParser::new(1024), &[first, second]);
            assert_eq!(events, expected, "split at {split}");
        }
        let bytes: Vec<&[u8]> = text.chunks(1).collect();
        assert_eq!(parsed(SseParser::new(1024), &bytes), expected);
    }

    #[test]
    fn bare_json_is_an_event_only_for_a_parser_that_accepts_it() {
        let text: &[u8] = b"data: {}\n\n{\n  \"error\": {\n  }\n}\n";
        let lenient = parsed(SseParser::new(1024).with_bare_json(), &[text]);
        assert_eq!(lenient, [data("{}"), data("{  \"error\": {  }}")]);
        assert_eq!(parsed(SseParser::new(1024), &[text]), [data("{}")]);
    }

    #[test]
    fn the_limit_counts_what_is_buffered_and_starts_again_with_the_next_event() {
        for end in ["\n", "\r\n", "\r"] {
            let event = format!("data: aa{end}data: bb{end}{end}").repeat(5);
            let push = |limit| SseParser::new(limit).push(event.as_bytes());
            assert_eq!(push(10), Ok(()), "{end:?}");
            assert_eq!(push(9), Err(EventTooLong { limit: 9 }), "{end:?}");
        }
    }

    #[test]
    fn comments_never_fill_an_event() {
        let mut parser = SseParser::new(16);
        for _ in 0..1000 {
            parser.push(b": keep-alive\n").unwrap();
        }
        parser.push(b"data: x\n\n").unwrap();
        assert_eq!(parser.next_event(), Some(data("x")));
    }

    #[test]
    fn an_event_without_an_end_is_refused_at_the_limit() {
        let mut parser = SseParser::new(1000);
        assert_eq!(parser.push(&[b'x'; 500]), Ok(()));
        assert_eq!(parser.push(&[b'x'; 500]), Ok(()));
        assert_eq!(parser.push(b"x"), Err(EventTooLong { limit: 1000 }));
    }
}
