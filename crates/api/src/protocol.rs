//! What the adapters for other protocols share: the session that a client names, the client's messages as the input of
//! a turn, and the stream of a turn.

mod follow;
mod input;
mod message;
mod pending;
mod session;
mod stream;
mod streamed_text;

pub(crate) use follow::TurnFollower;
pub(crate) use input::input;
pub(crate) use message::{ClientMessage, Part, Role, data_url};
pub(crate) use pending::pending_text;
pub(crate) use session::ClientSession;
pub(crate) use stream::{Frames, Renderer, respond, stream_permit};
pub(crate) use streamed_text::{AnswerRemainder, StreamedText};
