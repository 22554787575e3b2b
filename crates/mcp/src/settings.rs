//! The settings of an MCP server: how to reach it, and which of its tools to offer to agents.

use crate::program_proxy::{ProgramProxy, SecretVariable};
use lango_core::AgentName;
use lango_sandbox::{Policy, ResourceLimits};
use lango_secrets::Credential;
use sha2::{Digest, Sha256};
use std::fmt;
use std::path::PathBuf;

/// The settings of one server.
#[derive(Debug, Clone)]
pub struct ServerSettings {
    /// The key in `mcp.servers`.
    pub id: String,
    pub target: ServerTarget,
    /// The agent that gets its tools; if `None`, the prefix of a tool's name decides.
    pub agent: Option<AgentName>,
    /// The prefix of its tools' names.
    pub prefix: String,
    /// The tools to offer, by the server's names; `None` means all.
    pub tools: Option<Vec<String>>,
    /// Whether lango answers the server's forms (elicitation) with their defaults. Otherwise it does not declare
    /// support for forms.
    pub form_defaults: bool,
}

/// What lango connects to.
#[derive(Debug, Clone)]
pub enum ServerTarget {
    /// A program that lango starts and talks to over stdin and stdout.
    Program(Box<ProgramSettings>),
    /// A server at an HTTP address.
    Http(HttpSettings),
}

/// The settings of a server that lango starts as a program.
#[derive(Debug, Clone)]
pub struct ProgramSettings {
    /// The program and its arguments. [`ProgramSettings::WORKSPACE`] in a word stands for the workspace of the agents.
    pub argv: Vec<String>,
    /// Its environment variables. It inherits nothing else from lango's environment.
    pub env: Vec<EnvVariable>,
    /// The hosts that it may contact through a proxy, and the secrets that it may use there. Set if and only if the
    /// policy's network is [`Network::Proxied`](lango_sandbox::Network::Proxied).
    pub proxy: Option<ProgramProxy>,
    /// Arguments that name data files. lango neither checks nor copies these files before a start.
    pub data: Vec<String>,
    /// What the program may access. The workspace of this policy is the server's private directory, in which it starts.
    pub policy: Policy,
    /// Its resource limits. The time limit is ignored.
    pub limits: ResourceLimits,
    /// What agents may access. Code that they can write runs only if the user trusts it.
    pub agents: Policy,
    /// The directory for copies of trusted code, which only lango writes.
    pub copies: PathBuf,
}

impl ProgramSettings {
    /// The placeholder for the workspace of the agents, in words of the command and in values of variables that are
    /// not passed on.
    pub const WORKSPACE: &str = "{workspace}";

    /// Returns whether the command or its variables contain `{workspace}`, which gives the server access to the
    /// workspace.
    pub fn names_workspace(argv: &[String], env: &[EnvVariable]) -> bool {
        let mut words = argv.iter().map(String::as_str);
        let values = env.iter().filter(|variable| !variable.is_passed_on);
        let mut values =
            values.filter_map(|variable| variable.value.as_ref().map(HiddenText::reveal));
        let is_named = |text: &str| text.contains(Self::WORKSPACE);
        words.any(is_named) || values.any(is_named)
    }
}

/// An environment variable of a server's program.
#[derive(Debug, Clone)]
pub struct EnvVariable {
    pub name: String,
    /// Whether the value comes from the variable of the same name in lango's environment.
    pub is_passed_on: bool,
    /// The value; `None` if the variable is passed on but not set.
    pub value: Option<HiddenText>,
}

/// The settings of a server at an HTTP address.
#[derive(Debug, Clone)]
pub struct HttpSettings {
    pub url: String,
    /// A configured token; without one lango uses the grant of a login.
    pub token: Option<EnvCredential>,
    /// The OAuth client to use; without one lango registers itself.
    pub client: Option<OauthClientSettings>,
}

/// An OAuth client that the user registered for lango.
#[derive(Debug, Clone)]
pub struct OauthClientSettings {
    pub id: String,
    pub secret: Option<EnvCredential>,
}

/// A credential in an environment variable.
#[derive(Debug, Clone)]
pub struct EnvCredential {
    pub variable: String,
    /// The value, read for each request; `None` if the variable is not set.
    pub value: Option<Credential>,
}

/// Text that `Debug` does not print.
#[derive(Clone, PartialEq, Eq)]
pub struct HiddenText(String);

impl HiddenText {
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    pub(crate) fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for HiddenText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("<secret>")
    }
}

impl ServerTarget {
    /// Returns the name of the transport.
    pub fn transport_name(&self) -> &'static str {
        match self {
            Self::Program(_) => "stdio",
            Self::Http(_) => "http",
        }
    }
}

impl ServerSettings {
    /// Returns a digest of the settings that decide which server answers. Values that are passed on are not part of the
    /// digest, so it still counts as the same server when a token is renewed.
    pub(crate) fn digest(&self) -> String {
        let mut hash = Sha256::new();
        let mut part = |text: &str| {
            hash.update(text.len().to_le_bytes());
            hash.update(text);
        };
        part(self.target.transport_name());
        match &self.target {
            ServerTarget::Program(program) => {
                program.argv.iter().for_each(|word| part(word));
                part("env");
                for variable in &program.env {
                    part(&variable.name);
                    match (&variable.value, variable.is_passed_on) {
                        (Some(value), false) => part(value.reveal()),
                        _ => part("passed on"),
                    }
                }
                let secrets = program.proxy.iter().flat_map(|proxy| &proxy.secrets);
                for SecretVariable { variable, name } in secrets {
                    part(variable);
                    part(&format!("secret:{name}"));
                }
            }
            ServerTarget::Http(address) => {
                part(&address.url);
                part(address.token.as_ref().map_or("", |token| &token.variable));
            }
        }
        crate::tool_definition::hex(&hash.finalize())
    }

    /// Returns whether to offer this tool of the server.
    pub(crate) fn wants(&self, tool: &str) -> bool {
        let tools = self.tools.as_ref();
        tools.is_none_or(|tools| tools.iter().any(|wanted| wanted == tool))
    }
}
