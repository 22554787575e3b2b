//! Selects the memories for a prompt, within its token budget.
//!
//! There are four sections, the most condensed first. Each gets a quarter of the space plus what the sections before it
//! did not use. So no section crowds out another, and all of the space can be used.

use super::entry::MemoryEntry;
use super::{Memory, TOKEN_BYTES, prompt};
use lango_core::{MemoryContext, StoreError, Trust};
use lango_store::MemoryOwner;

/// Maximum number of considered entries per section.
const MAX_ENTRIES: usize = 64;

/// Builds the memory block for a session's prompt.
pub(super) async fn block(
    memory: &Memory,
    owner: &MemoryOwner,
) -> Result<Option<MemoryContext>, StoreError> {
    let shown = memory.rows().prompt_memory(owner, MAX_ENTRIES).await?;
    let mut sections = Vec::with_capacity(4);
    for recollections in shown.recollections {
        sections.push(recollections.into_iter().map(MemoryEntry::from).collect());
    }
    sections.push(shown.saved.into_iter().map(MemoryEntry::from).collect());
    Ok(fit(sections, memory.inner.settings.context_tokens))
}

fn fit(sections: Vec<Vec<MemoryEntry>>, max_tokens: u64) -> Option<MemoryContext> {
    let max_bytes = usize::try_from(max_tokens.saturating_mul(TOKEN_BYTES)).unwrap_or(usize::MAX);
    let space = max_bytes.checked_sub(prompt::context("").len())?;
    let share = space / sections.len().max(1);
    let mut lines = String::new();
    let mut trust = Trust::Trusted;
    for (index, section) in sections.into_iter().enumerate() {
        let end = share.saturating_mul(index + 1);
        for entry in section {
            let entry_trust = entry.source.trust;
            if let Some(line) = entry.line_within(end.saturating_sub(lines.len())) {
                lines.push_str(&line);
                trust = trust.and(entry_trust);
            }
        }
    }
    (!lines.is_empty()).then(|| MemoryContext {
        text: prompt::context(&lines).into(),
        trust,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use lango_core::{Provenance, Timestamp};
    use lango_store::{Generation, MemoryId};
    use proptest::prelude::*;

    fn entry(number: u64, text: String) -> MemoryEntry {
        MemoryEntry {
            id: MemoryId::Reflection(number),
            created: Timestamp(number),
            turns: Some((number, number)),
            generation: Some(Generation::First),
            tags: Vec::new(),
            source: Provenance {
                name: "rules".into(),
                trust: Trust::Untrusted,
            },
            text,
        }
    }

    proptest! {
        #[test]
        fn the_block_never_exceeds_its_budget(
            texts in proptest::collection::vec(proptest::collection::vec("(?s).{0,400}", 0..6), 4),
            tokens in 0_u64..2000,
        ) {
            let sections = texts.into_iter().map(|texts| {
                texts.into_iter().zip(1..).map(|(text, number)| entry(number, text)).collect()
            });
            if let Some(MemoryContext { text: block, .. }) = fit(sections.collect(), tokens) {
                prop_assert!(crate::memory::tokens(&block) <= tokens);
                prop_assert!(block.starts_with("<memory>\n") && block.ends_with("\n</memory>"));
                prop_assert_eq!(block.matches("</memory>").count(), 1);
            }
        }
    }

    #[test]
    fn no_section_is_crowded_out() {
        let long = || vec![entry(1, "x".repeat(20_000)), entry(2, "y".repeat(20_000))];
        let short = vec![entry(9, "the last".to_owned())];
        let block = fit(vec![long(), long(), long(), short], 1000).unwrap().text;
        assert!(block.contains("\"text\":\"the last\""));
        assert_eq!(block.matches("…\"}").count(), 3);
    }
}
