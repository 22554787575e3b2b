//! The token that callers of the server must send: created once, and stored in a file that only its owner can read.

use crate::app::failure::Failure;
use crate::app::vault::SERVER_TOKEN;
use std::fs::{DirBuilder, File, OpenOptions, Permissions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;

/// The minimum length of a token.
const MIN_LENGTH: usize = 16;

/// Fails if a text is too short for a token, or has characters that a header cannot carry.
pub fn check(token: &str) -> Result<(), Failure> {
    if is_token(token) {
        return Ok(());
    }
    let message =
        format!("the server's token must have at least {MIN_LENGTH} visible ASCII characters");
    Err(Failure::config(message).next(format!(
        "store a new one with `openssl rand -hex 32 | lango secrets rotate {SERVER_TOKEN}`"
    )))
}

fn is_token(text: &str) -> bool {
    text.len() >= MIN_LENGTH && text.chars().all(|c| c.is_ascii_graphic())
}

/// Returns the token in this file, and creates it if there is none.
pub fn server_token(file: &Path) -> Result<String, Failure> {
    let failed = |error: io::Error| {
        let message = format!(
            "the token file `{}` cannot be used: {error}",
            file.display()
        );
        Failure::config(message).next("remove it, and lango creates a new one")
    };
    if let Some(folder) = file.parent() {
        let mut builder = DirBuilder::new();
        builder.recursive(true).mode(0o700);
        builder.create(folder).map_err(failed)?;
    }
    match read(file) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        found => return found.map_err(failed),
    }
    match create(file) {
        // Another server created it first.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => read(file).map_err(failed),
        created => created.map_err(failed),
    }
}

fn create(file: &Path) -> io::Result<String> {
    // Written to a temporary file first, so that no process reads a partial token.
    let temporary = file.with_extension(format!("{}", std::process::id()));
    let mut random = [0; 32];
    File::open("/dev/urandom")?.read_exact(&mut random)?;
    let token = base16ct::lower::encode_string(&random);
    let mut options = OpenOptions::new();
    let options = options.write(true).create(true).truncate(true).mode(0o600);
    let mut written = options.open(&temporary)?;
    written.write_all(format!("{token}\n").as_bytes())?;
    written.sync_all()?;
    // Unlike a rename, a hard link never replaces an existing token.
    let linked = std::fs::hard_link(&temporary, file);
    std::fs::remove_file(&temporary)?;
    linked.map(|()| token)
}

fn read(file: &Path) -> io::Result<String> {
    let mut text = String::new();
    File::open(file)?.take(4096).read_to_string(&mut text)?;
    let token = text.trim();
    if !is_token(token) {
        let message = format!(
            "it does not contain a token of at least {MIN_LENGTH} visible ASCII characters"
        );
        return Err(io::Error::new(io::ErrorKind::InvalidData, message));
    }
    std::fs::set_permissions(file, Permissions::from_mode(0o600))?;
    Ok(token.to_owned())
}
