//! Parses the front matter of a markdown file: YAML between two `---` lines. Each field records its line.
//!
//! Only a subset of YAML is allowed: the value of a field is a text, a list or a map of more fields, at most three
//! levels deep. The parser's events are checked one by one, and parsing ends at the first invalid event. This rules out
//! deep nesting, alias expansion and guessed types. The caller interprets the fields.

use saphyr_parser::{Event, Parser, ScalarStyle, ScanError, StrInput};
use std::fmt;

/// The maximum size of the front matter in bytes, including its `---` lines.
pub const MAX_BYTES: usize = 64 * 1024;

/// The maximum nesting depth of values. For example, a field inside a list item of a top-level field has depth 3.
const MAX_DEPTH: usize = 3;

/// The error for front matter that cannot be parsed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FrontMatterError {
    /// The line of the file, starting at 1, if the problem has one.
    pub line: Option<usize>,
    /// What is wrong, and how to fix it.
    pub detail: String,
}

impl fmt::Display for FrontMatterError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.detail)
    }
}

impl std::error::Error for FrontMatterError {}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Field {
    pub name: String,
    /// The line of the name in the file, starting at 1.
    pub line: usize,
    pub value: Value,
}

/// The value of a field or of a list item.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Value {
    /// A text. Everything that is not a list or a map is a text, including numbers, booleans and empty values.
    Text {
        text: String,
        /// Whether it is written without quotes.
        is_plain: bool,
    },
    List(Vec<Item>),
    /// More fields. A name may occur twice; the caller decides what that means.
    Map(Vec<Field>),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Item {
    /// The line in the file where the item starts, counted from 1.
    pub line: usize,
    pub value: Value,
}

/// Splits a text into its front matter, without the `---` lines, and its body.
///
/// # Errors
/// The text does not start with a `---` line, or the second `---` line is missing or too far away.
pub fn split(text: &str) -> Result<(&str, &str), FrontMatterError> {
    let error = |detail: String| FrontMatterError { line: None, detail };
    let mut lines = text.split_inclusive('\n');
    let first = lines.next().unwrap_or_default();
    if !is_delimiter(first) {
        let detail = "it does not start with a `---` line; put the front matter there";
        return Err(error(detail.to_owned()));
    }
    let start = first.len();
    let mut end = start;
    for line in lines {
        if is_delimiter(line) {
            return Ok((&text[start..end], &text[end + line.len()..]));
        }
        end += line.len();
        if end > MAX_BYTES {
            break;
        }
    }
    Err(error(format!(
        "its front matter is not closed by a `---` line within {} KiB",
        MAX_BYTES / 1024
    )))
}

fn is_delimiter(line: &str) -> bool {
    line.trim_end() == "---"
}

/// Parses the fields of the front matter from [`split`], in order.
///
/// # Errors
/// The text is not YAML, not a map, or uses YAML features that front matter does not need.
pub fn fields(yaml: &str) -> Result<Vec<Field>, FrontMatterError> {
    let mut events = Events {
        parser: Parser::new_from_str(yaml),
    };
    loop {
        match events.next()? {
            (Event::StreamStart | Event::DocumentStart(_), _) => {}
            (Event::MappingStart(..), _) => break,
            (_, line) => {
                return Err(error_at(
                    line,
                    "its front matter is not a list of fields `name: text`",
                ));
            }
        }
    }
    let fields = events.map(1)?;
    loop {
        match events.next()? {
            (Event::DocumentEnd, _) => {}
            (Event::StreamEnd, _) => return Ok(fields),
            (_, line) => {
                return Err(error_at(
                    line,
                    "its front matter is more than one YAML document",
                ));
            }
        }
    }
}

/// The parser's events, each with its line in the file.
struct Events<'a> {
    parser: Parser<'a, StrInput<'a>>,
}

impl<'a> Events<'a> {
    fn next(&mut self) -> Result<(Event<'a>, usize), FrontMatterError> {
        match self.parser.next_event() {
            Some(Ok((event, span))) => {
                let line = file_line(span.start.line());
                check_plain(&event, line)?;
                Ok((event, line))
            }
            Some(Err(error)) => Err(explain(&error)),
            None => Ok((Event::StreamEnd, 1)),
        }
    }

    /// Parses the fields of a map up to its end. The start of the map is already consumed.
    fn map(&mut self, depth: usize) -> Result<Vec<Field>, FrontMatterError> {
        let mut fields = Vec::new();
        loop {
            let (name, line) = match self.next()? {
                (Event::Scalar(name, ..), line) if !name.is_empty() => (name.into_owned(), line),
                (Event::MappingEnd, _) => return Ok(fields),
                (_, line) => return Err(error_at(line, "a field's name is not a plain text")),
            };
            let (event, value_line) = self.next()?;
            let value = self.value(event, value_line, depth)?;
            fields.push(Field { name, line, value });
        }
    }

    /// Parses the items of a list up to its end. The start of the list is already consumed.
    fn list(&mut self, depth: usize) -> Result<Vec<Item>, FrontMatterError> {
        let mut items = Vec::new();
        loop {
            let (event, line) = self.next()?;
            if matches!(event, Event::SequenceEnd) {
                return Ok(items);
            }
            let value = self.value(event, line, depth)?;
            items.push(Item { line, value });
        }
    }

    fn value(
        &mut self,
        event: Event<'a>,
        line: usize,
        depth: usize,
    ) -> Result<Value, FrontMatterError> {
        match event {
            Event::Scalar(text, style, ..) => Ok(Value::Text {
                text: text.into_owned(),
                is_plain: style == ScalarStyle::Plain,
            }),
            Event::SequenceStart(..) | Event::MappingStart(..) if depth == MAX_DEPTH => {
                Err(error_at(line, "its front matter is nested too deeply"))
            }
            Event::SequenceStart(..) => self.list(depth + 1).map(Value::List),
            Event::MappingStart(..) => self.map(depth + 1).map(Value::Map),
            _ => Err(error_at(
                line,
                "its front matter ends in the middle of a field",
            )),
        }
    }
}

/// Rejects aliases, anchors and tags, which front matter does not need. Aliases could expand a small text into a large
/// one.
fn check_plain(event: &Event<'_>, line: usize) -> Result<(), FrontMatterError> {
    let (anchor, tag) = match event {
        Event::Alias(_) => return Err(error_at(line, "its front matter has an alias (`*name`)")),
        Event::Scalar(_, _, anchor, tag) => (*anchor, tag.is_some()),
        Event::SequenceStart(anchor, tag) | Event::MappingStart(anchor, tag) => {
            (*anchor, tag.is_some())
        }
        _ => (0, false),
    };
    match (anchor, tag) {
        (0, false) => Ok(()),
        (0, true) => Err(error_at(
            line,
            "its front matter has a tag (`!name`); quote a text that starts like this",
        )),
        _ => Err(error_at(
            line,
            "its front matter has an anchor (`&name`); quote a text that starts like this",
        )),
    }
}

fn explain(error: &ScanError) -> FrontMatterError {
    let detail = format!(
        "its front matter is not YAML: {}; quote a text that contains a colon",
        error.info()
    );
    error_at(file_line(error.marker().line()), &detail)
}

/// Converts a line of the YAML to a line of the file, whose first line is `---`.
fn file_line(line: usize) -> usize {
    line + 1
}

fn error_at(line: usize, detail: &str) -> FrontMatterError {
    FrontMatterError {
        line: Some(line),
        detail: detail.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn text(text: &str) -> Value {
        Value::Text {
            text: text.to_owned(),
            is_plain: true,
        }
    }

    #[test]
    fn the_body_follows_the_closing_delimiter() {
        assert_eq!(
            split("---\na: b\n---\n# Body\n---\n"),
            Ok(("a: b\n", "# Body\n---\n"))
        );
        assert_eq!(split("---\r\na: b\r\n---"), Ok(("a: b\r\n", "")));
    }

    #[test]
    fn fields_lists_and_maps_have_their_lines() {
        let yaml = "a: b\nlist:\n  - x\n  - { p: q,\n      r: 's' }\n";
        let found = fields(yaml).unwrap();
        let lines: Vec<(&str, usize)> = found.iter().map(|f| (&*f.name, f.line)).collect();
        assert_eq!(lines, [("a", 2), ("list", 3)]);
        assert_eq!(found[0].value, text("b"));
        let Value::List(items) = &found[1].value else {
            panic!("{found:?}");
        };
        assert_eq!((items[0].line, &items[0].value), (4, &text("x")));
        let Value::Map(inner) = &items[1].value else {
            panic!("{found:?}");
        };
        assert_eq!((&*inner[1].name, inner[1].line), ("r", 6));
        let quoted = Value::Text {
            text: "s".to_owned(),
            is_plain: false,
        };
        assert_eq!(inner[1].value, quoted);
    }

    #[test]
    fn a_yaml_error_has_its_line() {
        for (yaml, line, part) in [
            ("a: b\nc: d: e\n", 3, "not YAML"),
            ("a: b\nc: *x\n", 3, "not YAML"),
            ("a: &x b\nc: *x\n", 2, "anchor"),
            ("a: !x b\n", 2, "tag"),
            ("- a\n", 2, "not a list of fields"),
            ("a: b\nc: [[[[x]]]]\n", 3, "too deeply"),
            ("a: b\n? [x]\n: c\n", 3, "name is not a plain text"),
            ("a: b\n? \n", 4, "name is not a plain text"),
            ("a: b\n...\nc: d\n", 4, "more than one"),
        ] {
            let error = fields(yaml).unwrap_err();
            assert!(error.detail.contains(part), "{yaml}: {error:?}");
            assert_eq!(error.line, Some(line), "{yaml}: {error:?}");
        }
    }

    #[test]
    fn deep_nesting_and_long_keys_are_rejected_early() {
        for part in ["[", "{", "- ", "? ", "a: {", "\"", "a:\n "] {
            let yaml = format!("name: {}\n", part.repeat(60_000 / part.len()));
            assert!(fields(&yaml).is_err(), "{part}");
        }
    }

    proptest! {
        #[test]
        fn no_text_makes_the_parser_panic(text in "\\PC*") {
            let _ = split(&text).map(|(yaml, _)| fields(yaml));
            let _ = fields(&text);
        }

        #[test]
        fn no_yaml_syntax_makes_the_parser_panic(
            parts in proptest::collection::vec(
                proptest::sample::select(vec![
                    "-", ":", " ", "\n", "{", "[", "&a", "*a", "!t", "|", ">", "\"", "'", "#", "%", "?", ",", "x",
                    "\t", "\u{0}", "]", "}", "---", "...", "a: b\n", "- ", "\u{feff}", "ä",
                ]),
                0..40,
            )
        ) {
            let yaml = parts.concat();
            if let Ok(fields) = fields(&yaml) {
                let last = yaml.lines().count() + 1;
                prop_assert!(fields.iter().all(|field| (2..=last.max(2)).contains(&field.line)));
            }
        }
    }
}
