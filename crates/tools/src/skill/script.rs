//! A script of a skill as a command: found below `scripts/`, run by the interpreter its first line names, or by the one
//! that its ending stands for.

use super::SkillCard;
use super::content::SkillCopy;
use super::files::SkillFiles;
use crate::exec::Commands;
use crate::exec::request::{Request, Words, visible};
use crate::show;
use lango_core::{Extent, Text, ToolError};
use lango_sandbox::{Access, Policy};
use std::io::Read;
use std::path::{Path, PathBuf};

/// The folder of a skill's scripts.
pub(super) const SCRIPTS: &str = "scripts";

/// How large a script is, so that a person can look at all of it.
const LARGEST_SCRIPT: u64 = 4 * 1024 * 1024;

/// How many lines of a script a short preview shows.
const SHOWN_LINES: usize = 40;

/// A script that can be run.
pub(super) struct Script {
    pub(super) request: Request,
    /// Its text.
    pub(super) content: Vec<u8>,
}

/// A call of a script.
#[derive(Clone)]
pub(super) struct ScriptCall {
    pub(super) path: String,
    pub(super) arguments: Vec<String>,
}

/// The command that runs the script of a private copy of the skill, if the files are those that were approved.
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
            "not run: the files of the skill `{}` are not those that were approved; make the call again to have it asked for",
            card.name
        )));
    }
    let inside = files.relative(&call.path).to_string_lossy().into_owned();
    call.path = inside;
    let script = script(&copy.card(card)?, commands, call)?;
    Ok((script, copy))
}

/// The command that runs a script of a skill.
pub(super) fn script(
    card: &SkillCard,
    commands: &Commands,
    call: ScriptCall,
) -> Result<Script, ToolError> {
    let ScriptCall { path, arguments } = call;
    let files = SkillFiles::open(card)?;
    let given = files.relative(&path);
    let inside = match given.starts_with(SCRIPTS) {
        true => given.to_owned(),
        false => Path::new(SCRIPTS).join(given),
    };
    let (file, real) = files.open_file(&inside)?;
    if !real.starts_with(SCRIPTS) {
        return Err(ToolError::new(format!(
            "`{}` is not in `{SCRIPTS}/` of the skill `{}`; only what is there can be run",
            show::name(given.as_os_str()),
            card.name
        )));
    }
    let mut content = Vec::new();
    file.take(LARGEST_SCRIPT + 1)
        .read_to_end(&mut content)
        .map_err(|error| {
            ToolError::new(format!(
                "`{}` cannot be read: {error}",
                show::name(inside.as_os_str())
            ))
        })?;
    if content.len() as u64 > LARGEST_SCRIPT {
        return Err(ToolError::new(format!(
            "`{}` has more than {}, so nobody can look at all of it; it is not run",
            show::name(inside.as_os_str()),
            show::size(LARGEST_SCRIPT)
        )));
    }
    let mut argv = interpreter(&content, &real).map_err(ToolError::new)?;
    argv.push(text_of(card.folder.join(&real))?);
    argv.extend(arguments);
    if argv.iter().any(|word| word.contains('\0')) {
        return Err(ToolError::new("an argument has a NUL character in it"));
    }
    let policy = opened_for(card, commands.policy())?;
    Ok(Script {
        request: Request {
            words: Words::Argv(argv),
            cwd: policy.workspace.clone(),
            policy,
            hosts: commands.hosts(),
            time: commands.time(),
        },
        content,
    })
}

/// The program that runs a script, with what it is told before the script.
pub(super) fn interpreter(head: &[u8], path: &Path) -> Result<Vec<String>, String> {
    if let Some(line) = head.strip_prefix(b"#!") {
        let line = line.split(|byte| *byte == b'\n').next().unwrap_or_default();
        let line = std::str::from_utf8(line).unwrap_or_default().trim();
        // As the system does it: a program, and all the rest as one argument.
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
                "nobody knows how to run `{}`: it has no first line `#!/…`, and does not end with .sh, .py or .js",
                show::name(path.as_os_str())
            ));
        }
    };
    Ok(vec![program.to_owned()])
}

/// What the script may touch: what every command may, and its skill's folder to read.
fn opened_for(card: &SkillCard, policy: &Policy) -> Result<Policy, ToolError> {
    let mut policy = policy.clone();
    // What commands see anyway is not opened once more: a command could put something else in its place meanwhile.
    if policy.access(&card.folder) == Access::None {
        policy.read.push(card.folder.clone());
    }
    match policy.access(&card.folder) {
        Access::None => Err(ToolError::new(format!(
            "the scripts of the skill `{}` cannot be run: its folder is one that is hidden from commands",
            card.name
        ))),
        Access::Read | Access::Guarded | Access::Write => Ok(policy),
    }
}

/// The text of a script for who is asked, and how many lines of it are not shown.
pub(super) fn shown(content: &[u8], extent: Extent) -> String {
    if content.contains(&0) {
        return "[the script is not text]\n".into();
    }
    let text = String::from_utf8_lossy(content);
    let most = match extent {
        Extent::Short => SHOWN_LINES,
        Extent::Whole => usize::MAX,
    };
    let mut lines = text.lines();
    let mut shown: String = lines
        .by_ref()
        .take(most)
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
    fn the_first_line_comes_before_the_ending() {
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
