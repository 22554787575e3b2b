//! Maps a server's `finish_reason` to lango's stop reason.

use crate::fault::filtered_categories;
use lango_core::StopReason;
use serde_json::Value;

/// Returns the stop reason of a choice; `None` if it has not ended.
pub(super) fn reason(choice: &Value) -> Option<StopReason> {
    let filtered = |detail: String| StopReason::Filtered {
        detail: detail.into(),
    };
    match choice["finish_reason"].as_str()? {
        "length" | "model_length" | "max_tokens" => Some(StopReason::OutputLimit),
        "content_filter" => Some(filtered(
            match filtered_categories(&choice["content_filter_results"]) {
                Some(categories) => {
                    format!("the provider's content filter stopped it ({categories})")
                }
                None => "the provider's content filter stopped it".to_owned(),
            },
        )),
        reason @ ("safety" | "recitation") => {
            Some(filtered(format!("the provider stopped it ({reason})")))
        }
        _ => Some(StopReason::Finished),
    }
}
