//! Estimates the number of tokens of a text without a tokenizer, since each model has its own.

/// Maximum length of a word that counts as one token.
const WORD_LETTERS: usize = 8;
/// Digits per token.
const TOKEN_DIGITS: usize = 3;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Run {
    Space,
    Letters,
    Digits,
    Signs,
    /// Letters of other scripts.
    Wide,
}

/// Estimates the tokens of a text. A short word counts as one token; long words, numbers, punctuation and other scripts
/// count by their length.
pub(super) fn estimate(text: &str) -> usize {
    let mut tokens = 0;
    let (mut run, mut length) = (Run::Space, 0);
    for c in text.chars() {
        let next = match c {
            c if c.is_whitespace() => Run::Space,
            c if c.is_ascii_digit() => Run::Digits,
            c if c.is_ascii_alphabetic() => Run::Letters,
            c if c.is_alphanumeric() => Run::Wide,
            _ => Run::Signs,
        };
        if next == run {
            length += 1;
            continue;
        }
        tokens += tokens_of(run, length);
        (run, length) = (next, 1);
    }
    tokens + tokens_of(run, length)
}

fn tokens_of(run: Run, length: usize) -> usize {
    match run {
        Run::Space => 0,
        Run::Letters if length <= WORD_LETTERS => 1,
        Run::Letters => length.div_ceil(5),
        Run::Digits => length.div_ceil(TOKEN_DIGITS),
        Run::Signs | Run::Wide => length.div_ceil(2),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn estimates_are_close_to_a_tokenizers_count() {
        let tokenizer = tiktoken_rs::o200k_base().unwrap();
        let texts = [
            "e115 link \"Garden ticket policy candle\" → /p/0 | \"-5%\" | \"€20.99\" | e117 button \"Add to cart\"",
            "text \"Policy anchor river basket letter, and what else there is to be said about the harbour.\"",
            "e16 combobox \"Country\" value=\"DE\" options: Germany | France | …(+190) [required]",
            "row \"Bob\" | \"3417\" | \"8812\" | \"+12%\" | e22 button \"Edit\" [disabled]",
        ];
        for text in texts {
            let (estimate, exact) = (estimate(text), tokenizer.encode_ordinary(text).len());
            let ratio = estimate as f64 / exact as f64;
            assert!(
                (0.7..1.3).contains(&ratio),
                "{estimate} for {exact}: {text}"
            );
        }
    }
}
