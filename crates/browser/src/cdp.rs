//! A client of the Chrome DevTools Protocol over two pipes: JSON messages, each terminated by a zero byte.
//!
//! A [`Connection`] matches replies to calls and distributes events. A [`CdpSession`] is one target (a tab, or an
//! out-of-process frame) in flat mode, where each message names its session. The protocol types are not generated:
//! callers declare the few fields that they read.

mod connection;
mod event;
mod message;

pub use connection::{CALL_TIMEOUT, CdpSession, Connection, NoParams};
pub use event::{Event, EventItem, EventStream, Events};
