//! The steps of a task: which call comes next, given the results so far, and which answer the last one gives.

use super::request::CallResult;
use super::rules::{Action, Task};
use super::verbatim::span;
use super::{answer, plan};
use serde_json::{Value, json};

/// What happens next for one task.
pub(super) enum Step {
    /// Calls that can be made together. Their results follow one another.
    Calls(Vec<(&'static str, Value)>),
    Done {
        answer: String,
        failed: bool,
    },
}

/// Returns the next step of a task. Takes the results that belong to it from `results`.
pub(super) fn next<'r, 'a: 'r>(
    task: &Task,
    results: &mut impl Iterator<Item = &'r CallResult<'a>>,
) -> Step {
    match &task.action {
        Action::Call { tool, arguments } => match results.next() {
            Some(result) => done(result),
            None => Step::call(tool, arguments.clone()),
        },
        Action::Read { paths } => read(paths, results),
        Action::Append { path, line } => append(path, line, results),
        Action::Create { path } => create(path, results),
        Action::Plan { goal } => Step::Done {
            answer: plan::plan(goal),
            failed: false,
        },
    }
}

impl Step {
    fn call(tool: &'static str, arguments: Value) -> Self {
        Self::Calls(vec![(tool, arguments)])
    }
}

fn done(result: &CallResult<'_>) -> Step {
    Step::Done {
        answer: answer::of(result),
        failed: result.failed,
    }
}

/// Reads the files, and names each above its content.
fn read<'r, 'a: 'r>(
    paths: &[String],
    results: &mut impl Iterator<Item = &'r CallResult<'a>>,
) -> Step {
    let results: Vec<_> = results.take(paths.len()).collect();
    if results.is_empty() {
        let call = |path: &String| ("fs_read", json!({ "path": path }));
        return Step::Calls(paths.iter().map(call).collect());
    }
    let answer = |(path, result): (&String, &&CallResult<'_>)| {
        let content = answer::of(result);
        if result.failed {
            content
        } else {
            format!("{}:\n\n{content}", span(path))
        }
    };
    let answers: Vec<String> = paths.iter().zip(&results).map(answer).collect();
    Step::Done {
        answer: answers.join("\n\n"),
        failed: results.iter().any(|result| result.failed),
    }
}

/// Reads the file and adds the line after its end, or writes a new file.
fn append<'r, 'a: 'r>(
    path: &str,
    line: &str,
    results: &mut impl Iterator<Item = &'r CallResult<'a>>,
) -> Step {
    let Some(current) = results.next() else {
        return Step::call("fs_read", json!({ "path": path }));
    };
    let change = match (is_missing(current, path), current.failed) {
        (true, _) => write(path, &format!("{line}\n")),
        (false, true) => return done(current),
        (false, false) if is_blank(current.text, path) => write(path, &format!("{line}\n")),
        (false, false) => match end_of(current.text) {
            Some(old) => Step::call(
                "fs_edit",
                json!({ "path": path, "old": old, "new": format!("{old}\n{line}") }),
            ),
            None => {
                return Step::Done {
                    answer: format!(
                        "I did not change {}: it is too long to add a line with these rules.",
                        span(path)
                    ),
                    failed: true,
                };
            }
        },
    };
    results.next().map_or(change, done)
}

fn is_blank(text: &str, path: &str) -> bool {
    let text = text.trim();
    text.is_empty() || text == format!("[{path} is empty]")
}

/// Returns the shortest piece at the end of a text, in whole lines, that occurs only once. `None` if the text is only
/// the first part of a file.
fn end_of(text: &str) -> Option<&str> {
    let text = text.trim_end_matches(['\n', '\r', ' ', '\t']);
    let is_part = text.ends_with("}]") && text.contains(", continue with fs_read {");
    if text.is_empty() || is_part {
        return None;
    }
    let mut start = text.len();
    loop {
        start = text[..start]
            .trim_end_matches('\n')
            .rfind('\n')
            .map_or(0, |at| at + 1);
        let end = &text[start..];
        if start == 0 || text.find(end) == Some(start) {
            return Some(end);
        }
    }
}

/// Creates an empty file if there is nothing yet.
fn create<'r, 'a: 'r>(path: &str, results: &mut impl Iterator<Item = &'r CallResult<'a>>) -> Step {
    let Some(found) = results.next() else {
        return Step::call("fs_stat", json!({ "path": path }));
    };
    if is_missing(found, path) {
        return results.next().map_or_else(|| write(path, ""), done);
    }
    if found.failed {
        return done(found);
    }
    Step::Done {
        answer: format!("{} already exists, so I did not change it.", span(path)),
        failed: true,
    }
}

fn write(path: &str, content: &str) -> Step {
    Step::call("fs_write", json!({ "path": path, "content": content }))
}

fn is_missing(result: &CallResult<'_>, path: &str) -> bool {
    let missing = format!("`{}` does not exist", path.trim_start_matches("./"));
    result.failed && result.text.starts_with(&missing)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_file_is_the_shortest_unique_piece_in_whole_lines() {
        for (text, end) in [
            ("a\nb\n", "b"),
            ("one", "one"),
            ("b\na\nb\n", "a\nb"),
            ("a\na\n", "a\na"),
            ("banana\na\n", "banana\na"),
            ("x\n\ny\n\n\n", "y"),
            ("x\n\ny\nx\n", "y\nx"),
        ] {
            assert_eq!(end_of(text), Some(end), "{text:?}");
        }
        let part = "a\n[line 1 of a.md; 4 KB more, continue with fs_read {\"path\":\"a.md\"}]\n";
        assert_eq!(end_of(part), None);
        assert_eq!(end_of("\n\n"), None);
    }
}
