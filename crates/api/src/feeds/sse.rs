//! Frames of server-sent events.

use bytes::Bytes;
use serde::Serialize;

/// Returns a frame with a name and data. An id, if there is one, moves the cursor of the reader.
pub(crate) fn frame(name: &str, id: Option<u64>, data: &impl Serialize) -> Bytes {
    // The types of the API have string keys and no fallible implementation.
    let json = serde_json::to_string(data).unwrap_or_default();
    let id = id.map_or(String::new(), |id| format!("id: {id}\n"));
    Bytes::from(format!("{id}event: {name}\ndata: {json}\n\n"))
}

/// Returns a frame that readers ignore. It shows that the connection is alive.
pub(crate) fn comment() -> Bytes {
    Bytes::from_static(b":\n\n")
}
