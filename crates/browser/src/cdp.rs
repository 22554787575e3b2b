//! A client of the Chrome DevTools Protocol over two pipes: JSON messages, each ended by a zero byte.
//!
//! A [`Connection`] matches replies to calls and hands out events; a [`CdpSession`] is one target of it (a tab, a frame in a
//! process of its own), in the flat form where each message names its session. There is no generated protocol: whoever
//! calls a method declares the few fields it reads.

mod connection;
mod event;
mod message;

pub use connection::{CALL_TIME, CdpSession, Connection, NoParams};
pub use event::{Event, EventStream, Events, Received};
