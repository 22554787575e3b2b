//! The attachments of a session that is imported: each stands before the first event that refers to it, and every one that an
//! event refers to is there.

use lango_core::{EventBody, Text};
use lango_store::archive::SessionRecord;
use lango_store::archive::line::AttachmentLine;
use std::collections::BTreeSet;

/// The digests that were read of a session.
#[derive(Debug, Default)]
pub(super) struct GivenAttachments {
    all: BTreeSet<Text>,
    /// Those that no event referred to yet.
    unreferenced: BTreeSet<Text>,
}

impl GivenAttachments {
    /// Takes the line of an attachment.
    pub(super) fn give(
        &mut self,
        session: &SessionRecord,
        attachment: &AttachmentLine,
    ) -> Result<(), String> {
        let digest = &attachment.digest;
        if attachment.session != session.id {
            return Err(format!(
                "attachment `{digest}` is of session `{}`, not of `{}`",
                attachment.session, session.id
            ));
        }
        if !self.all.insert(digest.clone()) {
            return Err(format!("attachment `{digest}` is there twice"));
        }
        self.unreferenced.insert(digest.clone());
        Ok(())
    }

    /// Takes an event: the attachments before it are its own, and none of its own is missing.
    pub(super) fn refer(&mut self, body: &EventBody) -> Result<(), String> {
        for attachment in body.attachments() {
            if !self.all.contains(&attachment.digest) {
                return Err(format!(
                    "its attachment `{}` is missing: the file has no line with digest `{}` before it",
                    attachment.name, attachment.digest
                ));
            }
            self.unreferenced.remove(&attachment.digest);
        }
        self.finish()
    }

    /// Checks that an event refers to every attachment.
    pub(super) fn finish(&self) -> Result<(), String> {
        match self.unreferenced.first() {
            Some(digest) => Err(format!(
                "the event after attachment `{digest}` does not refer to it"
            )),
            None => Ok(()),
        }
    }
}
