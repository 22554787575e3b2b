//! The key of the provider: typed without echo, read from standard input, or the one that it already has.

use super::{command, dialog};
use crate::args::SetupArguments;
use crate::screen;
use lango::app::credentials_file::check_key;
use lango::app::setup::{Connection, KeyOrigin, NewKey};
use lango::app::vault::{EchoGuard, read_hidden, read_piped};
use lango::app::{App, Failure};
use std::io::IsTerminal;

/// How often a key can be typed.
pub(super) const MAX_TRIES: usize = 3;

/// Which key to use.
pub(super) enum KeyAnswer {
    New(NewKey),
    /// The key that the provider already has, or none if it needs none.
    Existing,
    Quit,
}

/// Reads the key from standard input if `--key-stdin` is given.
pub(super) fn read_piped_key(arguments: &SetupArguments) -> Result<Option<NewKey>, Failure> {
    if !arguments.key_stdin {
        return Ok(None);
    }
    if std::io::stdin().is_terminal() {
        let message =
            "--key-stdin reads standard input, and that is a terminal, which would show the key";
        return Err(Failure::usage(message).next(
            "leave --key-stdin out to type the key without echo, or pipe it: lango setup … --key-stdin < FILE",
        ));
    }
    let value = check_key(&read_piped()?)?;
    let origin = KeyOrigin::StandardInput;
    Ok(Some(NewKey { value, origin }))
}

/// Asks for the key, unless the provider takes none. Without a terminal the provider must already have one, or need
/// none.
pub(super) async fn ask(
    app: &App,
    arguments: &SetupArguments,
    connection: &Connection,
) -> Result<KeyAnswer, Failure> {
    if connection.takes_no_key() {
        return Ok(KeyAnswer::Existing);
    }
    let provider = &connection.provider;
    let source = connection.key_source(app);
    let is_usable = source.is_some() || !connection.needs_key();
    if is_usable && (arguments.yes || !dialog::can_ask()) {
        if let Some(source) = source.filter(|_| dialog::can_ask()) {
            screen::say(&format!("the key of {}: {source}", connection.label));
        }
        return Ok(KeyAnswer::Existing);
    }
    if !dialog::can_ask() {
        let message = format!("`{provider}` needs a key, and there is no terminal to ask for it");
        let given = SetupArguments {
            provider: Some(provider.clone()),
            key_stdin: true,
            ..arguments.clone()
        };
        return Err(Failure::usage(message).next(command(&given, " --yes")));
    }
    let enter = match &source {
        Some(source) => format!("Enter uses the one {source}"),
        None if is_usable => "Enter if it needs none".to_owned(),
        None => "Enter quits".to_owned(),
    };
    Ok(match type_key(connection, Some(&enter)).await? {
        Some(key) => KeyAnswer::New(key),
        None if is_usable => KeyAnswer::Existing,
        None => KeyAnswer::Quit,
    })
}

/// Reads a key without echo; `None` for an empty line. `enter` says what an empty line means.
pub(super) async fn type_key(
    connection: &Connection,
    enter: Option<&str>,
) -> Result<Option<NewKey>, Failure> {
    let enter = enter.unwrap_or("Enter quits");
    let question = format!(
        "API key of {} (paste it; it is not shown; {enter}): ",
        connection.label
    );
    let mut tries = 1;
    loop {
        // The echo is back when the guard is dropped.
        let typed = read_hidden(&EchoGuard::default(), &question).await?;
        if typed.is_empty() {
            return Ok(None);
        }
        match check_key(&typed) {
            Err(failure) if tries < MAX_TRIES => {
                tries += 1;
                screen::say(&failure.message());
            }
            checked => {
                let value = checked?;
                let origin = KeyOrigin::Typed;
                return Ok(Some(NewKey { value, origin }));
            }
        }
    }
}
