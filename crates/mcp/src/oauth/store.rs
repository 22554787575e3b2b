//! The file in which what was granted is kept, by server and address.

use super::Grant;
use crate::form;
use crate::private_file::{FileSeal, PrivateFile, is_sealed};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long somebody else's renewal is waited for: longer than a request to an authority may take. And how often it is
/// looked whether it is over.
const LONGEST_RENEWAL: Duration = Duration::from_secs(30);
const LOOK_AGAIN: Duration = Duration::from_millis(20);

/// The file.
#[derive(Debug, Clone)]
pub(crate) struct Grants {
    file: PrivateFile,
}

#[derive(Default, Serialize, Deserialize)]
struct Kept {
    servers: BTreeMap<String, KeptGrant>,
}

#[derive(Serialize, Deserialize)]
struct KeptGrant {
    /// The address it is for. At another it is not shown.
    url: String,
    grant: Grant,
}

/// Encrypts the file with what was granted at logins, and reads it back.
pub fn seal_grants(path: PathBuf, seal: Arc<dyn FileSeal>) -> io::Result<()> {
    let grants = Grants::at(path).with_seal(Some(seal));
    grants.change(|_| ())?;
    let _: Option<Kept> = grants.file.read()?;
    Ok(())
}

impl Grants {
    pub(crate) fn at(path: PathBuf) -> Self {
        Self {
            file: PrivateFile::at(path),
        }
    }

    /// The same file, encrypted by a seal if there is one.
    pub(crate) fn with_seal(self, seal: Option<Arc<dyn FileSeal>>) -> Self {
        Self {
            file: self.file.with_seal(seal),
        }
    }

    /// What was granted for this server at this address.
    pub(crate) fn of(&self, server: &str, url: &str) -> Option<Grant> {
        let mut kept: Kept = self.file.read().ok()??;
        let kept = kept.servers.remove(server)?;
        (kept.url == url).then_some(kept.grant)
    }

    /// Keeps what was granted.
    pub(crate) fn keep(&self, server: &str, url: &str, grant: &Grant) -> io::Result<()> {
        self.change(|kept| {
            let grant = KeptGrant {
                url: url.to_owned(),
                grant: grant.clone(),
            };
            kept.servers.insert(server.to_owned(), grant);
        })
    }

    /// Replaces what was renewed, unless it is no longer what is kept: a login or a logout in between counts for more. Gives
    /// what is kept then.
    pub(crate) fn replace(
        &self,
        server: &str,
        url: &str,
        used_up: &str,
        renewed: &Grant,
    ) -> io::Result<Option<Grant>> {
        let mut current = None;
        self.change(|kept| {
            let kept = kept.servers.get_mut(server).filter(|kept| kept.url == url);
            current = kept.map(|kept| {
                if kept.grant.access_token() == used_up {
                    kept.grant = renewed.clone();
                }
                kept.grant.clone()
            });
        })?;
        Ok(current)
    }

    /// Waits for the turn to renew what was granted for a server; it lasts until what this gives is dropped. It is apart from
    /// the hold on the file, which nobody has to wait for longer than a file is written.
    pub(crate) async fn hold_renewal(&self, server: &str) -> io::Result<File> {
        let began = Instant::now();
        let name = form::hex(&Sha256::digest(server)[..8]);
        loop {
            match self.file.try_hold_beside(&format!("renewal-{name}.lock"))? {
                Some(held) => return Ok(held),
                None if began.elapsed() < LONGEST_RENEWAL => tokio::time::sleep(LOOK_AGAIN).await,
                None => return Err(io::Error::other("another process renews it, without end")),
            }
        }
    }

    /// Forgets it; says whether there was any.
    pub(crate) fn forget(&self, server: &str) -> io::Result<bool> {
        let mut was_there = false;
        self.change(|kept| was_there = kept.servers.remove(server).is_some())?;
        Ok(was_there)
    }

    fn change(&self, change: impl FnOnce(&mut Kept)) -> io::Result<()> {
        let _held = self.file.hold()?;
        let kept = self.file.read().map_err(|error| self.unreadable(&error))?;
        let mut kept: Kept = kept.unwrap_or_default();
        change(&mut kept);
        self.file.replace(&kept)
    }

    /// What is in the file is not thrown away because it cannot be read: it may be all of a person's logins.
    fn unreadable(&self, error: &io::Error) -> io::Error {
        let path = self.file.path().display();
        if is_sealed(self.file.path()) {
            return io::Error::other(format!("`{path}` cannot be read: {error}"));
        }
        io::Error::other(format!(
            "`{path}` cannot be read ({error}); mend it, or remove it and log in to every server anew"
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
    fn a_renewal_undoes_neither_a_login_nor_a_logout_in_between() {
        let folder = tempfile::tempdir().unwrap();
        let grants = Grants::at(folder.path().join("own/grants.json"));
        grants.keep("s", "u", &grant("first")).unwrap();
        let replace = |used_up, renewed| {
            let current = grants.replace("s", "u", used_up, &grant(renewed));
            (token(current.unwrap()), token(grants.of("s", "u")))
        };
        let both = |text: &str| (Some(text.to_owned()), Some(text.to_owned()));
        assert_eq!(replace("first", "second"), both("second"));
        assert_eq!(replace("first", "late"), both("second"));
        grants.forget("s").unwrap();
        assert_eq!(replace("second", "third"), (None, None));
    }

    /// Turns bytes around: what is tested is when it is used.
    #[derive(Debug)]
    struct Reversing;

    impl FileSeal for Reversing {
        fn seal(&self, plain: &[u8]) -> io::Result<Vec<u8>> {
            Ok(plain.iter().rev().copied().collect())
        }

        fn open(&self, sealed: &[u8]) -> io::Result<Vec<u8>> {
            self.seal(sealed)
        }
    }

    #[test]
    fn a_plain_file_is_sealed_as_a_whole_and_stays_sealed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("grants.json");
        let plain = Grants::at(path.clone());
        plain.keep("s", "u", &grant("canary")).unwrap();
        assert!(!is_sealed(&path));
        seal_grants(path.clone(), Arc::new(Reversing)).unwrap();
        assert!(is_sealed(&path));
        let shows = || {
            std::fs::read(&path)
                .unwrap()
                .windows(6)
                .any(|part| part == b"canary")
        };
        assert!(!shows());
        // Without the seal nothing is read, and nothing is overwritten.
        assert_eq!(token(plain.of("s", "u")), None);
        let refused = plain.keep("s", "u", &grant("new")).unwrap_err();
        assert!(
            refused.to_string().contains("lango secrets unlock"),
            "{refused}"
        );
        let sealed = plain.with_seal(Some(Arc::new(Reversing)));
        assert_eq!(token(sealed.of("s", "u")).as_deref(), Some("canary"));
        sealed.keep("t", "u", &grant("canary")).unwrap();
        assert!(is_sealed(&path) && !shows());
    }

    #[test]
    fn a_file_that_cannot_be_read_is_neither_replaced_nor_taken_for_empty() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("grants.json");
        std::fs::write(&path, "{ \"servers\": ").unwrap();
        let grants = Grants::at(path.clone());
        for result in [
            grants.keep("s", "u", &grant("new")),
            grants.forget("s").map(drop),
        ] {
            let error = result.unwrap_err().to_string();
            assert!(error.contains("cannot be read"), "{error}");
            assert!(error.contains("remove it and log in"), "{error}");
        }
        assert_eq!(std::fs::read_to_string(path).unwrap(), "{ \"servers\": ");
    }
}
