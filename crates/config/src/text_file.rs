//! Reads small text files that users write, up to a limit.

use std::io::{self, Read};

/// Reads the whole text; fails if it is longer than `max_kib` or not UTF-8.
pub fn read(source: impl Read, max_kib: u64) -> io::Result<String> {
    let limit = max_kib * 1024;
    let mut bytes = Vec::new();
    source.take(limit + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > limit {
        return Err(io::Error::other(format!(
            "the file is larger than {max_kib} KiB"
        )));
    }
    String::from_utf8(bytes).map_err(|error| {
        let place = error.utf8_error().valid_up_to() + 1;
        io::Error::other(format!(
            "it is not UTF-8 text: the first invalid byte is number {place}"
        ))
    })
}
