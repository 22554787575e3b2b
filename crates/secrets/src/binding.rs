//! Bindings: where a secret may go. A secret without a binding can only be used by lango's own configuration.

use lango_core::Text;
use std::fmt;
use url::{Host, Url};

/// Maximum number of bindings of one secret.
pub const MAX_BINDINGS: usize = 16;

/// Maximum length of each text of a binding in bytes.
const MAX_TEXT_BYTES: usize = 200;

/// The prefix of an MCP server's id in a binding.
const MCP_PREFIX: &str = "mcp:";

/// One place where a secret may go.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Binding {
    /// The tool that may use the secret: `exec` for sandboxed commands, `mcp:ID` for an MCP server, or the name of a
    /// built-in tool.
    pub tool: Text,
    pub target: BindingTarget,
}

/// Where a tool puts the value: a header, an environment variable or an argument.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum BindingTarget {
    /// A header of requests to one origin. Programs get a placeholder in an environment variable, and the egress proxy
    /// replaces it by the value.
    Header {
        /// The only origin that receives the value.
        origin: Origin,
        /// In lower case.
        header: Text,
        /// The environment variable that contains the placeholder.
        variable: Text,
    },
    /// The environment of one program, which sees the value. The user must approve each use.
    Program {
        /// The name of the program, without a path.
        program: Text,
        /// The environment variable that contains the value.
        variable: Text,
    },
    /// An argument of a tool that contacts sites. The argument must be exactly `secret:NAME`.
    Field {
        /// The name of the argument.
        field: Text,
        /// The only origin that may receive the value. `None` occurs only in bindings for MCP tools that were stored by
        /// older versions of lango; such bindings have no effect.
        origin: Option<Origin>,
    },
    /// An argument of an MCP server's tool. The argument must be exactly `secret:NAME`.
    ServerField {
        /// The server's name for the tool.
        tool: Text,
        /// The name of the argument.
        field: Text,
    },
}

/// A tool of an MCP server. The name that models see does not identify it, because the tools of two servers can share a
/// name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct ServerToolId {
    /// The configured id of the server.
    pub server: Text,
    /// The server's name for the tool.
    pub tool: Text,
}

/// The scheme, host and port of a server.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Origin {
    is_https: bool,
    host: Text,
    port: u16,
}

/// The reason why a text is not a valid part of a binding.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BindingError {
    #[error(
        "`{text}` is not a host that a secret can be sent to; write a host such as `api.example.com`, or an origin such as `http://127.0.0.1:4873`"
    )]
    Origin { text: String },
    /// The text is not a valid name of a header, variable, program, field or tool.
    #[error("`{text}` is not the name of {thing}")]
    Name {
        text: String,
        /// The kind of thing that it should name.
        thing: &'static str,
    },
}

impl BindingTarget {
    /// Returns whether the value is sent in a header of requests.
    pub fn is_header(&self) -> bool {
        matches!(self, Self::Header { .. })
    }
}

impl ServerToolId {
    /// Parses `mcp:ID/TOOL`.
    pub fn parse(text: &str) -> Option<Self> {
        let (server, tool) = text.strip_prefix(MCP_PREFIX)?.split_once('/')?;
        (!server.is_empty() && !tool.is_empty()).then(|| Self {
            server: server.into(),
            tool: tool.into(),
        })
    }
}

impl fmt::Display for ServerToolId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{MCP_PREFIX}{}/{}", self.server, self.tool)
    }
}

impl Origin {
    /// Parses `host`, `host:port` (both `https`) or `scheme://host[:port]`. Refuses wildcards, paths and user names.
    pub fn parse(text: &str) -> Result<Self, BindingError> {
        let refuse = || BindingError::Origin {
            text: text.chars().take(MAX_TEXT_BYTES).collect(),
        };
        let url = if text.contains("://") {
            text.to_owned()
        } else {
            format!("https://{text}")
        };
        let url = Url::parse(&url).map_err(|_| refuse())?;
        let is_bare = url.path() == "/"
            && url.query().is_none()
            && url.fragment().is_none()
            && url.username().is_empty()
            && url.password().is_none();
        let origin = Self::of(&url).filter(|origin| !origin.host.contains('*'));
        origin.filter(|_| is_bare).ok_or_else(refuse)
    }

    /// Returns the origin of a URL; `None` if its scheme is neither `http` nor `https`.
    pub fn of(url: &Url) -> Option<Self> {
        let is_https = match url.scheme() {
            "https" => true,
            "http" => false,
            _ => return None,
        };
        let host = match url.host()? {
            // `example.com.` and `example.com` are the same host.
            Host::Domain(name) => name.trim_end_matches('.').to_owned(),
            address => address.to_string(),
        };
        let fits = !host.is_empty() && host.len() <= MAX_TEXT_BYTES;
        fits.then(|| Self {
            is_https,
            host: host.into(),
            port: url.port_or_known_default().unwrap_or_default(),
        })
    }

    /// Returns whether values are sent encrypted.
    pub fn is_https(&self) -> bool {
        self.is_https
    }

    /// Returns the host; IPv6 addresses are in brackets.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// Returns the host and port in the form that settings use: without the port for HTTPS on 443.
    pub fn host_and_port(&self) -> String {
        let Self { host, port, .. } = self;
        if self.is_https() && *port == 443 {
            host.to_string()
        } else {
            format!("{host}:{port}")
        }
    }

    pub fn port(&self) -> u16 {
        self.port
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (scheme, default) = if self.is_https {
            ("https", 443)
        } else {
            ("http", 80)
        };
        write!(f, "{scheme}://{}", self.host)?;
        if self.port == default {
            Ok(())
        } else {
            write!(f, ":{}", self.port)
        }
    }
}

impl Binding {
    /// The value of [`Self::tool`] for sandboxed commands.
    pub const COMMANDS: &'static str = "exec";

    /// Returns the value of [`Self::tool`] for an MCP server.
    pub fn mcp_server(server: &str) -> String {
        format!("{MCP_PREFIX}{server}")
    }

    /// Returns the id of the MCP server in a value of [`Self::tool`]; `None` if it is another kind of tool.
    pub fn mcp_server_of(tool: &str) -> Option<&str> {
        tool.strip_prefix(MCP_PREFIX)
    }

    /// Creates a binding to a header. Fails if a name is not valid.
    pub fn header(
        tool: &str,
        origin: Origin,
        header: &str,
        variable: &str,
    ) -> Result<Self, BindingError> {
        Ok(Self {
            tool: tool_name(tool)?,
            target: BindingTarget::Header {
                origin,
                header: header_name(header)?,
                variable: variable_name(variable)?,
            },
        })
    }

    /// Creates a binding to the environment of a program, which sees the value. Fails if a name is not valid.
    pub fn program(tool: &str, program: &str, variable: &str) -> Result<Self, BindingError> {
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._+-".contains(&byte);
        Ok(Self {
            tool: tool_name(tool)?,
            target: BindingTarget::Program {
                program: checked(program, "a program; give it without a path", is_plain)?,
                variable: variable_name(variable)?,
            },
        })
    }

    /// Creates a binding to an argument of an MCP server's tool. Fails if a name is not valid.
    pub fn server_field(id: &ServerToolId, field: &str) -> Result<Self, BindingError> {
        let is_plain = |byte: u8| byte.is_ascii_graphic();
        Ok(Self {
            tool: tool_name(&Self::mcp_server(&id.server))?,
            target: BindingTarget::ServerField {
                tool: checked(&id.tool, "a tool of an MCP server", is_plain)?,
                field: field_name(field)?,
            },
        })
    }

    /// Creates a binding to an argument of a built-in tool. Fails if a name is not valid.
    pub fn field(tool: &str, field: &str, origin: Option<Origin>) -> Result<Self, BindingError> {
        Ok(Self {
            tool: tool_name(tool)?,
            target: BindingTarget::Field {
                field: field_name(field)?,
                origin,
            },
        })
    }
}

impl fmt::Display for Binding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tool = &self.tool;
        match &self.target {
            BindingTarget::Header {
                origin,
                header,
                variable,
            } => write!(
                f,
                "{tool}: header `{header}` to {origin}, placeholder in {variable}"
            ),
            BindingTarget::Program { program, variable } => {
                write!(f, "{tool}: `{program}` sees the value in {variable}")
            }
            BindingTarget::Field {
                field,
                origin: None,
            } => write!(
                f,
                "{tool}: argument `{field}` (names no MCP server, so it has no effect)"
            ),
            BindingTarget::Field {
                field,
                origin: Some(origin),
            } => write!(f, "{tool}: argument `{field}`, sent to {origin}"),
            BindingTarget::ServerField { tool: own, field } => {
                write!(f, "{tool}: argument `{field}` of its tool `{own}`")
            }
        }
    }
}

fn tool_name(name: &str) -> Result<Text, BindingError> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_-.:".contains(&byte);
    checked(name, "a tool", is_plain)
}

fn field_name(name: &str) -> Result<Text, BindingError> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    checked(name, "an argument", is_plain)
}

/// Headers that determine how a request is framed or routed. A secret cannot be bound to them.
const FRAMING_HEADERS: [&str; 8] = [
    "connection",
    "content-length",
    "content-encoding",
    "expect",
    "host",
    "te",
    "transfer-encoding",
    "upgrade",
];

fn header_name(name: &str) -> Result<Text, BindingError> {
    let thing = "a header that can carry a secret";
    let name = name.to_ascii_lowercase();
    let is_token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    let header = checked(&name, thing, is_token)?;
    if FRAMING_HEADERS.contains(&name.as_str()) {
        return Err(BindingError::Name { text: name, thing });
    }
    Ok(header)
}

/// Variables that determine how programs are found, loaded or connected. A secret cannot be bound to them.
const RESERVED_VARIABLES: [&str; 17] = [
    "BASH_ENV",
    "ENV",
    "GIT_SSH_COMMAND",
    "HOME",
    "IFS",
    "LANG",
    "NODE_OPTIONS",
    "PATH",
    "PERL5LIB",
    "PWD",
    "PYTHONPATH",
    "RUBYLIB",
    "SHELL",
    "SSL_CERT_DIR",
    "SSL_CERT_FILE",
    "TMPDIR",
    "USER",
];
const RESERVED_PREFIXES: [&str; 3] = ["DYLD_", "LANGO_", "LD_"];

fn variable_name(name: &str) -> Result<Text, BindingError> {
    let thing = "an environment variable that can hold a secret";
    let upper = name.to_ascii_uppercase();
    let is_reserved = RESERVED_VARIABLES.contains(&upper.as_str())
        || RESERVED_PREFIXES
            .iter()
            .any(|prefix| upper.starts_with(prefix))
        || upper.ends_with("_PROXY");
    if is_reserved || name.starts_with(|first: char| first.is_ascii_digit()) {
        let text = name.to_owned();
        return Err(BindingError::Name { text, thing });
    }
    checked(name, thing, |byte| {
        byte.is_ascii_alphanumeric() || byte == b'_'
    })
}

fn checked(
    text: &str,
    thing: &'static str,
    is_valid: impl Fn(u8) -> bool,
) -> Result<Text, BindingError> {
    if !text.is_empty() && text.len() <= MAX_TEXT_BYTES && text.bytes().all(is_valid) {
        Ok(text.into())
    } else {
        let text = text.chars().take(MAX_TEXT_BYTES).collect();
        Err(BindingError::Name { text, thing })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_origin_consists_of_one_host_and_port() {
        for (text, shown) in [
            ("github.com", "https://github.com"),
            ("GitHub.com.", "https://github.com"),
            ("registry.local:4873", "https://registry.local:4873"),
            ("http://127.0.0.1:4873/", "http://127.0.0.1:4873"),
            ("https://[::1]:8443", "https://[::1]:8443"),
        ] {
            assert_eq!(Origin::parse(text).unwrap().to_string(), shown);
        }
        for text in [
            "",
            "*.github.com",
            "github.com/path",
            "https://user@github.com",
            "ftp://github.com",
            "github.com?x",
        ] {
            assert!(Origin::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn names_in_a_binding_are_checked() {
        let origin = || Origin::parse("github.com").unwrap();
        assert!(Binding::header("exec", origin(), "Authorization", "GH_TOKEN").is_ok());
        for (header, variable) in [
            ("Host", "A"),
            ("Transfer-Encoding", "A"),
            ("a b", "A"),
            ("x\r\ny", "A"),
            ("x", "1A"),
            ("x", "A=B"),
            ("x", ""),
            ("x", "PATH"),
            ("x", "LD_PRELOAD"),
            ("x", "https_proxy"),
        ] {
            assert!(Binding::header("exec", origin(), header, variable).is_err());
        }
        assert!(Binding::program("exec", "/usr/bin/aws", "AWS").is_err());
        assert!(Binding::program("exec", "aws", "AWS_SECRET_ACCESS_KEY").is_ok());
    }
}
