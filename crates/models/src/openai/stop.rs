//! Why a server says that a reply ended.

use crate::fault::filtered_categories;
use lango_core::StopReason;
use serde_json::Value;

/// The reason of a choice that came to its end.
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
