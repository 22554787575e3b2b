//! Observations: one line for each readable or actionable item on a page, with handles for the actionable ones.
//!
//! A capture of all documents ([`snapshot`]) becomes one list of nodes with positions ([`scene`]). Combined with the
//! accessibility data ([`semantics`], [`roles`]), it yields items ([`items`]) that are arranged on lines ([`lines`]).
//! Lines are selected by distance to the viewport ([`select`]) and compared with the previous observation
//! ([`changes`]).

mod appearance;
mod changes;
mod clip;
mod describe;
mod items;
mod lines;
mod print;
mod report;
mod roles;
mod scene;
mod select;
mod semantics;
mod snapshot;
mod tokens;

pub(crate) use changes::ShownLines;
pub(crate) use print::{cut, is_invisible, one_line, quote};
pub(crate) use report::source_line;
pub(crate) use scene::{Scene, SceneKind};

use crate::handles::NodeKey;
use crate::{BrowserError, Page};
use items::Item;
use lines::Line;
use std::sync::Arc;

/// Default number of tokens of an observation.
pub const DEFAULT_TOKENS: usize = 2000;
/// Maximum number of tokens of an observation.
pub const MAX_TOKENS: usize = 20_000;

#[derive(Debug, Clone, Default)]
pub struct ObserveOptions {
    /// The handle of the element to observe; `None` for the whole page.
    pub scope: Option<String>,
    /// Approximate maximum number of tokens; [`DEFAULT_TOKENS`] if `None`.
    pub tokens: Option<usize>,
    pub extent: ObservedExtent,
}

/// Which lines an observation shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ObservedExtent {
    /// The changes since the last observation if they are shorter than the page, else the page.
    #[default]
    Shorter,
    Whole,
    /// The changes since the last observation; the whole page for a new document.
    Changes,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Observation {
    /// The text for the model.
    pub text: String,
    /// The absolute URLs of the links in the text.
    pub links: Vec<Arc<str>>,
    /// Whether nothing changed since the last observation.
    pub is_same: bool,
}

/// The captured page with its items and lines.
struct PageView {
    scene: Scene,
    items: Vec<Item>,
    lines: Vec<Line>,
}

impl Page {
    /// Observes the page and assigns handles to its elements. Fails with [`BrowserError::StaleHandle`] if the scope no
    /// longer exists.
    pub async fn observe(&self, options: &ObserveOptions) -> Result<Observation, BrowserError> {
        let scope = match &options.scope {
            Some(handle) => Some((handle.as_str(), self.element(handle)?.key())),
            None => None,
        };
        let tokens = options
            .tokens
            .unwrap_or(DEFAULT_TOKENS)
            .clamp(50, MAX_TOKENS);
        let scene = Scene::capture(self).await?;
        let title = self.title().await?;
        let place = match &scope {
            None => None,
            Some((handle, key)) => {
                Some(scene.find(key).ok_or_else(|| BrowserError::StaleHandle {
                    handle: (*handle).to_owned(),
                })?)
            }
        };
        let semantics = semantics::read(&scene, tokens).await;
        let roles = roles::assign(&scene, &semantics);
        let items = items::find(&scene, &semantics, &roles, place);
        let lines = lines::arrange(&items);
        let view = PageView {
            scene,
            items,
            lines,
        };
        let request = report::Request {
            title: &title,
            scope: options.scope.as_deref(),
            tokens,
            extent: options.extent,
        };
        Ok(report::write(self, &view, &request))
    }
}

impl PageView {
    fn key(&self, item: usize) -> NodeKey {
        self.scene.key(self.items[item].at)
    }
}
