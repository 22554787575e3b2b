//! Key files: files with a random key as one line of text, which only their owner can read.

use crate::cipher;
use crate::error::VaultError;
use crate::key::Key;
use rustix::fs::{Mode, OFlags};
use std::fs::File;
use std::io::{Read, Write};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use zeroize::Zeroizing;

/// The start of the line, before the key.
const PREFIX: &str = "lango-vault-key-1 ";

/// Creates a file with a new key. Fails if the file exists or is a link.
pub fn create(path: &Path) -> Result<Key, VaultError> {
    let key = cipher::random_key()?;
    let line = Zeroizing::new(format!("{PREFIX}{}\n", *to_hex(&key)));
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let failed = |error: std::io::Error| failure(path, &error.to_string());
    let file = rustix::fs::open(path, flags, Mode::RUSR | Mode::WUSR);
    let mut file = File::from(file.map_err(|error| match error {
        rustix::io::Errno::EXIST => VaultError::KeyFileExists {
            path: path.to_owned(),
        },
        error => failed(error.into()),
    })?);
    file.write_all(line.as_bytes()).map_err(failed)?;
    file.sync_all().map_err(failed)?;
    Ok(key)
}

/// Reads the key from a file. Fails if a user other than the owner and root can read or replace the file. Fails for
/// symbolic links, because other users may be able to change their target.
pub fn read(path: &Path) -> Result<Key, VaultError> {
    let failed = |error: std::io::Error| failure(path, &error.to_string());
    // `NONBLOCK` keeps a named pipe from blocking.
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = rustix::fs::open(path, flags, Mode::empty());
    let file = File::from(file.map_err(|error| match error {
        rustix::io::Errno::LOOP => failure(path, &describe_link(path)),
        error => failed(error.into()),
    })?);
    let found = file.metadata().map_err(failed)?;
    if !found.is_file() {
        return Err(failure(path, "it is not a file"));
    }
    if found.mode() & 0o077 != 0 {
        let shown = path.display();
        let detail = format!("others can read or write it; run `chmod 600 {shown}`");
        return Err(failure(path, &detail));
    }
    let own = rustix::process::geteuid().as_raw();
    if found.uid() != own && found.uid() != 0 {
        let (shown, owner) = (path.display(), found.uid());
        let detail = format!(
            "it belongs to another user (uid {owner}), who can read and replace it; make it yours: `chown {own} {shown}`"
        );
        return Err(failure(path, &detail));
    }
    let mut line = Zeroizing::new(Vec::with_capacity(256));
    file.take(256).read_to_end(&mut line).map_err(failed)?;
    let text = std::str::from_utf8(&line).unwrap_or_default();
    let hex = text.trim_end_matches('\n').strip_prefix(PREFIX);
    hex.and_then(from_hex)
        .ok_or_else(|| failure(path, "it does not contain a lango key"))
}

fn describe_link(path: &Path) -> String {
    let target = path.canonicalize();
    let target = target.map_or_else(
        |_| "which does not exist".to_owned(),
        |target| format!("`{}`", target.display()),
    );
    format!(
        "it is a symbolic link, which lango does not follow to a key; name the file itself: {target}"
    )
}

fn failure(path: &Path, detail: &str) -> VaultError {
    let path = path.display();
    VaultError::System(format!("the key file `{path}` cannot be used: {detail}"))
}

/// Formats a key as 64 hexadecimal digits.
pub fn to_hex(key: &Key) -> Zeroizing<String> {
    Zeroizing::new(base16ct::lower::encode_string(key.expose()))
}

/// Parses a key of 64 hexadecimal digits.
pub fn from_hex(hex: &str) -> Option<Key> {
    let mut key = Key::zero();
    let decoded = base16ct::mixed::decode(hex, key.expose_mut()).ok()?.len();
    (decoded == Key::BYTES).then_some(key)
}
