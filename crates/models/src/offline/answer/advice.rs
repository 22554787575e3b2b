//! Removes the advice that errors give to models.

/// How clauses start that tell a model what to do next. A user could not follow them.
const ADVICE: &[&str] = &[
    "answer ",
    "ask the user",
    "ask what ",
    "call again",
    "check with ",
    "choose another ",
    "continue ",
    "copy ",
    "correct it",
    "delegate ",
    "do not ",
    "end it with ",
    "give ",
    "leave it",
    "list its entries",
    "list the ",
    "only files inside it can be reached, pass",
    "pass ",
    "read the exact ",
    "repeat it ",
    "say ",
    "search a folder ",
    "see them with ",
    "set a smaller ",
    "set `",
    "start from there",
    "tell the user",
    "use your own ",
    "write inside ",
    "you have no tools",
    "your tools are",
];

/// Returns the text without the clauses that only a model can follow. The first clause says what happened and stays.
pub(super) fn without_advice(text: &str) -> String {
    let text = text.trim();
    let mut clauses = text.split("; ");
    let mut shown = clauses.next().unwrap_or_default().to_owned();
    for clause in clauses.filter(|clause| !is_advice(clause)) {
        shown.push_str("; ");
        shown.push_str(clause.strip_suffix(", or tell the user").unwrap_or(clause));
    }
    let end = shown.strip_suffix(", tell the user").map(str::len);
    shown.truncate(end.unwrap_or(shown.len()));
    shown
}

fn is_advice(clause: &str) -> bool {
    ADVICE.iter().any(|start| clause.starts_with(start))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_advice_is_removed() {
        for (text, shown) in [
            ("it failed", "it failed"),
            ("it failed; try again later", "it failed; try again later"),
            (
                "stopped after 3 s: its outcome is unknown; do not repeat it, tell the user",
                "stopped after 3 s: its outcome is unknown",
            ),
            (
                "all failed; try again later, or tell the user",
                "all failed; try again later",
            ),
            (
                "there is no tool `x`; you have no tools",
                "there is no tool `x`",
            ),
        ] {
            assert_eq!(without_advice(text), shown);
        }
    }
}
