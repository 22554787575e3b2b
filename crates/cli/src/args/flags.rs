//! The order of flags on the command line.

use std::ffi::OsString;

/// The same command line with every `-c KEY=VALUE` in front of the command. The parser would keep only those on one side of
/// it, and a setting that is dropped in silence is worse than none.
pub fn with_flags_first(typed: Vec<OsString>) -> Vec<OsString> {
    let mut typed = typed.into_iter();
    let mut first: Vec<OsString> = typed.next().into_iter().collect();
    let mut rest = Vec::new();
    while let Some(argument) = typed.next() {
        if argument == "--" {
            rest.push(argument);
            break;
        }
        let is_flag = argument.as_encoded_bytes().starts_with(b"-c");
        if argument == "-c" {
            first.push(argument);
            first.extend(typed.next());
        } else if is_flag {
            first.push(argument);
        } else {
            rest.push(argument);
        }
    }
    first.into_iter().chain(rest).chain(typed).collect()
}
