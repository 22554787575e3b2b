//! What is asked: the words on the command line, standard input, or both. The log says which part is which.

use crate::exit::{Exit, Failure};
use crate::screen;
use lango_core::UserInput;
use lango_engine::Runner;
use std::io::{IsTerminal, Read};
use std::time::Duration;

/// The whole question.
pub async fn question(prompt: &[String], quiet: bool) -> Result<UserInput, Failure> {
    let prompt = prompt.join(" ");
    let wants_stdin_alone = prompt.is_empty() || prompt == "-";
    let is_terminal = std::io::stdin().is_terminal();
    if wants_stdin_alone && is_terminal {
        return Err(Failure::new(Exit::Usage, "there is nothing to ask")
            .next("lango run \"what files are here?\""));
    }
    if is_terminal {
        return Ok(prompt.as_str().into());
    }
    let piped = read_stdin(quiet || wants_stdin_alone).await?;
    Ok(match (wants_stdin_alone, piped.trim().is_empty()) {
        (true, _) => UserInput::piped(piped, 0),
        (false, true) => prompt.as_str().into(),
        (false, false) => {
            let piped = piped.trim_end_matches('\n');
            let text = format!("{prompt}\n\n<stdin>\n{piped}\n</stdin>");
            UserInput::piped(text, prompt.len())
        }
    })
}

/// Reads standard input to its end, up to the longest input of a turn.
async fn read_stdin(quiet: bool) -> Result<String, Failure> {
    let reading = tokio::task::spawn_blocking(|| {
        let mut bytes = Vec::new();
        let most = u64::try_from(Runner::INPUT_BYTES)
            .unwrap_or(u64::MAX)
            .saturating_add(1);
        std::io::stdin()
            .lock()
            .take(most)
            .read_to_end(&mut bytes)
            .map(|_| bytes)
    });
    tokio::pin!(reading);
    let patience = tokio::time::sleep(Duration::from_secs(1));
    let read = tokio::select! {
        read = &mut reading => read,
        () = patience => {
            if !quiet {
                screen::say("waiting for the end of standard input; `< /dev/null` gives none");
            }
            reading.await
        }
    };
    let unreadable = |error: &dyn std::fmt::Display| {
        let message = format!("standard input cannot be read: {error}");
        Failure::new(Exit::Usage, message).next("`< /dev/null` gives none")
    };
    let bytes = read
        .map_err(|error| unreadable(&error))?
        .map_err(|error| unreadable(&error))?;
    if bytes.len() > Runner::INPUT_BYTES {
        let message = format!(
            "standard input is longer than {} bytes, the most a turn takes",
            Runner::INPUT_BYTES
        );
        return Err(
            Failure::new(Exit::Usage, message).next("put it into a file and ask about the file")
        );
    }
    String::from_utf8(bytes).map_err(|error| {
        let place = error.utf8_error().valid_up_to();
        Failure::new(
            Exit::Usage,
            format!(
                "standard input is not UTF-8 text: the first wrong byte is number {}",
                place + 1
            ),
        )
        .next("convert it first, for example with `iconv -t UTF-8`")
    })
}
