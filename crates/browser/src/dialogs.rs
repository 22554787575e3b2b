//! Dialogs of pages (`alert`, `confirm`, `prompt`, `beforeunload`). lango answers each one immediately, and the next
//! result includes a notice about it. It declines a `confirm` or `prompt` unless the running call specifies an answer.

use crate::notice::{Notices, quote_short};
use serde::Deserialize;

/// A call's answer to the dialogs that it causes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DialogAnswer {
    /// Whether to accept `confirm` and `prompt` dialogs.
    pub accept: bool,
    /// The text for a `prompt`; the dialog's default text if `None`.
    pub text: Option<String>,
}

/// Dialogs of one tab since the last call.
#[derive(Debug, Default)]
pub(crate) struct Dialogs {
    pub(crate) answer: Option<DialogAnswer>,
    count: usize,
}

/// The event for a dialog that opened.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct DialogOpening {
    message: String,
    r#type: String,
    #[serde(default)]
    default_prompt: String,
}

/// What to do about a dialog.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum DialogReaction {
    Answer {
        accept: bool,
        text: String,
    },
    /// The page opens dialogs in a loop; only killing its process stops it.
    EndPage,
}

impl Dialogs {
    /// Number of dialogs between two calls that counts as a loop.
    const LOOP: usize = 30;

    /// Starts a call: resets the answer and the count of dialogs.
    pub(crate) fn start_call(&mut self) {
        *self = Self::default();
    }

    pub(crate) fn open(&mut self, dialog: &DialogOpening, notices: &mut Notices) -> DialogReaction {
        self.count += 1;
        if self.count >= Self::LOOP {
            notices.add("the page opened dialogs in a loop and was stopped");
            return DialogReaction::EndPage;
        }
        let message = quote_short(&dialog.message);
        let mut text = String::new();
        let accept = match dialog.r#type.as_str() {
            "alert" => {
                notices.add(format!("the page showed an alert: {message}"));
                true
            }
            "beforeunload" => {
                notices.add("the page asked for confirmation to leave it; lango confirmed");
                true
            }
            kind => {
                let answer = self.answer.as_ref();
                let accept = answer.is_some_and(|answer| answer.accept);
                if accept && kind == "prompt" {
                    let given = answer.and_then(|answer| answer.text.clone());
                    text = given.unwrap_or_else(|| dialog.default_prompt.clone());
                }
                let kind = if kind == "prompt" {
                    "prompt"
                } else {
                    "confirm"
                };
                let done = if accept { "accepted" } else { "declined" };
                notices.add(format!(
                    "the page asked (`{kind}`): {message}; this was {done}"
                ));
                accept
            }
        };
        DialogReaction::Answer { accept, text }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dialog(kind: &str) -> DialogOpening {
        DialogOpening {
            message: "Really?".to_owned(),
            r#type: kind.to_owned(),
            default_prompt: "suggestion".to_owned(),
        }
    }

    #[test]
    fn dialogs_are_declined_unless_the_call_specifies_an_answer() {
        let (mut dialogs, mut notices) = (Dialogs::default(), Notices::default());
        let declined = DialogReaction::Answer {
            accept: false,
            text: String::new(),
        };
        assert_eq!(dialogs.open(&dialog("confirm"), &mut notices), declined);
        dialogs.answer = Some(DialogAnswer {
            accept: true,
            text: None,
        });
        let accepted = DialogReaction::Answer {
            accept: true,
            text: "suggestion".to_owned(),
        };
        assert_eq!(dialogs.open(&dialog("prompt"), &mut notices), accepted);
        let texts = notices.take();
        assert_eq!(
            texts[0],
            r#"the page asked (`confirm`): "Really?"; this was declined"#
        );
        assert_eq!(
            texts[1],
            r#"the page asked (`prompt`): "Really?"; this was accepted"#
        );
    }

    #[test]
    fn a_loop_of_alerts_ends_the_page() {
        let (mut dialogs, mut notices) = (Dialogs::default(), Notices::default());
        let alert = dialog("alert");
        let reactions = (0..30).map(|_| dialogs.open(&alert, &mut notices));
        let reactions: Vec<_> = reactions.collect();
        assert!(
            reactions[..29]
                .iter()
                .all(|reaction| *reaction != DialogReaction::EndPage)
        );
        assert_eq!(reactions[29], DialogReaction::EndPage);
        assert_eq!(notices.take().len(), 2);
    }
}
