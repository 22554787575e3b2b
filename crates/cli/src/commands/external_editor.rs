//! Lets the user edit a text in `$VISUAL` or `$EDITOR`.

use lango::app::Failure;
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::PathBuf;
use std::process::Command;

/// The editor if the user has not chosen one.
const DEFAULT_EDITOR: &str = "vi";

/// Opens the text in the user's editor and returns it as it was saved. The file is readable by the user alone and
/// removed afterwards.
pub(super) fn edit(text: &str, suffix: &str) -> Result<String, Failure> {
    let folder = TemporaryFolder::create().map_err(|error| unwritable(&error))?;
    let path = folder.0.join(format!("message{suffix}"));
    let mut options = File::options();
    let mut file = options
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&path)
        .map_err(|error| unwritable(&error))?;
    file.write_all(text.as_bytes())
        .map_err(|error| unwritable(&error))?;
    drop(file);
    let editor = chosen_editor();
    // A shell splits the editor's own arguments, as in `EDITOR="code --wait"`.
    let status = Command::new("/bin/sh")
        .arg("-c")
        .arg(format!("{editor} \"$1\""))
        .arg("sh")
        .arg(&path)
        .status();
    match status {
        // What is not UTF-8 is replaced: nothing else of the text is lost.
        Ok(status) if status.success() => fs::read(&path)
            .map(|text| String::from_utf8_lossy(&text).into_owned())
            .map_err(|error| Failure::failed(format!("the edited text cannot be read: {error}"))),
        Ok(status) => Err(Failure::failed(format!(
            "the editor `{editor}` failed ({status}); the text is unchanged"
        ))
        .next("set EDITOR to an editor that is installed")),
        Err(error) => Err(Failure::failed(format!(
            "the editor `{editor}` cannot be started: {error}"
        ))
        .next("set EDITOR to an editor that is installed")),
    }
}

/// Returns the user's editor, with its arguments.
fn chosen_editor() -> String {
    let named = |name| {
        std::env::var(name)
            .ok()
            .filter(|value: &String| !value.trim().is_empty())
    };
    let editor = named("VISUAL").or_else(|| named("EDITOR"));
    editor.unwrap_or_else(|| DEFAULT_EDITOR.to_owned())
}

fn unwritable(error: &io::Error) -> Failure {
    Failure::failed(format!("no temporary file can be written: {error}"))
        .next("set TMPDIR to a folder that you can write to")
}

/// A new folder that only the user can enter. It is removed with its content.
struct TemporaryFolder(PathBuf);

impl TemporaryFolder {
    fn create() -> io::Result<Self> {
        let unique = format!(
            "lango-{}-{:x}",
            std::process::id(),
            std::time::SystemTime::now()
                .duration_since(std::time::UNIX_EPOCH)
                .map_or(0, |time| time.as_nanos())
        );
        let path = std::env::temp_dir().join(unique);
        // Fails if the path exists, so nobody can have prepared it.
        fs::DirBuilder::new().mode(0o700).create(&path)?;
        Ok(Self(path))
    }
}

impl Drop for TemporaryFolder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
