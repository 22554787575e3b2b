//! One turn of a chat on the screen: what happens as it happens, and the answer block by block as it is written.

use crate::commands::ask::Asker;
use crate::commands::present::waits;
use crate::commands::watch::{Given, Place, watch};
use crate::exit::Failure;
use crate::markdown::{Blocks, Style, render, sanitize};
use crate::screen::{self, Progress, footer};
use lango_core::UserInput;
use lango_engine::{Conversation, Shown, TurnEnd};
use std::time::Instant;

/// Runs a turn and shows it; without a question it goes on with the one that waits.
pub async fn show_turn(
    model: &str,
    conversation: &mut Conversation,
    question: Option<&UserInput>,
    place: Place<'_>,
) -> Result<(), Failure> {
    let started = Instant::now();
    let mut answer = Answer::new();
    let mut progress = Progress::new();
    let show = |item| match item {
        Shown::Stored(events) => events
            .iter()
            .flat_map(|event| progress.lines(event))
            .try_for_each(|line| {
                answer.interrupt()?;
                screen::write_line(&line)
            }),
        Shown::Draft { text, .. } => answer.push(&text),
        Shown::Withdrawn => answer.withdraw(),
        Shown::Retrying { agent, reason } => {
            screen::write_line(&sanitize(&format!("  {agent}: {reason}")))
        }
        Shown::InLine => screen::write_line(screen::IN_LINE),
    };
    let given = question.map_or(Given::Nothing, Given::Question);
    let asker = Asker::of_this_process();
    let report = match watch(conversation, given, asker, place, show).await?.end {
        TurnEnd::Finished(report) => report,
        TurnEnd::Waiting(waiting) if waiting.is_empty() => return Ok(()),
        TurnEnd::Waiting(waiting) => return Ok(screen::write_line(&waits(&waiting))?),
    };
    answer.finish(report.answer.as_deref())?;
    let model = report.model.as_deref().unwrap_or(model);
    let author = report
        .author
        .as_ref()
        .map(|author| format!("{author} · "))
        .unwrap_or_default();
    screen::write_line(&format!(
        "\n  {author}{}",
        footer(&report, model, started.elapsed()).replace('\n', "\n  ")
    ))?;
    Ok(())
}

/// The answer on its way to the screen.
struct Answer {
    blocks: Blocks,
    written: String,
    style: Style,
}

impl Answer {
    fn new() -> Self {
        let style = if screen::wants_colour() {
            Style::Coloured
        } else {
            Style::Uncoloured
        };
        Self {
            blocks: Blocks::default(),
            written: String::new(),
            style,
        }
    }

    fn push(&mut self, text: &str) -> std::io::Result<()> {
        if self.written.is_empty() {
            screen::write_line("")?;
        }
        self.written.push_str(text);
        for block in self.blocks.push(text) {
            screen::write_all(&render(&block, self.style))?;
        }
        Ok(())
    }

    /// Something else happened while text was on the screen.
    fn interrupt(&mut self) -> std::io::Result<()> {
        if self.written.is_empty() {
            Ok(())
        } else {
            self.withdraw()
        }
    }

    fn withdraw(&mut self) -> std::io::Result<()> {
        self.flush()?;
        self.written.clear();
        screen::write_line("  (the text above was a draft and is withdrawn)")
    }

    fn flush(&mut self) -> std::io::Result<()> {
        let rest = std::mem::take(&mut self.blocks).finish();
        match rest {
            Some(rest) => {
                let rest = render(&rest, self.style);
                screen::write_all(&format!("{}\n", rest.trim_end_matches('\n')))
            }
            None => Ok(()),
        }
    }

    /// What was written as a draft is the answer; anything else is shown now.
    fn finish(&mut self, answer: Option<&str>) -> std::io::Result<()> {
        match answer {
            Some(answer) if answer == self.written => self.flush(),
            Some(answer) => {
                if !self.written.is_empty() {
                    self.withdraw()?;
                }
                screen::write_all(&format!(
                    "\n{}\n",
                    render(answer, self.style).trim_end_matches('\n')
                ))
            }
            None if self.written.is_empty() => Ok(()),
            None => self.withdraw(),
        }
    }
}
