//! The file in which what was granted is kept, by server and address.

use super::Grant;
use crate::private_file::PrivateFile;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;

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

impl Grants {
    pub(crate) fn at(path: PathBuf) -> Self {
        Self {
            file: PrivateFile::at(path),
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

    /// Forgets it; says whether there was any.
    pub(crate) fn forget(&self, server: &str) -> io::Result<bool> {
        let mut was_there = false;
        self.change(|kept| was_there = kept.servers.remove(server).is_some())?;
        Ok(was_there)
    }

    fn change(&self, change: impl FnOnce(&mut Kept)) -> io::Result<()> {
        let _held = self.file.hold()?;
        let mut kept: Kept = self.file.read().ok().flatten().unwrap_or_default();
        change(&mut kept);
        self.file.replace(&kept)
    }
}
