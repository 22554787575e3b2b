//! The text of an HTML page: what a reader would see, with its headings marked as markdown marks them.
//!
//! It is no parser of documents: it walks over tags, breaks lines at those that stand alone, and leaves out what is not
//! shown. Whatever the page holds, something sensible comes out.

/// The text of a page.
#[derive(Debug, PartialEq, Eq)]
pub struct HtmlText {
    /// What it calls itself.
    pub title: Option<String>,
    /// Its text.
    pub text: String,
}

/// What is not shown.
const HIDDEN: [&str; 7] = [
    "script", "style", "noscript", "template", "svg", "iframe", "object",
];

/// What begins a paragraph.
const ALONE: [&str; 30] = [
    "p",
    "div",
    "section",
    "article",
    "main",
    "header",
    "footer",
    "nav",
    "aside",
    "ul",
    "ol",
    "li",
    "dl",
    "dt",
    "dd",
    "table",
    "tr",
    "blockquote",
    "pre",
    "hr",
    "form",
    "fieldset",
    "figure",
    "figcaption",
    "details",
    "summary",
    "body",
    "address",
    "option",
    "caption",
];

/// Reads the text of a page.
pub fn read_html(html: &str) -> HtmlText {
    let mut reader = Reader {
        text: String::with_capacity(html.len() / 2),
        title: None,
        is_pre: false,
    };
    let mut rest = html;
    while let Some(at) = rest.find('<') {
        reader.words(&rest[..at]);
        rest = reader.markup(&rest[at..]);
    }
    reader.words(rest);
    HtmlText {
        title: reader.title,
        text: reader.text,
    }
}

struct Reader {
    text: String,
    title: Option<String>,
    is_pre: bool,
}

impl Reader {
    /// Takes what begins with `<` and gives what comes after it.
    fn markup<'a>(&mut self, rest: &'a str) -> &'a str {
        if let Some(comment) = rest.strip_prefix("<!--") {
            return comment.split_once("-->").map_or("", |(_, after)| after);
        }
        let after_sign = rest[1..].strip_prefix('/').unwrap_or(&rest[1..]);
        let is_end = rest[1..].starts_with('/');
        if !after_sign
            .starts_with(|first: char| first.is_ascii_alphabetic() || "!?".contains(first))
        {
            self.text.push('<');
            return &rest[1..];
        }
        let name_end = after_sign
            .find(|character: char| !character.is_ascii_alphanumeric())
            .unwrap_or(after_sign.len());
        let name = after_sign[..name_end].to_ascii_lowercase();
        let after = after_tag(&after_sign[name_end..]);
        self.tag(&name, is_end);
        if is_end {
            return after;
        }
        if HIDDEN.contains(&name.as_str()) {
            return until_end(after, &name).1;
        }
        if name == "title" {
            let (title, after) = until_end(after, "title");
            self.title.get_or_insert_with(|| one_line(title));
            return after;
        }
        after
    }

    fn tag(&mut self, name: &str, is_end: bool) {
        match name {
            "h1" | "h2" | "h3" | "h4" | "h5" | "h6" => {
                self.paragraph();
                if !is_end {
                    let level = usize::from(name.as_bytes()[1] - b'0');
                    self.text.push_str(&"#".repeat(level));
                    self.text.push(' ');
                }
            }
            "br" => self.text.push('\n'),
            "td" | "th" => self.text.push(' '),
            "pre" => {
                self.paragraph();
                self.is_pre = !is_end;
            }
            name if ALONE.contains(&name) => self.paragraph(),
            _ => {}
        }
    }

    fn paragraph(&mut self) {
        let length = self.text.trim_end_matches([' ', '\n']).len();
        self.text.truncate(length);
        if !self.text.is_empty() {
            self.text.push_str("\n\n");
        }
    }

    fn words(&mut self, raw: &str) {
        let words = decode(raw);
        if self.is_pre {
            self.text.push_str(&words);
            return;
        }
        for character in words.chars() {
            if !character.is_whitespace() {
                self.text.push(character);
            } else if !self.text.ends_with([' ', '\n']) && !self.text.is_empty() {
                self.text.push(' ');
            }
        }
    }
}

/// What comes after the end of a tag, whose attributes may hold `>` in quotes.
fn after_tag(rest: &str) -> &str {
    let mut quote = None;
    for (at, byte) in rest.bytes().enumerate() {
        match (quote, byte) {
            (None, b'>') => return &rest[at + 1..],
            // A quote counts only where a value begins: an apostrophe elsewhere would swallow the page.
            (None, b'"' | b'\'') if rest[..at].trim_end().ends_with('=') => quote = Some(byte),
            (Some(open), byte) if open == byte => quote = None,
            _ => {}
        }
    }
    ""
}

/// What stands before `</name`, and what comes after that tag.
fn until_end<'a>(rest: &'a str, name: &str) -> (&'a str, &'a str) {
    let mut from = 0;
    while let Some(at) = rest[from..].find("</") {
        let at = from + at;
        let after = &rest[at + 2..];
        let is_it = after
            .get(..name.len())
            .is_some_and(|found| found.eq_ignore_ascii_case(name));
        if is_it {
            return (&rest[..at], after_tag(&after[name.len()..]));
        }
        from = at + 2;
    }
    (rest, "")
}

fn one_line(text: &str) -> String {
    let text = decode(text);
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Text with its entities replaced.
fn decode(raw: &str) -> String {
    let mut text = String::with_capacity(raw.len());
    let mut rest = raw;
    while let Some(at) = rest.find('&') {
        text.push_str(&rest[..at]);
        rest = &rest[at..];
        let end = rest.bytes().take(12).position(|byte| byte == b';');
        match end.and_then(|end| Some((entity(&rest[1..end])?, end))) {
            Some((character, end)) => {
                text.push(character);
                rest = &rest[end + 1..];
            }
            None => {
                text.push('&');
                rest = &rest[1..];
            }
        }
    }
    text.push_str(rest);
    text
}

fn entity(name: &str) -> Option<char> {
    if let Some(number) = name.strip_prefix('#') {
        let code = match number.strip_prefix(['x', 'X']) {
            Some(hexadecimal) => u32::from_str_radix(hexadecimal, 16),
            None => number.parse(),
        };
        return code.ok().and_then(char::from_u32);
    }
    let character = match name {
        "amp" => '&',
        "lt" => '<',
        "gt" => '>',
        "quot" => '"',
        "apos" | "lsquo" | "rsquo" => '\'',
        "ldquo" | "rdquo" => '"',
        "nbsp" | "ensp" | "emsp" | "thinsp" => ' ',
        "ndash" => '–',
        "mdash" => '—',
        "hellip" => '…',
        "copy" => '©',
        "euro" => '€',
        "auml" => 'ä',
        "ouml" => 'ö',
        "uuml" => 'ü',
        "Auml" => 'Ä',
        "Ouml" => 'Ö',
        "Uuml" => 'Ü',
        "szlig" => 'ß',
        "eacute" => 'é',
        "egrave" => 'è',
        "agrave" => 'à',
        "ccedil" => 'ç',
        "ntilde" => 'ñ',
        _ => return None,
    };
    Some(character)
}
