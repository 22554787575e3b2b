//! Formats an error with its causes on one line.

use std::error::Error;

/// The limit on the causes to follow, in case a chain is circular.
const MAX_CAUSES: usize = 8;

/// Joins an error and its causes with colons. Skips a cause whose text the line already contains.
pub fn error_chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let causes = std::iter::successors(error.source(), |&cause| cause.source());
    for cause in causes.take(MAX_CAUSES) {
        let cause = cause.to_string();
        if !text.contains(&cause) {
            text.push_str(": ");
            text.push_str(&cause);
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fmt;

    #[derive(Debug)]
    struct Layer(&'static str, Option<Box<Layer>>);

    impl fmt::Display for Layer {
        fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
            formatter.write_str(self.0)
        }
    }

    impl Error for Layer {
        fn source(&self) -> Option<&(dyn Error + 'static)> {
            self.1.as_deref().map(|cause| cause as _)
        }
    }

    #[test]
    fn causes_are_joined_and_repeated_ones_skipped() {
        let inner = Layer("no such file", None);
        let repeated = Layer("cannot open", Some(Box::new(inner)));
        let outer = Layer("cannot open `a`", Some(Box::new(repeated)));
        assert_eq!(error_chain(&outer), "cannot open `a`: no such file");
    }
}
