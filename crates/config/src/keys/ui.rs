//! The keys under `ui`. How a terminal is used is up to the user, not to a project.

use super::{Key, UntrustedPolicy};

pub(super) const PLAIN: Key = Key {
    name: "ui.plain",
    help: "print plain lines: no live line, no colour, no cursor movement",
    field: |settings, _| &mut settings.ui.plain,
    untrusted: UntrustedPolicy::Ignored,
};
