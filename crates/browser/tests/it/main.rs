//! The browser against real Chromium in the sandbox, and a site of awkward pages on this machine.

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
mod rest;
mod secrets;
mod site;
mod support;
mod widgets;
