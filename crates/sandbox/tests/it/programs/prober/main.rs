//! Makes one attempt that a sandbox must prevent, and prints `possible` or `refused` with the reason.
//!
//! The tests of this crate run it inside the sandbox. The first argument names the attempt; paths and numbers follow.
//! With `nested` before it, the attempt is made by the root user of nested namespaces.

mod kernel;
mod modes;
mod nesting;
mod processes;
mod resources;
mod sockets;

use std::io;

/// The result of an attempt: what was possible, or why it was refused.
pub(crate) type Attempt = io::Result<String>;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let mut words = words.as_slice();
    while let Some((first, rest)) = words.split_first()
        && let Some(nesting) = nesting::Nesting::of(first)
    {
        if let Err(error) = nesting.enter() {
            eprintln!("cannot nest namespaces: {error}");
            std::process::exit(2);
        }
        words = rest;
    }
    let Some((name, rest)) = words.split_first() else {
        eprintln!("the name of an attempt is missing");
        std::process::exit(2);
    };
    let found = sockets::attempt(name, rest)
        .or_else(|| kernel::attempt(name, rest))
        .or_else(|| modes::attempt(name, rest))
        .or_else(|| nesting::attempt(name, rest))
        .or_else(|| processes::attempt(name, rest))
        .or_else(|| resources::attempt(name, rest));
    match found {
        Some(Ok(what)) => println!("possible: {what}"),
        Some(Err(error)) => println!("refused: {error}"),
        None => {
            eprintln!("there is no attempt `{name}`");
            std::process::exit(2);
        }
    }
}

/// Converts the return value of a system call to a result.
pub(crate) fn answer(number: libc::c_long) -> io::Result<libc::c_long> {
    match number {
        -1 => Err(io::Error::last_os_error()),
        number => Ok(number),
    }
}

/// Converts the return value of a system call to the result of an attempt.
pub(crate) fn possible(number: libc::c_long) -> Attempt {
    answer(number).map(|number| number.to_string())
}

/// The result of an attempt that was refused without an error of the system.
pub(crate) fn refused(what: impl Into<String>) -> Attempt {
    Err(io::Error::other(what.into()))
}

/// Parses the argument at a position as a number.
pub(crate) fn number<T: std::str::FromStr + Default>(arguments: &[&str], place: usize) -> T {
    let argument = arguments.get(place).and_then(|text| text.parse().ok());
    argument.unwrap_or_default()
}
