//! The reasons why lango cannot connect to a server.

use crate::PROTOCOL_VERSION;
use std::path::PathBuf;

/// The reason why a server is not connected.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConnectError {
    #[error("lango does not start it, because no sandbox works here: {why}")]
    NoSandbox {
        /// What is missing, and what to do about it.
        why: String,
    },
    /// An environment variable of the configuration is not set.
    #[error(
        "the environment variable `{name}` is not set; set it, or remove it from mcp.servers.{server}"
    )]
    Unset { server: String, name: String },
    /// The program did not start, or the address is invalid.
    #[error("lango cannot start it: {why}")]
    NotStarted { why: String },
    /// The command could run code that the user did not choose.
    #[error("lango does not start it: {why}")]
    Refused {
        /// What is wrong with the command, and what to write instead.
        why: String,
    },
    /// Agents can write a file of the command, and the user has not trusted it.
    #[error(
        "lango does not start it: agents can write `{}`, and you have not trusted it yet; read it, then run `lango mcp trust {server}`",
        path.display()
    )]
    FileUntrusted { server: String, path: PathBuf },
    /// A file of the command changed after the user trusted it.
    #[error(
        "lango does not start it: `{}` changed since you trusted it (SHA-256 {}… then, {}… now); check it, then run `lango mcp trust {server}`",
        path.display(), &trusted[..trusted.len().min(12)], &found[..found.len().min(12)]
    )]
    FileChanged {
        server: String,
        path: PathBuf,
        /// The digest of the trusted content.
        trusted: String,
        /// The digest of the current content.
        found: String,
    },
    /// The server failed, probably because of the way its command is written.
    #[error("{error}; {hint}")]
    Hinted {
        error: Box<ConnectError>,
        /// What to write instead.
        hint: String,
    },
    /// The server did not finish the handshake, or did not list its tools, in time.
    #[error("it did not answer within {seconds} s{seen}")]
    Silent {
        seconds: u64,
        /// What the server did instead. The text starts with a comma, and may be empty.
        seen: String,
    },
    /// The server speaks an unsupported version of the protocol.
    #[error("it speaks version `{version}` of the protocol; lango speaks {PROTOCOL_VERSION}")]
    Version { version: String },
    /// The server speaks only the HTTP+SSE transport of MCP 2024-11-05.
    #[error(
        "it speaks only the legacy HTTP+SSE transport at `{url}`, and lango only streamable HTTP; set `url` to the server's \
         streamable HTTP address (often one that ends in /mcp), update the server, or set `command` to a bridge such as \
         `npx mcp-remote@VERSION {url} --transport sse-only`"
    )]
    LegacyTransport { url: String },
    /// The server requires authentication, or rejected the token.
    #[error("{advice}")]
    Unauthorised {
        /// What the user can do.
        advice: String,
    },
    /// The connection broke, or the server sent invalid messages.
    #[error("{what}")]
    Broken { what: String },
}

/// A connect error with the program's error output.
#[derive(Debug, Clone)]
pub(crate) struct ConnectFailure {
    pub(crate) error: ConnectError,
    pub(crate) stderr: String,
}

impl From<ConnectError> for ConnectFailure {
    fn from(error: ConnectError) -> Self {
        Self {
            error,
            stderr: String::new(),
        }
    }
}

impl ConnectFailure {
    /// Formats the error and the last line of the error output on one line, for a warning or a model.
    pub(crate) fn to_line(&self) -> String {
        let last = self
            .stderr
            .lines()
            .rev()
            .find(|line| !line.trim().is_empty());
        match last {
            None => self.error.to_string(),
            Some(last) => format!(
                "{}; its last error output: {}",
                self.error,
                crate::names::one_line(last, 200)
            ),
        }
    }
}
