//! The keys under `vault`. A project sets none of them: it would choose the file whose key is tried.

use super::{Key, Untrusted};

pub(super) const KEY_FILE: Key = Key {
    name: "vault.keyFile",
    help: "a file with a key that unlocks the vault, for servers and scripts; `lango secrets methods add` makes one",
    field: |settings, _| &mut settings.vault.key_file,
    untrusted: Untrusted::Ignored,
};
