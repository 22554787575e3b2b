//! Turns a script of a skill into a command. Scripts are in `scripts/`. The interpreter is the one that the first line
//! names, or that matches the file extension.

use super::SkillCard;
use super::content::SkillCopy;
use super::files::SkillFiles;
use crate::exec::Commands;
use crate::exec::request::{CommandLine, CommandRequest, visible};
use crate::show;
use lango_core::{PreviewLength, Text, ToolError};
use lango_sandbox::{Access, Policy};
use std::io::Read;
use std::path::{Path, PathBuf};

/// The folder of a skill's scripts.
pub(super) const SCRIPTS: &str = "scripts";

/// Maximum size of a script, so that a user can review all of it.
const MAX_SCRIPT_BYTES: u64 = 4 * 1024 * 1024;

/// Number of lines of a script that a short preview shows.
const SHOWN_LINES: usize = 40;

/// A script that can be run.
pub(super) struct Script {
    pub(super) request: CommandRequest,
    pub(super) content: Vec<u8>,
}

/// A call of a script.
#[derive(Clone)]
pub(super) struct ScriptCall {
    pub(super) path: String,
    pub(super) arguments: Vec<String>,
}

/// Builds the command that runs a script from a private copy of the skill. Fails if the files differ from the approved
/// ones.
pub(super) fn approved_script(
    card: &SkillCard,
    commands: &Commands,
    mut call: ScriptCall,
    approved: Option<&Text>,
) -> Result<(Script, SkillCopy), ToolError> {
    script(card, commands, call.clone())?;
    let files = SkillFiles::open(card)?;
    let copy = SkillCopy::make(&files, commands.policy())?;
    if approved != Some(&copy.digest) {
        return Err(ToolError::new(format!(
            "the script was not run: the files of the skill `{}` changed after the approval; call again to ask the user",
            card.name
        )));
    }
    let inside = files.relative(&call.path).to_string_lossy().into_owned();
    call.path = inside;
    let script = script(&copy.card(card)?, commands, call)?;
    Ok((script, copy))
}

/// Builds the command that runs a script of a skill.
pub(super) fn script(
    card: &SkillCard,
    commands: &Commands,
    call: ScriptCall,
) -> Result<Script, ToolError> {
    let ScriptCall { path, arguments } = call;
    let files = SkillFiles::open(card)?;
    let given = files.relative(&path);
    let inside = if given.starts_with(SCRIPTS) {
        given.to_owned()
    } else {
        Path::new(SCRIPTS).join(given)
    };
    let (file, real) = files.open_file(&inside)?;
    if !real.starts_with(SCRIPTS) {
        return Err(ToolError::new(format!(
            "`{}` is not in `{SCRIPTS}/` of the skill `{}`; only scripts there can be run",
            show::name(given.as_os_str()),
            card.name
        )));
    }
    let mut content = Vec::new();
    file.take(MAX_SCRIPT_BYTES + 1)
        .read_to_end(&mut content)
        .map_err(|error| {
            ToolError::new(format!(
                "`{}` cannot be read: {error}",
                show::name(inside.as_os_str())
            ))
        })?;
    if content.len() as u64 > MAX_SCRIPT_BYTES {
        return Err(ToolError::new(format!(
            "`{}` was not run: it is larger than {}, too large to review",
            show::name(inside.as_os_str()),
            show::size(MAX_SCRIPT_BYTES)
        )));
    }
    let mut argv = interpreter(&content, &real).map_err(ToolError::new)?;
    argv.push(text_of(card.folder.join(&real))?);
    argv.extend(arguments);
    if argv.iter().any(|word| word.contains('\0')) {
        return Err(ToolError::new("an argument contains a NUL character"));
    }
    let policy = script_policy(card, commands.policy())?;
    Ok(Script {
        request: CommandRequest {
            command_line: CommandLine::Argv(argv),
            cwd: policy.workspace.clone(),
            cwd_resolution: None,
            policy,
            hosts: commands.hosts(),
            time: commands.time_limit(),
        },
        content,
    })
}

/// Returns the program that runs a script, and its arguments before the script's path.
pub(super) fn interpreter(head: &[u8], path: &Path) -> Result<Vec<String>, String> {
    if let Some(line) = head.strip_prefix(b"#!") {
        let line = line.split(|byte| *byte == b'\n').next().unwrap_or_default();
        let line = std::str::from_utf8(line).unwrap_or_default().trim();
        // Like the kernel: a program, and the whole rest as one argument.
        let (program, argument) = line.split_once([' ', '\t']).unwrap_or((line, ""));
        let words = [program, argument.trim()];
        if program.starts_with('/') {
            return Ok(words
                .iter()
                .filter(|word| !word.is_empty())
                .map(|word| (*word).to_owned())
                .collect());
        }
    }
    let program = match path.extension().and_then(|end| end.to_str()) {
        Some("sh") => "/bin/sh",
        Some("py") => "python3",
        Some("js") => "node",
        _ => {
            return Err(format!(
                "lango does not know how to run `{}`: it has no first line `#!/…`, and its name does not end with .sh, .py or .js",
                show::name(path.as_os_str())
            ));
        }
    };
    Ok(vec![program.to_owned()])
}

/// Returns the policy for a script: that of all commands, plus read access to the skill's folder.
fn script_policy(card: &SkillCard, policy: &Policy) -> Result<Policy, ToolError> {
    let mut policy = policy.clone();
    // A folder that commands can see anyway is not opened again: a command could replace it meanwhile.
    if policy.access(&card.folder) == Access::None {
        policy.read.push(card.folder.clone());
    }
    match policy.access(&card.folder) {
        Access::None => Err(ToolError::new(format!(
            "the scripts of the skill `{}` cannot be run: its folder is hidden from commands",
            card.name
        ))),
        Access::Read | Access::Guarded | Access::Write => Ok(policy),
    }
}

/// Formats the text of a script for the user who approves it, with the number of lines that are not shown.
pub(super) fn display_text(content: &[u8], length: PreviewLength) -> String {
    if content.contains(&0) {
        return "[the script is not text]\n".into();
    }
    let text = String::from_utf8_lossy(content);
    let limit = match length {
        PreviewLength::Short => SHOWN_LINES,
        PreviewLength::Full => usize::MAX,
    };
    let mut lines = text.lines();
    let mut shown: String = lines
        .by_ref()
        .take(limit)
        .map(|line| format!("| {}\n", visible(line, "")))
        .collect();
    let left = lines.count() as u64;
    if left > 0 {
        let left = show::count(left, "more line");
        shown.push_str(&format!("[{left} not shown; view all to see them]\n"));
    }
    shown
}

fn text_of(path: PathBuf) -> Result<String, ToolError> {
    path.into_os_string().into_string().map_err(|path| {
        ToolError::new(format!(
            "the path {path:?} is not UTF-8 text, so the script cannot be run"
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_line_takes_precedence_over_the_extension() {
        let run_by = |head: &str, path: &str| interpreter(head.as_bytes(), Path::new(path));
        let words = |list: &[&str]| Ok(list.iter().map(|word| (*word).to_owned()).collect());
        assert_eq!(
            run_by("#!/bin/bash\n", "scripts/a.py"),
            words(&["/bin/bash"])
        );
        assert_eq!(
            run_by("#! /usr/bin/env -S python3 -u\r\n", "x"),
            words(&["/usr/bin/env", "-S python3 -u"])
        );
        assert_eq!(run_by("echo", "scripts/a.sh"), words(&["/bin/sh"]));
        assert_eq!(run_by("", "scripts/a.py"), words(&["python3"]));
        assert_eq!(run_by("#!python\n", "scripts/a.js"), words(&["node"]));
        assert!(run_by("\u{7f}ELF", "scripts/a").is_err());
    }
}
