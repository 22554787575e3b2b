//! Reorders flags on the command line.

use std::ffi::OsString;

/// Moves every `-c KEY=VALUE` in front of the command. The parser would otherwise keep only those on one side of it,
/// and silently dropping a setting would be worse than an error.
pub fn with_flags_first(arguments: Vec<OsString>) -> Vec<OsString> {
    let mut arguments = arguments.into_iter();
    let mut first: Vec<OsString> = arguments.next().into_iter().collect();
    let mut rest = Vec::new();
    while let Some(argument) = arguments.next() {
        if argument == "--" {
            rest.push(argument);
            break;
        }
        let is_flag = argument.as_encoded_bytes().starts_with(b"-c");
        if argument == "-c" {
            first.push(argument);
            first.extend(arguments.next());
        } else if is_flag {
            first.push(argument);
        } else {
            rest.push(argument);
        }
    }
    first.into_iter().chain(rest).chain(arguments).collect()
}
