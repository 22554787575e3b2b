//! The project's own instructions: `AGENTS.md` in the workspace. The topology decides which agents get it.
//!
//! Anyone may have written the file, and agents can change it. So it is used only while its content is the one that
//! the user trusted; after a change it is left out until it is trusted again.

use super::files::{self, FileOwner};
use lango_config::TrustedFiles;
use lango_engine::ProjectInstructions;
use std::io;
use std::path::{Path, PathBuf};

/// The most KiB of the file that agents get.
pub(super) const MAX_KIB: usize = 32;

/// Returns the path of the file.
pub fn path(workspace: &Path) -> PathBuf {
    workspace.join("AGENTS.md")
}

/// Reads the file, if it exists and its current content is trusted. An untrusted or unreadable file is added to
/// `untrusted_files`.
pub(super) fn read(
    workspace: &Path,
    trust: &TrustedFiles,
    untrusted_files: &mut Vec<PathBuf>,
) -> Option<ProjectInstructions> {
    let path = path(workspace);
    match files::read_bytes(&path, FileOwner::Project, MAX_KIB) {
        Ok(bytes) if trust.is_trusted(&path, &bytes) => Some(ProjectInstructions {
            text: text_of(bytes).into(),
            trust: FileOwner::Project.trust_label(),
        }),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        _ => {
            untrusted_files.push(path);
            None
        }
    }
}

/// Converts the content to text, truncated at the limit with a note.
fn text_of(mut bytes: Vec<u8>) -> String {
    let max_bytes = MAX_KIB * 1024;
    if bytes.len() <= max_bytes {
        return String::from_utf8_lossy(&bytes).into_owned();
    }
    bytes.truncate(max_bytes);
    // A partial character at the cut is not an error in the file.
    let text = String::from_utf8_lossy(&bytes);
    let text = text.trim_end_matches(char::REPLACEMENT_CHARACTER);
    format!("{text}\n[AGENTS.md continues; only its first {MAX_KIB} KiB are shown here]")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_text_is_truncated_between_characters_with_a_note() {
        let max_bytes = MAX_KIB * 1024;
        assert_eq!(text_of(vec![b'a'; max_bytes]), "a".repeat(max_bytes));
        let umlauts = "ä".repeat(max_bytes);
        let text = text_of(umlauts.as_bytes()[..=max_bytes].to_vec());
        let (shown, note) = text.rsplit_once('\n').unwrap();
        assert_eq!(shown, "ä".repeat(max_bytes / 2));
        assert_eq!(
            note,
            "[AGENTS.md continues; only its first 32 KiB are shown here]"
        );
        let text = text_of(format!("a{umlauts}").as_bytes()[..=max_bytes].to_vec());
        assert!(text.starts_with("aä") && !text.contains('\u{fffd}'));
    }
}
