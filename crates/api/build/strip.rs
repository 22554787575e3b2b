//! Removes comments and needless white space from scripts, styles and markup. Nothing is renamed, and strings,
//! templates and regular expressions stay as they are, so the browser runs the code as it was written.

/// Strips a script. A line break stays wherever a statement may end at it.
pub(crate) fn script(source: &str) -> String {
    let mut out = String::with_capacity(source.len());
    let mut rest = source;
    let mut gap = Gap::None;
    while let Some(char) = rest.chars().next() {
        let is_comment = rest.starts_with("//") || rest.starts_with("/*");
        let length = match char {
            _ if char.is_whitespace() => char.len_utf8(),
            _ if is_comment => comment_length(rest),
            '"' | '\'' => quoted_length(rest, char),
            '`' => template_length(rest),
            '/' if starts_expression(&out) => pattern_length(rest),
            _ => char.len_utf8(),
        };
        let (token, after) = rest.split_at(length);
        rest = after;
        if is_comment || char.is_whitespace() {
            gap = gap.max(if token.contains('\n') {
                Gap::Line
            } else {
                Gap::Space
            });
            continue;
        }
        if char == '}' && out.ends_with(';') && !ends_in_empty_statement(&out) {
            out.pop();
        }
        gap.write(&mut out, char);
        gap = Gap::None;
        out.push_str(token);
    }
    out
}

/// Whether the last semicolon may be a statement of its own, as in `while (x);`. Only where the parentheses before it
/// contain no string, template or pattern it can be told, so otherwise the answer is yes.
fn ends_in_empty_statement(out: &str) -> bool {
    let statement = out.trim_end_matches(';');
    if !statement.ends_with(')') {
        return statement.ends_with("else") || statement.ends_with(['{', '}']);
    }
    let mut depth = 0;
    for (index, char) in statement.char_indices().rev() {
        match char {
            ')' => depth += 1,
            '(' if depth > 1 => depth -= 1,
            '(' => {
                let before = &statement[..index];
                return ["if", "for", "while"]
                    .iter()
                    .any(|word| before.ends_with(word));
            }
            '"' | '\'' | '`' | '/' => return true,
            _ => {}
        }
    }
    true
}

/// The white space between two tokens.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Gap {
    None,
    Space,
    Line,
}

impl Gap {
    fn write(self, out: &mut String, next: char) {
        let Some(last) = out.chars().last() else {
            return;
        };
        let is_word = |char: char| char.is_alphanumeric() || matches!(char, '_' | '$' | '#' | '@');
        let joins = is_word(last) && is_word(next);
        // `a + +b` and `a / /b/` are not `a ++b` and `a //b/`.
        let merges = matches!(last, '+' | '-' | '/') && matches!(next, '+' | '-' | '/');
        match self {
            Self::None => {}
            Self::Space if joins || merges => out.push(' '),
            Self::Space => {}
            Self::Line => {
                let continues = matches!(
                    last,
                    '{' | '(' | '[' | ',' | ';' | ':' | '?' | '=' | '&' | '|' | '<' | '>' | '!'
                ) || matches!(
                    next,
                    ')' | ']' | '}' | ',' | ';' | '.' | '?' | ':' | '&' | '|' | '='
                );
                if !continues {
                    out.push('\n');
                } else if joins || merges {
                    out.push(' ');
                }
            }
        }
    }
}

fn comment_length(rest: &str) -> usize {
    let end = if rest.starts_with("//") {
        rest.find('\n')
    } else {
        rest.find("*/").map(|at| at + 2)
    };
    end.unwrap_or(rest.len())
}

fn quoted_length(rest: &str, quote: char) -> usize {
    let mut is_escaped = false;
    for (at, char) in rest.char_indices().skip(1) {
        match char {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            _ if char == quote => return at + 1,
            _ => {}
        }
    }
    rest.len()
}

/// Returns the length of a template with all expressions in it.
fn template_length(rest: &str) -> usize {
    let mut at = 1;
    while let Some(char) = rest[at..].chars().next() {
        match char {
            '\\' => at += 1 + rest[at + 1..].chars().next().map_or(0, char::len_utf8),
            '`' => return at + 1,
            '$' if rest[at..].starts_with("${") => at += expression_length(&rest[at..]),
            _ => at += char.len_utf8(),
        }
    }
    rest.len()
}

/// Returns the length of `${…}` with strings, templates and braces in it.
fn expression_length(rest: &str) -> usize {
    let (mut at, mut depth) = (2, 1);
    while let Some(char) = rest[at..].chars().next() {
        at += match char {
            '"' | '\'' => quoted_length(&rest[at..], char),
            '`' => template_length(&rest[at..]),
            _ => char.len_utf8(),
        };
        depth += match char {
            '{' => 1,
            '}' => -1,
            _ => 0,
        };
        if depth == 0 {
            return at;
        }
    }
    rest.len()
}

/// Returns whether a `/` after this starts a regular expression and does not divide.
fn starts_expression(out: &str) -> bool {
    let before = out.trim_end();
    let word = before
        .rsplit(|char: char| !char.is_alphanumeric() && char != '_')
        .next();
    if matches!(
        word,
        Some("return" | "typeof" | "case" | "in" | "of" | "await" | "else")
    ) {
        return true;
    }
    let last = before.chars().last();
    last.is_none_or(|last| {
        !(last.is_alphanumeric() || matches!(last, '_' | '$' | ')' | ']' | '}' | '"' | '\'' | '`'))
    })
}

fn pattern_length(rest: &str) -> usize {
    let (mut is_escaped, mut is_class) = (false, false);
    for (at, char) in rest.char_indices().skip(1) {
        match char {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            '[' => is_class = true,
            ']' => is_class = false,
            '/' if !is_class => return at + 1,
            _ => {}
        }
    }
    rest.len()
}

/// Strips a style sheet.
pub(crate) fn style(source: &str) -> String {
    let mut out = String::with_capacity(source.len());
    let mut rest = source;
    let mut has_gap = false;
    while let Some(char) = rest.chars().next() {
        let is_comment = rest.starts_with("/*");
        let length = match char {
            _ if is_comment => comment_length(rest),
            '"' | '\'' => quoted_length(rest, char),
            _ => char.len_utf8(),
        };
        let (token, after) = rest.split_at(length);
        rest = after;
        if is_comment || char.is_whitespace() {
            has_gap = true;
            continue;
        }
        let last = out.chars().last();
        let is_needless = matches!(last, None | Some('{' | '}' | ';' | ',' | ':' | '>'))
            || matches!(char, '{' | '}' | ';' | ',' | '>');
        if has_gap && !is_needless {
            out.push(' ');
        }
        has_gap = false;
        if char == '}' && out.ends_with(';') {
            out.pop();
        }
        out.push_str(token);
    }
    out
}

/// Strips markup: the indentation of its lines.
pub(crate) fn markup(source: &str) -> String {
    let lines = source
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty());
    lines.map(|line| format!("{line}\n")).collect()
}
