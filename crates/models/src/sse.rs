//! Server-sent events out of a stream of bytes, with a bound on everything that is kept.

use std::collections::VecDeque;

/// One event: what stands after `data:`. Its name says nothing that the data does not say.
#[derive(Debug, PartialEq, Eq, Default)]
pub(crate) struct Frame {
    pub data: String,
}

/// A frame that is longer than anything a provider has to say.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct TooLong;

/// Cuts bytes into frames, wherever the bytes were cut.
#[derive(Default)]
pub(crate) struct Frames {
    line: Vec<u8>,
    /// Whether the last byte was a carriage return, so that a line feed after it ends nothing.
    after_return: bool,
    current: Frame,
    has_data: bool,
    /// Whether the lines are JSON without `data:`, as some servers send an error in mid-stream.
    is_bare: bool,
    whole: VecDeque<Frame>,
}

impl Frames {
    /// The most bytes of one frame.
    pub const FRAME_BYTES: usize = 4 * 1024 * 1024;

    pub fn push(&mut self, bytes: &[u8]) -> Result<(), TooLong> {
        for &byte in bytes {
            match byte {
                b'\n' if std::mem::take(&mut self.after_return) => {}
                b'\n' | b'\r' => {
                    self.after_return = byte == b'\r';
                    self.end_line();
                }
                _ => {
                    self.after_return = false;
                    if self.line.len() + self.current.data.len() >= Self::FRAME_BYTES {
                        return Err(TooLong);
                    }
                    self.line.push(byte);
                }
            }
        }
        Ok(())
    }

    /// The next whole frame.
    pub fn next(&mut self) -> Option<Frame> {
        self.whole.pop_front()
    }

    /// Some servers forget the empty line after the last frame.
    pub fn finish(&mut self) {
        if !self.line.is_empty() {
            self.end_line();
        }
        self.end_frame();
    }

    fn end_line(&mut self) {
        let line = std::mem::take(&mut self.line);
        let line = String::from_utf8_lossy(&line);
        if line.is_empty() {
            self.end_frame();
            return;
        }
        let line = line.trim_start_matches('\u{feff}');
        if self.is_bare || (line.starts_with('{') && !self.has_data) {
            self.is_bare = true;
            self.has_data = true;
            self.current.data.push_str(line);
            return;
        }
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        // Names, comments, ids and retry times mean nothing here.
        if field == "data" {
            if self.has_data {
                self.current.data.push('\n');
            }
            self.has_data = true;
            self.current.data.push_str(value);
        }
    }

    fn end_frame(&mut self) {
        let frame = std::mem::take(&mut self.current);
        self.is_bare = false;
        if std::mem::take(&mut self.has_data) {
            self.whole.push_back(frame);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frames(chunks: &[&[u8]]) -> Vec<String> {
        let mut frames = Frames::default();
        for chunk in chunks {
            frames.push(chunk).unwrap();
        }
        frames.finish();
        std::iter::from_fn(|| frames.next())
            .map(|frame| frame.data)
            .collect()
    }

    #[test]
    fn frames_come_out_the_same_wherever_the_bytes_are_cut() {
        let text =
            ": hi\nevent: a\ndata: one\ndata:two\n\n\r\nid: 7\r\ndata: {\"é\":1}\r\n\r\ndata: last"
                .as_bytes();
        let expected = ["one\ntwo", "{\"é\":1}", "last"].map(str::to_owned);
        for cut in 0..text.len() {
            assert_eq!(
                frames(&[&text[..cut], &text[cut..]]),
                expected,
                "cut at {cut}"
            );
        }
        let bytes: Vec<&[u8]> = text.chunks(1).collect();
        assert_eq!(frames(&bytes), expected);
    }

    #[test]
    fn bare_json_in_a_stream_is_a_frame() {
        let text = b"data: {}\n\n{\n  \"error\": {\n  }\n}\n";
        assert_eq!(frames(&[text]), ["{}", "{  \"error\": {  }}"]);
    }

    #[test]
    fn a_frame_without_an_end_is_not_kept_for_ever() {
        let mut frames = Frames::default();
        let chunk = vec![b'x'; 1024 * 1024];
        let results: Vec<_> = (0..6).map(|_| frames.push(&chunk)).collect();
        assert_eq!(results.last(), Some(&Err(TooLong)));
    }
}
