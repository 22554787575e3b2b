//! The arguments of `exec` and `exec_bg`, and what they ask for.

use super::Commands;
use super::request::{Request, Words};
use cap_std::ambient_authority;
use cap_std::fs::Dir;
use lango_core::ToolError;
use lango_sandbox::{Access, Policy};
use schemars::JsonSchema;
use serde::Deserialize;
use std::io;
use std::num::NonZeroU64;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The most bytes of a command. The system takes a little more; a person who is asked reads less.
const LONGEST_COMMAND: usize = 64 * 1024;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ExecArguments {
    /// A line for the shell, run as it is by `/bin/sh -c`. Give this or `argv`.
    command: Option<String>,
    /// A program and its arguments, run as they are without a shell. Give this or `command`.
    argv: Option<Vec<String>>,
    /// The folder to run in, relative to the workspace; the workspace itself if not given.
    cwd: Option<String>,
    /// After how many seconds to stop it; as late as is allowed if not given.
    timeout_s: Option<NonZeroU64>,
}

impl ExecArguments {
    /// What is to run, if it can.
    pub(super) fn request(
        self,
        commands: &Commands,
        longest: Duration,
    ) -> Result<Request, ToolError> {
        let words = match (self.command, self.argv) {
            (Some(line), None) => Words::Line(line),
            (None, Some(argv)) => Words::Argv(argv),
            _ => {
                return Err(ToolError::new(
                    "give exactly one of `command`, a line for the shell, and `argv`, a list of words",
                ));
            }
        };
        check(&words).map_err(ToolError::new)?;
        let policy = commands.policy().clone();
        let cwd = match &self.cwd {
            Some(path) => folder(&policy, path)?,
            None => policy.workspace.clone(),
        };
        let time = match self
            .timeout_s
            .map(|seconds| Duration::from_secs(seconds.get()))
        {
            Some(time) if time > longest => {
                return Err(ToolError::new(format!(
                    "`timeout_s` may be up to {}; what takes longer can be started with `exec_bg`",
                    longest.as_secs()
                )));
            }
            time => time.unwrap_or(longest),
        };
        Ok(Request {
            words,
            cwd,
            policy,
            hosts: commands.hosts(),
            time,
        })
    }
}

fn check(words: &Words) -> Result<(), String> {
    let (bytes, has_nul) = match words {
        Words::Line(line) if line.trim().is_empty() => return Err("`command` is empty".into()),
        Words::Line(line) => (line.len(), line.contains('\0')),
        Words::Argv(argv) if argv.first().is_none_or(String::is_empty) => {
            return Err("`argv` names no program".into());
        }
        Words::Argv(argv) => (
            argv.iter().map(|word| word.len() + 1).sum(),
            argv.iter().any(|word| word.contains('\0')),
        ),
    };
    if has_nul {
        return Err("the command has a NUL character in it, which no program can be given".into());
    }
    match bytes > LONGEST_COMMAND {
        true => Err(format!(
            "the command is longer than {} KiB; write a script to a file and run that",
            LONGEST_COMMAND / 1024
        )),
        false => Ok(()),
    }
}

/// The folder that a model's `cwd` names. What counts is where it leads inside of the sandbox; here it is found out
/// whether it leads anywhere, without a look at what is outside.
fn folder(policy: &Policy, path: &str) -> Result<PathBuf, ToolError> {
    let outside = || {
        ToolError::new(format!(
            "`cwd` {path:?} leads outside the workspace; give a folder inside it"
        ))
    };
    let given = Path::new(path);
    let roots = policy.writable().chain(&policy.read);
    let (root, inside) = match given.is_absolute() {
        false => (&policy.workspace, given),
        true => roots
            .filter_map(|root| Some((root, given.strip_prefix(root).ok()?)))
            .next()
            .ok_or_else(outside)?,
    };
    let inside = match inside.as_os_str().is_empty() {
        true => Path::new("."),
        false => inside,
    };
    let found = Dir::open_ambient_dir(root, ambient_authority()).and_then(|root| {
        root.open_dir(inside)?;
        root.canonicalize(inside)
    });
    let found = found.map_err(|error| match error.kind() {
        // An escape is refused by cap-std itself, so no code of the operating system comes with it.
        io::ErrorKind::PermissionDenied if error.raw_os_error().is_none() => outside(),
        _ => ToolError::new(format!(
            "`cwd` {path:?} is not a folder that can be used: {error}"
        )),
    })?;
    // The path `.` and nothing else comes back for the root itself.
    let folder: PathBuf = root.join(found).components().collect();
    match policy.access(&folder) {
        Access::None => Err(outside()),
        Access::Read | Access::Guarded | Access::Write => Ok(folder),
    }
}
