//! A terminal of 60 columns: nothing is wider, and nothing is cut in the middle of a word.

use super::tmux::{NARROW, Tmux};
use crate::lango::Lango;
use crate::models::Provider;
use crate::terminal::Terminal;
use lango_testkit::model::{call, delegate_and_finish, say};
use serde_json::json;
use std::collections::HashSet;

const ANSWER: &str = "The table has every tool with its purpose and its risk, so that nothing is a surprise later on.

| tool | what the tool is made for | risk |
|---|---|---|
| fs_read | reads a file of the workspace and returns its text with numbered lines | safe |
| exec | runs a command in the sandbox, without network unless a policy allows it | can do harm |

- a list item that is considerably longer than one row of this narrow terminal
- see https://example.org/a/very/long/path/that/does/not/fit/into/one/single/row/of/the/terminal

The end.";

#[test]
fn header_table_and_long_words_fit_into_60_columns() {
    let provider = Provider::new(vec![say(ANSWER)]);
    let lango = Lango::new();
    let terminal = Tmux::chat(&lango, NARROW, provider.server.url());
    terminal.say("show me the tools");
    terminal.wait_for("1 model call");
    terminal.assert_no_line_is_too_long();
    let scrollback = terminal.scrollback();
    let (_, shown) = scrollback.split_once("> show me the tools").unwrap();
    let (shown, _) = shown.split_once("The end.").unwrap();
    let is_border = |word: &str| word.chars().all(|letter| "│─┼┌┐└┘├┤┬┴•|-".contains(letter));
    let whole: HashSet<&str> = ANSWER.split_whitespace().collect();
    for row in shown.lines() {
        for word in row.split_whitespace().filter(|word| !is_border(word)) {
            // Only the address is longer than a row.
            let is_part = "https://example.org/a/very/long/path/that/does/not/fit/into/one/single/row/of/the/terminal"
                .contains(word);
            assert!(whole.contains(word) || is_part, "`{word}`: {scrollback}");
        }
    }
    // The columns of the table are aligned.
    let bars: HashSet<Vec<usize>> = shown
        .lines()
        .filter(|row| row.contains('│'))
        .map(|row| {
            let signs = row.chars().enumerate();
            signs
                .filter(|(_, sign)| *sign == '│')
                .map(|(at, _)| at)
                .collect()
        })
        .collect();
    assert_eq!(bars.len(), 1, "{scrollback}");
}

#[test]
fn the_text_of_commands_is_wrapped_at_words_and_json_is_not() {
    let lango = Lango::new();
    for arguments in [
        &["agents"][..],
        &["config", "show", "--origin"],
        &["config", "get", "no.such.key"],
    ] {
        let ran = lango.run(arguments);
        let piped = format!("{}{}", ran.stdout, ran.stderr);
        let whole: HashSet<&str> = piped.split_whitespace().collect();
        let (_, shown) = Terminal::start(&lango, 60, arguments, &[]).end();
        for row in shown.lines() {
            let is_long_word = row.split_whitespace().count() == 1;
            assert!(row.chars().count() <= 60 || is_long_word, "{shown}");
            for word in row.split_whitespace() {
                assert!(
                    whole.contains(word) || "│├─└".contains(word),
                    "`{word}`: {shown}"
                );
            }
        }
        let words: Vec<&str> = shown
            .split_whitespace()
            .filter(|word| *word != "│")
            .collect();
        let expected: Vec<&str> = piped
            .split_whitespace()
            .filter(|word| *word != "│")
            .collect();
        assert_eq!(words, expected, "{shown}");
    }
    let (_, shown) = Terminal::start(&lango, 60, &["agents", "--json"], &[]).end();
    let printed = lango.run(&["agents", "--json"]).ok().stdout;
    assert_eq!(shown.replace("\r\n", "\n"), printed);
}

#[test]
fn an_approval_fits_into_60_columns() {
    let command = "grep --recursive --line-number --ignore-case something . | sort | uniq --count | head -n 20";
    let provider = Provider::new(vec![
        delegate_and_finish("operator", "search"),
        call("exec", json!({ "command": command })),
        say("Searched."),
    ]);
    let lango = Lango::new();
    let terminal = Tmux::chat(&lango, NARROW, provider.server.url());
    terminal.say("search");
    let screen = terminal.wait_for("press a key");
    terminal.assert_no_line_is_too_long();
    for key in ["  y  yes", "  s  yes", "  p  yes", "  n  no", "  v  view"] {
        assert!(screen.contains(key), "`{key}`: {screen}");
    }
    // The whole command is in the box; a row that continues another is marked.
    let rows = screen.lines().skip_while(|row| !row.starts_with("│   $ "));
    let rows = rows.take_while(|row| row.starts_with("│   $ ") || row.starts_with("│ ↳ "));
    let shown: String = rows
        .map(|row| row.trim_start_matches(['│', ' ', '↳', '$']))
        .collect();
    assert_eq!(shown.replace(' ', ""), command.replace(' ', ""), "{screen}");
    terminal.press(&["n"]);
    terminal.wait_for("Searched.");
    terminal.assert_no_line_is_too_long();
}
