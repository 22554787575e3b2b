//! The front matter of a markdown file: YAML between two lines `---`, given as fields that know their lines.
//!
//! It is YAML of one shape: fields, each with a text, a list or more fields, three levels deep at most. The events of the
//! parser are taken one by one and the first that does not fit ends the reading, so nothing nests without end, nothing is
//! repeated by an alias and nothing is guessed to be a number. What the fields mean is for the reader of the file to say.

use saphyr_parser::{Event, Parser, ScalarStyle, ScanError, StrInput};
use std::fmt;

/// The most bytes that a front matter has, its marks included.
pub const LARGEST: usize = 64 * 1024;

/// How deep values may lie: a field of an item of a list of a field is at 3.
const DEEPEST: usize = 3;

/// Why a text has no front matter that can be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// The line of the file, counted from one, if it is the fault of one.
    pub line: Option<usize>,
    /// What is wrong, and the way out.
    pub detail: String,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.detail)
    }
}

impl std::error::Error for Fault {}

/// One field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Field {
    /// Its name.
    pub name: String,
    /// The line of the file that the name stands in, counted from one.
    pub line: usize,
    /// What it holds.
    pub value: Value,
}

/// What a field, or an item of a list, holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Value {
    /// A text. All that is no list and no map is one: numbers, truth values, nothing at all.
    Text {
        /// The words.
        text: String,
        /// Whether it was written without quotes.
        is_plain: bool,
    },
    /// A list.
    List(Vec<Item>),
    /// More fields. One may be there twice; who reads them says what that means.
    Map(Vec<Field>),
}

/// One item of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Item {
    /// The line of the file that it begins in, counted from one.
    pub line: usize,
    /// What it holds.
    pub value: Value,
}

/// Parts a text into its front matter, without the marks, and its body.
///
/// # Errors
/// The text does not begin with a mark, or a second one does not follow in time.
pub fn split(text: &str) -> Result<(&str, &str), Fault> {
    let fault = |detail: String| Fault { line: None, detail };
    let mut lines = text.split_inclusive('\n');
    let first = lines.next().unwrap_or_default();
    if !is_mark(first) {
        let detail = "it does not begin with a line `---`; put the front matter there";
        return Err(fault(detail.to_owned()));
    }
    let start = first.len();
    let mut end = start;
    for line in lines {
        if is_mark(line) {
            return Ok((&text[start..end], &text[end + line.len()..]));
        }
        end += line.len();
        if end > LARGEST {
            break;
        }
    }
    Err(fault(format!(
        "its front matter is not closed by a line `---` within {} KiB",
        LARGEST / 1024
    )))
}

fn is_mark(line: &str) -> bool {
    line.trim_end() == "---"
}

/// The fields of a front matter, as [`split`] gives it, in their order.
///
/// # Errors
/// It is not YAML, not a list of fields, or has more to it than a front matter needs.
pub fn fields(yaml: &str) -> Result<Vec<Field>, Fault> {
    let mut events = Events {
        parser: Parser::new_from_str(yaml),
    };
    loop {
        match events.next()? {
            (Event::StreamStart | Event::DocumentStart(_), _) => {}
            (Event::MappingStart(..), _) => break,
            (_, line) => {
                return Err(at(
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
            (_, line) => return Err(at(line, "its front matter is more than one YAML document")),
        }
    }
}

/// The events of the YAML, each with its line in the file.
struct Events<'a> {
    parser: Parser<'a, StrInput<'a>>,
}

impl<'a> Events<'a> {
    fn next(&mut self) -> Result<(Event<'a>, usize), Fault> {
        match self.parser.next_event() {
            Some(Ok((event, span))) => {
                let line = in_file(span.start.line());
                plain(&event, line)?;
                Ok((event, line))
            }
            Some(Err(error)) => Err(explain(&error)),
            None => Ok((Event::StreamEnd, 1)),
        }
    }

    /// The fields up to the end of a map that has begun.
    fn map(&mut self, depth: usize) -> Result<Vec<Field>, Fault> {
        let mut fields = Vec::new();
        loop {
            let (name, line) = match self.next()? {
                (Event::Scalar(name, ..), line) if !name.is_empty() => (name.into_owned(), line),
                (Event::MappingEnd, _) => return Ok(fields),
                (_, line) => return Err(at(line, "a field's name is not a plain text")),
            };
            let (event, value_line) = self.next()?;
            let value = self.value(event, value_line, depth)?;
            fields.push(Field { name, line, value });
        }
    }

    /// The items up to the end of a list that has begun.
    fn list(&mut self, depth: usize) -> Result<Vec<Item>, Fault> {
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

    fn value(&mut self, event: Event<'a>, line: usize, depth: usize) -> Result<Value, Fault> {
        match event {
            Event::Scalar(text, style, ..) => Ok(Value::Text {
                text: text.into_owned(),
                is_plain: style == ScalarStyle::Plain,
            }),
            Event::SequenceStart(..) | Event::MappingStart(..) if depth == DEEPEST => {
                Err(at(line, "its front matter nests too deep"))
            }
            Event::SequenceStart(..) => self.list(depth + 1).map(Value::List),
            Event::MappingStart(..) => self.map(depth + 1).map(Value::Map),
            _ => Err(at(line, "its front matter ends in the middle of a field")),
        }
    }
}

/// Refuses what has no place in a front matter and could make a small text a large one.
fn plain(event: &Event<'_>, line: usize) -> Result<(), Fault> {
    let (anchor, tag) = match event {
        Event::Alias(_) => return Err(at(line, "its front matter has an alias (`*name`)")),
        Event::Scalar(_, _, anchor, tag) => (*anchor, tag.is_some()),
        Event::SequenceStart(anchor, tag) | Event::MappingStart(anchor, tag) => {
            (*anchor, tag.is_some())
        }
        _ => (0, false),
    };
    match (anchor, tag) {
        (0, false) => Ok(()),
        (0, true) => Err(at(
            line,
            "its front matter has a tag (`!name`); quote a text that begins so",
        )),
        _ => Err(at(
            line,
            "its front matter has an anchor (`&name`); quote a text that begins so",
        )),
    }
}

fn explain(error: &ScanError) -> Fault {
    let detail = format!(
        "its front matter is not YAML: {}; quote a text that has a colon in it",
        error.info()
    );
    at(in_file(error.marker().line()), &detail)
}

/// The first line of the file is the mark, and the parser counts from 1.
fn in_file(line: usize) -> usize {
    line + 1
}

fn at(line: usize, detail: &str) -> Fault {
    Fault {
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
    fn the_body_is_what_follows_the_closing_mark() {
        assert_eq!(
            split("---\na: b\n---\n# Body\n---\n"),
            Ok(("a: b\n", "# Body\n---\n"))
        );
        assert_eq!(split("---\r\na: b\r\n---"), Ok(("a: b\r\n", "")));
    }

    #[test]
    fn fields_lists_and_maps_know_their_lines() {
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
    fn a_fault_of_the_yaml_knows_its_line() {
        for (yaml, line, part) in [
            ("a: b\nc: d: e\n", 3, "not YAML"),
            ("a: b\nc: *x\n", 3, "not YAML"),
            ("a: &x b\nc: *x\n", 2, "anchor"),
            ("a: !x b\n", 2, "tag"),
            ("- a\n", 2, "not a list of fields"),
            ("a: b\nc: [[[[x]]]]\n", 3, "too deep"),
            ("a: b\n? [x]\n: c\n", 3, "name is not a plain text"),
            ("a: b\n? \n", 4, "name is not a plain text"),
            ("a: b\n...\nc: d\n", 4, "more than one"),
        ] {
            let fault = fields(yaml).unwrap_err();
            assert!(fault.detail.contains(part), "{yaml}: {fault:?}");
            assert_eq!(fault.line, Some(line), "{yaml}: {fault:?}");
        }
    }

    #[test]
    fn deep_nesting_and_long_keys_are_refused_soon() {
        for part in ["[", "{", "- ", "? ", "a: {", "\"", "a:\n "] {
            let yaml = format!("name: {}\n", part.repeat(60_000 / part.len()));
            assert!(fields(&yaml).is_err(), "{part}");
        }
    }

    proptest! {
        #[test]
        fn no_text_makes_the_reader_panic(text in "\\PC*") {
            let _ = split(&text).map(|(yaml, _)| fields(yaml));
            let _ = fields(&text);
        }

        #[test]
        fn nothing_that_means_something_in_yaml_makes_the_reader_panic(
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
