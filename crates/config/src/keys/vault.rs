//! The keys under `vault`. A project may not set them: it could choose which key file lango tries.

use super::{Key, UntrustedPolicy};

pub(super) const KEY_FILE: Key = Key {
    name: "vault.keyFile",
    help: "a file with a key that unlocks the vault, for servers and scripts; create one with `lango secrets methods add`",
    field: |settings, _| &mut settings.vault.key_file,
    untrusted: UntrustedPolicy::Ignored,
};
