//! The question on a terminal without raw keys: a letter and Enter answer it.

use super::question::{GrantScope, Question, Reply};
use crate::screen;
use crate::terminal::{LineReader, wrap_lines};

/// Shows a question and reads lines until one answers it.
pub(in crate::commands) async fn ask_plainly(question: &Question, lines: &mut LineReader) -> Reply {
    screen::say(&question.plain_text(screen::columns()));
    if lines.discard().await.is_err() {
        return Reply::Wait;
    }
    let keys = prompt(question);
    loop {
        let Some(line) = lines.next(&keys).await else {
            return Reply::Wait;
        };
        let typed = line.trim().to_lowercase();
        let mut letters = typed.chars();
        let letter = match (letters.next(), typed.as_str()) {
            (_, "yes") => 'y',
            (_, "no") => 'n',
            (Some(letter), _) if letters.next().is_none() => letter,
            _ => ' ',
        };
        let is_choice = question.choices().iter().any(|choice| choice.key == letter);
        if !is_choice || lines.is_pasting().await {
            screen::say("  type one of the letters, then Enter; nothing runs before that");
            // The rest of a pasted text is no answer either.
            if lines.discard().await.is_err() {
                return Reply::Wait;
            }
            continue;
        }
        if let Some(answer) = question.simple_answer(letter) {
            return Reply::Answered(answer);
        }
        let answer = match letter {
            'v' => {
                screen::say(&question.full_text(screen::columns()));
                continue;
            }
            'e' => lines
                .next("  why not? > ")
                .await
                .map(|why| question.text_answer(&why)),
            't' => lines
                .next("  what happened? > ")
                .await
                .map(|text| question.text_answer(&text)),
            's' => grant(question, GrantScope::Session, lines).await,
            _ => grant(question, GrantScope::Folder, lines).await,
        };
        match answer {
            Some(Some(answer)) => return Reply::Answered(answer),
            Some(None) => {}
            None => return Reply::Wait,
        }
    }
}

/// Asks for the pattern of a grant; an empty line takes the offered one. Returns `None` at the end of the input.
async fn grant(
    question: &Question,
    scope: GrantScope,
    lines: &mut LineReader,
) -> Option<Option<lango_core::ApprovalAnswer>> {
    let offered = question.pattern()?.to_string();
    let shown = screen::one_line(&screen::escape_invisible(&offered), 200);
    let edited = lines
        .next(&format!("  for calls like (Enter for `{shown}`) > "))
        .await?;
    let pattern = if edited.trim().is_empty() {
        &offered
    } else {
        &edited
    };
    match question.grant(scope, pattern) {
        Ok(answer) => Some(Some(answer)),
        Err(problem) => {
            screen::say(&format!("  not granted: {problem}"));
            Some(None)
        }
    }
}

/// Returns the prompt with all keys.
fn prompt(question: &Question) -> String {
    let choices = question.choices();
    let keys = choices
        .iter()
        .map(|choice| format!("  {}  {}", choice.key, choice.meaning));
    let heading = format!("└ {}", question.headline());
    let lines: Vec<String> = std::iter::once(heading).chain(keys).collect();
    let later = if question.can_wait {
        " · ctrl-d answers later"
    } else {
        ""
    };
    let lines = wrap_lines(&lines.join("\n"), screen::columns());
    format!("{lines}\n  type a letter, then Enter{later} > ")
}
