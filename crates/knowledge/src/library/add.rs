//! Adds files and folders: reads changed files again, removes documents whose files no longer exist, and skips the
//! rest.
//!
//! Each document is written in one or a few transactions, and the last one marks it complete. So adding can be
//! interrupted at any time, and continues where it stopped when it is run again.

use super::batch::{Batch, PreparedDocument};
use super::read::{self, Content, MAX_FILE_BYTES, READER_VERSION};
use super::walk::{Walk, walk};
use super::{DOCUMENTS, KNOWLEDGE, LEARNINGS, Library, LibraryError};
use lango_core::{Provenance, SessionId, Trust, UserId};
use lango_store::{CollectionId, DeleteMode, DocumentFilter, DocumentRow, NewDocument};
use sha2::{Digest as _, Sha256};
use std::collections::BTreeMap;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

/// The number of documents per page when listing.
const PAGE: usize = 1000;

/// Maximum number of skipped files per report.
const MAX_SKIPPED: usize = 1000;

/// Options for adding documents.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AddOptions {
    /// The collection; default `documents`.
    pub collection: Option<String>,
    /// The only session that sees them; default all sessions of the user.
    pub session: Option<SessionId>,
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

/// The progress of adding, reported after each file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AddProgress<'a> {
    /// The number of processed files, including this one.
    pub done: usize,
    pub total: usize,
    /// The path of the file.
    pub source: &'a str,
    pub added: FileOutcome,
}

/// What happened to a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileOutcome {
    New,
    Changed,
    Unchanged,
    /// It could not be read or used.
    Skipped,
}

/// The result of adding files and folders.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AddReport {
    /// New documents.
    pub added: usize,
    /// Changed documents.
    pub updated: usize,
    pub unchanged: usize,
    /// Documents removed because their files no longer exist or became unusable.
    pub removed: usize,
    /// Chunks written.
    pub chunks: usize,
    pub skipped: usize,
    /// The first 1000 skipped files, each with the reason.
    pub reasons: Vec<SkippedFile>,
}

/// A file that was skipped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SkippedFile {
    /// The path of the file.
    pub source: String,
    pub reason: String,
}

impl Library {
    /// Adds files and folders to a user's library, and updates the documents that were added from them earlier.
    pub async fn add(
        &self,
        user: &UserId,
        paths: &[PathBuf],
        options: &AddOptions,
        progress: &(dyn Fn(AddProgress<'_>) + Send + Sync),
    ) -> Result<AddReport, LibraryError> {
        self.check_embedding_model().await?;
        let name = options.collection.as_deref().unwrap_or(DOCUMENTS);
        if name.trim().is_empty() || [KNOWLEDGE, LEARNINGS].contains(&name) {
            return Err(LibraryError::Unusable {
                problem: format!(
                    "`{name}` cannot be the name of a document collection; choose another"
                ),
            });
        }
        let session = options.session.as_ref();
        let collection = self.store.collection(user, name, session).await?;
        let mut report = AddReport::default();
        for path in paths {
            let target = AddTarget {
                library: self,
                user,
                collection,
                trust: options.trust,
            };
            target.add(path, progress, &mut report).await?;
        }
        Ok(report)
    }
}

/// The collection that files are added to.
struct AddTarget<'a> {
    library: &'a Library,
    user: &'a UserId,
    collection: CollectionId,
    trust: Trust,
}

impl AddTarget<'_> {
    async fn add(
        &self,
        path: &Path,
        progress: &(dyn Fn(AddProgress<'_>) + Send + Sync),
        report: &mut AddReport,
    ) -> Result<(), LibraryError> {
        let wanted = path.to_owned();
        let walked = tokio::task::spawn_blocking(move || walk(&wanted)).await?;
        let no_such_path = || LibraryError::NoSuchPath {
            path: path.to_owned(),
        };
        let walk = walked.map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => no_such_path(),
            kind => LibraryError::Unusable {
                problem: format!("`{}` cannot be read: {kind}", path.display()),
            },
        })?;
        let mut known = self.stored_below(&walk.root).await?;
        if walk.files.is_empty() && known.is_empty() && !Path::new(&walk.root).exists() {
            return Err(no_such_path());
        }

        let mut batch = Batch::new(self.library, self.user);
        for (done, source) in (1..).zip(&walk.files) {
            let known = known.remove(source);
            let added = self.add_file(source, known, &mut batch, report).await?;
            progress(AddProgress {
                done,
                total: walk.files.len(),
                source,
                added,
            });
        }
        report.chunks += batch.finish().await?;
        self.remove_missing(&walk, known, report).await?;
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
    ) -> Result<FileOutcome, LibraryError> {
        let stored = known
            .as_ref()
            .filter(|known| known.is_complete && known.source.trust == self.trust);
        let stored = stored.and_then(|known| <[u8; 32]>::try_from(known.hash.as_slice()).ok());
        let file = PathBuf::from(source);
        let state = tokio::task::spawn_blocking(move || inspect_file(&file, stored)).await?;
        match state {
            FileState::Unchanged => {
                report.unchanged += 1;
                Ok(FileOutcome::Unchanged)
            }
            FileState::Unreadable(reason) => {
                report.skip(SkippedFile {
                    source: source.to_owned(),
                    reason,
                });
                Ok(FileOutcome::Skipped)
            }
            FileState::Unusable(reason) => {
                // The stored document no longer matches the file.
                if let Some(known) = known {
                    self.library
                        .store
                        .remove_document(self.user, known.id, DeleteMode::Normal)
                        .await?;
                    report.removed += 1;
                }
                report.skip(SkippedFile {
                    source: source.to_owned(),
                    reason,
                });
                Ok(FileOutcome::Skipped)
            }
            FileState::Read {
                content,
                hash,
                size,
            } => {
                let document = NewDocument {
                    collection: self.collection,
                    source: Provenance {
                        name: source.into(),
                        trust: self.trust,
                    },
                    title: content.title.as_str().into(),
                    hash,
                    size,
                    added: self.library.clock.now(),
                };
                let replaces = known.map(|known| known.id);
                let prepared =
                    PreparedDocument::new(document, content.title, content.chunks, replaces);
                report.chunks += batch.push(prepared).await?;
                if replaces.is_some() {
                    report.updated += 1;
                    Ok(FileOutcome::Changed)
                } else {
                    report.added += 1;
                    Ok(FileOutcome::New)
                }
            }
        }
    }

    /// Returns the stored documents from this file or from below this folder.
    async fn stored_below(
        &self,
        root: &str,
    ) -> Result<BTreeMap<String, DocumentRow>, LibraryError> {
        let store = &self.library.store;
        let mut known = BTreeMap::new();
        let folder = root.trim_end_matches('/');
        // The path itself, and those that continue with `/`, whose successor is `0`.
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
                    limit: PAGE,
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

    async fn remove_missing(
        &self,
        walk: &Walk,
        known: BTreeMap<String, DocumentRow>,
        report: &mut AddReport,
    ) -> Result<(), LibraryError> {
        if !walk.is_complete {
            // Files in a folder that cannot be read now may still exist.
            return Ok(());
        }
        for gone in known.into_values() {
            self.library
                .store
                .remove_document(self.user, gone.id, DeleteMode::Normal)
                .await?;
            report.removed += 1;
        }
        Ok(())
    }
}

impl AddReport {
    fn skip(&mut self, skipped: SkippedFile) {
        self.skipped += 1;
        if self.reasons.len() < MAX_SKIPPED {
            self.reasons.push(skipped);
        }
    }
}

/// The state of a file compared with the stored document.
enum FileState {
    Unchanged,
    /// The operating system returned an error.
    Unreadable(String),
    /// The file was read but contains nothing usable.
    Unusable(String),
    Read {
        content: Content,
        hash: [u8; 32],
        size: u64,
    },
}

fn inspect_file(path: &Path, stored: Option<[u8; 32]>) -> FileState {
    let bytes = match bytes_of(path) {
        Ok(Some(bytes)) => bytes,
        Ok(None) => {
            let most = MAX_FILE_BYTES / 1_000_000;
            return FileState::Unusable(format!("it is larger than {most} MB"));
        }
        Err(error) => return FileState::Unreadable(error.to_string()),
    };
    let hash = Sha256::new()
        .chain_update([READER_VERSION])
        .chain_update(&bytes)
        .finalize()
        .into();
    if stored == Some(hash) {
        return FileState::Unchanged;
    }
    match read::read(path, &bytes) {
        Ok(content) => FileState::Read {
            content,
            hash,
            size: bytes.len() as u64,
        },
        Err(reason) => FileState::Unusable(reason),
    }
}

/// Reads a file; `None` if it is too large, even if it grows while it is read.
fn bytes_of(path: &Path) -> io::Result<Option<Vec<u8>>> {
    let mut file = std::fs::File::open(path)?;
    let size = file.metadata()?.len();
    if size > MAX_FILE_BYTES {
        return Ok(None);
    }
    let mut bytes = Vec::with_capacity(size as usize);
    file.by_ref()
        .take(MAX_FILE_BYTES + 1)
        .read_to_end(&mut bytes)?;
    Ok((bytes.len() as u64 <= MAX_FILE_BYTES).then_some(bytes))
}
