//! The terminal as a device: a live region below the scrollback, keys, an editor for messages, and a pager.
//!
//! Nothing here knows about turns. What is printed above the region stays in the terminal's scrollback; only the
//! region itself is redrawn.

mod completion;
mod editor;
mod history;
mod key_parser;
mod keys;
mod lines;
mod pager;
mod palette;
mod picker;
mod raw_mode;
mod region;
mod text;

pub use completion::{Completion, complete_path};
pub use editor::Editor;
pub use history::History;
pub use keys::{Key, KeyReader, suspend_process, suspend_signal};
pub use lines::{LineReader, LineSource};
pub use pager::{PageEnd, page};
pub use palette::{Colour, Palette};
pub use picker::{PickDetail, pick};
pub use region::{LiveFrame, Output, Region};
pub use text::{branches, fit, width, wrap, wrap_lines, wrap_prefixed, wrap_whole_words};

use std::io::IsTerminal;
use std::time::Duration;

/// How long a question must be shown without any input before keys or lines answer it: longer than a terminal waits
/// before it repeats a key that is held down, and than a slow connection delays a key.
pub const ANSWER_PAUSE: Duration = Duration::from_millis(750);

/// How long nothing may follow a key before it answers. The parts of a pasted text follow each other faster.
pub const ANSWER_SILENCE: Duration = Duration::from_millis(60);

/// How a command writes to the terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ScreenMode {
    /// A live region that is redrawn in place.
    Live,
    /// Lines only: no cursor movement, no raw keys.
    Plain,
}

impl ScreenMode {
    /// Returns [`Live`](Self::Live) if this output and the input are a capable terminal and the user did not ask for
    /// plain lines.
    pub fn detect(is_plain: bool, output: Output) -> Self {
        let is_capable = std::env::var_os("TERM").is_some_and(|term| term != "dumb");
        if output.is_terminal() && is_capable && !is_plain && has_keyboard() {
            Self::Live
        } else {
            Self::Plain
        }
    }
}

/// Whether keys can be read: from standard input, or from the terminal that controls this process.
pub fn has_keyboard() -> bool {
    std::io::stdin().is_terminal() || std::fs::File::open("/dev/tty").is_ok()
}
