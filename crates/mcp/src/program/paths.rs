//! Paths in the words of a command.

/// A part of a word that may be a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Argument<'a> {
    /// What stands before it in the word.
    pub(super) before: &'a str,
    pub(super) path: &'a str,
}

/// The parts of a word that may be paths: the word itself, what follows a `=` as in `--config=x`, and what follows a
/// leading `@`, which many programs take for a file of further arguments.
pub(super) fn arguments_of(word: &str) -> Vec<Argument<'_>> {
    let mut arguments = vec![Argument {
        before: "",
        path: word,
    }];
    let after_mark = word.starts_with('@').then_some(1);
    let after_equals = word.find('=').map(|at| at + 1);
    for at in after_mark.into_iter().chain(after_equals) {
        let (before, path) = word.split_at(at);
        arguments.push(Argument { before, path });
    }
    arguments
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_found_behind_an_option_and_behind_an_at_sign() {
        let paths = |word| -> Vec<&str> {
            let all = arguments_of(word).into_iter();
            all.map(|argument| argument.path).collect()
        };
        assert_eq!(paths("/a/b"), ["/a/b"]);
        assert_eq!(paths("--require=/a/b"), ["--require=/a/b", "/a/b"]);
        assert_eq!(paths("@/a/b"), ["@/a/b", "/a/b"]);
    }
}
