//! A client of the Chrome DevTools Protocol over two pipes: JSON messages, each ended by a zero byte.
//!
//! A [`Connection`] matches replies to calls and distributes events; a [`CdpSession`] is one target (a tab, or a frame
//! in its own process) in the flat mode, where each message names its session. There is no generated protocol: callers
//! declare the few fields that they read.

mod connection;
mod event;
mod message;

pub use connection::{CALL_TIME, CdpSession, Connection, NoParams};
pub use event::{Event, EventStream, Events, Received};
