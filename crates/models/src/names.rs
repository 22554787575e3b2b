//! Function names that a provider takes. Tools may have names it forbids; they are sent under others and called back by
//! their own.

use lango_core::Function;
use std::collections::BTreeMap;

/// Names as they are sent.
pub(crate) struct Names {
    sent: BTreeMap<String, String>,
}

impl Names {
    pub fn of(functions: &[Function]) -> Self {
        let mut sent = BTreeMap::new();
        for function in functions {
            let plain: String = function
                .name
                .chars()
                .map(|c| {
                    if c.is_ascii_alphanumeric() || matches!(c, '_' | '-') {
                        c
                    } else {
                        '_'
                    }
                })
                .take(60)
                .collect();
            let mut name = plain.clone();
            let mut number = 2;
            while sent.contains_key(&name) {
                name = format!("{plain}_{number}");
                number += 1;
            }
            sent.insert(name, function.name.to_string());
        }
        Self { sent }
    }

    /// The name under which a function is sent.
    pub fn sent<'a>(&'a self, name: &'a str) -> &'a str {
        self.sent
            .iter()
            .find(|(_, own)| *own == name)
            .map_or(name, |(sent, _)| sent)
    }

    /// The function's own name.
    pub fn own<'a>(&'a self, sent: &'a str) -> &'a str {
        self.sent.get(sent).map_or(sent, String::as_str)
    }
}
