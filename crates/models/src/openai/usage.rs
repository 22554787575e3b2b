//! Token usage as the servers report it.

use lango_core::Usage;
use serde_json::Value;

/// Parses a `usage` object.
pub(super) fn read(usage: &Value) -> Usage {
    let number = |pointer: &str| usage.pointer(pointer).and_then(Value::as_u64);
    let first = |pointers: &[&str]| {
        pointers
            .iter()
            .find_map(|pointer| number(pointer))
            .unwrap_or(0)
    };
    let input_tokens = first(&["/prompt_tokens"]);
    let completion_tokens = first(&["/completion_tokens"]);
    let reasoning_tokens = first(&[
        "/completion_tokens_details/reasoning_tokens",
        "/reasoning_tokens",
    ]);
    // xAI does not include reasoning in the completion tokens, which only the total reveals.
    let separate_total = input_tokens
        .saturating_add(completion_tokens)
        .saturating_add(reasoning_tokens);
    let is_separate = reasoning_tokens > 0 && number("/total_tokens") == Some(separate_total);
    Usage {
        input_tokens,
        cached_tokens: first(&[
            "/prompt_tokens_details/cached_tokens",
            "/prompt_token_details/cached_tokens",
            "/num_cached_tokens",
            "/cached_tokens",
            "/prompt_cache_hit_tokens",
        ]),
        cache_write_tokens: first(&[
            "/prompt_tokens_details/cache_write_tokens",
            "/prompt_tokens_details/cache_creation_tokens",
            "/cache_creation_input_tokens",
        ]),
        output_tokens: if is_separate {
            completion_tokens.saturating_add(reasoning_tokens)
        } else {
            completion_tokens
        },
        reasoning_tokens,
    }
}
