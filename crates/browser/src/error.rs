//! Errors of the browser, with texts for the model and the user.

/// An error of the browser. Its variants differ in what a caller can do about it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BrowserError {
    /// The browser's process has exited.
    #[error(
        "the browser crashed; its open pages are lost, and earlier handles are invalid; navigate again"
    )]
    Crashed,
    /// The page's process has exited; other tabs still work.
    #[error("the page crashed; navigate again, or close its tab with `browser_tabs`")]
    PageCrashed,
    /// The browser did not answer before the timeout.
    #[error(
        "the page did not answer `{method}` within {seconds} s; a script may keep it busy; open another page with \
         `browser_navigate`, or close its tab with `browser_tabs`"
    )]
    TimedOut {
        /// The method of the DevTools protocol.
        method: &'static str,
        seconds: u64,
    },
    /// The document, frame or element of a call no longer exists.
    #[error("the page changed in the meantime; call `browser_observe` to see its current content")]
    PageChanged,
    #[error("the browser refused `{method}`: {message}")]
    Protocol {
        /// The method of the DevTools protocol.
        method: &'static str,
        message: String,
    },
    #[error("the browser cannot be started: {reason}")]
    NotStarted { reason: String },
    /// The limit of open browsers is reached, and all of them are in use.
    #[error(
        "{count} browsers are open, which is the limit; close one with `browser_close`, or retry in a few minutes"
    )]
    TooMany { count: usize },
    #[error("no page is open; open one with `browser_navigate`")]
    NoPage,
    /// No tab has this id.
    #[error("there is no tab `{tab}`; see the tabs with `browser_tabs {{\"action\":\"list\"}}`")]
    UnknownTab { tab: String },
    /// The element of a handle cannot be found.
    #[error(
        "the handle `{handle}` is unknown, or belongs to an earlier page or browser; call `browser_observe` for new ones"
    )]
    StaleHandle { handle: String },
    /// An element cannot be acted on in its current state.
    #[error("{element} {reason}")]
    NotActionable {
        /// The element's handle and description.
        element: String,
        reason: String,
    },
    /// The steps of a call contact several sites.
    #[error(
        "the steps act on elements of different sites; make a separate call for the elements of each frame"
    )]
    SeveralSites,
    /// The focus is in a frame of a site that the call may not contact.
    #[error(
        "the focus moved to a frame of `{host}`, and no key was pressed; observe the page and call again"
    )]
    FocusMoved {
        /// The host of that frame; empty if it has none.
        host: String,
    },
    /// The page has no host, so lango cannot ask the user about it.
    #[error("the page belongs to no site; open one with `browser_navigate`")]
    NoSite,
    #[error("{message}")]
    Argument {
        /// The problem, and what to write instead.
        message: String,
    },
    /// The page has too many elements, or too much text, to be captured.
    #[error(
        "the page is too large to observe (more than 200,000 elements and texts, or 16 MiB of text); read it in parts with `browser_extract`"
    )]
    PageTooLarge,
    #[error("{address} cannot be opened: {reason}")]
    Navigation { address: String, reason: String },
}
