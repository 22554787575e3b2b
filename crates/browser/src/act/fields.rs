//! Form fields: typing, selecting options, checking boxes, uploading files.
//!
//! Text is typed by a script inside the element's own document. Key events from the browser would go to the element
//! that is focused when they arrive, and a page can move the focus to a frame of another site between two keys.

use super::keys::KeyPress;
use super::mouse::{Click, MouseButton};
use super::step::ActionStep;
use crate::handles::Element;
use crate::observe::{cut, one_line, quote};
use crate::{BrowserError, Page};
use serde::Deserialize;
use serde_json::{Value, json};
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Maximum length of a text that is typed key by key; longer texts are inserted in one step.
const MAX_KEYSTROKES: usize = 200;
/// Timeout for typing a text.
const TYPING_TIMEOUT: Duration = Duration::from_secs(30);
/// Timeout for a list to open, and for a page to open its file chooser.
const OPEN_TIMEOUT: Duration = Duration::from_secs(2);
pub(super) const LEFT_CLICK: Click = Click {
    button: MouseButton::Left,
    count: 1,
    modifiers: 0,
};

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Field {
    kind: String,
    value: String,
    #[serde(default)]
    is_password: bool,
    #[serde(default)]
    is_read_only: bool,
}

/// How far the script got, and the problem that stopped it.
#[derive(Deserialize)]
struct TypingProgress {
    typed: usize,
    problem: Option<String>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Choice {
    chosen: Option<Vec<String>>,
    missing: Option<String>,
    closed: Option<String>,
    single: bool,
    names: Vec<String>,
    count: usize,
}

impl Page {
    /// Returns whether an element is a password field.
    pub(crate) async fn is_password_field(&self, element: &Element) -> Result<bool, BrowserError> {
        let field: Field = self.call_on(element, "field", json!([])).await?;
        Ok(field.kind == "text" && field.is_password)
    }

    /// Types a text into a field. Returns a note if the field then contains something else.
    pub(super) async fn type_into(
        &self,
        element: &Element,
        step: &ActionStep,
        host: Option<&str>,
    ) -> Result<String, BrowserError> {
        let text = step.text()?;
        let field: Field = self.call_on(element, "field", json!([])).await?;
        match field.kind.as_str() {
            "set" => return self.set_field(element, text).await,
            "text" | "rich" => {}
            "select" => return Err(self.not_actionable(element, "is a list; use `select`")),
            "file" => return Err(self.not_actionable(element, "is a file field; use `upload`")),
            "other" => {
                // Some widgets accept keys without being form fields.
                let point = self.point_at(element, None).await?;
                self.click_at(point, LEFT_CLICK).await?;
                self.type_text(element, text, false).await?;
                return Ok(String::new());
            }
            _ => return Err(self.not_actionable(element, "is not a text field")),
        }
        if field.is_read_only {
            return Err(self.not_actionable(element, "is read-only"));
        }
        let point = self.point_at(element, None).await?;
        self.click_at(point, LEFT_CLICK).await?;
        let has_focus: bool = self
            .call_on(element, "focus", json!([!step.append]))
            .await?;
        if !has_focus {
            return Err(self.not_actionable(element, "cannot be focused"));
        }
        if !text.is_empty() || !step.append {
            self.type_text(element, text, true).await?;
        }
        let after: Result<Field, _> = self.call_on(element, "field", json!([])).await;
        let note = match after {
            Ok(after) if !field.is_password => {
                note_difference(&field.value, text, step.append, &after.value)
            }
            // A field that disappeared has accepted its text.
            Ok(_) | Err(_) => String::new(),
        };
        if step.submit {
            self.press(&KeyPress::parse("Enter")?, host).await?;
        }
        Ok(note)
    }

    async fn set_field(&self, element: &Element, text: &str) -> Result<String, BrowserError> {
        self.locate(element, None).await?;
        let value: String = self.call_on(element, "setValue", json!([text])).await?;
        if value != text {
            let reason = format!(
                "does not accept {}; its value is now {}; write dates as 2026-01-31, times as 13:45, colours as #ff0000",
                quote(&cut(&one_line(text), 60)),
                quote(&cut(&one_line(&value), 60))
            );
            return Err(self.not_actionable(element, &reason));
        }
        Ok(String::new())
    }

    /// Types a text into the focused element of the element's document. The page may move the focus to another field
    /// of that document. Fails if the focus moves to another frame, or if the element is a field and the focus is lost.
    async fn type_text(
        &self,
        element: &Element,
        text: &str,
        is_field: bool,
    ) -> Result<(), BrowserError> {
        let count = text.chars().count();
        if count == 0 || count > MAX_KEYSTROKES || text.contains(['\n', '\r', '\t']) {
            let typing: TypingProgress = self
                .call_on(element, "typeText", json!([text, is_field]))
                .await?;
            return self.expect_typed(element, &typing, count);
        }
        let keys: Vec<Value> = text
            .chars()
            .map(|c| KeyPress::of_character(c).to_json())
            .collect();
        let end = Instant::now() + TYPING_TIMEOUT;
        let mut typed = 0;
        while typed < count {
            let typing: TypingProgress = self
                .call_on(element, "typeKeys", json!([keys, typed, is_field]))
                .await?;
            self.expect_typed(element, &typing, count)?;
            typed = typing.typed;
            if typed < count && Instant::now() > end {
                let reason = format!(
                    "accepted only {typed} of {count} characters within 30 s; the page is too slow"
                );
                return Err(self.not_actionable(element, &reason));
            }
        }
        Ok(())
    }

    fn expect_typed(
        &self,
        element: &Element,
        typing: &TypingProgress,
        count: usize,
    ) -> Result<(), BrowserError> {
        let Some(problem) = typing.problem.as_deref() else {
            return Ok(());
        };
        let place = if problem == "frame" {
            " to another frame"
        } else {
            ""
        };
        let reason = format!(
            "lost the focus{place} after {} of {count} characters; the rest was not typed; observe the page",
            typing.typed
        );
        Err(self.not_actionable(element, &reason))
    }

    /// Selects options by label or value, and returns a note about the selection.
    pub(super) async fn select(
        &self,
        element: &Element,
        step: &ActionStep,
    ) -> Result<String, BrowserError> {
        let mut wanted: Vec<&str> = step.values.iter().map(String::as_str).collect();
        wanted.extend(step.text.as_deref());
        if wanted.is_empty() {
            return Err(step.missing_argument("text"));
        }
        let field: Field = self.call_on(element, "field", json!([])).await?;
        if field.kind == "select" {
            return self.choose(element, &wanted).await;
        }
        for text in &wanted {
            let option = self.open_option(element, text).await?;
            let point = self.point_at(&option, None).await?;
            self.click_at(point, LEFT_CLICK).await?;
        }
        Ok(String::new())
    }

    async fn choose(&self, element: &Element, wanted: &[&str]) -> Result<String, BrowserError> {
        self.locate(element, None).await?;
        let choice: Choice = self.call_on(element, "choose", json!([wanted])).await?;
        if let Some(chosen) = choice.chosen {
            let chosen: Vec<String> = chosen.iter().map(|name| quote(&one_line(name))).collect();
            return Ok(format!("chose {}", chosen.join(", ")));
        }
        let names: Vec<String> = choice
            .names
            .iter()
            .map(|name| quote(&one_line(name)))
            .collect();
        let more = choice.count.saturating_sub(names.len());
        let more = if more > 0 {
            format!(" and {more} more")
        } else {
            String::new()
        };
        let reason = match (choice.missing, choice.closed) {
            (Some(missing), _) => format!(
                "has no option {}; it has {}{more}",
                quote(&cut(&one_line(&missing), 60)),
                names.join(", ")
            ),
            (None, Some(closed)) => {
                format!("has the option {} disabled", quote(&one_line(&closed)))
            }
            (None, None) if choice.single => "accepts only one option".to_owned(),
            (None, None) => "has no option that can be selected".to_owned(),
        };
        Err(self.not_actionable(element, &reason))
    }

    /// Finds the option of a custom list; opens the list if the option is not visible.
    async fn open_option(&self, element: &Element, text: &str) -> Result<Element, BrowserError> {
        let find = || self.find_from(element, "findOption", json!([text]));
        let mut found = find().await?;
        if found.is_none() {
            let point = self.point_at(element, None).await?;
            self.click_at(point, LEFT_CLICK).await?;
            let end = Instant::now() + OPEN_TIMEOUT;
            while found.is_none() && Instant::now() < end {
                tokio::time::sleep(Duration::from_millis(50)).await;
                found = find().await?;
            }
        }
        let mut option = found.ok_or_else(|| {
            let text = quote(&cut(&one_line(text), 60));
            self.not_actionable(
                element,
                &format!("shows no option {text}; observe the list and click the option"),
            )
        })?;
        option.label = format!("option {}", quote(&cut(&one_line(text), 60))).into();
        Ok(option)
    }

    /// Checks or unchecks a box; returns a note if it already was in that state.
    pub(super) async fn set_checked(
        &self,
        element: &Element,
        wanted: bool,
    ) -> Result<String, BrowserError> {
        let checked = || self.call_on::<Option<bool>>(element, "checked", json!([]));
        match checked().await? {
            None => return Err(self.not_actionable(element, "is not a checkbox; use `click`")),
            Some(is_checked) if is_checked == wanted => {
                return Ok(format!("it was already {}", state_name(wanted)));
            }
            Some(_) => {}
        }
        let point = self.point_at(element, None).await?;
        self.click_at(point, LEFT_CLICK).await?;
        match checked().await {
            Ok(Some(is_checked)) if is_checked != wanted => Ok(format!(
                "it is still not {}; the page may require another step",
                state_name(wanted)
            )),
            // The page may have replaced the box.
            Ok(_) | Err(_) => Ok(String::new()),
        }
    }

    /// Sets the files of a file field, or of the file chooser that a click on the element opens.
    pub(super) async fn set_files(
        &self,
        element: &Element,
        files: &[PathBuf],
    ) -> Result<(), BrowserError> {
        let session = self.session_of(element);
        if self.call_on(element, "isFileInput", json!([])).await? {
            let params = json!({ "files": files, "backendNodeId": element.node });
            let _: Value = session.call("DOM.setFileInputFiles", params).await?;
            return Ok(());
        }
        self.take_file_chooser();
        let point = self.point_at(element, None).await?;
        self.click_at(point, LEFT_CLICK).await?;
        let end = Instant::now() + OPEN_TIMEOUT;
        let node = loop {
            match self.take_file_chooser() {
                // File choosers of other frames get nothing: the user approved only this frame's site.
                Some((frame, node)) if frame == element.frame => break node,
                Some(_) => {}
                None if Instant::now() > end => {
                    return Err(self.not_actionable(
                        element,
                        "does not open a file chooser when it is clicked",
                    ));
                }
                None => tokio::time::sleep(Duration::from_millis(20)).await,
            }
        };
        let params = json!({ "files": files, "backendNodeId": node });
        let _: Value = session.call("DOM.setFileInputFiles", params).await?;
        Ok(())
    }

    pub(super) fn not_actionable(&self, element: &Element, reason: &str) -> BrowserError {
        BrowserError::NotActionable {
            element: format!("{} {}", self.handle_of(element), element.label),
            reason: reason.to_owned(),
        }
    }
}

fn state_name(is_checked: bool) -> &'static str {
    if is_checked { "checked" } else { "unchecked" }
}

/// Describes how the page changed a typed text.
fn note_difference(before: &str, typed: &str, is_added: bool, after: &str) -> String {
    let expected = if is_added {
        format!("{before}{typed}")
    } else {
        typed.to_owned()
    };
    let plain = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    // Only the first 2000 characters of a field are known, so longer contents are not compared.
    if plain(after) == plain(&expected) || after.chars().count() >= 2000 {
        return String::new();
    }
    format!(
        "the field's value is now {}",
        quote(&cut(&one_line(after), 80))
    )
}
