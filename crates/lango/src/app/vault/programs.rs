//! Warnings about programs that a secret is bound to: programs that do not exist, and interpreters. An interpreter
//! executes whatever its arguments say, so a binding to it limits nothing.

use lango_secrets::{Binding, BindingTarget};
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::os::unix::fs::PermissionsExt;

/// Programs that execute commands or scripts given as arguments.
const INTERPRETERS: [&str; 28] = [
    "sh", "ash", "bash", "dash", "zsh", "ksh", "mksh", "fish", "tcsh", "csh", "busybox", "python",
    "pypy", "perl", "ruby", "node", "nodejs", "deno", "bun", "php", "lua", "tclsh", "awk", "gawk",
    "env", "xargs", "make", "npx",
];

/// Returns the warnings about the program of a binding; none if the binding names no program.
pub fn program_warnings(env: &BTreeMap<OsString, OsString>, binding: &Binding) -> Vec<String> {
    let mut warnings = Vec::new();
    let BindingTarget::Program { program, variable } = &binding.target else {
        return warnings;
    };
    if is_interpreter(program) {
        warnings.push(format!(
            "warning: `{program}` executes whatever its arguments say, so an agent can do anything with the value in {variable} \
             once you allow a call; bind the program that needs it, or the host: --host"
        ));
    }
    if !is_installed(env, program) {
        warnings.push(format!(
            "warning: there is no program `{program}` in PATH; the binding has no effect until it is installed"
        ));
    }
    warnings
}

/// Returns whether a program is an interpreter, with or without a version suffix such as in `python3.12`.
fn is_interpreter(program: &str) -> bool {
    let is_version = |character: char| character.is_ascii_digit() || matches!(character, '.' | '-');
    let name = program.trim_end_matches(is_version);
    INTERPRETERS.contains(&name)
}

fn is_installed(env: &BTreeMap<OsString, OsString>, program: &str) -> bool {
    let path = env.get(OsStr::new("PATH"));
    let mut folders = path.map(std::env::split_paths).into_iter().flatten();
    folders.any(|folder| {
        let found = folder.join(program).metadata();
        found.is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shells_and_interpreters_of_any_version_are_known() {
        for program in ["sh", "bash", "python3", "python3.12", "perl5.36", "node"] {
            assert!(is_interpreter(program), "{program}");
        }
        for program in ["aws", "git", "sha256sum", "s3", "basher", "7"] {
            assert!(!is_interpreter(program), "{program}");
        }
    }
}
