//! Adding files and folders: what changed is read again, what is gone is removed, the rest is left alone.
//!
//! Each document is written in one or few changes and marked complete with the last, so that adding can be broken off at
//! any time and goes on where it was when it is done again.

use super::batch::{Batch, Prepared};
use super::read::{self, Content, MOST_FILE_BYTES, READER_VERSION};
use super::walk::{Walk, walk};
use super::{DOCUMENTS, KNOWLEDGE, LEARNINGS, Library, LibraryError};
use lango_core::{SessionId, Source, Trust, UserId};
use lango_store::{CollectionId, DocumentFilter, DocumentRow, NewDocument, Removal};
use sha2::{Digest as _, Sha256};
use std::collections::BTreeMap;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

/// How many documents are listed at once.
const PAGE: usize = 1000;

/// How many that were left out are named in a report.
const MOST_SKIPPED: usize = 1000;

/// How documents are added.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AddOptions {
    /// The collection; `documents` if not given.
    pub collection: Option<String>,
    /// The session that alone shall see them; all of the user's if not given.
    pub session: Option<SessionId>,
    /// Whether their words may be believed.
    pub trust: Trust,
}

impl Default for AddOptions {
    fn default() -> Self {
        Self {
            collection: None,
            session: None,
            trust: Trust::Untrusted,
        }
    }
}

/// How far adding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress<'a> {
    /// How many files were looked at, this one included.
    pub done: usize,
    /// How many there are.
    pub total: usize,
    /// The file.
    pub source: &'a str,
    /// What became of it.
    pub added: Added,
}

/// What became of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Added {
    /// It is new.
    New,
    /// It was there with other words.
    Changed,
    /// It was there as it is.
    Unchanged,
    /// It cannot be read.
    Skipped,
}

/// What became of all files.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AddReport {
    /// How many are new.
    pub added: usize,
    /// How many were there with other words.
    pub updated: usize,
    /// How many were there as they are.
    pub unchanged: usize,
    /// How many documents are gone because their files are.
    pub removed: usize,
    /// How many chunks were written.
    pub chunks: usize,
    /// How many files were left out.
    pub skipped: usize,
    /// The first of those, each with the reason.
    pub reasons: Vec<Skipped>,
}

/// A file that was left out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Skipped {
    /// The file.
    pub source: String,
    /// Why.
    pub reason: String,
}

impl Library {
    /// Adds files and folders to a user's library. What was added before from the same place is brought up to date.
    pub async fn add(
        &self,
        user: &UserId,
        paths: &[PathBuf],
        options: &AddOptions,
        progress: &(dyn Fn(Progress<'_>) + Send + Sync),
    ) -> Result<AddReport, LibraryError> {
        self.check_maker().await?;
        let name = options.collection.as_deref().unwrap_or(DOCUMENTS);
        if name.trim().is_empty() || [KNOWLEDGE, LEARNINGS].contains(&name) {
            return Err(LibraryError::Unusable {
                problem: format!(
                    "`{name}` cannot be the name of a collection of documents; choose another"
                ),
            });
        }
        let session = options.session.as_ref();
        let collection = self.store.collection(user, name, session).await?;
        let mut report = AddReport::default();
        for path in paths {
            let place = Place {
                library: self,
                user,
                collection,
                trust: options.trust,
            };
            place.add(path, progress, &mut report).await?;
        }
        Ok(report)
    }
}

/// Where files are added to.
struct Place<'a> {
    library: &'a Library,
    user: &'a UserId,
    collection: CollectionId,
    trust: Trust,
}

impl Place<'_> {
    async fn add(
        &self,
        path: &Path,
        progress: &(dyn Fn(Progress<'_>) + Send + Sync),
        report: &mut AddReport,
    ) -> Result<(), LibraryError> {
        let wanted = path.to_owned();
        let walked = tokio::task::spawn_blocking(move || walk(&wanted)).await?;
        let no_such_path = |source| LibraryError::NoSuchPath {
            path: path.to_owned(),
            source,
        };
        let walk = walked.map_err(no_such_path)?;
        let mut known = self.known_below(&walk.root).await?;
        if walk.files.is_empty() && known.is_empty() && !Path::new(&walk.root).exists() {
            return Err(no_such_path(io::ErrorKind::NotFound.into()));
        }

        let mut batch = Batch::new(self.library, self.user);
        for (done, source) in (1..).zip(&walk.files) {
            let known = known.remove(source);
            let added = self.add_file(source, known, &mut batch, report).await?;
            progress(Progress {
                done,
                total: walk.files.len(),
                source,
                added,
            });
        }
        report.chunks += batch.finish().await?;
        self.remove_gone(&walk, known, report).await?;
        walk.skipped
            .into_iter()
            .for_each(|skipped| report.skip(skipped));
        Ok(())
    }

    async fn add_file(
        &self,
        source: &str,
        known: Option<DocumentRow>,
        batch: &mut Batch<'_>,
        report: &mut AddReport,
    ) -> Result<Added, LibraryError> {
        let stored = known
            .as_ref()
            .filter(|known| known.is_complete && known.source.trust == self.trust);
        let stored = stored.and_then(|known| <[u8; 32]>::try_from(known.hash.as_slice()).ok());
        let file = PathBuf::from(source);
        let looked = tokio::task::spawn_blocking(move || look(&file, stored)).await?;
        match looked {
            Looked::Unchanged => {
                report.unchanged += 1;
                Ok(Added::Unchanged)
            }
            Looked::Unreadable(reason) => {
                report.skip(Skipped {
                    source: source.to_owned(),
                    reason,
                });
                Ok(Added::Skipped)
            }
            Looked::Unusable(reason) => {
                // What the library has of it is not what the file says now.
                if let Some(known) = known {
                    self.library
                        .store
                        .remove_document(self.user, known.id, Removal::Plain)
                        .await?;
                    report.removed += 1;
                }
                report.skip(Skipped {
                    source: source.to_owned(),
                    reason,
                });
                Ok(Added::Skipped)
            }
            Looked::Read {
                content,
                hash,
                size,
            } => {
                let document = NewDocument {
                    collection: self.collection,
                    source: Source {
                        name: source.into(),
                        trust: self.trust,
                    },
                    title: content.title.as_str().into(),
                    hash,
                    size,
                    added: self.library.clock.now(),
                };
                let replaces = known.map(|known| known.id);
                let prepared = Prepared::new(document, content.title, content.chunks, replaces);
                report.chunks += batch.push(prepared).await?;
                if replaces.is_some() {
                    report.updated += 1;
                    Ok(Added::Changed)
                } else {
                    report.added += 1;
                    Ok(Added::New)
                }
            }
        }
    }

    /// What the library has from this file or from below this folder.
    async fn known_below(&self, root: &str) -> Result<BTreeMap<String, DocumentRow>, LibraryError> {
        let store = &self.library.store;
        let mut known = BTreeMap::new();
        let folder = root.trim_end_matches('/');
        // The name itself, and those that go on with `/`; `0` is what comes after that.
        for (from, before) in [
            (root.to_owned(), format!("{root}\0")),
            (format!("{folder}/"), format!("{folder}0")),
        ] {
            let mut from = from;
            loop {
                let filter = DocumentFilter::Range {
                    collection: self.collection,
                    from: from.clone(),
                    before: Some(before.clone()),
                    most: PAGE,
                };
                let page = store.documents(self.user, filter).await?;
                let Some(last) = page.last() else { break };
                from = format!("{}\0", last.source.name);
                let named = |row: DocumentRow| (row.source.name.to_string(), row);
                known.extend(page.into_iter().map(named));
            }
        }
        Ok(known)
    }

    async fn remove_gone(
        &self,
        walk: &Walk,
        known: BTreeMap<String, DocumentRow>,
        report: &mut AddReport,
    ) -> Result<(), LibraryError> {
        if !walk.is_whole {
            // A folder that cannot be read now is not a folder whose files are gone.
            return Ok(());
        }
        for gone in known.into_values() {
            self.library
                .store
                .remove_document(self.user, gone.id, Removal::Plain)
                .await?;
            report.removed += 1;
        }
        Ok(())
    }
}

impl AddReport {
    fn skip(&mut self, skipped: Skipped) {
        self.skipped += 1;
        if self.reasons.len() < MOST_SKIPPED {
            self.reasons.push(skipped);
        }
    }
}

/// What looking at a file gave.
enum Looked {
    Unchanged,
    /// The system does not let us.
    Unreadable(String),
    /// It was read, and there is nothing to keep.
    Unusable(String),
    Read {
        content: Content,
        hash: [u8; 32],
        size: u64,
    },
}

fn look(path: &Path, stored: Option<[u8; 32]>) -> Looked {
    let bytes = match bytes_of(path) {
        Ok(Some(bytes)) => bytes,
        Ok(None) => {
            let most = MOST_FILE_BYTES / 1_000_000;
            return Looked::Unusable(format!("it is larger than {most} MB"));
        }
        Err(error) => return Looked::Unreadable(error.to_string()),
    };
    let hash = Sha256::new()
        .chain_update([READER_VERSION])
        .chain_update(&bytes)
        .finalize()
        .into();
    if stored == Some(hash) {
        return Looked::Unchanged;
    }
    match read::read(path, &bytes) {
        Ok(content) => Looked::Read {
            content,
            hash,
            size: bytes.len() as u64,
        },
        Err(reason) => Looked::Unusable(reason),
    }
}

/// The bytes of a file, or nothing if there are too many, also in one that grows while it is read.
fn bytes_of(path: &Path) -> io::Result<Option<Vec<u8>>> {
    let mut file = std::fs::File::open(path)?;
    let size = file.metadata()?.len();
    if size > MOST_FILE_BYTES {
        return Ok(None);
    }
    let mut bytes = Vec::with_capacity(size as usize);
    file.by_ref()
        .take(MOST_FILE_BYTES + 1)
        .read_to_end(&mut bytes)?;
    Ok((bytes.len() as u64 <= MOST_FILE_BYTES).then_some(bytes))
}
