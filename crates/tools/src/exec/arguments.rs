//! The arguments of `exec` and `exec_bg`, and the command they describe.

use super::Commands;
use super::request::{CommandLine, CommandRequest};
use crate::show;
use cap_std::ambient_authority;
use cap_std::fs::Dir;
use lango_core::{PathResolution, ToolError};
use lango_sandbox::{Access, Policy};
use schemars::JsonSchema;
use serde::Deserialize;
use std::io;
use std::num::NonZeroU64;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Maximum length of a command in bytes. The system would accept a little more, but a user has to review it.
const MAX_COMMAND_BYTES: usize = 64 * 1024;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ExecArguments {
    /// A shell command line, run unchanged by `/bin/sh -c`. Pass this or `argv`.
    command: Option<String>,
    /// A program and its arguments, run unchanged without a shell. Pass this or `command`.
    argv: Option<Vec<String>>,
    /// The folder to run in, relative to the workspace; defaults to the workspace itself.
    cwd: Option<String>,
    /// Time limit in seconds; defaults to the maximum.
    timeout_s: Option<NonZeroU64>,
}

impl ExecArguments {
    /// Checks the arguments and builds the request.
    pub(super) fn request(
        self,
        commands: &Commands,
        longest: Duration,
    ) -> Result<CommandRequest, ToolError> {
        let command_line = match (self.command, self.argv) {
            (Some(line), None) => CommandLine::Shell(line),
            (None, Some(argv)) => CommandLine::Argv(argv),
            _ => {
                return Err(ToolError::new(
                    "pass exactly one of `command`, a shell command line, and `argv`, a list of arguments",
                ));
            }
        };
        check(&command_line).map_err(ToolError::new)?;
        let policy = commands.policy().clone();
        let (cwd, cwd_resolution) = match &self.cwd {
            Some(path) => folder(&policy, path)?,
            None => (policy.workspace.clone(), None),
        };
        let time = match self
            .timeout_s
            .map(|seconds| Duration::from_secs(seconds.get()))
        {
            Some(time) if time > longest => {
                return Err(ToolError::new(format!(
                    "`timeout_s` may be at most {}; start a longer command with `exec_bg`",
                    longest.as_secs()
                )));
            }
            time => time.unwrap_or(longest),
        };
        Ok(CommandRequest {
            command_line,
            cwd,
            cwd_resolution,
            policy,
            hosts: commands.hosts(),
            time,
        })
    }
}

fn check(command_line: &CommandLine) -> Result<(), String> {
    let (bytes, has_nul) = match command_line {
        CommandLine::Shell(line) if line.trim().is_empty() => {
            return Err("`command` is empty".into());
        }
        CommandLine::Shell(line) => (line.len(), line.contains('\0')),
        CommandLine::Argv(argv) if argv.first().is_none_or(String::is_empty) => {
            return Err("`argv` names no program".into());
        }
        CommandLine::Argv(argv) => (
            argv.iter().map(|word| word.len() + 1).sum(),
            argv.iter().any(|word| word.contains('\0')),
        ),
    };
    if has_nul {
        return Err("the command contains a NUL character, which no argument can have".into());
    }
    if bytes > MAX_COMMAND_BYTES {
        return Err(format!(
            "the command is longer than {} KiB; write a script to a file and run that",
            MAX_COMMAND_BYTES / 1024
        ));
    }
    Ok(())
}

/// Resolves the `cwd` of a call without accessing anything outside of the opened folders. Also returns where it leads if
/// its text does not tell. The sandbox checks the access again when the command starts.
fn folder(policy: &Policy, path: &str) -> Result<(PathBuf, Option<PathResolution>), ToolError> {
    let outside = || {
        ToolError::new(format!(
            "`cwd` {path:?} is outside the workspace; pass a folder inside it"
        ))
    };
    let given = Path::new(path);
    let roots = policy.writable().chain(&policy.read);
    let (root, inside) = if given.is_absolute() {
        roots
            .filter_map(|root| Some((root, given.strip_prefix(root).ok()?)))
            .next()
            .ok_or_else(outside)?
    } else {
        (&policy.workspace, given)
    };
    let inside = if inside.as_os_str().is_empty() {
        Path::new(".")
    } else {
        inside
    };
    let found = Dir::open_ambient_dir(root, ambient_authority()).and_then(|root| {
        root.open_dir(inside)?;
        root.canonicalize(inside)
    });
    let found = found.map_err(|error| match error.kind() {
        // cap-std itself refuses a path that leads outside, so the error has no code of the operating system.
        io::ErrorKind::PermissionDenied if error.raw_os_error().is_none() => outside(),
        _ => ToolError::new(format!("`cwd` {path:?} cannot be used: {error}")),
    })?;
    // For the root itself, `found` is `.`, which `components` removes.
    let folder: PathBuf = root.join(found).components().collect();
    match policy.access(&folder) {
        Access::None => Err(outside()),
        Access::Read | Access::Guarded | Access::Write => {
            let textual: PathBuf = root.join(inside).components().collect();
            let resolution = (textual != folder).then(|| resolution(policy, &folder));
            Ok((folder, resolution))
        }
    }
}

/// Describes a folder as the place where a `cwd` leads. Patterns of rules see only the text of the `cwd`, so the links
/// are left out.
fn resolution(policy: &Policy, folder: &Path) -> PathResolution {
    let target = folder.strip_prefix(&policy.workspace).unwrap_or(folder);
    let target = match target.as_os_str() {
        workspace if workspace.is_empty() => ".".into(),
        target => show::exact(target).into(),
    };
    PathResolution {
        target,
        links: Vec::new(),
    }
}
