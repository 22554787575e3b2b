//! Reading the small text files that people write: whatever a file turns out to be, no more than a limit is read of it.

use std::io::{self, Read};

/// All of the text, unless it is longer than `most_kib`.
pub fn read(source: impl Read, most_kib: u64) -> io::Result<String> {
    let most = most_kib * 1024;
    let mut bytes = Vec::new();
    source.take(most + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most {
        return Err(io::Error::other(format!(
            "the file is larger than {most_kib} KiB"
        )));
    }
    String::from_utf8(bytes).map_err(|error| {
        let place = error.utf8_error().valid_up_to() + 1;
        io::Error::other(format!(
            "it is not UTF-8 text: the first wrong byte is number {place}"
        ))
    })
}
