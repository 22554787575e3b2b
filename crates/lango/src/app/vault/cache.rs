//! The cache of an unlocked vault: the master key in the kernel's session keyring, for 15 minutes.
//!
//! The cache holds the raw key; encrypting it would not help, because the wrapping key would have to be stored in the
//! same place. The kernel keeps the raw key out of files, swap and core dumps, gives it only to processes of this
//! login session, and deletes it after the timeout.
//! Commands of agents cannot reach it: the sandbox blocks keyring system calls. On other systems each command asks
//! for the passphrase.

use lango_vault::Key;

/// The lifetime of a cached unlock.
pub(super) const LIFETIME_SECONDS: usize = 15 * 60;

/// Stores the master key of a vault. Returns whether this system supports that.
pub(super) fn store(vault: [u8; 16], master: &Key) -> bool {
    system::store(&description(vault), master).is_some()
}

/// Returns the cached master key of a vault.
pub(super) fn load(vault: [u8; 16]) -> Option<Key> {
    system::load(&description(vault))
}

/// Deletes the master key of a vault. Returns whether there was one.
pub(super) fn remove(vault: [u8; 16]) -> bool {
    system::remove(&description(vault)).is_some()
}

/// Returns the name of the key, which contains the vault's random id.
fn description(vault: [u8; 16]) -> String {
    format!("lango-vault:{}", base16ct::lower::encode_string(&vault))
}

#[cfg(target_os = "linux")]
mod system {
    use super::LIFETIME_SECONDS;
    use lango_vault::Key;
    use linux_keyutils::{KeyPermissionsBuilder, KeyRing, KeyRingIdentifier, Permission};
    use zeroize::Zeroizing;

    /// Returns the keyring of the login session, or the user's keyring where logins have none. A newly created session
    /// keyring would disappear with this process.
    fn session() -> Option<KeyRing> {
        KeyRing::from_special_id(KeyRingIdentifier::Session, false).ok()
    }

    pub(super) fn store(description: &str, master: &Key) -> Option<()> {
        // An existing key would be updated in place, which its permissions forbid.
        remove(description);
        let key = session()?.add_key(description, master.expose()).ok()?;
        let own = Permission::VIEW | Permission::READ | Permission::SEARCH | Permission::SETATTR;
        let permissions = KeyPermissionsBuilder::builder().posessor(own).build();
        let is_bounded = key.set_timeout(LIFETIME_SECONDS).is_ok();
        if is_bounded && key.set_perms(permissions).is_ok() {
            return Some(());
        }
        // A key that never expires is worse than none.
        let _ = key.revoke();
        None
    }

    pub(super) fn load(description: &str) -> Option<Key> {
        let key = session()?.search(description).ok()?;
        let mut bytes = Zeroizing::new([0; Key::BYTES]);
        let length = key.read(&mut *bytes).ok()?;
        (length == Key::BYTES).then(|| Key::new(*bytes))
    }

    pub(super) fn remove(description: &str) -> Option<()> {
        let keyring = session()?;
        let key = keyring.search(description).ok()?;
        key.invalidate()
            .or_else(|_| key.revoke())
            .or_else(|_| keyring.unlink_key(key))
            .ok()
    }
}

#[cfg(not(target_os = "linux"))]
mod system {
    use lango_vault::Key;

    pub fn store(_: &str, _: &Key) -> Option<()> {
        None
    }

    pub fn load(_: &str) -> Option<Key> {
        None
    }

    pub fn remove(_: &str) -> Option<()> {
        None
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn a_cached_key_can_be_loaded_until_it_is_removed_and_expires() {
        let vault = [0xa7; 16];
        remove(vault);
        assert!(load(vault).is_none());
        assert!(store(vault, &Key::new([7; 32])));
        assert_eq!(load(vault).unwrap().expose(), &[7; 32]);
        let listed = std::fs::read_to_string("/proc/keys").unwrap();
        let line = listed.lines().find(|line| line.contains(&"a7".repeat(16)));
        let fields: Vec<&str> = line.unwrap().split_whitespace().collect();
        // The remaining time, and the permissions: for the possessor only.
        assert!(["14m", "15m"].contains(&fields[3]), "{fields:?}");
        assert_eq!(fields[4], "2b000000", "{fields:?}");
        // A second unlock restarts the time.
        assert!(store(vault, &Key::new([8; 32])));
        assert_eq!(load(vault).unwrap().expose(), &[8; 32]);
        assert!(remove(vault));
        assert!(load(vault).is_none());
        assert!(!remove(vault));
    }
}
