//! Asking the model for words, and what is taken of its reply.

use super::{By, Memory};
use futures_util::StreamExt as _;
use lango_core::{Message, Model, ModelEvent, ModelRequest, StoreError};
use lango_store::MemoryOwner;

/// The reply of an observer that found nothing.
const NOTHING: &str = "NOTHING";

/// What was made in place of what was given.
pub(super) enum Words {
    /// These.
    Made { text: String, by: By },
    /// Nothing was worth a word.
    Nothing,
    /// The model failed, and may be asked again.
    Failed(String),
}

impl Memory {
    /// Asks the model, or the rules if there is none or it failed too often. Nothing is held meanwhile.
    pub(super) async fn words(
        &self,
        owner: &MemoryOwner,
        instruction: String,
        data: String,
        most_bytes: usize,
        rules: impl FnOnce() -> Option<String>,
    ) -> Result<Words, StoreError> {
        let Some(model) = &self.parts.model else {
            return Ok(by_rules(rules(), most_bytes));
        };
        let failure = match ask(model.as_ref(), instruction, data).await {
            Ok(reply) if is_nothing(&reply) => return Ok(Words::Nothing),
            Ok(reply) => match tidy(&reply, most_bytes) {
                text if text.is_empty() => format!("model `{}`: it replied nothing", model.name()),
                text => {
                    return Ok(Words::Made {
                        text,
                        by: By::Model,
                    });
                }
            },
            Err(detail) => detail,
        };
        if self.rows().count_failure(owner).await? < self.parts.settings.attempts {
            return Ok(Words::Failed(failure));
        }
        Ok(by_rules(rules(), most_bytes))
    }

    /// What `source` a result has.
    pub(super) fn maker(&self, by: By) -> &str {
        match (&self.parts.model, by) {
            (Some(model), By::Model) => model.name(),
            (_, By::Rules) | (None, _) => super::entry::RULES,
        }
    }
}

fn by_rules(text: Option<String>, most_bytes: usize) -> Words {
    match text.map(|text| tidy(&text, most_bytes)) {
        Some(text) if !text.is_empty() => Words::Made {
            text,
            by: By::Rules,
        },
        _ => Words::Nothing,
    }
}

async fn ask(model: &dyn Model, instruction: String, data: String) -> Result<String, String> {
    let request = ModelRequest {
        instruction: instruction.into(),
        messages: vec![Message::user(data)],
        ..ModelRequest::default()
    };
    let mut stream = model.call(request);
    while let Some(item) = stream.next().await {
        match item {
            Ok(ModelEvent::Text(_) | ModelEvent::Retrying { .. }) => {}
            Ok(ModelEvent::Reply(reply)) => return Ok(reply.text),
            Err(error) => return Err(error.to_string()),
        }
    }
    Err(format!("model `{}`: its reply was cut off", model.name()))
}

fn is_nothing(reply: &str) -> bool {
    let word = reply.trim_matches(|letter: char| !letter.is_alphanumeric());
    word.eq_ignore_ascii_case(NOTHING)
}

/// The lines that have something on them, as many whole ones as there is room for; a first one that is too long is cut.
pub(super) fn tidy(text: &str, most_bytes: usize) -> String {
    let mut kept = String::new();
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
        if kept.is_empty() {
            kept.push_str(&line[..line.floor_char_boundary(most_bytes)]);
        } else if kept.len() + 1 + line.len() <= most_bytes {
            kept.push('\n');
            kept.push_str(line);
        } else {
            break;
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_of_a_reply_are_whole_lines_within_the_limit() {
        assert_eq!(tidy("\n - one \n\n - two\n- three", 12), "- one\n- two");
        assert_eq!(tidy("äääää", 5), "ää");
        assert_eq!(tidy(" \n ", 5), "");
    }

    #[test]
    fn nothing_is_told_from_words_about_it() {
        assert!(is_nothing(" Nothing.\n") && is_nothing("NOTHING"));
        assert!(!is_nothing("- nothing is open") && !is_nothing(""));
    }
}
