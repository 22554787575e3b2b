//! Displays one turn of a chat: progress as it happens, and the answer block by block as it is streamed.

use crate::commands::ask::ApprovalMode;
use crate::commands::present::describe_pending;
use crate::commands::watch::{PromptContext, TurnRequest, watch};
use crate::screen::{self, Progress, footer};
use lango::app::Failure;
use lango_core::UserInput;
use lango_core::text::sanitize;
use lango_engine::{Conversation, TurnEnd, TurnUpdate};
use lango_markdown::{Blocks, Style, render};
use std::time::Instant;

/// Runs a turn and shows it. Without a question, continues the pending turn.
pub(super) async fn show_turn(
    model: &str,
    conversation: &mut Conversation,
    question: Option<&UserInput>,
    context: PromptContext<'_>,
) -> Result<(), Failure> {
    let started = Instant::now();
    let mut answer = StreamedAnswer::new();
    let mut progress = Progress::new();
    let show = |item| match item {
        TurnUpdate::Stored(events) => events
            .iter()
            .flat_map(|event| progress.lines(event))
            .try_for_each(|line| {
                answer.interrupt()?;
                screen::write_line(&line)
            }),
        TurnUpdate::Draft { text, .. } => answer.push(&text),
        TurnUpdate::DraftWithdrawn => answer.withdraw(),
        TurnUpdate::Retrying { agent, reason } => {
            screen::write_line(&sanitize(&format!("  {agent}: {reason}")))
        }
        TurnUpdate::Queued => screen::write_line(screen::QUEUED_NOTICE),
    };
    let input = question.map_or(TurnRequest::Continue, TurnRequest::Question);
    let approval_mode = ApprovalMode::detect();
    let report = match watch(conversation, input, approval_mode, context, show)
        .await?
        .end
    {
        TurnEnd::Finished(report) => report,
        TurnEnd::Waiting(waiting) if waiting.is_empty() => return Ok(()),
        TurnEnd::Waiting(waiting) => return Ok(screen::write_line(&describe_pending(&waiting))?),
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

/// The streamed answer and how much of it is on the screen.
struct StreamedAnswer {
    blocks: Blocks,
    written: String,
    style: Style,
}

impl StreamedAnswer {
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

    /// Ends the draft, because another event has to be shown below it.
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
        screen::write_line("  (the text above was a draft and has been withdrawn)")
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

    /// Completes the output: a draft that equals the answer is finished; otherwise the draft is withdrawn and the
    /// answer is shown.
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
