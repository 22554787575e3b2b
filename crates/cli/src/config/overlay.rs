//! Lays one layer over another. What is set later wins; what is wrong is noted, and reading goes on.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::path::Path;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::Value;
use super::keys::{self, Found, KEYS, Key, Untrusted};
use super::origin::Origin;
use super::problem::{Problem, Problems};
use super::quote;
use super::setting::{Base, Expected};
use super::settings::Settings;
use super::surroundings::{
    NEW_VAULT_PASSPHRASE, SERVER_VAULT_PASSPHRASE, Surroundings, VAULT_PASSPHRASE,
};
use crate::redact::redact_value;
use crate::text_file;

/// What the names of our variables begin with.
const PREFIX: &str = "LANGO_";

/// Variables that are ours but set no key.
const NOT_KEYS: [&str; 4] = [
    "LANGO_HOME",
    VAULT_PASSPHRASE,
    SERVER_VAULT_PASSPHRASE,
    NEW_VAULT_PASSPHRASE,
];

/// The largest file that is read. Nobody writes a longer one by hand.
const LARGEST_FILE_KIB: u64 = 64;

/// Whose word a value is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Whose {
    /// The person's: their own file, the environment, a flag, or a project's file that they trust.
    Person,
    /// That of whoever made the folder.
    Project,
}

/// The settings so far.
pub(super) struct Overlay<'a> {
    surroundings: &'a Surroundings,
    settings: Settings,
    origins: BTreeMap<String, Origin>,
    problems: Vec<Problem>,
    ignored: Vec<Ignored>,
}

/// A setting of a project's file that is ignored, because the user does not trust the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ignored {
    /// The key.
    pub key: String,
    /// The place of the setting.
    pub origin: Origin,
    /// Whether the file may set the key, and only this value permits too much.
    pub raises: bool,
}

impl std::fmt::Display for Ignored {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { key, origin, .. } = self;
        if self.raises {
            write!(formatter, "{key} ({origin}, which raises a limit)")
        } else {
            write!(formatter, "{key} ({origin})")
        }
    }
}

impl<'a> Overlay<'a> {
    /// Starts with the defaults.
    pub fn new(surroundings: &'a Surroundings, defaults: Settings) -> Self {
        Self {
            surroundings,
            settings: defaults,
            origins: BTreeMap::new(),
            problems: Vec::new(),
            ignored: Vec::new(),
        }
    }

    /// Lays a file over it; `whose` says whose word it is by its content. A file that is not there says nothing.
    pub fn read_file(&mut self, path: &Path, whose: impl FnOnce(&str) -> Whose) {
        let text = match contents(path) {
            Ok(Some(text)) => text,
            Ok(None) => return,
            Err(cause) => {
                return self.problems.push(Problem::Unreadable {
                    path: path.into(),
                    cause,
                });
            }
        };
        let whose = whose(&text);
        let (table, errors) = DeTable::parse_recoverable(&text);
        if errors.is_empty() {
            let earlier = self.problems.len();
            self.read_table(
                &Document {
                    path,
                    text: &text,
                    whose,
                },
                "",
                table.get_ref(),
            );
            // A table is read in the order of its names, a person reads from the top.
            self.problems[earlier..].sort_by_key(Problem::line);
        }
        // One slip can be several errors to the parser; the first of a line is the one to know.
        let mut first_of_line = BTreeMap::new();
        for error in &errors {
            let (line, column) = position(&text, error.span().map_or(0, |span| span.start));
            first_of_line
                .entry(line)
                .or_insert((column, error.message()));
        }
        for (line, (column, message)) in first_of_line {
            let message = message.replace('\n', ", ");
            self.problems.push(Problem::Unparsable {
                path: path.into(),
                line,
                column,
                message,
            });
        }
    }

    /// Lays the `LANGO_*` variables over it.
    pub fn read_environment(&mut self) {
        let mut seen: BTreeMap<String, String> = BTreeMap::new();
        for (name, value) in &self.surroundings.env {
            let name = name.to_string_lossy();
            let Some(words) = name
                .strip_prefix(PREFIX)
                .filter(|_| !NOT_KEYS.contains(&&*name))
            else {
                continue;
            };
            let Some(key) = keys::by_variable(words) else {
                let nearest = keys::nearest(words).map(Key::variable);
                self.problems.push(Problem::UnknownVariable {
                    name: quote::shortened(&name),
                    nearest,
                });
                continue;
            };
            if value.is_empty() {
                continue;
            }
            if let Some(other) = seen.insert(key.name(), name.to_string()) {
                self.problems.push(Problem::AmbiguousVariable {
                    name: name.into(),
                    other,
                });
                continue;
            }
            self.set_text(
                &key,
                &value.to_string_lossy(),
                Origin::Variable(name.into()),
            );
        }
    }

    /// Lays the `-c` flags over it.
    pub fn read_flags(&mut self) {
        for flag in &self.surroundings.flags {
            let pair = flag
                .split_once('=')
                .map(|(name, value)| (name.trim(), value.trim()));
            let Some((name, value)) = pair.filter(|(name, _)| !name.is_empty()) else {
                self.problems.push(Problem::MalformedFlag {
                    flag: quote::shortened(flag),
                });
                continue;
            };
            match keys::by_name(name) {
                Some(key) => self.set_text(&key, value, Origin::Flag),
                None => self.unknown(name, quote::shortened(name), Origin::Flag),
            }
        }
    }

    /// The settings and where each came from, unless something was wrong.
    pub fn finish(mut self) -> Result<(Settings, Vec<Value>, Vec<Ignored>), Problems> {
        Problems::refuse_if_any(self.problems)?;
        let mut values = Vec::new();
        for key in KEYS {
            for id in self.settings.ids(key) {
                let value = (key.field)(&mut self.settings, &id).shown();
                let value = value.map(redact_value);
                let name = Found { key, id }.name();
                let origin = self.origins.remove(&name).unwrap_or(Origin::Default);
                values.push(Value {
                    key,
                    name,
                    value,
                    origin,
                });
            }
        }
        Ok((self.settings, values, self.ignored))
    }

    /// Goes through a table whose keys lie below `section`.
    fn read_table(&mut self, document: &Document<'_>, section: &str, table: &DeTable<'_>) {
        for (name, value) in table {
            let path = format!("{section}{}", quote::segment(name.get_ref()));
            let origin = document.origin(name);
            let value = value.get_ref();
            match (keys::by_name(&path), value) {
                (Some(key), _) => {
                    let folder = document.path.parent().unwrap_or(Path::new("/"));
                    let base = Base {
                        whose: document.whose,
                        origin: &origin,
                        folder,
                        home: self.surroundings.home(),
                    };
                    let result = match document.whose {
                        Whose::Person => self.set(&key, value, &base),
                        Whose::Project => self.set_untrusted(&key, value, &base),
                    };
                    if let Err(expected) = result {
                        self.refuse(&path, quote::described(value), expected, origin);
                    }
                }
                // An unknown section is looked into as well: its keys say better what was meant.
                (None, DeValue::Table(inner)) if !inner.is_empty() || keys::is_section(&path) => {
                    self.read_table(document, &format!("{path}."), inner);
                }
                (None, _) if keys::is_section(&path) => {
                    let expected = format!("a section: write `[{path}]` and its keys below");
                    self.refuse(&path, quote::described(value), expected.into(), origin);
                }
                (None, _) => self.unknown(&path, path.clone(), origin),
            }
        }
    }

    /// Sets a key from plain text: as TOML if that fits the key, else as the text it is.
    fn set_text(&mut self, key: &Found, text: &str, origin: Origin) {
        let base = Base {
            whose: Whose::Person,
            origin: &origin,
            folder: &self.surroundings.cwd,
            home: self.surroundings.home(),
        };
        let parsed = DeValue::parse(text).ok();
        let as_toml = parsed
            .as_ref()
            .map(|value| (value.get_ref(), self.set(key, value.get_ref(), &base)));
        let result = match as_toml {
            Some((_, Ok(()))) => return,
            // What is written as a list is meant as one.
            Some((DeValue::Array(_) | DeValue::Table(_), result)) => result,
            _ => self.set(key, &DeValue::String(text.into()), &base),
        };
        if let Err(expected) = result {
            self.refuse(&key.name(), quote::shortened(text), expected, origin);
        }
    }

    /// Sets a key from a file that the user does not trust, if the key permits that; see [`Untrusted`].
    fn set_untrusted(
        &mut self,
        key: &Found,
        value: &DeValue<'_>,
        base: &Base<'_>,
    ) -> Result<(), Expected> {
        let measure = match key.key.untrusted {
            Untrusted::Filtered => return self.set(key, value, base),
            Untrusted::OnlyLower(measure) => Some(measure),
            Untrusted::Ignored => None,
        };
        if let Some(measure) = measure {
            let mut lowered = self.settings.clone();
            (key.key.field)(&mut lowered, &key.id).assign(value, base)?;
            if measure(&lowered) <= measure(&self.settings) {
                return self.set(key, value, base);
            }
        }
        self.ignored.push(Ignored {
            key: key.name(),
            origin: base.origin.clone(),
            raises: measure.is_some(),
        });
        Ok(())
    }

    fn set(&mut self, key: &Found, value: &DeValue<'_>, base: &Base<'_>) -> Result<(), Expected> {
        (key.key.field)(&mut self.settings, &key.id).assign(value, base)?;
        self.origins.insert(key.name(), base.origin.clone());
        Ok(())
    }

    fn refuse(&mut self, key: &str, found: String, expected: Expected, origin: Origin) {
        self.problems.push(Problem::WrongValue {
            key: key.into(),
            origin,
            expected: expected.into(),
            found,
        });
    }

    fn unknown(&mut self, name: &str, shown: String, origin: Origin) {
        let nearest = keys::nearest(name).map(|key| key.name.into());
        self.problems.push(Problem::UnknownKey {
            name: shown,
            origin,
            nearest,
        });
    }
}

/// A file while it is read.
struct Document<'a> {
    path: &'a Path,
    text: &'a str,
    whose: Whose,
}

impl Document<'_> {
    fn origin<T>(&self, place: &Spanned<T>) -> Origin {
        Origin::File {
            path: self.path.into(),
            line: position(self.text, place.span().start).0,
        }
    }
}

/// Line and column of a byte, both counted from one.
fn position(text: &str, byte: usize) -> (usize, usize) {
    let before = &text[..text.floor_char_boundary(byte)];
    let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
    (
        before.matches('\n').count() + 1,
        before[line_start..].chars().count() + 1,
    )
}

/// The text of a configuration file; nothing if it does not exist.
pub(super) fn contents(path: &Path) -> io::Result<Option<String>> {
    match std::fs::metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        // Opening a pipe would wait for somebody to write into it.
        Err(error) => return Err(error),
        Ok(found) if !found.is_file() => return Err(io::Error::other("it is not a file")),
        Ok(_) => {}
    }
    text_file::read(File::open(path)?, LARGEST_FILE_KIB).map(Some)
}
