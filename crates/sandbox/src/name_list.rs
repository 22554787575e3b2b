//! A list of file names with a value for each. A name matches in any letter case. `*` at its start or end matches the
//! rest of a name, and `a/b` is the name `b` in a directory `a`.

use std::collections::HashMap;
use std::ffi::OsStr;

/// The required name of the parent directory, if any, and the value.
type ExactName<V> = (Option<Vec<u8>>, V);

/// A part of a name, the required name of the parent directory, if any, and the value.
type PartialName<V> = (Vec<u8>, Option<Vec<u8>>, V);

/// The names with their values. If several match, the greatest value counts.
pub(crate) struct NameList<V> {
    /// Entries by their last component in lower case.
    exact: HashMap<Vec<u8>, Vec<ExactName<V>>>,
    starts: Vec<PartialName<V>>,
    ends: Vec<PartialName<V>>,
    /// The possible first bytes of names, except names that are matched by their end.
    first_bytes: [bool; 256],
}

impl<V> Default for NameList<V> {
    fn default() -> Self {
        Self {
            exact: HashMap::new(),
            starts: Vec::new(),
            ends: Vec::new(),
            first_bytes: [false; 256],
        }
    }
}

impl<V: Copy + Ord> NameList<V> {
    pub(crate) fn add(&mut self, name: &str, value: V) {
        let name = name.to_ascii_lowercase();
        let (parent, last) = match name.split_once('/') {
            Some((parent, last)) => (Some(parent.as_bytes().to_vec()), last),
            None => (None, &*name),
        };
        if let Some(end) = last.strip_prefix('*') {
            self.ends.push((end.into(), parent, value));
            return;
        }
        if let Some(first) = last.bytes().next() {
            self.first_bytes[usize::from(first)] = true;
            self.first_bytes[usize::from(first.to_ascii_uppercase())] = true;
        }
        if let Some(start) = last.strip_suffix('*') {
            self.starts.push((start.into(), parent, value));
        } else {
            let same_name = self.exact.entry(last.into()).or_default();
            same_name.push((parent, value));
        }
    }

    /// Returns the value of a name in a directory.
    pub(crate) fn find(&self, parent: Option<&OsStr>, name: &OsStr) -> Option<V> {
        let name = name.as_encoded_bytes();
        let lies_in = |wanted: &Option<Vec<u8>>| match wanted {
            Some(wanted) => {
                parent.is_some_and(|parent| parent.as_encoded_bytes().eq_ignore_ascii_case(wanted))
            }
            None => true,
        };
        let by_end = self
            .ends
            .iter()
            .filter(|(end, wanted, _)| {
                let tail = name.len().checked_sub(end.len()).map(|at| &name[at..]);
                tail.is_some_and(|tail| tail.eq_ignore_ascii_case(end)) && lies_in(wanted)
            })
            .map(|(.., value)| *value);
        // Fast path: nearly all names in a workspace return here.
        let first = name.first().copied().unwrap_or_default();
        if !self.first_bytes[usize::from(first)] {
            return by_end.max();
        }
        let lower = name.to_ascii_lowercase();
        let by_start = self
            .starts
            .iter()
            .filter(|(start, wanted, _)| lower.starts_with(start) && lies_in(wanted))
            .map(|(.., value)| *value);
        let exact = self.exact.get(&lower).into_iter().flatten();
        let by_name = exact
            .filter(|(wanted, _)| lies_in(wanted))
            .map(|(_, value)| *value);
        by_name.chain(by_start).chain(by_end).max()
    }
}
