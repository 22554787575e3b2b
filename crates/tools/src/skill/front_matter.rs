//! The front matter of a `SKILL.md`: found in the text, read as YAML, checked by the rules of the format.
//!
//! It is YAML of one shape: names of fields, each with a text, and `metadata` with one level more. The events of the
//! parser are taken one by one and the first that does not fit ends the reading, so nothing nests, nothing is repeated
//! by an alias and nothing is guessed to be a number.

use saphyr_parser::{Event, Parser, ScanError, StrInput};
use std::collections::BTreeMap;

/// The most bytes that a front matter has, its marks included.
pub(crate) const LARGEST_FRONT_MATTER: usize = 64 * 1024;

/// How many characters each field has at most.
const LONGEST_NAME: usize = 64;
pub(super) const LONGEST_DESCRIPTION: usize = 1024;
const LONGEST_COMPATIBILITY: usize = 500;

/// What the front matter says, as far as it is of use here; the other fields are checked and forgotten.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct FrontMatter {
    pub(crate) name: String,
    pub(crate) description: String,
}

impl FrontMatter {
    /// Reads and checks the front matter at the start of a `SKILL.md`; what is wrong with it is said in words.
    pub(crate) fn read(text: &str) -> Result<Self, String> {
        let (yaml, _body) = split(text)?;
        let mut fields = Fields::read(yaml)?;
        let name = fields.required("name")?.trim().to_owned();
        check_name(&name)?;
        let description = fields.required("description")?;
        if description.trim().is_empty() {
            return Err(
                "`description` is empty; say what the skill does and when to use it".into(),
            );
        }
        check_length("description", &description, LONGEST_DESCRIPTION)?;
        if let Some(compatibility) = fields.texts.get("compatibility") {
            check_length("compatibility", compatibility, LONGEST_COMPATIBILITY)?;
        }
        Ok(Self {
            name,
            description: description.trim().to_owned(),
        })
    }
}

/// Parts a `SKILL.md` into its front matter, without the marks, and its body.
pub(crate) fn split(text: &str) -> Result<(&str, &str), String> {
    let mut lines = text.split_inclusive('\n');
    let first = lines.next().unwrap_or_default();
    if !is_mark(first) {
        return Err("it does not begin with a line `---`; put the front matter there".into());
    }
    let start = first.len();
    let mut end = start;
    for line in lines {
        if is_mark(line) {
            return Ok((&text[start..end], &text[end + line.len()..]));
        }
        end += line.len();
        if end > LARGEST_FRONT_MATTER {
            break;
        }
    }
    Err(format!(
        "its front matter is not closed by a line `---` within {} KiB",
        LARGEST_FRONT_MATTER / 1024
    ))
}

fn is_mark(line: &str) -> bool {
    line.trim_end() == "---"
}

/// Whether this is a name by the format's rules; lengths are counted in characters.
pub(super) fn check_name(name: &str) -> Result<(), String> {
    let problem = if name.is_empty() {
        "is empty"
    } else if name.chars().count() > LONGEST_NAME {
        "is longer than 64 characters"
    } else if name.chars().any(char::is_uppercase) {
        "has capital letters"
    } else if !name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-') {
        "has other characters than the letters a to z, digits and hyphens"
    } else if name.starts_with('-') || name.ends_with('-') {
        "begins or ends with a hyphen"
    } else if name.contains("--") {
        "has two hyphens in a row"
    } else {
        return Ok(());
    };
    let shown: String = name.chars().take(80).collect();
    Err(format!("the name {shown:?} {problem}"))
}

pub(super) fn check_length(field: &str, text: &str, longest: usize) -> Result<(), String> {
    let length = text.chars().count();
    match length <= longest {
        true => Ok(()),
        false => Err(format!(
            "`{field}` has {length} characters, {longest} at most are allowed"
        )),
    }
}

/// The fields of a front matter.
#[derive(Default)]
struct Fields {
    texts: BTreeMap<String, String>,
}

impl Fields {
    fn read(yaml: &str) -> Result<Self, String> {
        let mut events = Events {
            parser: Parser::new_from_str(yaml),
        };
        events.expect_start()?;
        let mut fields = Self::default();
        let mut seen_metadata = false;
        while let Some(name) = events.key()? {
            let repeated = match name.as_str() {
                "name" | "description" | "license" | "compatibility" | "allowed-tools" => {
                    let text = events.text(&name)?;
                    fields.texts.insert(name.clone(), text).is_some()
                }
                "metadata" => {
                    events.text_map("metadata")?;
                    std::mem::replace(&mut seen_metadata, true)
                }
                _ => {
                    return Err(format!(
                        "it has an unknown field {name:?}; put fields of your own below `metadata`"
                    ));
                }
            };
            if repeated {
                return Err(format!("the field `{name}` is there twice"));
            }
        }
        events.expect_end()?;
        Ok(fields)
    }

    fn required(&mut self, name: &str) -> Result<String, String> {
        self.texts
            .remove(name)
            .ok_or_else(|| format!("the field `{name}` is missing"))
    }
}

/// The events of the YAML, without those that mean nothing here.
struct Events<'a> {
    parser: Parser<'a, StrInput<'a>>,
}

impl<'a> Events<'a> {
    fn next(&mut self) -> Result<Event<'a>, String> {
        match self.parser.next_event() {
            Some(Ok((event, _))) => plain(event),
            Some(Err(error)) => Err(explain(&error)),
            None => Ok(Event::StreamEnd),
        }
    }

    fn expect_start(&mut self) -> Result<(), String> {
        loop {
            match self.next()? {
                Event::StreamStart | Event::DocumentStart(_) => {}
                Event::MappingStart(..) => return Ok(()),
                _ => return Err("its front matter is not a list of fields `name: text`".into()),
            }
        }
    }

    fn expect_end(&mut self) -> Result<(), String> {
        loop {
            match self.next()? {
                Event::DocumentEnd => {}
                Event::StreamEnd => return Ok(()),
                _ => return Err("its front matter is more than one YAML document".into()),
            }
        }
    }

    /// The name of the next field of this level, if there is one.
    fn key(&mut self) -> Result<Option<String>, String> {
        match self.next()? {
            Event::Scalar(name, ..) => Ok(Some(name.into_owned())),
            Event::MappingEnd => Ok(None),
            _ => Err("a field's name is not a plain text".into()),
        }
    }

    fn text(&mut self, field: &str) -> Result<String, String> {
        match self.next()? {
            Event::Scalar(text, ..) => Ok(text.into_owned()),
            _ => Err(format!("the field {field:?} is not a text")),
        }
    }

    fn text_map(&mut self, field: &str) -> Result<(), String> {
        if !matches!(self.next()?, Event::MappingStart(..)) {
            return Err(format!("the field `{field}` is not a list of `name: text`"));
        }
        let mut seen = BTreeMap::new();
        while let Some(name) = self.key()? {
            let text = self.text(&name)?;
            if seen.insert(name.clone(), text).is_some() {
                return Err(format!("the field {name:?} is there twice in `{field}`"));
            }
        }
        Ok(())
    }
}

/// Refuses what has no place in a front matter and could make a small text a large one.
fn plain(event: Event<'_>) -> Result<Event<'_>, String> {
    let (anchor, tag) = match &event {
        Event::Alias(_) => return Err("its front matter has an alias (`*name`)".into()),
        Event::Scalar(_, _, anchor, tag) => (*anchor, tag.is_some()),
        Event::SequenceStart(anchor, tag) | Event::MappingStart(anchor, tag) => {
            (*anchor, tag.is_some())
        }
        _ => (0, false),
    };
    match (anchor, tag) {
        (0, false) => Ok(event),
        (0, true) => {
            Err("its front matter has a tag (`!name`); quote a text that begins so".into())
        }
        _ => Err("its front matter has an anchor (`&name`); quote a text that begins so".into()),
    }
}

fn explain(error: &ScanError) -> String {
    // The first line of the file is the mark, and the parser counts from 1.
    format!(
        "its front matter is not YAML: {} in line {}; quote a text that has a colon in it",
        error.info(),
        error.marker().line() + 1
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_body_is_what_follows_the_closing_mark() {
        assert_eq!(
            split("---\na: b\n---\n# Body\n---\n"),
            Ok(("a: b\n", "# Body\n---\n"))
        );
        assert_eq!(split("---\r\na: b\r\n---"), Ok(("a: b\r\n", "")));
    }

    #[test]
    fn no_text_makes_the_reader_panic_or_run_on() {
        // Every short text of the characters that mean something in YAML, and those in a place of their own.
        let parts = [
            "-", ":", " ", "\n", "{", "[", "&a", "*a", "!t", "|", ">", "\"", "'", "#", "%", "?",
            ",", "x", "\t", "\u{0}", "]", "}",
        ];
        for first in parts {
            for second in parts {
                for third in parts {
                    let text = format!("---\nname: {first}{second}{third}\n{third}{first}\n---\n");
                    let _ = FrontMatter::read(&text);
                    let text = format!("---\n{first}{second}\n{third}\n---\n");
                    assert!(FrontMatter::read(&text).is_err());
                }
            }
        }
    }

    #[test]
    fn deep_nesting_and_long_keys_are_refused_soon() {
        for part in ["[", "{", "- ", "? ", "a: {", "\"", "a:\n "] {
            let text = format!("---\nname: {}\n---\n", part.repeat(15_000 / part.len()));
            assert!(FrontMatter::read(&text).is_err(), "{part}");
        }
    }
}
