//! Errors of the browser, with texts for the model and the user.

/// An error of the browser. Its variants differ in what a caller can do about it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BrowserError {
    /// The browser's process is gone.
    #[error(
        "the browser crashed; what was open in it is gone, and handles from before are invalid; navigate again"
    )]
    Crashed,
    /// The process of the page is gone; other tabs live on.
    #[error("the page crashed; navigate again, or close its tab with `browser_tabs`")]
    PageCrashed,
    /// The browser did not answer.
    #[error(
        "the page did not answer `{method}` within {seconds} s; a script may keep it busy; open another page with \
         `browser_navigate`, or close its tab with `browser_tabs`"
    )]
    TimedOut {
        /// The method of the protocol.
        method: &'static str,
        /// The time limit in seconds.
        seconds: u64,
    },
    /// The document, frame or element that a call was about is gone.
    #[error("the page changed meanwhile; call `browser_observe` to see what it shows now")]
    PageChanged,
    /// The browser refused a call.
    #[error("the browser refused `{method}`: {message}")]
    Protocol {
        /// The method of the protocol.
        method: &'static str,
        /// The browser's message.
        message: String,
    },
    /// The browser could not be started.
    #[error("the browser cannot be started: {reason}")]
    NotStarted {
        /// The reason.
        reason: String,
    },
    /// The limit of browsers is reached, and all are in use.
    #[error(
        "{count} browsers are open, which is the limit; close one with `browser_close`, or retry in a few minutes"
    )]
    TooMany {
        /// The number of open browsers.
        count: usize,
    },
    /// No page is open.
    #[error("no page is open; open one with `browser_navigate`")]
    NoPage,
    /// There is no tab of this name.
    #[error("there is no tab `{tab}`; see the tabs with `browser_tabs {{\"action\":\"list\"}}`")]
    UnknownTab {
        /// The name that was given.
        tab: String,
    },
    /// The element of a handle cannot be found.
    #[error(
        "the handle `{handle}` is unknown, or from an earlier page or browser; call `browser_observe` for new ones"
    )]
    StaleHandle {
        /// The handle that was given.
        handle: String,
    },
    /// An element cannot be acted on now.
    #[error("{element} {reason}")]
    NotActionable {
        /// Its handle and description.
        element: String,
        /// Why.
        reason: String,
    },
    /// The steps of a call contact several sites.
    #[error(
        "the steps act on the pages of different sites; make one call for the elements of each frame"
    )]
    SeveralSites,
    /// The focus is in a frame of another site than the one that the call may contact.
    #[error(
        "the focus went to a frame of `{host}`, and no key was pressed; observe the page and call again"
    )]
    FocusMoved {
        /// The host of that frame; empty if it has none.
        host: String,
    },
    /// The page has no host, so the user cannot be asked about it.
    #[error("the page belongs to no site; open one with `browser_navigate`")]
    NoSite,
    /// The arguments of a call are invalid.
    #[error("{message}")]
    Argument {
        /// The problem, and what to write instead.
        message: String,
    },
    /// The page has too many elements, or too much text, to be captured.
    #[error(
        "the page is too large to look at (more than 200,000 elements and texts, or 16 MiB of text); read it in parts with `browser_extract`"
    )]
    PageTooLarge,
    /// A page could not be opened.
    #[error("{address} cannot be opened: {reason}")]
    Navigation {
        /// The requested URL.
        address: String,
        /// The reason in plain words.
        reason: String,
    },
}
