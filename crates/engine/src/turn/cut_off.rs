//! Marks an answer that ended too early, for the user and for the model that reads it later.

/// Returns the answer with a note that says why it ends here. A code block that is still open is closed first, so that
/// the note is not part of it.
pub(super) fn cut_off(text: &str, why: &str) -> String {
    let close = open_fence(text).map_or(String::new(), |fence| format!("\n{fence}"));
    format!("{text}{close}\n\n[the answer was cut off here: {why}]")
}

/// Text that is indented further is code, unless it is part of a list.
const MAX_INDENT: usize = 3;

fn starts_item(line: &str) -> bool {
    let rest = line.trim_start_matches(|letter: char| letter.is_ascii_digit());
    let marks: &[&str] = if rest.len() < line.len() {
        &[". ", ") "]
    } else {
        &["- ", "* ", "+ "]
    };
    marks.iter().any(|mark| rest.starts_with(mark))
}

/// Returns the fence that closes the open code block of a text, if there is one.
fn open_fence(text: &str) -> Option<String> {
    let mut open: Option<(char, usize)> = None;
    let mut is_in_list = false;
    for line in text.lines() {
        let (indented, line) = (line.len(), line.trim_start());
        let indent = indented - line.len();
        if indent <= MAX_INDENT && !line.is_empty() {
            is_in_list = starts_item(line);
        } else if !is_in_list && open.is_none() {
            // A code block without a fence.
            continue;
        }
        let Some(mark) = line.chars().next().filter(|mark| matches!(mark, '`' | '~')) else {
            continue;
        };
        let rest = line.trim_start_matches(mark);
        let length = line.len() - rest.len();
        open = match open {
            None if length >= 3 && !rest.contains('`') => Some((mark, length)),
            Some((of, least)) if of == mark && length >= least && rest.trim().is_empty() => None,
            unchanged => unchanged,
        };
    }
    open.map(|(mark, length)| mark.to_string().repeat(length))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_note_is_never_part_of_a_code_block() {
        let note = "\n\n[the answer was cut off here: x]";
        for (text, close) in [
            ("plain", ""),
            ("```rust\nfn main() {", "\n```"),
            ("````\n```\ninside", "\n````"),
            ("~~~\ncode\n```", "\n~~~"),
            ("```\ncode\n```\nafter", ""),
            ("```inline``` code", ""),
            ("- item\n  ```\n  code", "\n```"),
            ("10. item\n\n    ```\n    code", "\n```"),
            ("A fence:\n\n    ```\n    x\n\nDone", ""),
        ] {
            assert_eq!(cut_off(text, "x"), format!("{text}{close}{note}"));
        }
    }
}
