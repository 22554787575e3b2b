//! Browser tools: Chromium runs in the sandbox, is driven over a pipe, and reaches only what the egress guard allows.
//!
//! A [`Browser`] is one process with its tabs; a [`Page`] is the document in one tab. The DevTools client ([`cdp`]) is
//! lango's own: the browser has no debugging port, so only the owner of the pipe can drive it.

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

pub use act::{ActionKind, ActionStep, ClickKind};
pub use browser::{Browser, ContextProxies};
pub use dialogs::DialogAnswer;
pub use error::BrowserError;
pub use extract::{ExtractFormat, ExtractOptions, ExtractedContent, ExtractedPart};
pub use geometry::Area;
pub use handles::{Element, Handles};
pub use launch::{
    BrowserLauncher, BrowserNotFound, BrowserProgram, find_browser, remove_abandoned_directories,
};
pub use observe::{DEFAULT_TOKENS, MAX_TOKENS, Observation, ObserveOptions, ObservedExtent};
pub use page::{Frame, Page};
pub use sessions::{BrowserSessions, BrowserSetup};
pub use settle::SettleResult;
pub use tabs::{ContextKind, TabId};
pub use tools::{TYPING_FIELD, TYPING_TOOL, browser_tools};

/// A tab in a list of tabs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TabSummary {
    pub id: TabId,
    pub url: std::sync::Arc<str>,
    pub is_active: bool,
    pub is_crashed: bool,
}
