//! Why a server is not connected.

use crate::PROTOCOL_VERSION;
use std::path::PathBuf;

/// Why a server is not connected.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConnectError {
    /// Nothing here can hold a program.
    #[error("it is not started, because no sandbox works here: {why}")]
    NoSandbox {
        /// What is missing, and the way out.
        why: String,
    },
    /// A variable is not set.
    #[error(
        "the environment variable `{name}` is not set; set it, or take it out of mcp.servers.{server}"
    )]
    Unset {
        /// The server.
        server: String,
        /// The variable.
        name: String,
    },
    /// The program did not start, or the address makes no sense.
    #[error("it cannot be started: {why}")]
    NotStarted {
        /// What is wrong.
        why: String,
    },
    /// The command could run code that the user did not choose.
    #[error("it is not started: {why}")]
    Refused {
        /// What is wrong with the command, and what to write.
        why: String,
    },
    /// A file of the command lies where agents can write, and the user never trusted it.
    #[error(
        "it is not started: agents can write `{}`, and you have not trusted it yet; read it, then run `lango mcp trust {server}`",
        path.display()
    )]
    FileUntrusted {
        /// The server.
        server: String,
        /// The file.
        path: PathBuf,
    },
    /// A file of the command is not what the user trusted.
    #[error(
        "it is not started: `{}` changed since you trusted it (SHA-256 {}… then, {}… now); look at it, then run `lango mcp trust {server}`",
        path.display(), &trusted[..trusted.len().min(12)], &found[..found.len().min(12)]
    )]
    FileChanged {
        /// The server.
        server: String,
        /// The file.
        path: PathBuf,
        /// The digest of what was trusted.
        trusted: String,
        /// The digest of what is there now.
        found: String,
    },
    /// It failed, and the likely cause is how its command is written.
    #[error("{error}; {hint}")]
    Hinted {
        /// The failure itself.
        error: Box<ConnectError>,
        /// What to write instead.
        hint: String,
    },
    /// It never came to the end of the handshake.
    #[error("it did not answer within {seconds} s{seen}")]
    Silent {
        /// How long it was waited for.
        seconds: u64,
        /// What it did instead, with its own comma.
        seen: String,
    },
    /// It speaks another version of the protocol.
    #[error("it speaks version `{version}` of the protocol; lango speaks {PROTOCOL_VERSION}")]
    Version {
        /// Its version.
        version: String,
    },
    /// It speaks only the transport of MCP 2024-11-05.
    #[error(
        "it speaks only the legacy HTTP+SSE transport at `{url}`, and lango only streamable HTTP; set `url` to the server's \
         streamable HTTP address (often one that ends in /mcp), update the server, or set `command` to a bridge such as \
         `npx mcp-remote@VERSION {url} --transport sse-only`"
    )]
    LegacyTransport {
        /// The address.
        url: String,
    },
    /// It wants to know who is there.
    #[error("{advice}")]
    Unauthorised {
        /// What to do about it.
        advice: String,
    },
    /// It broke off, or said what makes no sense.
    #[error("{what}")]
    Broken {
        /// What happened.
        what: String,
    },
}

/// Why, and the last words of the program.
#[derive(Debug, Clone)]
pub(crate) struct Failure {
    pub(crate) error: ConnectError,
    pub(crate) stderr: String,
}

impl From<ConnectError> for Failure {
    fn from(error: ConnectError) -> Self {
        Self {
            error,
            stderr: String::new(),
        }
    }
}

impl Failure {
    /// On one line, for a warning or a model.
    pub(crate) fn line(&self) -> String {
        let last = self
            .stderr
            .lines()
            .rev()
            .find(|line| !line.trim().is_empty());
        match last {
            None => self.error.to_string(),
            Some(last) => format!(
                "{}; its last words: {}",
                self.error,
                crate::names::line(last, 200)
            ),
        }
    }
}
