//! Colours, and how `NO_COLOR` turns them off.

use super::agents::two_slow_agents;
use super::tmux::{NARROW, Tmux, WIDE};
use crate::lango::Lango;
use crate::models::{Provider, flags};
use lango_testkit::model::{call, delegate_and_finish, say};
use serde_json::json;

const ANSWER: &str =
    "# A heading\n\nSome *words* and `code`.\n\n```rust\nfn main() { let x = 1; }\n```\n";

#[test]
fn agents_have_different_colours() {
    let provider = two_slow_agents();
    let lango = Lango::new();
    let terminal = Tmux::chat(&lango, WIDE, provider.server.url());
    terminal.say("go");
    terminal.wait_for("4 model calls");
    let shown = terminal.with_attributes();
    let colour_of = |agent: &str| {
        let row = shown
            .lines()
            .find(|row| row.contains('→') && row.contains(agent));
        let (before, _) = row.unwrap().rsplit_once(agent).unwrap();
        colours(before).last().cloned()
    };
    let (operator, planner) = (colour_of("operator"), colour_of("planner"));
    assert!(operator.is_some() && planner.is_some(), "{shown:?}");
    assert_ne!(operator, planner, "{shown:?}");
}

#[test]
fn no_color_means_no_colours_while_bold_stays() {
    let no_color = &[("NO_COLOR", "1")][..];
    for (env, is_coloured, size) in [
        (&[][..], true, WIDE),
        (no_color, false, WIDE),
        (no_color, false, NARROW),
    ] {
        let provider = Provider::new(vec![
            delegate_and_finish("operator", "write it"),
            call(
                "fs_write",
                json!({ "path": "notes.md", "content": "other\n" }),
            ),
            say(ANSWER),
        ]);
        let lango = Lango::new();
        let flags = flags("openai", provider.server.url());
        let terminal = Tmux::start(&lango, size, &flags, env);
        terminal.wait_for("mode: ask");
        terminal.say("go");
        terminal.wait_for("press a key");
        let asking = terminal.with_attributes();
        terminal.press(&["y"]);
        terminal.wait_for("3 model calls");
        let ended = terminal.with_attributes();
        for shown in [asking, ended] {
            assert_eq!(!colours(&shown).is_empty(), is_coloured, "{shown:?}");
            assert!(shown.contains("\u{1b}[1m"), "nothing is bold: {shown:?}");
        }
    }
}

/// Returns the parameters of each sequence that sets a colour.
fn colours(shown: &str) -> Vec<String> {
    let sequences = shown.split("\u{1b}[").skip(1);
    let parameters = sequences.filter_map(|sequence| {
        let end = sequence.find(|letter: char| letter.is_ascii_alphabetic())?;
        sequence[end..].starts_with('m').then(|| &sequence[..end])
    });
    let sets_colour = |parameters: &&str| {
        parameters.split(';').any(|number| {
            let number: u32 = number.parse().unwrap_or(0);
            matches!(number, 30..=38 | 40..=48 | 90..=97 | 100..=107)
        })
    };
    parameters.filter(sets_colour).map(str::to_owned).collect()
}
