//! The file with the OAuth grants, by server and address.

use super::Grant;
use crate::private_file::{FileSeal, PrivateFile, is_sealed};
use crate::tool_definition;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long to wait for another process to refresh a grant. Longer than a request to an authorization server may take.
const LONGEST_RENEWAL: Duration = Duration::from_secs(30);
/// Interval between two checks whether the other process has finished.
const RENEWAL_POLL: Duration = Duration::from_millis(20);

/// Access to the file with the grants.
#[derive(Debug, Clone)]
pub(crate) struct Grants {
    file: PrivateFile,
}

#[derive(Default, Serialize, Deserialize)]
struct GrantFile {
    servers: BTreeMap<String, StoredGrant>,
}

#[derive(Serialize, Deserialize)]
struct StoredGrant {
    /// The only address that the grant is used for.
    url: String,
    grant: Grant,
}

/// Encrypts the file that contains the OAuth grants, and reads it back to check it.
pub fn seal_grants(path: PathBuf, seal: Arc<dyn FileSeal>) -> io::Result<()> {
    let grants = Grants::at(path).with_seal(Some(seal));
    grants.change(|_| ())?;
    let _: Option<GrantFile> = grants.file.read()?;
    Ok(())
}

impl Grants {
    pub(crate) fn at(path: PathBuf) -> Self {
        Self {
            file: PrivateFile::at(path),
        }
    }

    /// Sets the seal that encrypts the file, if there is one.
    pub(crate) fn with_seal(self, seal: Option<Arc<dyn FileSeal>>) -> Self {
        Self {
            file: self.file.with_seal(seal),
        }
    }

    /// Returns the grant for this server at this address.
    pub(crate) fn of(&self, server: &str, url: &str) -> Option<Grant> {
        let mut file: GrantFile = self.file.read().ok()??;
        let stored = file.servers.remove(server)?;
        (stored.url == url).then_some(stored.grant)
    }

    /// Stores a grant, in place of any earlier one for the server.
    pub(crate) fn store(&self, server: &str, url: &str, grant: &Grant) -> io::Result<()> {
        self.change(|file| {
            let grant = StoredGrant {
                url: url.to_owned(),
                grant: grant.clone(),
            };
            file.servers.insert(server.to_owned(), grant);
        })
    }

    /// Replaces the grant whose token is spent by the refreshed grant. If a login or logout has changed the file in the
    /// meantime, leaves it unchanged. Returns the grant that is stored afterwards.
    pub(crate) fn replace(
        &self,
        server: &str,
        url: &str,
        spent_token: &str,
        renewed: &Grant,
    ) -> io::Result<Option<Grant>> {
        let mut current = None;
        self.change(|file| {
            let entry = file
                .servers
                .get_mut(server)
                .filter(|entry| entry.url == url);
            current = entry.map(|entry| {
                if entry.grant.access_token() == spent_token {
                    entry.grant = renewed.clone();
                }
                entry.grant.clone()
            });
        })?;
        Ok(current)
    }

    /// Acquires the lock for refreshing a server's grant; dropping the result releases it. It is separate from the lock
    /// on the file, which is held only while the file is written.
    pub(crate) async fn lock_renewal(&self, server: &str) -> io::Result<File> {
        let started = Instant::now();
        let name = tool_definition::hex(&Sha256::digest(server)[..8]);
        loop {
            match self.file.try_lock_beside(&format!("renewal-{name}.lock"))? {
                Some(lock) => return Ok(lock),
                None if started.elapsed() < LONGEST_RENEWAL => {
                    tokio::time::sleep(RENEWAL_POLL).await;
                }
                None => {
                    let problem = "another process has been refreshing it for too long";
                    return Err(io::Error::other(problem));
                }
            }
        }
    }

    /// Deletes the grant for a server. Returns whether there was one.
    pub(crate) fn delete(&self, server: &str) -> io::Result<bool> {
        let mut existed = false;
        self.change(|file| existed = file.servers.remove(server).is_some())?;
        Ok(existed)
    }

    fn change(&self, change: impl FnOnce(&mut GrantFile)) -> io::Result<()> {
        let _lock = self.file.lock()?;
        let content = self.file.read().map_err(|error| self.unreadable(&error))?;
        let mut content: GrantFile = content.unwrap_or_default();
        change(&mut content);
        self.file.replace(&content)
    }

    /// Returns the error for an unreadable file. lango does not overwrite it, because it may contain all of the user's
    /// logins.
    fn unreadable(&self, error: &io::Error) -> io::Error {
        let path = self.file.path().display();
        if is_sealed(self.file.path()) {
            return io::Error::other(format!("`{path}` cannot be read: {error}"));
        }
        io::Error::other(format!(
            "`{path}` cannot be read ({error}); repair it, or remove it and log in to every server again"
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn grant(token: &str) -> Grant {
        let grant = json!({
            "access_token": token, "token_endpoint": "https://x", "resource": "https://y",
            "client": { "id": "c", "shown_in": "nothing" },
        });
        serde_json::from_value(grant).unwrap()
    }

    fn token(grant: Option<Grant>) -> Option<String> {
        grant.map(|grant| grant.access_token().to_owned())
    }

    #[test]
    fn a_refresh_does_not_overwrite_a_login_or_logout_in_between() {
        let folder = tempfile::tempdir().unwrap();
        let grants = Grants::at(folder.path().join("own/grants.json"));
        grants.store("s", "u", &grant("first")).unwrap();
        let replace = |spent_token, renewed| {
            let current = grants.replace("s", "u", spent_token, &grant(renewed));
            (token(current.unwrap()), token(grants.of("s", "u")))
        };
        let both = |text: &str| (Some(text.to_owned()), Some(text.to_owned()));
        assert_eq!(replace("first", "second"), both("second"));
        assert_eq!(replace("first", "late"), both("second"));
        grants.delete("s").unwrap();
        assert_eq!(replace("second", "third"), (None, None));
    }

    /// A seal that reverses the bytes, since the tests only check when it is used.
    #[derive(Debug)]
    struct ReversingSeal;

    impl FileSeal for ReversingSeal {
        fn seal(&self, plain: &[u8]) -> io::Result<Vec<u8>> {
            Ok(plain.iter().rev().copied().collect())
        }

        fn open(&self, sealed: &[u8]) -> io::Result<Vec<u8>> {
            self.seal(sealed)
        }
    }

    #[test]
    fn a_plain_file_is_sealed_completely_and_stays_sealed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("grants.json");
        let plain = Grants::at(path.clone());
        plain.store("s", "u", &grant("canary")).unwrap();
        assert!(!is_sealed(&path));
        seal_grants(path.clone(), Arc::new(ReversingSeal)).unwrap();
        assert!(is_sealed(&path));
        let contains_token = || {
            std::fs::read(&path)
                .unwrap()
                .windows(6)
                .any(|part| part == b"canary")
        };
        assert!(!contains_token());
        // Without the seal, the file is neither read nor overwritten.
        assert_eq!(token(plain.of("s", "u")), None);
        let refused = plain.store("s", "u", &grant("new")).unwrap_err();
        assert!(
            refused.to_string().contains("lango secrets unlock"),
            "{refused}"
        );
        let sealed = plain.with_seal(Some(Arc::new(ReversingSeal)));
        assert_eq!(token(sealed.of("s", "u")).as_deref(), Some("canary"));
        sealed.store("t", "u", &grant("canary")).unwrap();
        assert!(is_sealed(&path) && !contains_token());
    }

    #[test]
    fn an_unreadable_file_is_neither_replaced_nor_treated_as_empty() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("grants.json");
        std::fs::write(&path, "{ \"servers\": ").unwrap();
        let grants = Grants::at(path.clone());
        for result in [
            grants.store("s", "u", &grant("new")),
            grants.delete("s").map(drop),
        ] {
            let error = result.unwrap_err().to_string();
            assert!(error.contains("cannot be read"), "{error}");
            assert!(error.contains("remove it and log in"), "{error}");
        }
        assert_eq!(std::fs::read_to_string(path).unwrap(), "{ \"servers\": ");
    }
}
