//! A self-hosted multi-agent runtime.

#[cfg(feature = "app")]
pub mod app;
