//! Tests the browser tools with real Chromium in the sandbox and a local site of awkward pages.

#![allow(clippy::unwrap_used, reason = "in a test, a panic is the report")]

mod act;
mod browsers;
mod crashes;
mod extract;
mod files;
mod focus;
mod gallery;
mod hostile;
mod navigating;
mod observe;
mod pages;
mod processes;
mod secrets;
mod settle;
mod site;
mod support;
mod widgets;
