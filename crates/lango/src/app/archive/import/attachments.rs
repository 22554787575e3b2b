//! Checks the attachments of an imported session: each must come before the first event that refers to it, and none
//! may be missing.

use lango_core::{EventBody, Text};
use lango_store::archive::SessionRecord;
use lango_store::archive::line::AttachmentLine;
use std::collections::BTreeSet;

/// The digests of the attachments read so far.
#[derive(Debug, Default)]
pub(super) struct SeenAttachments {
    all: BTreeSet<Text>,
    /// Digests that no event has referred to yet.
    unreferenced: BTreeSet<Text>,
}

impl SeenAttachments {
    /// Adds the line of an attachment.
    pub(super) fn add(
        &mut self,
        session: &SessionRecord,
        attachment: &AttachmentLine,
    ) -> Result<(), String> {
        let digest = &attachment.digest;
        if attachment.session != session.id {
            return Err(format!(
                "attachment `{digest}` belongs to session `{}`, not to `{}`",
                attachment.session, session.id
            ));
        }
        if !self.all.insert(digest.clone()) {
            return Err(format!("attachment `{digest}` occurs twice"));
        }
        self.unreferenced.insert(digest.clone());
        Ok(())
    }

    /// Checks an event: all attachments that it refers to must have been read, and it must refer to every attachment
    /// that no earlier event refers to.
    pub(super) fn check_event(&mut self, body: &EventBody) -> Result<(), String> {
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

    /// Checks that every attachment has been referred to.
    pub(super) fn finish(&self) -> Result<(), String> {
        match self.unreferenced.first() {
            Some(digest) => Err(format!(
                "the event after attachment `{digest}` does not refer to it"
            )),
            None => Ok(()),
        }
    }
}
