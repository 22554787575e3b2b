//! The arguments of one action on a page.

use crate::BrowserError;
use schemars::JsonSchema;
use serde::Deserialize;

/// An action.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Step {
    /// What to do.
    pub action: Action,
    /// The element, such as `e12`; not needed for scroll, highlight and wait (then the page) and press (then what has the focus).
    pub handle: Option<String>,
    /// type: the text. press: the keys, such as `Enter` or `Control+A`. select: the option's label or value. highlight: the
    /// text to mark, as it is on the page. wait: the text to wait for.
    pub text: Option<String>,
    /// select: several options; upload: files of the workspace.
    #[serde(default)]
    pub values: Vec<String>,
    /// drag: the handle of the element to drop on; scroll: the handle of the element to scroll to.
    pub to: Option<String>,
    /// click: where to click, from the element's left edge in pixels; drag without `to`: how far to the right.
    pub x: Option<f64>,
    /// click: where to click, from the element's top edge in pixels; drag without `to`: how far down.
    pub y: Option<f64>,
    /// drag: where to take hold of the element, from its left edge in pixels; its middle if not given.
    pub from_x: Option<f64>,
    /// drag: where to take hold of the element, from its top edge in pixels; its middle if not given.
    pub from_y: Option<f64>,
    /// scroll: how many screens down; negative is up; 1 if not given.
    pub screens: Option<f64>,
    /// wait: how long at most, 30 at most; 5 if not given.
    pub seconds: Option<f64>,
    /// type: add to what is in the field instead of replacing it.
    #[serde(default)]
    pub append: bool,
    /// type: press Enter afterwards.
    #[serde(default)]
    pub submit: bool,
    /// click: `right`, `middle` or `double` instead of a left click.
    pub button: Option<Button>,
    /// click: keys to hold down: Control, Shift, Alt, Meta.
    #[serde(default)]
    pub modifiers: Vec<String>,
    /// Accept (true) or decline the dialogs that this causes; they are declined if not given.
    pub accept_dialog: Option<bool>,
    /// What to enter into a dialog that asks for text.
    pub dialog_text: Option<String>,
}

/// What to do.
#[allow(missing_docs, reason = "the names say it")]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub enum Action {
    Click,
    Type,
    Press,
    Select,
    Check,
    Uncheck,
    Hover,
    Drag,
    Scroll,
    Upload,
    Focus,
    Highlight,
    Wait,
}

/// The kind of click.
#[allow(missing_docs, reason = "the names say it")]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub enum Button {
    Left,
    Right,
    Middle,
    Double,
}

impl Action {
    /// Returns whether pages commonly react to the action with a delay.
    pub(crate) fn is_answered_late(self) -> bool {
        matches!(self, Self::Type | Self::Press | Self::Hover)
    }

    /// Returns the name of the action in arguments.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Click => "click",
            Self::Type => "type",
            Self::Press => "press",
            Self::Select => "select",
            Self::Check => "check",
            Self::Uncheck => "uncheck",
            Self::Hover => "hover",
            Self::Drag => "drag",
            Self::Scroll => "scroll",
            Self::Upload => "upload",
            Self::Focus => "focus",
            Self::Highlight => "highlight",
            Self::Wait => "wait",
        }
    }
}

impl Step {
    /// Returns whether the step only looks and sends nothing to the site. Answers to dialogs send something.
    pub fn is_looking(&self) -> bool {
        let looks = matches!(self.action, Action::Hover | Action::Scroll | Action::Wait);
        looks && self.accept_dialog.is_none() && self.dialog_text.is_none()
    }

    /// Returns the handle; fails if the action needs one and has none.
    pub(super) fn handle(&self) -> Result<&str, BrowserError> {
        let handle = self.handle.as_deref();
        handle.ok_or_else(|| self.lacks("handle"))
    }

    /// Returns the text; fails if the action needs one and has none.
    pub(super) fn text(&self) -> Result<&str, BrowserError> {
        let text = self.text.as_deref();
        text.ok_or_else(|| self.lacks("text"))
    }

    pub(super) fn lacks(&self, argument: &str) -> BrowserError {
        BrowserError::Argument {
            message: format!("`{}` needs `{argument}`", self.action.name()),
        }
    }
}
