//! Messages as clients send them.

use crate::problem::{Problem, Result};

/// A message of a client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ClientMessage {
    /// Its author.
    pub role: Role,
    /// Its content.
    pub parts: Vec<Part>,
}

/// The author of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    /// The developer of the client.
    System,
    /// The user.
    User,
    /// The agents.
    Assistant,
}

/// A part of a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Part {
    /// Text.
    Text(String),
    /// A file in base64.
    File {
        /// Its name, if the client gave one.
        name: Option<String>,
        /// Its media type. A file without a name gets a name that fits this type.
        media_type: String,
        /// Its bytes in base64.
        base64: String,
    },
}

impl ClientMessage {
    /// Creates a message with one text.
    pub(crate) fn text(role: Role, text: impl Into<String>) -> Self {
        Self {
            role,
            parts: vec![Part::Text(text.into())],
        }
    }
}

/// Reads a file from a `data:` URL. Refuses other URLs, because the server fetches nothing on behalf of a message.
pub(crate) fn data_url(url: &str, name: Option<String>) -> Result<Part> {
    let Some(rest) = url.strip_prefix("data:") else {
        return Err(Problem::bad_request(
            "remote URLs of images and files are not fetched; send the bytes as a `data:` URL",
        ));
    };
    match rest.split_once(";base64,") {
        Some((media_type, base64)) => Ok(Part::File {
            name,
            media_type: media_type.to_owned(),
            base64: base64.to_owned(),
        }),
        None => Err(Problem::bad_request(
            "a `data:` URL must have the form `data:image/png;base64,…`",
        )),
    }
}
