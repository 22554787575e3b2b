//! Converts call ids to what servers accept. An id may come from another provider's reply.

use super::is_mistral;
use crate::wire::Target;
use lango_core::CallId;
use sha2::{Digest, Sha256};

/// Returns the id of a call in a form that this server accepts.
pub(super) fn call_id(target: &Target<'_>, id: &CallId) -> String {
    if wants_short_ids(target) {
        mistral_id(id)
    } else {
        bounded_id(id)
    }
}

/// Returns whether the target is Mistral's own service, or a server that applies Mistral's chat template to its models.
fn wants_short_ids(target: &Target<'_>) -> bool {
    const FAMILIES: [&str; 6] = [
        "mistral",
        "mixtral",
        "codestral",
        "devstral",
        "magistral",
        "ministral",
    ];
    let model = target.model.to_ascii_lowercase();
    is_mistral(target) || FAMILIES.iter().any(|family| model.contains(family))
}

/// Returns an id of exactly nine letters and digits. Any other id becomes its digest, the same in every request.
fn mistral_id(id: &CallId) -> String {
    const LENGTH: usize = 9;
    let id = id.as_str();
    if id.len() == LENGTH && id.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
        return id.to_owned();
    }
    let digest = Sha256::digest(id.as_bytes());
    let digits = digest
        .iter()
        .map(|byte| b"0123456789abcdefghijklmnopqrstuv"[usize::from(byte % 32)]);
    digits.take(LENGTH).map(char::from).collect()
}

/// Shortens an id to 40 characters, OpenAI's limit.
fn bounded_id(id: &CallId) -> String {
    const HALF: usize = 20;
    let characters: Vec<char> = id.as_str().chars().collect();
    if characters.len() <= 2 * HALF {
        return id.as_str().to_owned();
    }
    let end = characters.len() - HALF;
    characters[..HALF]
        .iter()
        .chain(&characters[end..])
        .collect()
}
