//! Browser tools: Chromium runs in the sandbox, is driven over a pipe, and reaches only what the egress guard allows.
//!
//! A [`Browser`] is one process with its tabs, a [`Page`] the document in one of them. The DevTools client ([`cdp`]) is
//! our own, because the browser has no debugging port: only the owner of the pipe can drive it.

mod act;
mod address;
mod browser;
pub mod cdp;
mod dialogs;
mod downloads;
mod error;
mod extract;
mod files_server;
mod geometry;
mod handles;
mod launch;
mod navigation;
mod notice;
mod observe;
mod page;
mod sessions;
mod settle;
mod supervisor;
mod tabs;
mod tools;
mod uploads;

pub use act::{Action, Button, Step};
pub use browser::{Browser, ContextProxies};
pub use dialogs::DialogAnswer;
pub use error::BrowserError;
pub use extract::{Extract, ExtractFormat, ExtractOptions, ExtractedPart};
pub use geometry::Area;
pub use handles::{Element, Handles};
pub use launch::{
    BrowserLauncher, BrowserProgram, NoBrowser, find_browser, remove_abandoned_directories,
};
pub use observe::{DEFAULT_TOKENS, MOST_TOKENS, Observation, ObserveOptions, ObservedExtent};
pub use page::{Frame, Page};
pub use sessions::{BrowserSetup, Sessions};
pub use settle::Settled;
pub use tabs::{ContextKind, TabId};
pub use tools::{TYPING_FIELD, TYPING_TOOL, browser_tools};

/// A tab in a list of tabs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listing {
    /// Its name.
    pub id: TabId,
    /// The address that it shows.
    pub url: std::sync::Arc<str>,
    /// Whether it is the active tab.
    pub is_active: bool,
    /// Whether its process is gone.
    pub is_crashed: bool,
}
