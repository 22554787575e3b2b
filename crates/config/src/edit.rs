//! Changes configuration files: checks keys and values, edits the text, and replaces the file atomically.
//!
//! A file that is a link, or that other users own or can change, is refused. Processes that edit files in the same
//! folder take turns.

mod document;

use super::Origin;
use super::keys::{self, Key};
use super::overlay::{self, TextForm, TrustLevel, read_config_text};
use super::ownership::{ForeignReason, Owner};
use super::problem::{ConfigProblems, hint};
use super::process_env::{Paths, ProcessEnv};
use super::quote;
use super::setting::{Expected, ValueContext};
use super::settings::Settings;
use document::EditFailure;
use std::fs::{DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The mode of a new file, further limited by the process's umask.
const NEW_FILE_MODE: u32 = 0o644;

/// The mode of a new folder, in which lango's private files may lie too.
const NEW_FOLDER_MODE: u32 = 0o700;

/// How long to wait for another process that edits a file in the same folder.
const LOCK_TIMEOUT: Duration = Duration::from_secs(5);
const LOCK_INTERVAL: Duration = Duration::from_millis(50);

/// Why a configuration file was not changed.
#[derive(Debug, thiserror::Error)]
pub enum EditError {
    #[error("there is no key `{name}`{}", hint(nearest.as_deref()))]
    UnknownKey {
        name: String,
        /// The most similar key.
        nearest: Option<String>,
    },
    #[error("`{key}` must be {expected}, found `{found}`")]
    WrongValue {
        key: String,
        /// What the key accepts.
        expected: String,
        found: String,
    },
    #[error("`{}` does not set `{key}`", path.display())]
    NotSet { key: String, path: PathBuf },
    #[error("{}:{line}:{column}: not valid TOML: {message}", path.display())]
    Unparsable {
        path: PathBuf,
        /// The line, counted from one.
        line: usize,
        /// The character in the line, counted from one.
        column: usize,
        message: String,
    },
    #[error("the section of `{key}` in `{}` is written in a form that lango cannot change", path.display())]
    Unsupported { key: String, path: PathBuf },
    #[error("`{}` is a link to `{}`", path.display(), target.display())]
    Link { path: PathBuf, target: PathBuf },
    #[error("`{}` is not only yours: {reason}", path.display())]
    Foreign {
        path: PathBuf,
        reason: ForeignReason,
    },
    /// Another process changed the file since it was read.
    #[error("`{}` was changed meanwhile", path.display())]
    Changed { path: PathBuf },
    #[error("another process is editing `{}`", path.display())]
    Busy { path: PathBuf },
    #[error("cannot change `{}`: {cause}", path.display())]
    Io {
        path: PathBuf,
        #[source]
        cause: io::Error,
    },
    #[error(transparent)]
    Config(#[from] ConfigProblems),
}

/// The content of a file before and after a change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileChange {
    /// `None` if there was no file.
    pub before: Option<String>,
    pub after: String,
}

/// Parses a value as a `-c` flag does, and returns how to write it in this file. A path that is relative to the
/// working directory becomes absolute, unless it means the same in the file.
pub fn parse_value(
    process_env: &ProcessEnv,
    file: &Path,
    key: &str,
    text: &str,
) -> Result<toml::Value, EditError> {
    let found = keys::find_by_name(key).ok_or_else(|| unknown_key(key))?;
    let defaults = Settings::with_defaults(&Paths::locate(process_env)?);
    let read_in = |folder: &Path| -> Result<(TextForm, Option<toml::Value>), Expected> {
        let context = ValueContext {
            trust_level: TrustLevel::Trusted,
            origin: &Origin::Flag,
            folder,
            home: process_env.home(),
        };
        let mut settings = defaults.clone();
        let field = (found.key.field)(&mut settings, &found.id);
        let form = overlay::assign_text(text, |value| field.assign(value, &context))?;
        Ok((form, field.to_toml()))
    };
    let refuse = |expected: Expected| EditError::WrongValue {
        key: key.to_owned(),
        expected: expected.into(),
        found: quote::shorten(text),
    };
    let (form, here) = read_in(&process_env.cwd).map_err(refuse)?;
    let (_, in_file) = read_in(file.parent().unwrap_or(Path::new("/"))).map_err(refuse)?;
    let literal = || toml::Value::String(text.to_owned());
    Ok(match (here, form) {
        (Some(here), _) if Some(&here) != in_file.as_ref() => here,
        (_, TextForm::Toml) => text.parse().unwrap_or_else(|_| literal()),
        (_, TextForm::Literal) => literal(),
    })
}

/// Returns the key with this name; the error names the most similar one.
pub fn check_key(name: &str) -> Result<&'static Key, EditError> {
    let found = keys::find_by_name(name).ok_or_else(|| unknown_key(name))?;
    Ok(found.key)
}

/// A change of one key.
#[derive(Debug, Clone, PartialEq)]
pub enum KeyChange {
    /// Sets the key; [`parse_value`] checks key and value.
    Set { key: String, value: toml::Value },
    /// Removes the key, or everything below it if it is a section. It does not have to be a known one, so that a
    /// misspelled one can be removed.
    Unset { key: String },
}

/// Sets a key in a file, and creates the file if it does not exist. [`parse_value`] checks key and value.
pub fn set(path: &Path, key: &str, value: &toml::Value) -> Result<FileChange, EditError> {
    let change = KeyChange::Set {
        key: key.to_owned(),
        value: value.clone(),
    };
    change_keys(path, &[change])
}

/// Removes a key from a file, or everything below it if it is a section.
pub fn unset(path: &Path, key: &str) -> Result<FileChange, EditError> {
    let key = key.to_owned();
    change_keys(path, &[KeyChange::Unset { key }])
}

/// Makes several changes in one write: all of them or none.
pub fn change_keys(path: &Path, changes: &[KeyChange]) -> Result<FileChange, EditError> {
    let _lock = lock(path)?;
    let before = read(path)?;
    let mut after = before.clone().unwrap_or_default();
    for change in changes {
        after = match change {
            KeyChange::Set { key, value } => edit_text(path, &after, key, |text, names| {
                document::with_value(text, names, value)
            })?,
            KeyChange::Unset { key } => edit_text(path, &after, key, document::without)?,
        };
    }
    if before.as_deref() != Some(&after) {
        write(path, &after)?;
    }
    Ok(FileChange { before, after })
}

/// Takes a change back, unless the file was changed again since.
pub fn revert(path: &Path, change: &FileChange) -> Result<(), EditError> {
    match &change.before {
        Some(before) => replace(path, Some(&change.after), before).map(|_| ()),
        None => {
            let _lock = lock(path)?;
            if read(path)?.as_ref() != Some(&change.after) {
                return Err(EditError::Changed { path: path.into() });
            }
            std::fs::remove_file(path).map_err(|cause| io_error(path, cause))
        }
    }
}

/// Replaces the whole text of a file, unless it is no longer `before`.
pub fn replace(path: &Path, before: Option<&str>, text: &str) -> Result<FileChange, EditError> {
    let _lock = lock(path)?;
    let current = read(path)?;
    if current.as_deref() != before {
        return Err(EditError::Changed { path: path.into() });
    }
    write(path, text)?;
    Ok(FileChange {
        before: current,
        after: text.to_owned(),
    })
}

/// Reads a file that may be changed; `None` if it does not exist.
pub fn read(path: &Path) -> Result<Option<String>, EditError> {
    let failed = |cause| io_error(path, cause);
    match path.symlink_metadata() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(failed(error)),
        Ok(found) if found.is_symlink() => {
            return Err(EditError::Link {
                path: path.into(),
                target: std::fs::read_link(path).map_err(failed)?,
            });
        }
        Ok(_) => {}
    }
    if let Some(reason) = Owner::without_sudo().foreign_reason(path) {
        return Err(EditError::Foreign {
            path: path.into(),
            reason,
        });
    }
    read_config_text(path).map_err(failed)
}

/// Checks a text as if it were the content of this file: that it is TOML, that every key is known, and that every
/// value has the right type.
///
/// # Errors
/// All problems of the text.
pub fn check_text(process_env: &ProcessEnv, path: &Path, text: &str) -> Result<(), ConfigProblems> {
    let paths = Paths::locate(process_env)?;
    let mut overlay = overlay::Overlay::new(process_env, Settings::with_defaults(&paths));
    overlay.read_text(path, text, TrustLevel::Trusted);
    overlay.finish().map(|_| ())
}

fn edit_text(
    path: &Path,
    text: &str,
    key: &str,
    edit: impl FnOnce(&str, &[toml_edit::Key]) -> Result<String, EditFailure>,
) -> Result<String, EditError> {
    let names = toml_edit::Key::parse(key).map_err(|_| unknown_key(key))?;
    edit(text, &names).map_err(|failure| match failure {
        EditFailure::NotSet => EditError::NotSet {
            key: key.to_owned(),
            path: path.into(),
        },
        EditFailure::Unsupported => EditError::Unsupported {
            key: key.to_owned(),
            path: path.into(),
        },
        EditFailure::Unparsable(error) => {
            let start = error.span().map_or(0, |span| span.start);
            let (line, column) = overlay::position(text, start);
            EditError::Unparsable {
                path: path.into(),
                line,
                column,
                message: error.message().replace('\n', ", "),
            }
        }
    })
}

/// Locks the file's folder until the result is dropped, and creates the folder if it does not exist.
fn lock(path: &Path) -> Result<File, EditError> {
    let failed = |cause| io_error(path, cause);
    let folder = path.parent().unwrap_or(Path::new("/"));
    let mut builder = DirBuilder::new();
    builder.recursive(true).mode(NEW_FOLDER_MODE);
    builder.create(folder).map_err(failed)?;
    let folder = File::open(folder).map_err(failed)?;
    let started = Instant::now();
    loop {
        match folder.try_lock() {
            Ok(()) => return Ok(folder),
            Err(TryLockError::Error(error)) => return Err(failed(error)),
            Err(TryLockError::WouldBlock) if started.elapsed() > LOCK_TIMEOUT => {
                return Err(EditError::Busy { path: path.into() });
            }
            Err(TryLockError::WouldBlock) => std::thread::sleep(LOCK_INTERVAL),
        }
    }
}

/// Writes a temporary file with the mode of the existing one, and renames it.
fn write(path: &Path, text: &str) -> Result<(), EditError> {
    let temporary = path.with_file_name(format!(".lango.toml.{}.new", std::process::id()));
    let written = write_and_rename(path, &temporary, text);
    written.map_err(|cause| {
        let _ = std::fs::remove_file(&temporary);
        io_error(path, cause)
    })
}

fn write_and_rename(path: &Path, temporary: &Path, text: &str) -> io::Result<()> {
    // Left over from a process with the same number.
    let _ = std::fs::remove_file(temporary);
    let mut options = OpenOptions::new();
    options.write(true).create_new(true).mode(NEW_FILE_MODE);
    let mut file = options.open(temporary)?;
    if let Ok(existing) = path.metadata() {
        // The group may be one that this process cannot give files to; then its members lose access.
        let group = rustix::fs::Gid::from_raw(existing.gid());
        let is_of_group = rustix::fs::fchown(&file, None, Some(group)).is_ok();
        let mode = existing.permissions().mode() & 0o7777;
        let mode = if is_of_group { mode } else { mode & !0o070 };
        file.set_permissions(std::fs::Permissions::from_mode(mode))?;
    }
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    std::fs::rename(temporary, path)?;
    File::open(path.parent().unwrap_or(Path::new("/")))?.sync_all()
}

fn unknown_key(name: &str) -> EditError {
    EditError::UnknownKey {
        name: quote::shorten(name),
        nearest: keys::nearest(name).map(|key| key.name.to_owned()),
    }
}

fn io_error(path: &Path, cause: io::Error) -> EditError {
    EditError::Io {
        path: path.into(),
        cause,
    }
}
