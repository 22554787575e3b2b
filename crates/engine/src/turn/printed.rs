//! What a call had printed when it was stopped. It is all that is known of the call, so it is stored with its result, and
//! the next turn sees the end of it.

use lango_core::{CallId, Text, Trust};

/// The masked output of a call that was stopped before its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PrintedOutput {
    pub call: CallId,
    /// The end of the output, of bounded size.
    pub text: String,
    /// Whether the call printed more before this.
    pub is_cut: bool,
}

impl PrintedOutput {
    /// The maximum size of what the next turn sees of an output.
    const QUOTED_BYTES: usize = 1200;

    /// Returns the end of the output as a code block inside a list item. Indentation, unlike a fence, cannot be closed by the
    /// output.
    pub(super) fn quote(&self) -> String {
        let end = end_of_lines(&self.text, Self::QUOTED_BYTES);
        let what = if self.is_cut || end.len() < self.text.len() {
            "at the end it had printed"
        } else {
            "it had printed"
        };
        let lines = end.lines().map(|line| format!("\n      {line}"));
        format!("; {what}:\n{}\n", lines.collect::<String>())
    }
}

/// Returns the result of a call that was stopped, and its trust label: why it was stopped, then what it had printed.
pub(crate) fn stopped_result(
    reason: &str,
    call: &CallId,
    printed: &[PrintedOutput],
) -> (Text, Trust) {
    match printed.iter().find(|output| output.call == *call) {
        None => (reason.into(), Trust::Trusted),
        Some(PrintedOutput { text, is_cut, .. }) => {
            let cut = if *is_cut {
                "[only the end of the output is stored]\n"
            } else {
                ""
            };
            (format!("{reason}\n{cut}{text}").into(), Trust::Untrusted)
        }
    }
}

/// Returns the end of a text, which starts with a whole line unless the last line alone is too long.
pub(crate) fn end_of_lines(text: &str, max_bytes: usize) -> &str {
    let start = text.ceil_char_boundary(text.len().saturating_sub(max_bytes));
    let end = &text[start..];
    if start == 0 || text[..start].ends_with('\n') {
        return end;
    }
    match end.split_once('\n') {
        Some((_, lines)) if !lines.is_empty() => lines,
        _ => end,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_result_says_why_the_call_was_stopped_and_whether_its_output_is_cut() {
        let call = CallId::from("c_1");
        let result = |printed: &[PrintedOutput]| stopped_result("stopped", &call, printed);
        let output = |call: &str, is_cut| PrintedOutput {
            call: call.into(),
            text: "1\n2".to_owned(),
            is_cut,
        };
        assert_eq!(
            result(&[output("c_2", true)]),
            ("stopped".into(), Trust::Trusted)
        );
        assert_eq!(
            result(&[output("c_2", true), output("c_1", false)]),
            ("stopped\n1\n2".into(), Trust::Untrusted)
        );
        assert_eq!(
            *result(&[output("c_1", true)]).0,
            *"stopped\n[only the end of the output is stored]\n1\n2"
        );
    }

    #[test]
    fn a_quote_is_a_bounded_code_block() {
        let quote = |text: &str| {
            let output = PrintedOutput {
                call: "c_1".into(),
                text: text.to_owned(),
                is_cut: false,
            };
            output.quote()
        };
        assert_eq!(
            quote("```\n# b"),
            "; it had printed:\n\n      ```\n      # b\n"
        );
        let long = quote(&"a line\n".repeat(1000));
        assert!(
            long.starts_with("; at the end it had printed:\n\n      a line\n"),
            "{long}"
        );
        assert!(long.len() < 3 * PrintedOutput::QUOTED_BYTES);
    }
}
