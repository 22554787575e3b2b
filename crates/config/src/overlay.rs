//! Merges the layers of the configuration. A later layer wins; problems are collected, and reading continues.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::path::Path;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::ConfigValue;
use super::keys::{self, KEYS, Key, KeyMatch, UntrustedPolicy};
use super::origin::Origin;
use super::problem::{ConfigProblem, ConfigProblems};
use super::process_env::{
    NEW_VAULT_PASSPHRASE, ProcessEnv, SERVER_VAULT_PASSPHRASE, VAULT_PASSPHRASE,
};
use super::quote;
use super::setting::{Expected, ValueContext};
use super::settings::Settings;
use crate::redact::redact_value;
use crate::text_file;

/// The prefix of lango's environment variables.
const PREFIX: &str = "LANGO_";

/// Variables with this prefix that do not set a key.
const NOT_KEYS: [&str; 5] = [
    "LANGO_HOME",
    crate::LOG_VARIABLE,
    VAULT_PASSPHRASE,
    SERVER_VAULT_PASSPHRASE,
    NEW_VAULT_PASSPHRASE,
];

/// The largest configuration file that is read. Nobody writes a longer one by hand.
const LARGEST_FILE_KIB: u64 = 64;

/// How far the source of a value is trusted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TrustLevel {
    /// Set by the user: in their own file, the environment, a flag, or a project file that they trust.
    Trusted,
    /// Set by a project file that the user has not trusted.
    Untrusted,
}

/// The settings merged so far.
pub(super) struct Overlay<'a> {
    process_env: &'a ProcessEnv,
    settings: Settings,
    origins: BTreeMap<String, Origin>,
    problems: Vec<ConfigProblem>,
    ignored: Vec<IgnoredSetting>,
}

/// A setting of a project's file that is ignored, because the user does not trust the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IgnoredSetting {
    pub key: String,
    /// Where the value is set.
    pub origin: Origin,
    /// Whether only the value is too permissive; an untrusted file may set the key itself.
    pub raises: bool,
}

impl std::fmt::Display for IgnoredSetting {
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
    pub(crate) fn new(process_env: &'a ProcessEnv, defaults: Settings) -> Self {
        Self {
            process_env,
            settings: defaults,
            origins: BTreeMap::new(),
            problems: Vec::new(),
            ignored: Vec::new(),
        }
    }

    /// Merges a file; `trust_of` derives its trust level from the content. A missing file changes nothing.
    pub(crate) fn read_file(&mut self, path: &Path, trust_of: impl FnOnce(&str) -> TrustLevel) {
        let text = match read_config_text(path) {
            Ok(Some(text)) => text,
            Ok(None) => return,
            Err(cause) => {
                return self.problems.push(ConfigProblem::Unreadable {
                    path: path.into(),
                    cause,
                });
            }
        };
        let trust_level = trust_of(&text);
        self.read_text(path, &text, trust_level);
    }

    /// Merges a text as the content of this file.
    pub(crate) fn read_text(&mut self, path: &Path, text: &str, trust_level: TrustLevel) {
        let (table, errors) = DeTable::parse_recoverable(text);
        if errors.is_empty() {
            let earlier = self.problems.len();
            self.read_table(
                &Document {
                    path,
                    text,
                    trust_level,
                },
                "",
                table.get_ref(),
            );
            // Tables are read in the order of their names, but a reader goes through the file from the top.
            self.problems[earlier..].sort_by_key(ConfigProblem::line);
        }
        // One mistake can cause several parser errors; only the first of each line is useful.
        let mut first_of_line = BTreeMap::new();
        for error in &errors {
            let (line, column) = position(text, error.span().map_or(0, |span| span.start));
            first_of_line
                .entry(line)
                .or_insert((column, error.message()));
        }
        for (line, (column, message)) in first_of_line {
            let message = message.replace('\n', ", ");
            self.problems.push(ConfigProblem::Unparsable {
                path: path.into(),
                line,
                column,
                message,
            });
        }
    }

    /// Merges the `LANGO_*` variables.
    pub(crate) fn read_environment(&mut self) {
        let mut seen: BTreeMap<String, String> = BTreeMap::new();
        for (name, value) in &self.process_env.env {
            let name = name.to_string_lossy();
            let Some(suffix) = name
                .strip_prefix(PREFIX)
                .filter(|_| !NOT_KEYS.contains(&&*name))
            else {
                continue;
            };
            let Some(key) = keys::find_by_variable(suffix) else {
                let nearest = keys::nearest(suffix).map(Key::variable);
                self.problems.push(ConfigProblem::UnknownVariable {
                    name: quote::shorten(&name),
                    nearest,
                });
                continue;
            };
            if value.is_empty() {
                continue;
            }
            if let Some(other) = seen.insert(key.name(), name.to_string()) {
                self.problems.push(ConfigProblem::AmbiguousVariable {
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

    /// Merges the `-c` flags.
    pub(crate) fn read_flags(&mut self) {
        for flag in &self.process_env.flags {
            let pair = flag
                .split_once('=')
                .map(|(name, value)| (name.trim(), value.trim()));
            let Some((name, value)) = pair.filter(|(name, _)| !name.is_empty()) else {
                self.problems.push(ConfigProblem::MalformedFlag {
                    flag: quote::shorten(flag),
                });
                continue;
            };
            match keys::find_by_name(name) {
                Some(key) => self.set_text(&key, value, Origin::Flag),
                None => self.unknown(name, quote::shorten(name), Origin::Flag),
            }
        }
    }

    /// Returns the settings and the origin of each, or all problems.
    pub(crate) fn finish(
        mut self,
    ) -> Result<(Settings, Vec<ConfigValue>, Vec<IgnoredSetting>), ConfigProblems> {
        ConfigProblems::refuse_if_any(self.problems)?;
        let mut values = Vec::new();
        for key in KEYS {
            for id in self.settings.ids(key) {
                let value = (key.field)(&mut self.settings, &id).to_toml();
                let value = value.map(redact_value);
                let name = KeyMatch { key, id }.name();
                let origin = self.origins.remove(&name).unwrap_or(Origin::Default);
                values.push(ConfigValue {
                    key,
                    name,
                    value,
                    origin,
                });
            }
        }
        Ok((self.settings, values, self.ignored))
    }

    /// Reads a table whose keys lie below `section`.
    fn read_table(&mut self, document: &Document<'_>, section: &str, table: &DeTable<'_>) {
        for (name, value) in table {
            let path = format!("{section}{}", quote::segment(name.get_ref()));
            let origin = document.origin(name);
            let value = value.get_ref();
            match (keys::find_by_name(&path), value) {
                (Some(key), _) => {
                    let folder = document.path.parent().unwrap_or(Path::new("/"));
                    let context = ValueContext {
                        trust_level: document.trust_level,
                        origin: &origin,
                        folder,
                        home: self.process_env.home(),
                    };
                    let result = match document.trust_level {
                        TrustLevel::Trusted => self.set(&key, value, &context),
                        TrustLevel::Untrusted => self.set_untrusted(&key, value, &context),
                    };
                    if let Err(expected) = result {
                        self.refuse(&path, quote::describe(value), expected, origin);
                    }
                }
                // An unknown section is read as well, because its keys hint better at what was meant.
                (None, DeValue::Table(inner)) if !inner.is_empty() || keys::is_section(&path) => {
                    self.read_table(document, &format!("{path}."), inner);
                }
                (None, _) if keys::is_section(&path) => {
                    let expected = format!("a section: write `[{path}]` and its keys below");
                    self.refuse(&path, quote::describe(value), expected.into(), origin);
                }
                (None, _) => self.unknown(&path, path.clone(), origin),
            }
        }
    }

    /// Sets a key from plain text: parsed as TOML if the result fits the key, otherwise taken literally.
    fn set_text(&mut self, key: &KeyMatch, text: &str, origin: Origin) {
        let context = ValueContext {
            trust_level: TrustLevel::Trusted,
            origin: &origin,
            folder: &self.process_env.cwd,
            home: self.process_env.home(),
        };
        let result = assign_text(text, |value| self.set(key, value, &context));
        if let Err(expected) = result {
            self.refuse(&key.name(), quote::shorten(text), expected, origin);
        }
    }

    /// Sets a key from a file that the user does not trust, if the key permits that; see [`UntrustedPolicy`].
    fn set_untrusted(
        &mut self,
        key: &KeyMatch,
        value: &DeValue<'_>,
        context: &ValueContext<'_>,
    ) -> Result<(), Expected> {
        let measure = match key.key.untrusted {
            UntrustedPolicy::Filtered => return self.set(key, value, context),
            UntrustedPolicy::OnlyLower(measure) => Some(measure),
            UntrustedPolicy::Ignored => None,
        };
        if let Some(measure) = measure {
            let mut lowered = self.settings.clone();
            (key.key.field)(&mut lowered, &key.id).assign(value, context)?;
            if measure(&lowered) <= measure(&self.settings) {
                return self.set(key, value, context);
            }
        }
        self.ignored.push(IgnoredSetting {
            key: key.name(),
            origin: context.origin.clone(),
            raises: measure.is_some(),
        });
        Ok(())
    }

    fn set(
        &mut self,
        key: &KeyMatch,
        value: &DeValue<'_>,
        context: &ValueContext<'_>,
    ) -> Result<(), Expected> {
        (key.key.field)(&mut self.settings, &key.id).assign(value, context)?;
        self.origins.insert(key.name(), context.origin.clone());
        Ok(())
    }

    fn refuse(&mut self, key: &str, found: String, expected: Expected, origin: Origin) {
        self.problems.push(ConfigProblem::WrongValue {
            key: key.into(),
            origin,
            expected: expected.into(),
            found,
        });
    }

    fn unknown(&mut self, name: &str, shown: String, origin: Origin) {
        let nearest = keys::nearest(name).map(|key| key.name.into());
        self.problems.push(ConfigProblem::UnknownKey {
            name: shown,
            origin,
            nearest,
        });
    }
}

/// How a value that was given as plain text is meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TextForm {
    /// As TOML, such as `true` or `["a", "b"]`.
    Toml,
    /// As it is, such as `openai/gpt`.
    Literal,
}

/// Assigns a value from plain text: parsed as TOML if the result fits, otherwise taken literally.
pub(super) fn assign_text(
    text: &str,
    mut assign: impl FnMut(&DeValue<'_>) -> Result<(), Expected>,
) -> Result<TextForm, Expected> {
    let parsed = DeValue::parse(text).ok();
    let as_toml = parsed
        .as_ref()
        .map(|value| (value.get_ref(), assign(value.get_ref())));
    match as_toml {
        Some((_, Ok(()))) => Ok(TextForm::Toml),
        // A value written as a list or table is meant as one.
        Some((DeValue::Array(_) | DeValue::Table(_), Err(expected))) => Err(expected),
        _ => assign(&DeValue::String(text.into())).map(|()| TextForm::Literal),
    }
}

/// A file that is being read.
struct Document<'a> {
    path: &'a Path,
    text: &'a str,
    trust_level: TrustLevel,
}

impl Document<'_> {
    fn origin<T>(&self, place: &Spanned<T>) -> Origin {
        Origin::File {
            path: self.path.into(),
            line: position(self.text, place.span().start).0,
        }
    }
}

/// Returns the line and column of a byte offset, both counted from one.
pub(super) fn position(text: &str, byte: usize) -> (usize, usize) {
    let before = &text[..text.floor_char_boundary(byte)];
    let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
    (
        before.matches('\n').count() + 1,
        before[line_start..].chars().count() + 1,
    )
}

/// Reads a configuration file; `None` if it does not exist.
pub(super) fn read_config_text(path: &Path) -> io::Result<Option<String>> {
    match std::fs::metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        // Checked before opening, because opening a pipe would block until another process writes to it.
        Err(error) => return Err(error),
        Ok(found) if !found.is_file() => return Err(io::Error::other("it is not a file")),
        Ok(_) => {}
    }
    text_file::read(File::open(path)?, LARGEST_FILE_KIB).map(Some)
}
