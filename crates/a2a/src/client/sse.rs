//! Server-sent events out of bytes: only what stands after `data:` means something here.

use std::collections::VecDeque;

/// A frame that is longer than anything an agent has to say.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct TooLong;

/// Cuts bytes into the data of frames, wherever the bytes were cut.
#[derive(Default)]
pub(crate) struct Frames {
    line: Vec<u8>,
    /// Whether a line feed now would be the second half of a line's end.
    is_after_return: bool,
    data: Option<String>,
    whole: VecDeque<String>,
}

impl Frames {
    /// The most bytes of one frame: the largest file fits in it as base64.
    pub const FRAME_BYTES: usize = 16 * 1024 * 1024;

    pub fn push(&mut self, mut bytes: &[u8]) -> Result<(), TooLong> {
        while !bytes.is_empty() {
            if std::mem::take(&mut self.is_after_return) && bytes[0] == b'\n' {
                bytes = &bytes[1..];
                continue;
            }
            let end = bytes.iter().position(|byte| matches!(byte, b'\n' | b'\r'));
            let more = &bytes[..end.unwrap_or(bytes.len())];
            let kept = self.line.len() + self.data.as_ref().map_or(0, String::len);
            if kept + more.len() > Self::FRAME_BYTES {
                return Err(TooLong);
            }
            self.line.extend_from_slice(more);
            let Some(end) = end else { return Ok(()) };
            self.is_after_return = bytes[end] == b'\r';
            self.end_line();
            bytes = &bytes[end + 1..];
        }
        Ok(())
    }

    /// The data of the next whole frame.
    pub fn next(&mut self) -> Option<String> {
        self.whole.pop_front()
    }

    /// Some servers forget the empty line after the last frame.
    pub fn finish(&mut self) {
        self.end_line();
        self.whole.extend(self.data.take());
    }

    fn end_line(&mut self) {
        let line = std::mem::take(&mut self.line);
        if line.is_empty() {
            self.whole.extend(self.data.take());
            return;
        }
        let line = String::from_utf8_lossy(&line);
        let line = line.trim_start_matches('\u{feff}');
        let Some(value) = line.strip_prefix("data:") else {
            return;
        };
        let value = value.strip_prefix(' ').unwrap_or(value);
        match &mut self.data {
            Some(data) => {
                data.push('\n');
                data.push_str(value);
            }
            None => self.data = Some(value.to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_the_same_wherever_the_bytes_are_cut() {
        let text = "\u{feff}: ping\ndata: {\"é\":\ndata:1}\n\n\r\nevent: x\rid: 7\r\ndata: two\r\n\r\n\n\ndata: last";
        for cut in 0..=text.len() {
            let mut frames = Frames::default();
            frames.push(&text.as_bytes()[..cut]).unwrap();
            frames.push(&text.as_bytes()[cut..]).unwrap();
            frames.finish();
            let all: Vec<String> = std::iter::from_fn(|| frames.next()).collect();
            assert_eq!(all, ["{\"é\":\n1}", "two", "last"], "cut at {cut}");
        }
    }

    #[test]
    fn a_frame_without_an_end_is_given_up() {
        let mut frames = Frames::default();
        let chunk = vec![b'x'; Frames::FRAME_BYTES / 2];
        assert_eq!(frames.push(&chunk), Ok(()));
        assert_eq!(frames.push(&chunk), Ok(()));
        assert_eq!(frames.push(b"x"), Err(TooLong));
    }
}
