//! A generic plan, made from the words of the request.

/// Maximum number of steps that name a piece of the goal.
const MAX_PIECES: usize = 5;

/// Writes a numbered plan for a goal such as `a release by Friday: tests, changelog and announcement`.
pub(super) fn plan(goal: &str) -> String {
    let (goal, pieces) = match goal.split_once(':') {
        Some((goal, pieces)) => (goal.trim(), list(pieces)),
        None => (goal, Vec::new()),
    };
    let (goal, deadline) = without_deadline(goal);
    let mut steps = vec![format!(
        "Write down in one sentence what must be true when \"{goal}\" is done."
    )];
    if pieces.is_empty() {
        steps.push(format!(
            "List what you already have for {goal}, and what is missing."
        ));
        steps.push("Order the missing pieces by what depends on what.".to_owned());
        steps.push("Do the smallest piece that you can check, and check it.".to_owned());
    } else {
        steps.push("Order these pieces by what depends on what.".to_owned());
        let shown = pieces.iter().take(MAX_PIECES);
        steps.extend(shown.map(|piece| format!("Do this piece, and check it: {piece}.")));
    }
    steps.push(match deadline {
        Some(deadline) => {
            format!("Continue piece by piece until {deadline}; what does not fit by then, leave out first.")
        }
        None => "Continue piece by piece, and compare the result with step 1.".to_owned(),
    });
    let steps: Vec<String> = (1..)
        .zip(steps)
        .map(|(number, step)| format!("{number}. {step}"))
        .collect();
    format!(
        "A plan for: {goal}\n\n{}\n\nThese steps come from fixed rules and your words; a real model would know more about \
         the goal.",
        steps.join("\n")
    )
}

fn list(text: &str) -> Vec<&str> {
    text.split([',', ';'])
        .flat_map(|piece| piece.split(" and "))
        .map(|piece| piece.trim().trim_start_matches("and "))
        .filter(|piece| !piece.is_empty())
        .collect()
}

/// Splits off a deadline: `a release by Friday` → `a release`, `Friday`.
fn without_deadline(goal: &str) -> (&str, Option<&str>) {
    let mut found = [" by ", " until ", " before "]
        .iter()
        .filter_map(|mark| goal.rsplit_once(mark));
    match found.find(|(_, when)| when.split_whitespace().count() <= 3) {
        Some((goal, when)) if !goal.trim().is_empty() => (goal.trim(), Some(when.trim())),
        _ => (goal.trim(), None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_uses_the_words_of_the_request() {
        let text = plan("a release by Friday: tests, the changelog and an announcement");
        for part in [
            "A plan for: a release\n",
            "\n3. Do this piece, and check it: tests.",
            "\n5. Do this piece, and check it: an announcement.",
            "until Friday;",
        ] {
            assert!(text.contains(part), "no {part:?} in {text}");
        }
        let text = plan("my holiday");
        assert!(
            text.contains("for my holiday, and") && text.contains("\n5. "),
            "{text}"
        );
    }
}
