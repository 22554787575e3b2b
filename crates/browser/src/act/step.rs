//! The arguments of one action on a page. Their doc comments are part of the tool's schema, which the model reads.

use crate::BrowserError;
use schemars::JsonSchema;
use serde::Deserialize;

/// An action.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Step")]
pub struct ActionStep {
    /// What to do.
    pub action: ActionKind,
    /// The element, such as `e12`. Optional for scroll, highlight and wait (default: the whole page) and for press
    /// (default: the focused element).
    pub handle: Option<String>,
    /// type: the text. press: the keys, such as `Enter` or `Control+A`. select: the option's label or value. highlight:
    /// the text to select, exactly as on the page. wait: the text to wait for.
    pub text: Option<String>,
    /// select: several options; upload: paths of workspace files.
    #[serde(default)]
    pub values: Vec<String>,
    /// drag: the handle of the element to drop on; scroll: the handle of the element to scroll to.
    pub to: Option<String>,
    /// click: where to click, in pixels from the element's left edge; drag without `to`: how many pixels to the right.
    pub x: Option<f64>,
    /// click: where to click, in pixels from the element's top edge; drag without `to`: how many pixels down.
    pub y: Option<f64>,
    /// drag: where to grab the element, in pixels from its left edge; default: its middle.
    pub from_x: Option<f64>,
    /// drag: where to grab the element, in pixels from its top edge; default: its middle.
    pub from_y: Option<f64>,
    /// scroll: the number of screens to scroll down, negative for up; default: 1.
    pub screens: Option<f64>,
    /// wait: the maximum number of seconds, up to 30; default: 5.
    pub seconds: Option<f64>,
    /// type: append to the field's content instead of replacing it.
    #[serde(default)]
    pub append: bool,
    /// type: press Enter afterwards.
    #[serde(default)]
    pub submit: bool,
    /// click: `right`, `middle` or `double` instead of a left click.
    pub button: Option<ClickKind>,
    /// click: keys to hold down: Control, Shift, Alt, Meta.
    #[serde(default)]
    pub modifiers: Vec<String>,
    /// Accept (true) or decline (false) dialogs that this step causes; default: decline.
    pub accept_dialog: Option<bool>,
    /// The text to enter into a dialog that asks for text.
    pub dialog_text: Option<String>,
}

/// What to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub enum ActionKind {
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
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub enum ClickKind {
    Left,
    Right,
    Middle,
    Double,
}

impl ActionKind {
    /// Returns whether pages commonly react to the action with a delay.
    pub(crate) fn has_delayed_reaction(self) -> bool {
        matches!(self, Self::Type | Self::Press | Self::Hover)
    }

    /// Returns the action's name in the tool's arguments.
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

impl ActionStep {
    /// Returns whether the step is passive: it sends nothing to the site. A step that answers dialogs is not passive.
    pub fn is_passive(&self) -> bool {
        let is_passive = matches!(
            self.action,
            ActionKind::Hover | ActionKind::Scroll | ActionKind::Wait
        );
        is_passive && self.accept_dialog.is_none() && self.dialog_text.is_none()
    }

    /// Returns the handle; fails if it is missing.
    pub(super) fn handle(&self) -> Result<&str, BrowserError> {
        let handle = self.handle.as_deref();
        handle.ok_or_else(|| self.missing_argument("handle"))
    }

    /// Returns the text; fails if it is missing.
    pub(super) fn text(&self) -> Result<&str, BrowserError> {
        let text = self.text.as_deref();
        text.ok_or_else(|| self.missing_argument("text"))
    }

    pub(super) fn missing_argument(&self, argument: &str) -> BrowserError {
        BrowserError::Argument {
            message: format!("`{}` needs `{argument}`", self.action.name()),
        }
    }
}
