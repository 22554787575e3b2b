//! Saves and restores the terminal's settings. This is needed for prompts that are abandoned while a thread edits a
//! line, because the line editor does not restore the settings in that case.

use rustix::termios::{OptionalActions, Termios, tcgetattr, tcsetattr};

/// The settings of a terminal; `None` if standard input is not one.
pub struct TerminalState(Option<Termios>);

impl TerminalState {
    /// Reads the settings of standard input.
    pub fn of_input() -> Self {
        Self(tcgetattr(std::io::stdin()).ok())
    }

    /// Restores the settings.
    pub fn restore(&self) {
        if let Some(state) = &self.0 {
            // If the terminal is gone, nothing has to be restored.
            let _ = tcsetattr(std::io::stdin(), OptionalActions::Flush, state);
        }
    }
}
