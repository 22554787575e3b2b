//! The canaries, and how each one is used.

use crate::common::random::Random;

/// The encodings of the echo servers. Each use by curl and by the MCP program requests one.
pub(crate) const ENCODINGS: [&str; 15] = [
    "raw",
    "base64",
    "base64-1",
    "base64-2",
    "base64url",
    "hex",
    "hex-capitals",
    "percent",
    "percent-all",
    "form",
    "json",
    "json-ascii",
    "html",
    "html-numbers",
    "gzip",
];

/// The characters of the values: those that a header allows, including all that the encodings escape.
const LETTERS: &[u8] =
    b"ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz0123456789\"\\<>&%+/'=~?-_.:";

/// The use of a secret. The number distinguishes servers of the same kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Use {
    /// A git push with Basic authentication.
    Git(usize),
    /// A request by a command with a Bearer token, with the encoding of the echo.
    Curl(&'static str),
    /// A request by the program of an MCP server, with the encoding of the echo.
    Program(&'static str),
    /// The token of an MCP server over HTTP.
    McpHttp(usize),
    /// The token of a remote agent.
    RemoteAgent(usize),
    /// The key of a model provider.
    Model(usize),
}

impl Use {
    pub(crate) const KINDS: [&'static str; 6] = [
        "git with Basic",
        "curl with Bearer",
        "the program of an MCP server",
        "MCP over HTTP",
        "remote agents",
        "model providers",
    ];

    pub(crate) fn kind(self) -> &'static str {
        let index = match self {
            Self::Git(_) => 0,
            Self::Curl(_) => 1,
            Self::Program(_) => 2,
            Self::McpHttp(_) => 3,
            Self::RemoteAgent(_) => 4,
            Self::Model(_) => 5,
        };
        Self::KINDS[index]
    }
}

/// All canaries: their uses, and their values in the same order.
pub(crate) struct Plan {
    pub uses: Vec<Use>,
    pub values: Vec<String>,
}

impl Plan {
    /// Returns a plan with 200 canaries.
    pub(crate) fn long() -> Self {
        Self::new([20, 100, 40, 15, 10, 15])
    }

    /// Returns a plan with 40 canaries that covers each kind of use and each encoding.
    pub(crate) fn short() -> Self {
        Self::new([2, 15, 15, 3, 2, 3])
    }

    fn new([git, curl, program, mcp, agents, models]: [usize; 6]) -> Self {
        let encoding = |index: usize| ENCODINGS[index % ENCODINGS.len()];
        let uses: Vec<Use> = (0..git)
            .map(Use::Git)
            .chain((0..curl).map(|index| Use::Curl(encoding(index))))
            .chain((0..program).map(|index| Use::Program(encoding(index))))
            .chain((0..mcp).map(Use::McpHttp))
            .chain((0..agents).map(Use::RemoteAgent))
            .chain((0..models).map(Use::Model))
            .collect();
        let mut random = Random::new(u64::from(std::process::id()));
        let mut value = |index: usize| {
            let letters = (0..28).map(|_| {
                let index = random.below(LETTERS.len() as u64);
                char::from(LETTERS[usize::try_from(index).unwrap()])
            });
            let letters: String = letters.collect();
            format!("cn{index:03}{letters}Z")
        };
        let values = (0..uses.len()).map(&mut value).collect();
        Self { uses, values }
    }

    /// Returns the name of a secret, which is also that of its environment variable.
    pub(crate) fn name(index: usize) -> String {
        format!("CN_{index:03}")
    }
}
