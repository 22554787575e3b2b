//! Asks the model, or the rules, to summarize, and tidies the reply.

use super::{Author, Memory};
use futures_util::StreamExt as _;
use lango_core::{Message, Model, ModelEvent, ModelRequest, StoreError};
use lango_store::MemoryOwner;

/// The observer's reply if nothing is worth remembering.
const NOTHING: &str = "NOTHING";

/// The result of summarizing turns or memories.
pub(super) enum Summary {
    Text {
        text: String,
        author: Author,
    },
    /// Nothing was worth remembering.
    Nothing,
    /// The model failed and may be called again.
    Failed(String),
}

impl Memory {
    /// Calls the model; uses the rules if there is none or if it failed too often. Holds no lock during the call.
    pub(super) async fn summarize(
        &self,
        owner: &MemoryOwner,
        instruction: String,
        data: String,
        max_bytes: usize,
        rules: impl FnOnce() -> Option<String>,
    ) -> Result<Summary, StoreError> {
        let Some(model) = &self.inner.model else {
            return Ok(by_rules(rules(), max_bytes));
        };
        let failure = match ask(model.as_ref(), instruction, data).await {
            Ok(reply) if is_nothing(&reply) => return Ok(Summary::Nothing),
            Ok(reply) => match tidy(&reply, max_bytes) {
                text if text.is_empty() => format!("model `{}`: its reply is empty", model.name()),
                text => {
                    return Ok(Summary::Text {
                        text,
                        author: Author::Model,
                    });
                }
            },
            Err(detail) => detail,
        };
        if self.rows().count_failure(owner).await? < self.inner.settings.attempts {
            return Ok(Summary::Failed(failure));
        }
        Ok(by_rules(rules(), max_bytes))
    }

    /// Returns the source name of what this author wrote.
    pub(super) fn author_name(&self, author: Author) -> &str {
        match (&self.inner.model, author) {
            (Some(model), Author::Model) => model.name(),
            (_, Author::Rules) | (None, _) => super::entry::RULES,
        }
    }
}

fn by_rules(text: Option<String>, max_bytes: usize) -> Summary {
    match text.map(|text| tidy(&text, max_bytes)) {
        Some(text) if !text.is_empty() => Summary::Text {
            text,
            author: Author::Rules,
        },
        _ => Summary::Nothing,
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
            Ok(ModelEvent::Text(_) | ModelEvent::Progress { .. } | ModelEvent::Retrying { .. }) => {
            }
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

/// Returns as many complete lines as fit, without empty ones. Truncates the first line if it is too long.
pub(super) fn tidy(text: &str, max_bytes: usize) -> String {
    let mut tidied = String::new();
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
        if tidied.is_empty() {
            tidied.push_str(&line[..line.floor_char_boundary(max_bytes)]);
        } else if tidied.len() + 1 + line.len() <= max_bytes {
            tidied.push('\n');
            tidied.push_str(line);
        } else {
            break;
        }
    }
    tidied
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tidying_keeps_complete_lines_within_the_limit() {
        assert_eq!(tidy("\n - one \n\n - two\n- three", 12), "- one\n- two");
        assert_eq!(tidy("äääää", 5), "ää");
        assert_eq!(tidy(" \n ", 5), "");
    }

    #[test]
    fn only_the_single_word_nothing_means_nothing() {
        assert!(is_nothing(" Nothing.\n") && is_nothing("NOTHING"));
        assert!(!is_nothing("- nothing is open") && !is_nothing(""));
    }
}
