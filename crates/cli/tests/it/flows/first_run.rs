//! The first minutes: no key, no configuration.

use super::tmux::{NARROW, Tmux, WIDE};
use crate::lango::Lango;

#[test]
fn the_first_chat_works_without_a_key_and_says_how_to_connect_a_model() {
    for size in [WIDE, NARROW] {
        let lango = Lango::new();
        let terminal = Tmux::start::<&str>(&lango, size, &[], &[]);
        let screen = terminal.wait_for("mode: ask");
        let header = screen.split("\n>").next().unwrap();
        assert!(header.contains("demo mode"), "{header}");
        assert!(
            header.replace('\n', " ").contains("lango setup"),
            "{header}"
        );

        terminal.say("what files are here?");
        let screen = terminal.wait_for("0 tokens");
        assert!(screen.contains("notes.md  22 B"), "{screen}");

        terminal.say("/help");
        terminal.wait_for("show commands and keys");
        let shown = terminal.wait_for("waits for its end");
        assert!(shown.contains("Shift-Tab"), "{shown}");
        terminal.assert_no_line_is_too_long();

        terminal.press(&["C-d"]);
        assert_eq!(terminal.exit_code(), 0);
        let screen = terminal.screen();
        let last = screen.lines().last().unwrap();
        assert!(last.starts_with("continue: lango resume s_"), "{screen}");
        // Nothing of the input stays behind.
        assert!(!screen.contains("mode: ask"), "{screen}");
    }
}
