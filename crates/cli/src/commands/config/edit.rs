//! `lango config edit`: opens a configuration file in the user's editor, and checks the text before it is stored. The
//! text is edited in a draft, which is deleted only when its content is stored or unchanged.

use super::change::TargetFile;
use crate::commands::confirm::{ask, has_terminal};
use crate::screen;
use lango::app::Failure;
use lango_config::edit::{self, EditError};
use lango_config::{ProcessEnv, text_file};
use std::ffi::{OsStr, OsString};
use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use tokio::signal::unix::{SignalKind, signal};

/// The largest text that is read back, as for a configuration file.
const MAX_KIB: u64 = 64;

/// Runs the command.
pub(super) async fn edit(target: &TargetFile) -> Result<(), Failure> {
    let before = edit::read(&target.path)?;
    let editor = chosen_editor(&target.process_env)?;
    let draft = Draft::create(&target.paths.state, before.as_deref().unwrap_or_default())?;
    loop {
        run_editor(target, &draft, editor.clone()).await?;
        let problem = match draft.read() {
            Ok(text) if text == before.as_deref().unwrap_or_default() => {
                draft.delete();
                return Ok(screen::print("nothing changed")?);
            }
            Ok(text) => match edit::check_text(&target.process_env, &target.path, &text) {
                Ok(()) => return store(target, &draft, before.as_deref(), &text),
                Err(problems) => problems.to_string(),
            },
            Err(error) => format!("the text cannot be read: {error}"),
        };
        if !has_terminal() || !wants_to_edit_again(&problem).await? {
            return Err(Failure::config(problem).next(draft.advice(target)));
        }
    }
}

fn store(
    target: &TargetFile,
    draft: &Draft,
    before: Option<&str>,
    text: &str,
) -> Result<(), Failure> {
    let change = edit::replace(&target.path, before, text).map_err(|error| match error {
        error @ EditError::Changed { .. } => {
            Failure::failed(error.to_string()).next(draft.advice(target))
        }
        error => Failure::config(error.to_string()).next(draft.advice(target)),
    })?;
    draft.delete();
    screen::print(&format!("stored {}", target.path.display()))?;
    target.trust_again(&change)
}

async fn wants_to_edit_again(problem: &str) -> Result<bool, Failure> {
    screen::say(problem);
    let answer = ask("edit it again? [Y/n] ").await?;
    let answer = answer.map(|answer| answer.trim().to_lowercase());
    Ok(answer.is_some_and(|answer| !matches!(answer.as_str(), "n" | "no")))
}

/// Returns the user's editor, with its arguments.
fn chosen_editor(process_env: &ProcessEnv) -> Result<OsString, Failure> {
    let variable = |name: &str| {
        let value = process_env.env.get(OsStr::new(name))?;
        (!value.is_empty()).then(|| value.clone())
    };
    match variable("VISUAL").or_else(|| variable("EDITOR")) {
        Some(editor) => Ok(editor),
        None if has_terminal() => Ok("vi".into()),
        None => Err(Failure::usage("there is no terminal for an editor").next(
            "change single keys with `lango config set`, or set EDITOR to a program that needs no terminal",
        )),
    }
}

/// Runs the editor until it exits. As in git, a shell splits the variable, so that it may contain options.
async fn run_editor(target: &TargetFile, draft: &Draft, editor: OsString) -> Result<(), Failure> {
    // Ctrl-C belongs to the editor.
    let _interrupts = signal(SignalKind::interrupt())?;
    let mut script = editor;
    let name = script.to_string_lossy().into_owned();
    script.push(" \"$1\"");
    let mut command = std::process::Command::new("sh");
    command.arg("-c").arg(script).arg("lango").arg(&draft.path);
    // Without the passphrases of the vault.
    command.env_clear().envs(&target.process_env.env);
    let status = tokio::task::spawn_blocking(move || command.status());
    let status = status.await.map_err(std::io::Error::other)??;
    if status.success() {
        return Ok(());
    }
    let message = format!("the editor `{name}` failed ({status})");
    Err(Failure::failed(message).next(format!(
        "set EDITOR to another editor; {}",
        draft.advice(target)
    )))
}

/// A text that is being edited.
struct Draft {
    path: PathBuf,
}

impl Draft {
    fn create(folder: &Path, text: &str) -> Result<Self, Failure> {
        let mut folders = fs::DirBuilder::new();
        folders.recursive(true).mode(0o700).create(folder)?;
        let pid = std::process::id();
        // Earlier drafts with the same number may contain text that was never stored.
        let path = (0..1000)
            .map(|number| folder.join(format!("config-draft-{pid}-{number}.toml")))
            .find(|path| !path.exists());
        let path = path.ok_or_else(|| {
            Failure::failed(format!("too many drafts in `{}`", folder.display()))
                .next("delete old files named config-draft-*.toml there")
        })?;
        let mut options = OpenOptions::new();
        options.write(true).create_new(true).mode(0o600);
        options.open(&path)?.write_all(text.as_bytes())?;
        Ok(Self { path })
    }

    fn read(&self) -> std::io::Result<String> {
        text_file::read(File::open(&self.path)?, MAX_KIB)
    }

    fn delete(&self) {
        let _ = fs::remove_file(&self.path);
    }

    /// Tells where the text is, and how to use it.
    fn advice(&self, target: &TargetFile) -> String {
        format!(
            "your text is in `{}`, and `{}` is unchanged; fix the text and copy it there",
            self.path.display(),
            target.path.display()
        )
    }
}
