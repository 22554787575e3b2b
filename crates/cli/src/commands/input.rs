//! The question: from the command line, standard input, or both. The log records where each part came from.

use crate::screen;
use lango::app::Failure;
use lango_core::UserInput;
use lango_engine::Runner;
use std::io::{IsTerminal, Read};
use std::time::Duration;

/// Builds the question from the arguments and, unless it is a terminal, standard input.
pub(super) async fn question(prompt: &[String], quiet: bool) -> Result<UserInput, Failure> {
    let prompt = prompt.join(" ");
    let wants_stdin_alone = prompt.is_empty() || prompt == "-";
    let is_terminal = std::io::stdin().is_terminal();
    if wants_stdin_alone && is_terminal {
        return Err(
            Failure::usage("no question was given").next("lango run \"what files are here?\"")
        );
    }
    if is_terminal {
        return Ok(prompt.as_str().into());
    }
    let piped = read_stdin(quiet || wants_stdin_alone).await?;
    Ok(match (wants_stdin_alone, piped.trim().is_empty()) {
        (true, _) => UserInput::from_pipe(piped, 0),
        (false, true) => prompt.as_str().into(),
        (false, false) => {
            let piped = piped.trim_end_matches('\n');
            let text = format!("{prompt}\n\n<stdin>\n{piped}\n</stdin>");
            UserInput::from_pipe(text, prompt.len())
        }
    })
}

/// Reads standard input to its end, up to the longest input that a turn accepts.
async fn read_stdin(quiet: bool) -> Result<String, Failure> {
    let reading = tokio::task::spawn_blocking(|| {
        let mut bytes = Vec::new();
        let limit = u64::try_from(Runner::INPUT_BYTES)
            .unwrap_or(u64::MAX)
            .saturating_add(1);
        std::io::stdin()
            .lock()
            .take(limit)
            .read_to_end(&mut bytes)
            .map(|_| bytes)
    });
    tokio::pin!(reading);
    let notice_delay = tokio::time::sleep(Duration::from_secs(1));
    let read = tokio::select! {
        read = &mut reading => read,
        () = notice_delay => {
            if !quiet {
                screen::say("waiting for the end of standard input; use `< /dev/null` to pass none");
            }
            reading.await
        }
    };
    let unreadable = |error: &dyn std::fmt::Display| {
        let message = format!("standard input cannot be read: {error}");
        Failure::usage(message).next("use `< /dev/null` to pass no input")
    };
    let bytes = read
        .map_err(|error| unreadable(&error))?
        .map_err(|error| unreadable(&error))?;
    if bytes.len() > Runner::INPUT_BYTES {
        let message = format!(
            "standard input is longer than {} bytes, the limit of a turn",
            Runner::INPUT_BYTES
        );
        return Err(Failure::usage(message).next("save it to a file and ask about the file"));
    }
    String::from_utf8(bytes).map_err(|error| {
        let place = error.utf8_error().valid_up_to();
        Failure::usage(format!(
            "standard input is not UTF-8 text: the first invalid byte is number {}",
            place + 1
        ))
        .next("convert it first, for example with `iconv -t UTF-8`")
    })
}
