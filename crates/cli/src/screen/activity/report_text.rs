//! An agent's report as running text, because it is shown on one line.

/// Returns a text without the marks of code blocks and headings. Where a block ends, ` · ` parts it from the next one,
/// unless it ends with a colon.
pub(super) fn without_markup(text: &str) -> String {
    let mut shown = String::new();
    let mut is_code = false;
    let mut ends_block = false;
    for line in text.lines().map(str::trim) {
        let is_fence = line.starts_with("```") || line.starts_with("~~~");
        if is_fence {
            is_code = !is_code;
        }
        if is_fence || line.is_empty() {
            ends_block = true;
            continue;
        }
        let heading = heading(line).filter(|_| !is_code);
        let is_own_block = is_code || heading.is_some() || is_list_item(line);
        if !shown.is_empty() {
            let parts = (ends_block || is_own_block) && !shown.ends_with(':');
            shown.push_str(if parts { " · " } else { " " });
        }
        shown.push_str(heading.unwrap_or(line));
        ends_block = is_own_block && !is_list_item(line);
    }
    shown
}

/// Returns the text of a heading.
fn heading(line: &str) -> Option<&str> {
    let text = line.trim_start_matches('#');
    let marks = line.len() - text.len();
    let is_heading = (1..=6).contains(&marks) && text.starts_with(' ');
    is_heading.then(|| text.trim())
}

fn is_list_item(line: &str) -> bool {
    ["- ", "* ", "+ "].iter().any(|mark| line.starts_with(mark))
}

#[cfg(test)]
mod tests {
    use super::without_markup;

    #[test]
    fn a_report_is_running_text_without_fences_and_heading_marks() {
        let text =
            "0 folders, 1 file in .\n\n```text\nnotes.md:3: The release is on Friday.\n```\n";
        assert_eq!(
            without_markup(text),
            "0 folders, 1 file in . · notes.md:3: The release is on Friday."
        );
        let text = "## Result\nIt is\nfixed:\n```diff\n-a\n+b\n# kept\n```\nDone.\n- one\n- two";
        assert_eq!(
            without_markup(text),
            "Result · It is fixed: -a · +b · # kept · Done. · - one · - two"
        );
        assert_eq!(without_markup("see #5\n#5 is open"), "see #5 #5 is open");
    }
}
