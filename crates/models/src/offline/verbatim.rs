//! Text that must arrive as it is: names, passages and output of tools. Answers are Markdown, which would change some
//! of it. One rule for all: text that Markdown leaves as it is stays plain, everything else becomes code.

/// Returns text that may have several lines: plain, or in a fence.
pub(super) fn block(text: &str, language: &str) -> String {
    let text = text.trim_end();
    if is_plain(text) {
        text.to_owned()
    } else {
        fenced(text, language)
    }
}

/// Returns text inside a sentence: plain, or as a code span. Several lines become a block of their own.
pub(super) fn span(text: &str) -> String {
    match text {
        _ if text.contains(['\n', '\r']) => format!("\n\n{}\n\n", fenced(text, "text")),
        _ if has_no_markup(text) => text.to_owned(),
        _ => code(text),
    }
}

/// Returns text in quotation marks, or as a code span.
pub(super) fn quoted(text: &str) -> String {
    if has_no_markup(text) {
        format!("\"{text}\"")
    } else {
        span(text)
    }
}

/// Joins lines whose marks, such as bullets, are Markdown on purpose. `texts` are the pieces that are not.
pub(super) fn lines<'t>(lines: &[String], texts: impl IntoIterator<Item = &'t str>) -> String {
    let joined = lines.join("\n");
    if texts.into_iter().all(is_plain) {
        joined
    } else {
        fenced(&joined, "text")
    }
}

/// Encloses text in a fence, so that none of its characters count as Markdown.
pub(super) fn fenced(text: &str, language: &str) -> String {
    let fence = "`".repeat(longest_run(text).max(2) + 1);
    format!("{fence}{language}\n{}\n{fence}", text.trim_end())
}

/// Returns the language of files with this extension, as a fence names it. Terminals show the name of a language that
/// they do not know, as if it were a line of the file; so all others are `text`.
pub(super) fn language_of(extension: &str) -> &str {
    const LANGUAGES: &[&str] = &[
        "c", "cpp", "css", "csv", "go", "h", "html", "java", "js", "json", "kt", "md", "php", "py",
        "rb", "rs", "sh", "sql", "swift", "toml", "ts", "tsx", "xml", "yaml", "yml",
    ];
    if LANGUAGES.contains(&extension) {
        extension
    } else {
        "text"
    }
}

/// Writes text as a code span.
pub(super) fn code(text: &str) -> String {
    let mark = "`".repeat(longest_run(text) + 1);
    let is_padded = text.starts_with(['`', ' ']) || text.ends_with(['`', ' ']) || text.is_empty();
    let space = if is_padded { " " } else { "" };
    format!("{mark}{space}{text}{space}{mark}")
}

/// Returns the length of the longest run of backticks.
fn longest_run(text: &str) -> usize {
    let runs = text.split(|letter| letter != '`').map(str::len);
    runs.max().unwrap_or(0)
}

/// Returns whether Markdown shows a text as it is. Rather says no once too often: then the text is shown as code.
pub(super) fn is_plain(text: &str) -> bool {
    has_no_markup(text) && !text.contains("\n\n\n") && text.lines().all(starts_no_block)
}

/// Returns whether a line starts nothing that Markdown knows: no heading, quote, list, rule, code or table.
fn starts_no_block(line: &str) -> bool {
    let ends_marker = |rest: &str| rest.is_empty() || rest.starts_with([' ', '\t']);
    let is_heading = line.starts_with('#') && ends_marker(line.trim_start_matches('#'));
    let is_bullet = line.strip_prefix(['-', '+']).is_some_and(ends_marker);
    let after_number = line.trim_start_matches(|c: char| c.is_ascii_digit());
    let is_number = after_number.len() < line.len()
        && after_number
            .strip_prefix(['.', ')'])
            .is_some_and(ends_marker);
    let is_rule = !line.is_empty() && line.chars().all(|c| "-=|:+ \t".contains(c));
    let is_other = line.starts_with(['>', '|']) || line.starts_with("~~~");
    line.trim() == line && !(is_heading || is_bullet || is_number || is_rule || is_other)
}

/// Returns whether a text contains nothing that counts as Markdown anywhere in a line.
fn has_no_markup(text: &str) -> bool {
    let mut previous = ' ';
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        let next = letters.peek().copied().unwrap_or(' ');
        let is_markup = match letter {
            '*' | '`' => true,
            '_' => !(previous.is_alphanumeric() && next.is_alphanumeric()),
            '\\' => next.is_ascii_punctuation() || next == '\n',
            '<' => next.is_ascii_alphabetic() || "/!?".contains(next),
            '&' => next.is_ascii_alphanumeric() || next == '#',
            ']' => "([:".contains(next),
            '~' => next == '~',
            '\n' | '\t' => false,
            _ => letter.is_control(),
        };
        if is_markup {
            return false;
        }
        previous = letter;
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ordinary_text_stays_plain() {
        for text in [
            "1 folder, 2 files in .\nsrc/\nbudget.csv  9 B\nnotes.md  22 B",
            "created notes/a.md +1\n1 line, 3 B",
            "edited a.md +1 −1",
            "the release is on Friday",
            "snake_case.py, a-b.md, #tag, 50% & more [maybe] (yes) ~2 a > b < c",
            "C:\\temp",
            "-la",
            "3.5 is no list",
        ] {
            assert!(is_plain(text), "{text}");
            assert_eq!(block(text, "text"), text);
        }
    }

    #[test]
    fn text_that_markdown_would_change_becomes_code() {
        for text in [
            "__init__.py",
            "# title.md",
            "> q.md",
            "a*b*c.txt",
            "&amp;.md",
            "- x.md",
            "+ x.md",
            "1. a.md",
            "2) a.md",
            "---",
            "a\n===",
            "~~~",
            "~~gone~~",
            " indented",
            "two  \nspaces",
            "[a](b)",
            "[a]: b",
            "<b>",
            "\\*",
            "`x`",
            "| a |",
            "a\n|-|",
            "a\n\n\n\nb",
        ] {
            assert_eq!(block(text, "text"), fenced(text, "text"), "{text}");
        }
        assert_eq!(block("```\nx", "md"), "````md\n```\nx\n````");
    }

    #[test]
    fn only_a_known_language_is_named() {
        for (extension, language) in [
            ("rs", "rs"),
            ("md", "md"),
            ("lock", "text"),
            ("log", "text"),
        ] {
            assert_eq!(language_of(extension), language);
        }
    }

    #[test]
    fn a_span_fits_into_a_sentence() {
        for (text, shown) in [
            ("notes.md", "notes.md"),
            ("# title.md", "# title.md"),
            ("__init__.py", "`__init__.py`"),
            ("a`b", "``a`b``"),
            ("`a`", "`` `a` ``"),
            ("*a*\nb", "\n\n```text\n*a*\nb\n```\n\n"),
        ] {
            assert_eq!(span(text), shown);
        }
        assert_eq!(quoted("x"), "\"x\"");
        assert_eq!(quoted("*x*"), "`*x*`");
    }
}
