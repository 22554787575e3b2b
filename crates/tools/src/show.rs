//! Names, sizes and times as text that a person and a model read alike.

use std::ffi::OsStr;
use std::time::{SystemTime, UNIX_EPOCH};

/// How much of a name or path is shown; only a hostile one is longer.
const LONGEST_NAME_CHARACTERS: usize = 1000;

/// A name or path on one line. One that a plain line would garble (line breaks, spaces that look like a column) is
/// quoted and escaped; bytes that are not UTF-8 become `�`, see [`is_exact`].
pub(crate) fn name(name: &OsStr) -> String {
    let lossy = name.to_string_lossy();
    let mut text = lossy.into_owned();
    if let Some((end, _)) = text.char_indices().nth(LONGEST_NAME_CHARACTERS) {
        text.truncate(end);
        text.push('…');
    }
    let garbled = text.is_empty()
        || text.trim() != text
        || text.contains("  ")
        || text.starts_with('"')
        || text.contains(is_unseen);
    if garbled { format!("{text:?}") } else { text }
}

/// One line of a text, without its line feed, cut after `longest` characters. What a screen would obey or not show
/// becomes an escape: control characters, changes of the writing direction, characters of no width.
pub(crate) fn line(text: &str, longest: usize) -> String {
    let mut shown = String::with_capacity(text.len().min(longest));
    for (at, character) in text.chars().enumerate() {
        if at == longest {
            shown.push('…');
            break;
        }
        match character {
            '\t' => shown.push('\t'),
            character if is_unseen(character) => shown.extend(character.escape_default()),
            character => shown.push(character),
        }
    }
    shown
}

fn is_unseen(character: char) -> bool {
    character.is_control()
        || matches!(character,
            '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{feff}'
            | '\u{200b}'..='\u{200f}'
            | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}'
            | '\u{e0000}'..='\u{e007f}')
}

/// Whether [`name`] shows what the name is: other names cannot be passed to a tool.
pub(crate) fn is_exact(name: &OsStr) -> bool {
    name.to_str().is_some()
}

/// A size in units of a thousand: `312 B`, `4.2 KB`, `1.1 GB`.
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

/// `3 files`, `1 file`.
pub(crate) fn count(number: u64, noun: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{number} {noun}{plural}")
}

/// A time in UTC to the second, as RFC 3339 writes it: `2026-03-01T12:00:00Z`.
pub(crate) fn utc(time: SystemTime) -> String {
    let seconds = match time.duration_since(UNIX_EPOCH) {
        Ok(after) => i128::from(after.as_secs()),
        // Rounded down, so that half a second before 1970 is in 1969.
        Err(before) => -(before.duration().as_nanos().div_ceil(1_000_000_000) as i128),
    };
    let (year, month, day) = civil_date(seconds.div_euclid(86_400));
    let second = seconds.rem_euclid(86_400);
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

/// Year, month and day of the Gregorian calendar, from the days since 1970-01-01. The year is taken to begin in March,
/// which puts the leap day last.
fn civil_date(days: i128) -> (i128, i128, i128) {
    const DAYS_PER_ERA: i128 = 146_097;
    let since_march_of_year_0 = days + 719_468;
    let era = since_march_of_year_0.div_euclid(DAYS_PER_ERA);
    let day_of_era = since_march_of_year_0.rem_euclid(DAYS_PER_ERA);
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let months_since_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * months_since_march + 2) / 5 + 1;
    let month = if months_since_march < 10 {
        months_since_march + 3
    } else {
        months_since_march - 9
    };
    (era * 400 + year_of_era + i128::from(month <= 2), month, day)
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
    fn a_line_keeps_its_letters_and_loses_what_a_screen_would_obey() {
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
            LONGEST_NAME_CHARACTERS + 1
        );
    }
}
