//! What an agent sees of a page: one line for each thing that can be read or acted on, with handles for the latter.
//!
//! The browser's capture of all documents ([`snapshot`]) is arranged as one list of nodes with their places ([`scene`]),
//! joined with what the browser tells assistive technology about the elements ([`semantics`], [`roles`]), and becomes items
//! ([`items`]) on lines ([`lines`]). Lines are chosen by what is in the viewport ([`select`]) and compared with what was
//! shown before ([`changes`]).

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
pub(crate) use print::{cut, is_unseen, one_line, quote};
pub(crate) use report::source_line;
pub(crate) use scene::{Scene, SceneKind};

use crate::handles::NodeKey;
use crate::{BrowserError, Page};
use items::Item;
use lines::Line;
use std::sync::Arc;

/// The tokens of an observation that says nothing else.
pub const DEFAULT_TOKENS: usize = 2000;
/// The most tokens of an observation.
pub const MOST_TOKENS: usize = 20_000;

/// How to look at a page.
#[derive(Debug, Clone, Default)]
pub struct ObserveOptions {
    /// The handle of the element to look into; the whole page if none.
    pub scope: Option<String>,
    /// How many tokens to use, roughly; [`DEFAULT_TOKENS`] if none.
    pub tokens: Option<usize>,
    /// Which lines to show.
    pub extent: ObservedExtent,
}

/// Which lines of a page to show.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ObservedExtent {
    /// What changed since the last look, if that is shorter than all.
    #[default]
    Shorter,
    /// All.
    Whole,
    /// What changed since the last look; all of a document that was not looked at yet.
    Changes,
}

/// What a page looks like.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Observation {
    /// For the model.
    pub text: String,
    /// The absolute addresses of the links in it.
    pub links: Vec<Arc<str>>,
    /// Whether nothing changed since the last look.
    pub is_same: bool,
}

/// What was found on a page.
struct Look {
    scene: Scene,
    items: Vec<Item>,
    lines: Vec<Line>,
}

impl Page {
    /// Looks at the page.
    pub async fn observe(&self, options: &ObserveOptions) -> Result<Observation, BrowserError> {
        let scope = match &options.scope {
            Some(handle) => Some((handle.as_str(), self.element(handle)?.key())),
            None => None,
        };
        let tokens = options
            .tokens
            .unwrap_or(DEFAULT_TOKENS)
            .clamp(50, MOST_TOKENS);
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
        let look = Look {
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
        Ok(report::write(self, &look, &request))
    }
}

impl Look {
    fn key(&self, item: usize) -> NodeKey {
        self.scene.key(self.items[item].at)
    }
}
