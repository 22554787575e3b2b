//! Tries one thing that a sandbox must not let a program do, and prints `possible` or `refused` and why.
//!
//! It runs inside, in this crate's tests. What is tried is the first argument; paths and numbers come after it. Before it may
//! stand `nested`: then it is tried by the root of namespaces below the command's own.

mod kernel;
mod modes;
mod nesting;
mod processes;
mod resources;
mod sockets;

use std::io;

/// What came of an attempt: what was possible, or why it was not.
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
        eprintln!("say what to try");
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
            eprintln!("no attempt is called `{name}`");
            std::process::exit(2);
        }
    }
}

/// What the kernel answered to a call.
pub(crate) fn answer(number: libc::c_long) -> io::Result<libc::c_long> {
    match number {
        -1 => Err(io::Error::last_os_error()),
        number => Ok(number),
    }
}

/// The same in words.
pub(crate) fn possible(number: libc::c_long) -> Attempt {
    answer(number).map(|number| number.to_string())
}

/// Refused by what was seen rather than by an error.
pub(crate) fn refused(what: impl Into<String>) -> Attempt {
    Err(io::Error::other(what.into()))
}

/// A number among the arguments.
pub(crate) fn number<T: std::str::FromStr + Default>(arguments: &[&str], place: usize) -> T {
    let argument = arguments.get(place).and_then(|text| text.parse().ok());
    argument.unwrap_or_default()
}
