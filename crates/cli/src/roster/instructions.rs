//! The project's own instructions: `AGENTS.md` in the workspace, for the agents whose topology gives it to them.
//!
//! Anybody may have written the file, and agents can write it too. So it is used only as the user trusted it: when it
//! changes, it is left out until it is trusted again.

use super::files::{self, Whose};
use crate::config::Trust;
use lango_engine::ProjectInstructions;
use std::io;
use std::path::{Path, PathBuf};

/// The most KiB of the file that agents are told.
pub(super) const LARGEST_KIB: usize = 32;

/// Where the file is.
pub fn path(workspace: &Path) -> PathBuf {
    workspace.join("AGENTS.md")
}

/// Reads the file, if it exists and is trusted as it is. One that is not trusted, or cannot be, goes to `unheard`.
pub(super) fn read(
    workspace: &Path,
    trust: &Trust,
    unheard: &mut Vec<PathBuf>,
) -> Option<ProjectInstructions> {
    let path = path(workspace);
    match files::read_bytes(&path, Whose::Project, LARGEST_KIB) {
        Ok(bytes) if trust.holds(&path, &bytes) => Some(ProjectInstructions {
            text: text_of(bytes).into(),
            trust: Whose::Project.label(),
        }),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        _ => {
            unheard.push(path);
            None
        }
    }
}

/// The text, cut at the limit with a note.
fn text_of(mut bytes: Vec<u8>) -> String {
    let most = LARGEST_KIB * 1024;
    if bytes.len() <= most {
        return String::from_utf8_lossy(&bytes).into_owned();
    }
    bytes.truncate(most);
    // Half a character at the cut is no fault of the file.
    let text = String::from_utf8_lossy(&bytes);
    let text = text.trim_end_matches(char::REPLACEMENT_CHARACTER);
    format!("{text}\n[AGENTS.md goes on; only its first {LARGEST_KIB} KiB are shown here]")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_text_is_cut_between_characters_with_a_note() {
        let most = LARGEST_KIB * 1024;
        assert_eq!(text_of(vec![b'a'; most]), "a".repeat(most));
        let umlauts = "ä".repeat(most);
        let text = text_of(umlauts.as_bytes()[..=most].to_vec());
        let (shown, note) = text.rsplit_once('\n').unwrap();
        assert_eq!(shown, "ä".repeat(most / 2));
        assert_eq!(
            note,
            "[AGENTS.md goes on; only its first 32 KiB are shown here]"
        );
        let text = text_of(format!("a{umlauts}").as_bytes()[..=most].to_vec());
        assert!(text.starts_with("aä") && !text.contains('\u{fffd}'));
    }
}
