//! Notices for the user: warnings and progress that the wiring cannot return to its caller.
//!
//! They are [`tracing`] events with the target [`NOTICE_TARGET`], so a program that embeds lango shows, logs or drops
//! them like its other events. The binary prints them on stderr.

/// The target of notices. The field `message` is the text, which may have several lines.
pub const NOTICE_TARGET: &str = "lango::notice";

/// Publishes a notice.
pub(crate) fn notice(text: &str) {
    tracing::info!(target: NOTICE_TARGET, "{text}");
}
