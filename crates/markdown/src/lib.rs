//! Renders the markdown that models write for terminals.
//!
//! [`render`] formats a whole text; [`Stream`] formats a text while it arrives. Rows are wrapped at words and never
//! wider than the terminal. [`diff`] colours a unified diff.
//!
//! The text is untrusted: no control character in it reaches the terminal, and everything that a browser would hide
//! (HTML, comments, link definitions) is shown.

#![cfg_attr(
    test,
    allow(clippy::unwrap_used, reason = "in a test, a panic is the report")
)]

mod code_block;
mod container;
mod highlight;
mod nesting;
mod page;
mod render;
mod renderer;
mod source;
mod stream;
mod styled_text;
mod table;
mod wrap;

pub use highlight::diff;
pub use render::{Style, render};
pub use stream::Stream;
