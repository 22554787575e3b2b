//! The kinds of hostile URLs, by class of the address, spelling of the host, scheme, and form of redirect. A short run
//! opens at least one URL of each kind.

use crate::cases::Case;
use std::collections::BTreeSet;

/// Returns the kinds of a URL from the guard's list, given its class.
pub(crate) fn from_list_entry(class: &str, url: &str) -> Vec<String> {
    let scheme = url.split(':').next().unwrap_or_default();
    if class == "scheme" {
        return vec![format!("scheme {scheme}")];
    }
    let rest = url.split("//").nth(1).unwrap_or_default();
    let host = rest.split(['/', '?', '#', '\\']).next().unwrap_or_default();
    vec![class.to_owned(), format!("spelled {}", spelling(host))]
}

fn spelling(host: &str) -> &'static str {
    if !host.is_ascii() {
        return "in Unicode";
    }
    if host.contains('%') {
        return "with escapes";
    }
    if let Some(literal) = host.strip_prefix('[') {
        return spelling_v6(&literal.to_ascii_lowercase());
    }
    let host = host.split(':').next().unwrap_or_default();
    if let Some(dotless) = host.strip_suffix('.') {
        let is_address = dotless
            .bytes()
            .all(|byte| byte.is_ascii_digit() || byte == b'.');
        return if is_address {
            "with a last dot"
        } else {
            "as a name with a last dot"
        };
    }
    let parts: Vec<String> = host.split('.').map(str::to_ascii_lowercase).collect();
    let is_hex = |part: &String| part.starts_with("0x");
    let is_number = |part: &String| {
        is_hex(part) || !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit())
    };
    if !parts.iter().all(is_number) {
        return "as a name";
    }
    let is_octal = |part: &String| part.len() > 1 && part.starts_with('0') && !is_hex(part);
    let has_hex = parts.iter().any(is_hex);
    let has_octal = parts.iter().any(is_octal);
    match (parts.len(), has_hex, has_octal) {
        (1, true, _) => "hexadecimal",
        (1, _, true) => "octal",
        (1, ..) => "decimal",
        (_, true, true) => "in mixed bases",
        (_, true, _) => "dotted hexadecimal",
        (_, _, true) => "dotted octal",
        (2 | 3, ..) => "with too few parts",
        _ => "dotted",
    }
}

fn spelling_v6(literal: &str) -> &'static str {
    let starts_with = |prefix: &str| literal.starts_with(prefix);
    if literal.contains("ffff:") {
        "IPv4-mapped"
    } else if starts_with("64:ff9b") {
        "NAT64"
    } else if starts_with("2002:") {
        "6to4"
    } else if starts_with("2001:") {
        "Teredo"
    } else if literal.contains("5efe") {
        "ISATAP"
    } else if starts_with("::") {
        "IPv4-compatible"
    } else {
        "IPv6"
    }
}

/// Returns a subset of the cases with at least one of each kind, and with all that must be fetched.
pub(crate) fn cover(cases: &[Case]) -> Vec<Case> {
    let mut seen: BTreeSet<&String> = BTreeSet::new();
    let mut chosen = vec![false; cases.len()];
    // First choose cases whose kinds are all new, to keep the subset small.
    for is_first in [true, false] {
        for (case, is_chosen) in cases.iter().zip(&mut chosen) {
            let new = case
                .kinds
                .iter()
                .filter(|kind| !seen.contains(kind))
                .count();
            let is_useful = new > 0 && (!is_first || new == case.kinds.len());
            if is_useful || case.must_be_fetched() {
                *is_chosen = true;
                seen.extend(&case.kinds);
            }
        }
    }
    let chosen = cases.iter().zip(chosen).filter(|(_, is_chosen)| *is_chosen);
    chosen.map(|(case, _)| case.clone()).collect()
}

/// Returns the number of different kinds among the cases.
pub(crate) fn count(cases: &[Case]) -> usize {
    let kinds: BTreeSet<&String> = cases.iter().flat_map(|case| &case.kinds).collect();
    kinds.len()
}
