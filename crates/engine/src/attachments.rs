//! Validates attachments. Afterwards each file is within the limits, its content matches its type, and its name is safe
//! to show and to quote.
//!
//! A file with a wrong type would also fail all later turns, because they send it again. So types are checked here by
//! content, regardless of what a client, a tool or a remote agent claims.

use lango_core::{AttachedFile, Text, image_type};
use unicode_general_category::{GeneralCategory, get_general_category};

/// The maximum length of a name in characters.
const NAME_CHARS: usize = 128;

/// Returns the files that can be attached, and a sentence about each file that cannot.
pub(crate) fn check_files(files: Vec<AttachedFile>) -> (Vec<AttachedFile>, Vec<String>) {
    let (mut accepted, mut rejected) = (Vec::new(), Vec::new());
    let mut left = AttachedFile::MESSAGE_BYTES;
    for mut file in files {
        file.name = safe_name(&file.name);
        let problem = match file_problem(&mut file) {
            Some(problem) => Some(problem),
            None if accepted.len() == AttachedFile::PER_MESSAGE => Some(format!(
                "a message can have at most {} files",
                AttachedFile::PER_MESSAGE
            )),
            None if file.bytes.len() > left => Some(format!(
                "the files of a message may have at most {} in total",
                megabytes(AttachedFile::MESSAGE_BYTES)
            )),
            None => None,
        };
        match problem {
            Some(problem) => rejected.push(format!("`{}` is not attached: {problem}", file.name)),
            None => {
                left -= file.bytes.len();
                accepted.push(file);
            }
        }
    }
    (accepted, rejected)
}

/// Returns why a file cannot be attached; `None` if it can. Corrects the type of an image according to its content.
fn file_problem(file: &mut AttachedFile) -> Option<String> {
    if file.media_type.starts_with("image/") {
        let Some(media_type) = image_type(&file.bytes) else {
            return Some("it is not a PNG, JPEG, GIF or WebP image".to_owned());
        };
        if *file.media_type != *media_type {
            file.media_type = media_type.into();
        }
    } else if !file.media_type.starts_with("text/") {
        return Some("it is neither an image nor text".to_owned());
    } else if str::from_utf8(&file.bytes).is_err() {
        return Some("it is not UTF-8 text".to_owned());
    }
    (file.bytes.len() > file.max_bytes()).then(|| {
        let kind = if file.media_type.starts_with("image/") {
            "an image"
        } else {
            "a file"
        };
        format!(
            "it has {}; {kind} may have at most {}",
            megabytes(file.bytes.len()),
            megabytes(file.max_bytes())
        )
    })
}

/// Formats a size as `5 MB` or `5.1 MB`, rounded up, so that a size above a limit never looks equal to it.
fn megabytes(bytes: usize) -> String {
    let tenths = bytes.div_ceil(100_000);
    match tenths % 10 {
        0 => format!("{} MB", tenths / 10),
        tenth => format!("{}.{tenth} MB", tenths / 10),
    }
}

/// Removes the path from a name, and characters that a screen or a prompt would not show as they are.
fn safe_name(name: &str) -> String {
    let name = name.rsplit(['/', '\\']).next().unwrap_or_default();
    let is_shown = |character: &char| {
        use GeneralCategory::{
            Control, Format, LineSeparator, ParagraphSeparator, PrivateUse, Surrogate, Unassigned,
        };
        !matches!(
            get_general_category(*character),
            Control
                | Format
                | LineSeparator
                | ParagraphSeparator
                | PrivateUse
                | Surrogate
                | Unassigned
        )
    };
    let quoted = |character| if character == '`' { '\'' } else { character };
    let name: String = name.chars().filter(is_shown).map(quoted).collect();
    let name = name.trim().trim_start_matches('.');
    if name.is_empty() {
        return "file".to_owned();
    }
    numbered(name, 1)
}

/// Returns the name, or the first of `name-2`, `name-3` … that is free.
pub(crate) fn unique_name(name: &Text, is_taken: impl Fn(&str) -> bool) -> Text {
    if !is_taken(name) {
        return Text::clone(name);
    }
    let free = (2_usize..)
        .map(|number| numbered(name, number))
        .find(|name| !is_taken(name));
    free.map_or_else(|| Text::clone(name), Text::from)
}

/// Inserts a number before the extension, unless it is 1, and truncates the name to the maximum length.
fn numbered(name: &str, number: usize) -> String {
    let (stem, extension) = match name.rfind('.') {
        Some(at) if at > 0 && name.len() - at <= 16 => name.split_at(at),
        _ => (name, ""),
    };
    let number = match number {
        1 => String::new(),
        number => format!("-{number}"),
    };
    let most = NAME_CHARS.saturating_sub(number.len() + extension.chars().count());
    let stem: String = stem.chars().take(most).collect();
    format!("{stem}{number}{extension}")
}

#[cfg(test)]
mod tests {
    use super::{check_files, safe_name, unique_name};
    use lango_core::{AttachedFile, Text};

    const PNG: &[u8] = b"\x89PNG\r\n\x1a\n0123456789";

    fn file(name: &str, media_type: &str, bytes: &[u8]) -> AttachedFile {
        AttachedFile {
            name: name.to_owned(),
            media_type: media_type.into(),
            bytes: bytes.into(),
        }
    }

    #[test]
    fn a_name_has_no_path_and_no_invisible_characters() {
        assert_eq!(safe_name("../../etc/passwd"), "passwd");
        assert_eq!(safe_name("C:\\users\\me\\a.png"), "a.png");
        assert_eq!(safe_name("a\u{202e}gnp\n`b`.exe\0"), "agnp'b'.exe");
        assert_eq!(safe_name("  ..\u{200b} "), "file");
        assert_eq!(safe_name("dir/"), "file");
        let long = safe_name(&format!("{}.png", "é".repeat(500)));
        assert_eq!(long.chars().count(), 128);
        assert!(long.ends_with("é.png"), "{long}");
    }

    #[test]
    fn a_second_file_with_the_same_name_gets_a_number_before_its_extension() {
        let taken = ["image.png", "image-2.png", "notes"];
        let is_taken = |name: &str| taken.contains(&name);
        let name = |name: &str| unique_name(&Text::from(name), is_taken).to_string();
        assert_eq!(name("image.png"), "image-3.png");
        assert_eq!(name("notes"), "notes-2");
        assert_eq!(name("other.png"), "other.png");
        let long: Text = "x".repeat(128).into();
        assert_eq!(unique_name(&long, |name| *name == *long).len(), 128);
    }

    #[test]
    fn an_image_gets_the_type_of_its_bytes() {
        let (files, rejected) = check_files(vec![file("a.jpg", "image/jpeg", PNG)]);
        assert_eq!(&*files[0].media_type, "image/png");
        assert!(rejected.is_empty(), "{rejected:?}");
    }

    #[test]
    fn files_of_a_wrong_type_or_size_are_rejected_with_a_reason() {
        let mut large = PNG.to_vec();
        large.resize(AttachedFile::IMAGE_BYTES + 1, 0);
        let (files, rejected) = check_files(vec![
            file("fake.png", "image/png", b"<svg/>"),
            file("song.mp3", "audio/mpeg", b"ID3"),
            file("latin.txt", "text/plain", b"\xe4"),
            file("large.png", "image/png", &large),
            file("fine.txt", "text/plain", b"fine"),
        ]);
        assert_eq!(files.len(), 1);
        assert_eq!(
            rejected,
            [
                "`fake.png` is not attached: it is not a PNG, JPEG, GIF or WebP image",
                "`song.mp3` is not attached: it is neither an image nor text",
                "`latin.txt` is not attached: it is not UTF-8 text",
                "`large.png` is not attached: it has 5.1 MB; an image may have at most 5 MB",
            ]
        );
    }

    #[test]
    fn a_message_has_limited_files_and_bytes() {
        let (files, rejected) = check_files(vec![file("a", "text/plain", b"a"); 18]);
        assert_eq!((files.len(), rejected.len()), (16, 2));
        let large = vec![b'a'; AttachedFile::FILE_BYTES];
        let (files, rejected) = check_files(vec![file("a", "text/plain", &large); 3]);
        assert_eq!((files.len(), rejected.len()), (2, 1));
        assert!(rejected[0].contains("20 MB in total"), "{rejected:?}");
    }
}
