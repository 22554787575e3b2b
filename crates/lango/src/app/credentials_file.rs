//! The file with the keys of model providers that `lango setup` stores if there is no vault. Only its owner can read
//! it, and each key is for one origin: if the address of a provider changes, its key is not sent there.

use crate::app::failure::Failure;
use lango_core::BoxFuture;
use lango_net::Url;
use lango_secrets::{Credential, CredentialSource, Masks, Origin, SecretError, SecretValue};
use rustix::fs::{AtFlags, FlockOperation, Mode, OFlags};
use rustix::io::Errno;
use std::borrow::Cow;
use std::fs::{DirBuilder, File};
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use toml::de::{DeTable, DeValue};
use zeroize::Zeroizing;

/// The largest file that is read.
const MAX_BYTES: u64 = 256 << 10;

/// The maximum length of a key. HTTP servers refuse longer headers.
const MAX_KEY_BYTES: usize = 8 << 10;

const HEADER: &str = "# Keys of model providers, written by `lango setup`. Variables such as OPENAI_API_KEY take precedence.\n";

/// The file of keys. It is read whenever a key is needed, so that a replaced or removed key takes effect in processes
/// that are already running.
#[derive(Debug, Clone, Default)]
pub struct StoredKeys {
    path: PathBuf,
}

#[derive(Debug)]
struct StoredKey {
    provider: String,
    /// The only origin that the key is sent to.
    origin: Origin,
    value: SecretValue,
}

/// Why the file cannot be used.
#[derive(Debug)]
pub(super) struct FileProblem {
    pub text: String,
    /// The next step, if it is not to fix or delete the file.
    pub next: Option<String>,
}

impl<T: Into<String>> From<T> for FileProblem {
    fn from(text: T) -> Self {
        Self {
            text: text.into(),
            next: None,
        }
    }
}

impl StoredKeys {
    /// Returns the file at this path. A missing file has no keys. A file that cannot be used is not an error yet: only
    /// operations that need a key from it fail.
    pub fn at(path: PathBuf) -> Self {
        Self { path }
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the names of the providers with a key; none if the file cannot be used.
    pub fn providers(&self) -> Vec<String> {
        let keys = read(&self.path).unwrap_or_default();
        keys.into_iter().map(|key| key.provider).collect()
    }

    /// Describes why the file cannot be used; `None` if it can, or does not exist.
    pub(super) fn problem(&self) -> Option<FileProblem> {
        read(&self.path).err()
    }

    /// Fails if the file cannot be used.
    pub fn check(&self) -> Result<(), Failure> {
        match self.problem() {
            Some(problem) => Err(unusable(&self.path, problem)),
            None => Ok(()),
        }
    }

    /// Masks all keys from now on.
    pub fn mask(&self, masks: &Masks) {
        for key in read(&self.path).unwrap_or_default() {
            masks.add(&key.provider, &key.value);
        }
    }

    /// Returns the key of a provider, if the file has one for this address. Its value is read again for each request.
    pub fn find(&self, provider: &str, address: &str, masks: &Masks) -> Option<Credential> {
        let key = FileKey {
            path: self.path.clone(),
            provider: provider.to_owned(),
            origin: Origin::of(&Url::parse(address).ok()?)?,
            masks: masks.clone(),
        };
        key.read().ok()?;
        Some(Credential::new(Arc::new(key), provider))
    }
}

/// A key in the file, whose value is read when a request is built.
#[derive(Debug)]
struct FileKey {
    path: PathBuf,
    provider: String,
    origin: Origin,
    masks: Masks,
}

impl FileKey {
    /// Reads the value, and masks it from now on.
    fn read(&self) -> Result<Arc<SecretValue>, SecretError> {
        let unavailable = |detail: String| SecretError::Unavailable { detail };
        let path = self.path.display();
        let keys = read(&self.path).map_err(|problem| {
            let next = problem.next.map(|next| format!("; {next}"));
            let next = next.unwrap_or_default();
            unavailable(format!(
                "the file of keys `{path}` cannot be used: {}{next}",
                problem.text
            ))
        })?;
        let mut keys = keys.into_iter();
        let key = keys.find(|key| key.provider == self.provider && key.origin == self.origin);
        let key = key.ok_or_else(|| {
            let provider = &self.provider;
            unavailable(format!(
                "`{path}` has no key of `{provider}` for {} any more; `lango setup --provider {provider}` stores one",
                self.origin
            ))
        })?;
        self.masks.add(&self.provider, &key.value);
        Ok(Arc::new(key.value))
    }
}

impl CredentialSource for FileKey {
    fn value<'a>(&'a self, _: &'a str) -> BoxFuture<'a, Result<Arc<SecretValue>, SecretError>> {
        Box::pin(std::future::ready(self.read()))
    }
}

/// Checks that a text can be a key, and returns it without white space around it.
pub fn check_key(typed: &SecretValue) -> Result<SecretValue, Failure> {
    let invalid = |problem: &str| {
        let message = format!("this is not an API key: {problem}");
        Failure::usage(message).next("copy the key again from the page of its provider")
    };
    let text = typed.expose_text().map(str::trim).unwrap_or_default();
    if text.is_empty() {
        return Err(invalid("it is empty"));
    }
    if text.len() > MAX_KEY_BYTES {
        return Err(invalid(&format!("it is longer than {MAX_KEY_BYTES} bytes")));
    }
    if !text.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(invalid(
            "it contains spaces, control characters or letters that are not ASCII",
        ));
    }
    Ok(SecretValue::new(text))
}

/// Stores the key of a provider for the origin of its address, and replaces an older one.
pub fn store_key(
    path: &Path,
    provider: &str,
    address: &Url,
    key: &SecretValue,
) -> Result<(), Failure> {
    let origin = Origin::of(address).ok_or_else(|| {
        unusable(
            path,
            format!("`{provider}` has no http or https address").into(),
        )
    })?;
    let key = StoredKey {
        provider: provider.to_owned(),
        origin,
        value: SecretValue::new(key.expose()),
    };
    let folder = path.parent().unwrap_or(Path::new("."));
    let mut builder = DirBuilder::new();
    builder.recursive(true).mode(0o700);
    let created = builder.create(folder);
    created.map_err(|error| unusable(path, error.to_string().into()))?;
    change(path, |keys| {
        keys.retain(|other| other.provider != key.provider);
        keys.push(key);
        keys.sort_by(|one, other| one.provider.cmp(&other.provider));
    })
}

/// Removes the key of a provider, for whatever address it is. Returns whether there was one.
pub fn remove_key(path: &Path, provider: &str) -> Result<bool, Failure> {
    let keys = read(path).map_err(|problem| unusable(path, problem))?;
    if !keys.iter().any(|key| key.provider == provider) {
        return Ok(false);
    }
    change(path, |keys| keys.retain(|key| key.provider != provider))?;
    Ok(true)
}

/// Changes the keys in the file. Writes a temporary file, which only the owner can read from the start, and renames it.
fn change(path: &Path, edit: impl FnOnce(&mut Vec<StoredKey>)) -> Result<(), Failure> {
    let failed = |problem: FileProblem| unusable(path, problem);
    let describe = |error: io::Error| failed(error.to_string().into());
    let folder = open_folder(path.parent().unwrap_or(Path::new("."))).map_err(failed)?;
    // Two processes that store keys at the same time must not lose one.
    rustix::fs::flock(&folder, FlockOperation::LockExclusive)
        .map_err(|error| describe(error.into()))?;
    let mut keys = read_in(&folder, path).map_err(failed)?;
    edit(&mut keys);
    replace(&folder, path, &render(&keys)).map_err(describe)
}

fn unusable(path: &Path, problem: FileProblem) -> Failure {
    let FileProblem { text, next } = problem;
    let message = format!(
        "the file of keys `{}` cannot be used: {text}",
        path.display()
    );
    Failure::config(message).next(next.unwrap_or_else(|| {
        "fix or delete it, then run `lango setup` to store the keys again".to_owned()
    }))
}

fn read(path: &Path) -> Result<Vec<StoredKey>, FileProblem> {
    let folder = path.parent().unwrap_or(Path::new("."));
    match folder.symlink_metadata() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        _ => read_in(&open_folder(folder)?, path),
    }
}

/// Opens the directory of the file, which nobody else may write to.
fn open_folder(folder: &Path) -> Result<OwnedFd, FileProblem> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let opened = rustix::fs::open(folder, flags, Mode::empty());
    let opened = File::from(opened.map_err(|error| match error {
        Errno::LOOP | Errno::NOTDIR => "its folder is a symbolic link or not a folder".to_owned(),
        error => io::Error::from(error).to_string(),
    })?);
    check_owner(&opened, 0o022, "its folder", "chmod 700", folder)?;
    Ok(opened.into())
}

/// Reads the file in its open directory.
fn read_in(folder: &OwnedFd, path: &Path) -> Result<Vec<StoredKey>, FileProblem> {
    // `NONBLOCK` keeps a named pipe from blocking.
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let opened = match rustix::fs::openat(folder, file_name(path), flags, Mode::empty()) {
        Err(Errno::NOENT) => return Ok(Vec::new()),
        Err(Errno::LOOP) => return Err("it is a symbolic link".into()),
        Err(error) => return Err(io::Error::from(error).to_string().into()),
        Ok(opened) => File::from(opened),
    };
    check_owner(&opened, 0o077, "it", "chmod 600", path)?;
    if !opened.metadata().is_ok_and(|found| found.is_file()) {
        return Err("it is not a file".into());
    }
    let mut text = Zeroizing::new(String::with_capacity(4096));
    let read = opened.take(MAX_BYTES).read_to_string(&mut text);
    read.map_err(|error| error.to_string())?;
    parse(&text)
}

/// Refuses a file or directory that another user owns or can access.
fn check_owner(
    opened: &File,
    forbidden: u32,
    what: &str,
    command: &str,
    path: &Path,
) -> Result<(), FileProblem> {
    let found = opened.metadata().map_err(|error| error.to_string())?;
    let own = rustix::process::geteuid().as_raw();
    if found.uid() != own {
        let owner = found.uid();
        return Err(format!("{what} belongs to another user (uid {owner})").into());
    }
    if found.mode() & forbidden != 0 {
        let path = path.display();
        return Err(FileProblem {
            text: format!("other users can access {what}"),
            next: Some(format!(
                "run `{command} {path}`, and replace the keys at their providers if others may have read them"
            )),
        });
    }
    Ok(())
}

/// Parses the file. Errors never repeat its text.
fn parse(text: &str) -> Result<Vec<StoredKey>, FileProblem> {
    let (table, errors) = DeTable::parse_recoverable(text);
    if let Some(error) = errors.first() {
        let start = error.span().map_or(0, |span| span.start);
        let line = text.get(..start).unwrap_or_default().matches('\n').count() + 1;
        return Err(format!("line {line} is not valid TOML").into());
    }
    let parse_entry = |(provider, entry): (Cow<'_, str>, &DeValue<'_>)| {
        let field = |name: &str| entry.as_table()?.get(name)?.get_ref().as_str();
        let origin = field("address").and_then(|address| Origin::parse(address).ok());
        let value = field("key").map(SecretValue::new);
        let value = value.and_then(|value| check_key(&value).ok());
        match (origin, value) {
            (Some(origin), Some(value)) => Ok(StoredKey {
                provider: provider.into_owned(),
                origin,
                value,
            }),
            _ => Err(format!("the entry `{provider}` needs an `address` and a `key`").into()),
        }
    };
    let entries = table.get_ref().iter();
    entries
        .map(|(name, value)| parse_entry((name.get_ref().clone(), value.get_ref())))
        .collect()
}

fn render(keys: &[StoredKey]) -> Zeroizing<String> {
    let quoted = |text: &str| Zeroizing::new(toml::Value::from(text).to_string());
    let mut text = Zeroizing::new(HEADER.to_owned());
    for key in keys {
        let origin = quoted(&key.origin.to_string());
        let value = quoted(key.value.expose_text().unwrap_or_default());
        let provider = quoted(&key.provider);
        for part in [
            "\n[",
            &provider,
            "]\naddress = ",
            &origin,
            "\nkey = ",
            &value,
            "\n",
        ] {
            text.push_str(part);
        }
    }
    text
}

fn file_name(path: &Path) -> &std::ffi::OsStr {
    path.file_name().unwrap_or_default()
}

/// Writes a temporary file in the open directory and renames it.
fn replace(folder: &OwnedFd, path: &Path, text: &str) -> io::Result<()> {
    let mut temporary = file_name(path).to_owned();
    temporary.push(".new");
    // Left by a process that was killed. The lock excludes every other writer.
    match rustix::fs::unlinkat(folder, &temporary, AtFlags::empty()) {
        Ok(()) | Err(Errno::NOENT) => {}
        Err(error) => return Err(error.into()),
    }
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = rustix::fs::openat(folder, &temporary, flags, Mode::RUSR | Mode::WUSR)?;
    let mut file = File::from(file);
    let written = file
        .write_all(text.as_bytes())
        .and_then(|()| file.sync_all())
        .and_then(|()| {
            Ok(rustix::fs::renameat(
                folder,
                &temporary,
                folder,
                file_name(path),
            )?)
        });
    match written {
        Ok(()) => Ok(rustix::fs::fsync(folder)?),
        Err(error) => {
            let _ = rustix::fs::unlinkat(folder, &temporary, AtFlags::empty());
            Err(error)
        }
    }
}

#[cfg(test)]
mod tests;
