//! Actions on a page with mouse and keyboard events: finds the element ([`target`]), acts on it ([`mouse`], [`keys`],
//! [`fields`]), and describes the action. Observations report what changed on the page.

mod fields;
mod keys;
mod mouse;
mod site;
mod step;
mod target;
mod text;

pub(crate) use site::{origin_of, site_of};
pub use step::{ActionKind, ActionStep, ClickKind};

use crate::dialogs::DialogAnswer;
use crate::handles::Element;
use crate::observe::{cut, one_line, quote};
use crate::{BrowserError, Page};
use keys::{KeyPress, modifier_bits};
use mouse::{Click, MouseButton};
use serde::Deserialize;
use serde_json::json;
use std::path::PathBuf;
use std::sync::Arc;
use target::Point;

#[derive(Deserialize)]
struct ScrollResult {
    moved: f64,
    left: f64,
}

impl Page {
    /// Carries out one action and returns a line that describes it. `files` are the staged files of an upload; `host`
    /// is the only host that may receive keys, or `None` for any.
    pub async fn act(
        &self,
        step: &ActionStep,
        files: &[PathBuf],
        host: Option<&str>,
    ) -> Result<String, BrowserError> {
        if let Some(accept) = step.accept_dialog {
            self.answer_dialogs(DialogAnswer {
                accept,
                text: step.dialog_text.clone(),
            });
        }
        let element = match &step.handle {
            Some(handle) => Some(self.element(handle)?),
            None => None,
        };
        let note = self.carry_out(step, element.as_ref(), files, host).await?;
        let mut text = self.summary(step, element.as_ref());
        if !note.is_empty() {
            text.push_str(&format!(" ({note})"));
        }
        Ok(text)
    }

    /// Describes an action in a few words, such as `click button "Buy now"`.
    pub(crate) fn summary(&self, step: &ActionStep, element: Option<&Element>) -> String {
        let mut text = step.action.name().to_owned();
        match step.action {
            ActionKind::Press => text.push_str(&format!(
                " {}",
                cut(&one_line(step.text.as_deref().unwrap_or_default()), 30)
            )),
            ActionKind::Type => {
                let typed = cut(&one_line(step.text.as_deref().unwrap_or_default()), 60);
                text.push_str(&format!(" {} into", quote(&typed)));
            }
            ActionKind::Select => {
                let wanted: Vec<&str> = step
                    .text
                    .iter()
                    .chain(&step.values)
                    .map(String::as_str)
                    .collect();
                text.push_str(&format!(
                    " {} in",
                    quote(&cut(&one_line(&wanted.join(", ")), 60))
                ));
            }
            ActionKind::Upload => {
                // Not shortened, because the user must see which files leave the workspace.
                let files: Vec<String> = step
                    .values
                    .iter()
                    .map(|path| quote(&one_line(path)))
                    .collect();
                text.push_str(&format!(" {} to", files.join(", ")));
            }
            ActionKind::Scroll if element.is_none() => text.push_str(" the page"),
            ActionKind::Highlight | ActionKind::Wait if step.text.is_some() => {
                let marked = cut(&one_line(step.text.as_deref().unwrap_or_default()), 60);
                text.push_str(&format!(" {}", quote(&marked)));
                if element.is_some() {
                    text.push_str(" in");
                }
            }
            _ => {}
        }
        if let Some(element) = element {
            text.push_str(&format!(" {} {}", self.handle_of(element), element.label));
        }
        if let (ActionKind::Drag, Some(to)) = (step.action, &step.to) {
            text.push_str(&format!(" to {}", cut(&one_line(to), 20)));
        }
        text
    }

    async fn carry_out(
        &self,
        step: &ActionStep,
        element: Option<&Element>,
        files: &[PathBuf],
        host: Option<&str>,
    ) -> Result<String, BrowserError> {
        let required =
            || element.ok_or_else(|| step.handle().err().unwrap_or(BrowserError::NoPage));
        match step.action {
            ActionKind::Click => self.click(required()?, step).await?,
            ActionKind::Type => return self.type_into(required()?, step, host).await,
            ActionKind::Press => {
                let press = KeyPress::parse(step.text()?)?;
                if let Some(element) = element {
                    let _: bool = self.call_on(element, "focus", json!([])).await?;
                }
                self.press(&press, host).await?;
            }
            ActionKind::Select => return self.select(required()?, step).await,
            ActionKind::Check => return self.set_checked(required()?, true).await,
            ActionKind::Uncheck => return self.set_checked(required()?, false).await,
            ActionKind::Hover => {
                let point = self.locate(required()?, offset(step)).await?;
                self.move_mouse(point).await?;
            }
            ActionKind::Drag => self.drag_element(required()?, step).await?,
            ActionKind::Scroll => return self.scroll(element, step).await,
            ActionKind::Wait => return self.wait(element, step).await,
            ActionKind::Highlight => return self.highlight(element, step.text()?).await,
            ActionKind::Upload => {
                if files.is_empty() {
                    return Err(step.missing_argument("values"));
                }
                self.set_files(required()?, files).await?;
            }
            ActionKind::Focus => {
                let element = required()?;
                let has_focus: bool = self.call_on(element, "focus", json!([])).await?;
                if !has_focus {
                    return Err(self.not_actionable(element, "cannot be focused"));
                }
            }
        }
        Ok(String::new())
    }

    async fn click(&self, element: &Element, step: &ActionStep) -> Result<(), BrowserError> {
        let (button, count) = match step.button {
            None | Some(ClickKind::Left) => (MouseButton::Left, 1),
            Some(ClickKind::Double) => (MouseButton::Left, 2),
            Some(ClickKind::Right) => (MouseButton::Right, 1),
            Some(ClickKind::Middle) => (MouseButton::Middle, 1),
        };
        let click = Click {
            button,
            count,
            modifiers: modifier_bits(&step.modifiers)?,
        };
        let point = self.point_at(element, offset(step)).await?;
        self.click_at(point, click).await
    }

    async fn drag_element(&self, element: &Element, step: &ActionStep) -> Result<(), BrowserError> {
        let grip = point(step.from_x, step.from_y);
        let (from, to) = match &step.to {
            Some(handle) => {
                let target = self.element(handle)?;
                // The target is located first because locating it may scroll.
                self.locate(&target, None).await?;
                let from = self.locate(element, grip).await?;
                let to = match offset(step) {
                    Some(offset) => self.locate(&target, Some(offset)).await?,
                    None => self.point_past_middle(&target, from).await?,
                };
                (from, to)
            }
            None => {
                let (Some(right), Some(down)) = (
                    step.x.or(step.y.map(|_| 0.0)),
                    step.y.or(step.x.map(|_| 0.0)),
                ) else {
                    return Err(step.missing_argument("to"));
                };
                let from = self.locate(element, grip).await?;
                let to = Point {
                    x: from.x + right,
                    y: from.y + down,
                };
                (from, to)
            }
        };
        self.drag(from, to).await
    }

    /// Returns a point slightly beyond the middle of an element, because sortable lists insert before or after an item
    /// depending on which half of it the pointer is over.
    async fn point_past_middle(
        &self,
        target: &Element,
        from: Point,
    ) -> Result<Point, BrowserError> {
        let middle = self.locate(target, None).await?;
        let area = self.area_of(target).await?;
        let beyond = |from: f64, to: f64, size: f64| {
            if (to - from).abs() < size / 2.0 {
                to
            } else {
                to + (to - from).signum() * (size / 10.0).max(2.0)
            }
        };
        Ok(Point {
            x: beyond(from.x, middle.x, area.width),
            y: beyond(from.y, middle.y, area.height),
        })
    }

    async fn scroll(
        &self,
        element: Option<&Element>,
        step: &ActionStep,
    ) -> Result<String, BrowserError> {
        if let Some(handle) = &step.to {
            let target = self.element(handle)?;
            self.scroll_to(&target).await?;
            return Ok(String::new());
        }
        let root;
        let element = match element {
            Some(element) => element,
            None => {
                root = self.root_element().await?;
                &root
            }
        };
        let screens = step.screens.unwrap_or(1.0).clamp(-1000.0, 1000.0);
        let scrolled: Option<ScrollResult> =
            self.call_on(element, "scroll", json!([screens, 0])).await?;
        Ok(match scrolled {
            None => "nothing here can be scrolled".to_owned(),
            Some(ScrollResult { moved, .. }) if moved < 1.0 => {
                "it was already at the end".to_owned()
            }
            Some(ScrollResult { left, .. }) if left < 1.0 => "now at the end".to_owned(),
            Some(_) => String::new(),
        })
    }

    /// Returns the root element of the main document.
    pub(crate) async fn root_element(&self) -> Result<Element, BrowserError> {
        let params = json!({ "depth": 1 });
        let document: serde_json::Value = self.call("DOM.getDocument", params).await?;
        let children = document
            .pointer("/root/children")
            .and_then(|children| children.as_array());
        let is_element = |node: &&serde_json::Value| node["nodeType"] == 1;
        let root = children.and_then(|children| children.iter().find(is_element));
        let node = root.and_then(|root| root["backendNodeId"].as_i64());
        Ok(Element {
            frame: self.main_frame(),
            session: self.session().id().cloned().unwrap_or_default(),
            node: node.ok_or(BrowserError::NoPage)?,
            link: None,
            label: Arc::from("page"),
        })
    }
}

fn offset(step: &ActionStep) -> Option<(f64, f64)> {
    point(step.x, step.y)
}

fn point(x: Option<f64>, y: Option<f64>) -> Option<(f64, f64)> {
    match (x, y) {
        (None, None) => None,
        (x, y) => Some((x.unwrap_or(0.0), y.unwrap_or(0.0))),
    }
}
