//! Stores the files of a message or a result before the event that refers to them, and loads them for a model or a
//! remote agent.

use super::{RunnerError, RunnerParts};
use crate::attachments::check_files;
use crate::turn;
use lango_core::{
    AttachedFile, Attachment, Message, ModelRequest, StoreError, Text, UserId, UserInput,
};
use std::sync::Arc;

/// Stores the new files of a question. If one cannot be attached, the whole question is rejected.
pub(super) async fn store_question(
    parts: &RunnerParts,
    user: &UserId,
    question: &mut UserInput,
) -> Result<(), RunnerError> {
    if question.files.is_empty() {
        return match question.attachments.first() {
            Some(first) if parts.attachments.is_none() => Err(RunnerError::AttachmentRejected {
                problem: not_attached(&first.name),
            }),
            _ => Ok(()),
        };
    }
    let stored = store_checked(parts, user, std::mem::take(&mut question.files)).await?;
    question.attachments.extend(stored);
    check_text_size(parts, &question.attachments)
}

/// Rejects attached text that exceeds the model's context window, because the model would answer without seeing it.
fn check_text_size(parts: &RunnerParts, attachments: &[Attachment]) -> Result<(), RunnerError> {
    let text = attachments.iter().filter(|file| file.is_text());
    let bytes: u64 = text.map(|file| file.size).sum();
    let needed = turn::tokens(usize::try_from(bytes).unwrap_or(usize::MAX));
    match parts.model.info().context_tokens {
        Some(window) if needed > window / 4 * 3 => Err(RunnerError::AttachmentRejected {
            problem: format!(
                "the attached text has about {needed} tokens; the context window of `{}` is {window}, of which a quarter \
                 is reserved for the answer. Attach a part of it, or `lango knowledge add` it and ask the librarian",
                parts.model.name()
            ),
        }),
        _ => Ok(()),
    }
}

/// Validates files and stores them, all or none.
pub(super) async fn store_checked(
    parts: &RunnerParts,
    user: &UserId,
    files: Vec<AttachedFile>,
) -> Result<Vec<Attachment>, RunnerError> {
    let (files, refused) = check_files(files);
    let (stored, omitted) = if refused.is_empty() {
        store_files(parts, user, files).await?
    } else {
        (Vec::new(), refused)
    };
    match omitted.into_iter().next() {
        Some(problem) => Err(RunnerError::AttachmentRejected { problem }),
        None => Ok(stored),
    }
}

/// Stores validated files and returns their references in the same order. Without a store for files, returns a sentence
/// about each instead.
pub(super) async fn store_files(
    parts: &RunnerParts,
    user: &UserId,
    files: Vec<AttachedFile>,
) -> Result<(Vec<Attachment>, Vec<String>), StoreError> {
    let Some(store) = &parts.attachments else {
        let omitted = files.iter().map(|file| not_attached(&file.name));
        return Ok((Vec::new(), omitted.collect()));
    };
    let mut stored = Vec::with_capacity(files.len());
    for file in files {
        let size = file.bytes.len() as u64;
        stored.push(Attachment {
            digest: store.put(user, file.bytes).await?,
            name: file.name.into(),
            media_type: file.media_type,
            size,
        });
    }
    Ok((stored, Vec::new()))
}

fn not_attached(name: &str) -> String {
    format!("`{name}` is not attached: this store keeps no files")
}

/// Loads the bytes of the attachments in a request.
pub(super) async fn load_contents(
    parts: &RunnerParts,
    user: &UserId,
    request: &mut ModelRequest,
) -> Result<(), StoreError> {
    let Some(store) = &parts.attachments else {
        return Ok(());
    };
    for message in &request.messages {
        let (Message::User { attachments, .. } | Message::Result { attachments, .. }) = message
        else {
            continue;
        };
        for attachment in attachments {
            let digest = &attachment.digest;
            if request.contents.contains_key(digest) {
                continue;
            }
            if let Some(bytes) = store.read(user, digest).await? {
                request.contents.insert(Text::clone(digest), bytes);
            }
        }
    }
    Ok(())
}

/// Loads files for a remote agent. Also returns the names of files whose content was deleted.
pub(super) async fn read_files(
    parts: &RunnerParts,
    user: &UserId,
    attachments: &[Attachment],
) -> Result<(Vec<AttachedFile>, Vec<Text>), StoreError> {
    let (mut files, mut gone) = (Vec::new(), Vec::new());
    for attachment in attachments {
        let bytes = match &parts.attachments {
            Some(store) => store.read(user, &attachment.digest).await?,
            None => None,
        };
        match bytes {
            Some(bytes) => files.push(AttachedFile {
                name: attachment.name.to_string(),
                media_type: Text::clone(&attachment.media_type),
                bytes: Arc::clone(&bytes),
            }),
            None => gone.push(Text::clone(&attachment.name)),
        }
    }
    Ok((files, gone))
}
