//! The token that callers of the server have to know: made once, kept in a file that only its owner can read.

use crate::exit::{Exit, Failure};
use crate::vault::SERVER_TOKEN;
use std::fs::{DirBuilder, File, OpenOptions, Permissions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;

/// The shortest token that is accepted.
const SHORTEST: usize = 16;

/// Fails for a text that is too short for a token, or has characters that no header can carry.
pub fn check(token: &str) -> Result<(), Failure> {
    if is_token(token) {
        return Ok(());
    }
    let message = format!("the token of the server has {SHORTEST} or more plain characters");
    Err(Failure::new(Exit::Config, message).next(format!(
        "`openssl rand -hex 32 | lango secrets rotate {SERVER_TOKEN}` stores a new one"
    )))
}

fn is_token(text: &str) -> bool {
    text.len() >= SHORTEST && text.chars().all(|c| c.is_ascii_graphic())
}

/// The token in this file, made now if there is none.
pub fn server_token(file: &Path) -> Result<String, Failure> {
    let failed = |error: io::Error| {
        let message = format!(
            "the token file `{}` cannot be used: {error}",
            file.display()
        );
        Failure::new(Exit::Config, message).next("remove it, and a new one is made")
    };
    if let Some(folder) = file.parent() {
        let mut builder = DirBuilder::new();
        builder.recursive(true).mode(0o700);
        builder.create(folder).map_err(failed)?;
    }
    match read(file) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        there => return there.map_err(failed),
    }
    match make(file) {
        // Another server was faster.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => read(file).map_err(failed),
        made => made.map_err(failed),
    }
}

fn make(file: &Path) -> io::Result<String> {
    // Written aside first, so that nobody ever reads half of it.
    let aside = file.with_extension(format!("{}", std::process::id()));
    let mut random = [0; 32];
    File::open("/dev/urandom")?.read_exact(&mut random)?;
    let token: String = random.iter().map(|byte| format!("{byte:02x}")).collect();
    let mut options = OpenOptions::new();
    let options = options.write(true).create(true).truncate(true).mode(0o600);
    let mut written = options.open(&aside)?;
    written.write_all(format!("{token}\n").as_bytes())?;
    written.sync_all()?;
    // Unlike a rename, this leaves a token alone that is there.
    let linked = std::fs::hard_link(&aside, file);
    std::fs::remove_file(&aside)?;
    linked.map(|()| token)
}

fn read(file: &Path) -> io::Result<String> {
    let mut text = String::new();
    File::open(file)?.take(4096).read_to_string(&mut text)?;
    let token = text.trim();
    if !is_token(token) {
        let message = format!("it holds no token of {SHORTEST} or more plain characters");
        return Err(io::Error::new(io::ErrorKind::InvalidData, message));
    }
    std::fs::set_permissions(file, Permissions::from_mode(0o600))?;
    Ok(token.to_owned())
}
