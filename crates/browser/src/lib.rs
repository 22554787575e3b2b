//! Chromium as a tool: it runs in the sandbox, is driven over a pipe, and reaches nothing but what the egress guard lets
//! through.
//!
//! A [`Browser`] is one process with its tabs, a [`Page`] what one of them shows. The client of the DevTools protocol
//! ([`cdp`]) is small and ours, because the browser has no debugging port: whoever holds the pipe drives it, and nobody else.

mod address;
mod browser;
pub mod cdp;
mod dialogs;
mod error;
mod handles;
mod notice;
mod page;
mod settle;
mod supervisor;
mod tabs;

pub use browser::Browser;
pub use dialogs::DialogAnswer;
pub use error::BrowserError;
pub use handles::{Element, Handles};
pub use page::{Frame, Page};
pub use settle::Settled;
pub use tabs::{ContextKind, TabId};

/// A tab in a list of tabs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listing {
    /// Its name.
    pub id: TabId,
    /// The address that it shows.
    pub url: std::sync::Arc<str>,
    /// Whether calls that name no tab are about it.
    pub is_active: bool,
    /// Whether its process is gone.
    pub is_crashed: bool,
}
