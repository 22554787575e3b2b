//! Guesses the type of a non-text file from its first bytes.

/// First bytes and the type they indicate; the first match wins.
const SIGNATURES: &[(&[u8], &str)] = &[
    (b"\x89PNG\r\n\x1a\n", "a PNG image"),
    (b"\xff\xd8\xff", "a JPEG image"),
    (b"GIF8", "a GIF image"),
    (b"%PDF-", "a PDF document"),
    (b"PK\x03\x04", "a ZIP archive or an office document"),
    (b"\x1f\x8b", "gzip-compressed data"),
    (b"\x28\xb5\x2f\xfd", "zstd-compressed data"),
    (b"\xfd7zXZ\0", "xz-compressed data"),
    (b"BZh", "bzip2-compressed data"),
    (b"\x7fELF", "an ELF program or library"),
    (b"\0asm", "a WebAssembly module"),
    (b"SQLite format 3\0", "an SQLite database"),
    (b"\xff\xfe", "UTF-16 text"),
    (b"\xfe\xff", "UTF-16 text"),
];

/// Guesses the type of a file that starts with `head`. Without NUL bytes it may be text in an older encoding.
pub(super) fn guess_kind(head: &[u8], has_nul: bool) -> &'static str {
    let signature = SIGNATURES.iter().find(|(start, _)| head.starts_with(start));
    match signature {
        Some((_, kind)) => kind,
        None if has_nul => "binary data",
        None => "text in another encoding or binary data",
    }
}
