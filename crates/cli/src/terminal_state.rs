//! The state of the terminal, for a line that is given up while a thread edits it: the editor restores nothing then.

use rustix::termios::{OptionalActions, Termios, tcgetattr, tcsetattr};

/// The state of a terminal; of standard input that is no terminal nothing.
pub struct TerminalState(Option<Termios>);

impl TerminalState {
    /// Reads the state of standard input.
    pub fn of_input() -> Self {
        Self(tcgetattr(std::io::stdin()).ok())
    }

    /// Sets the terminal back to it.
    pub fn restore(&self) {
        if let Some(state) = &self.0 {
            // A terminal that is gone needs no state.
            let _ = tcsetattr(std::io::stdin(), OptionalActions::Flush, state);
        }
    }
}
