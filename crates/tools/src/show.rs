//! Formats names, sizes and times for users and models.

use chrono::{DateTime, SecondsFormat};
use std::ffi::OsStr;
use std::time::{SystemTime, UNIX_EPOCH};

/// Number of characters after which a name or path is truncated. Only malicious names are longer.
const MAX_NAME_CHARACTERS: usize = 1000;

/// Formats a name or path on one line. Quotes and escapes it if it would garble the line: with line breaks, say, or
/// spaces that look like columns. Bytes that are not UTF-8 become `�`, see [`is_exact`].
pub(crate) fn name(name: &OsStr) -> String {
    let lossy = name.to_string_lossy();
    let mut text = lossy.into_owned();
    if let Some((end, _)) = text.char_indices().nth(MAX_NAME_CHARACTERS) {
        text.truncate(end);
        text.push('…');
    }
    let garbled = text.is_empty()
        || text.trim() != text
        || text.contains("  ")
        || text.starts_with('"')
        || text.contains(is_invisible);
    if garbled { format!("{text:?}") } else { text }
}

/// Returns a path for rules to match: unchanged, or with escaped bytes if it is not UTF-8, so that different paths stay
/// different.
pub(crate) fn exact(path: &OsStr) -> String {
    match path.to_str() {
        Some(path) => path.to_owned(),
        None => format!("{path:?}").trim_matches('"').to_owned(),
    }
}

/// Formats one line of text, without its line feed, truncated after `longest` characters. Escapes control characters,
/// changes of the writing direction and zero-width characters, which a terminal would obey or not show.
pub(crate) fn line(text: &str, longest: usize) -> String {
    let mut shown = String::with_capacity(text.len().min(longest));
    for (at, character) in text.chars().enumerate() {
        if at == longest {
            shown.push('…');
            break;
        }
        match character {
            '\t' => shown.push('\t'),
            character if is_invisible(character) => shown.extend(character.escape_default()),
            character => shown.push(character),
        }
    }
    shown
}

fn is_invisible(character: char) -> bool {
    character.is_control()
        || matches!(character,
            '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{feff}'
            | '\u{200b}'..='\u{200f}'
            | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}'
            | '\u{e0000}'..='\u{e007f}')
}

/// Whether [`name`] shows the name unchanged, so that it can be passed to a tool.
pub(crate) fn is_exact(name: &OsStr) -> bool {
    name.to_str().is_some()
}

/// Formats a size in units of 1000: `312 B`, `4.2 KB`, `1.1 GB`.
pub(crate) fn size(bytes: u64) -> String {
    if bytes < 1000 {
        return format!("{bytes} B");
    }
    let mut tenths = bytes / 100;
    let mut units = ["KB", "MB", "GB", "TB", "PB", "EB"].into_iter();
    let mut unit = units.next().unwrap_or_default();
    for larger in units {
        if tenths < 10_000 {
            break;
        }
        tenths /= 1000;
        unit = larger;
    }
    format!("{}.{} {unit}", tenths / 10, tenths % 10)
}

/// Formats a count: `3 files`, `1 file`.
pub(crate) fn count(number: u64, noun: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{number} {noun}{plural}")
}

/// Formats a time in UTC as RFC 3339, to the second: `2026-03-01T12:00:00Z`. Returns `unknown` for a time outside the
/// calendar's range.
pub(crate) fn utc(time: SystemTime) -> String {
    let seconds = match time.duration_since(UNIX_EPOCH) {
        Ok(after) => i64::try_from(after.as_secs()).ok(),
        // Rounded down, so that half a second before 1970 is in 1969.
        Err(before) => {
            let seconds = before.duration().as_nanos().div_ceil(1_000_000_000);
            i64::try_from(seconds).ok().map(|seconds| -seconds)
        }
    };
    // A file system can store times beyond any calendar.
    match seconds.and_then(|seconds| DateTime::from_timestamp(seconds, 0)) {
        Some(time) => time.to_rfc3339_opts(SecondsFormat::Secs, true),
        None => "unknown".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn a_size_has_one_decimal_and_the_largest_unit_that_fits() {
        let sizes = [
            0,
            999,
            1000,
            4_249,
            999_999,
            1_000_000,
            1_073_741_824,
            u64::MAX,
        ];
        let shown = sizes.map(size);
        assert_eq!(
            shown,
            [
                "0 B", "999 B", "1.0 KB", "4.2 KB", "999.9 KB", "1.0 MB", "1.0 GB", "18.4 EB"
            ]
        );
    }

    #[test]
    fn a_time_is_written_as_rfc_3339_before_and_after_1970() {
        let after = |seconds| utc(UNIX_EPOCH + Duration::from_secs(seconds));
        assert_eq!(after(0), "1970-01-01T00:00:00Z");
        assert_eq!(after(951_782_399), "2000-02-28T23:59:59Z");
        assert_eq!(after(951_782_400), "2000-02-29T00:00:00Z");
        assert_eq!(after(4_107_542_400), "2100-03-01T00:00:00Z");
        assert_eq!(
            utc(UNIX_EPOCH - Duration::from_millis(500)),
            "1969-12-31T23:59:59Z"
        );
    }

    #[test]
    fn a_line_keeps_letters_and_escapes_control_characters() {
        assert_eq!(line("grüße\t😀", 10), "grüße\t😀");
        assert_eq!(line("\u{1b}[2Jx\r", 20), "\\u{1b}[2Jx\\r");
        assert_eq!(line("a\u{202e}b\u{200b}c", 20), "a\\u{202e}b\\u{200b}c");
        assert_eq!(line("abcdef", 3), "abc…");
    }

    #[test]
    fn a_name_that_a_line_would_garble_is_quoted() {
        let shown = |text: &str| name(OsStr::new(text));
        assert_eq!(shown("a b.txt"), "a b.txt");
        assert_eq!(shown("two  spaces"), "\"two  spaces\"");
        assert_eq!(shown("line\nbreak"), "\"line\\nbreak\"");
        assert_eq!(shown("txt.\u{202e}exe"), "\"txt.\\u{202e}exe\"");
        assert_eq!(shown(" edge"), "\" edge\"");
        assert_eq!(shown("\"quoted\""), "\"\\\"quoted\\\"\"");
        assert_eq!(
            shown(&"x".repeat(5000)).chars().count(),
            MAX_NAME_CHARACTERS + 1
        );
    }
}
