//! What a person says about a server: how it is reached, and which of its tools are wanted.

use crate::program_proxy::{ProgramProxy, SecretVariable};
use lango_core::AgentName;
use lango_sandbox::{Limits, Policy};
use lango_secrets::Credential;
use sha2::{Digest, Sha256};
use std::fmt;
use std::path::PathBuf;

/// One server.
#[derive(Debug, Clone)]
pub struct ServerSettings {
    /// The name it has here.
    pub id: String,
    /// How it is reached.
    pub reach: Reach,
    /// The agent that is given its tools; none leaves it to their prefix.
    pub agent: Option<AgentName>,
    /// What the names of its tools begin with here.
    pub prefix: String,
    /// The tools that are wanted, by the server's own names; none means all.
    pub tools: Option<Vec<String>>,
    /// Whether its forms are answered with the defaults that it gives itself. Otherwise it is not told of forms at all.
    pub form_defaults: bool,
}

/// How a server is reached.
#[derive(Debug, Clone)]
pub enum Reach {
    /// It is started here, and spoken to over its input and output.
    Program(Box<Program>),
    /// It runs elsewhere.
    Address(Address),
}

/// A server that is started here.
#[derive(Debug, Clone)]
pub struct Program {
    /// The program and its arguments. [`Program::WORKSPACE`] in a word stands for the workspace of the agents.
    pub argv: Vec<String>,
    /// Variables that it is given; it gets nothing else of lango's environment.
    pub env: Vec<Variable>,
    /// The hosts that it may contact through a proxy, and the secrets that it may use there. With it the network of the
    /// policy is [`Network::Proxied`](lango_sandbox::Network::Proxied), without it never.
    pub proxy: Option<ProgramProxy>,
    /// Arguments that name files of data. They are neither checked nor copied before a start.
    pub data: Vec<String>,
    /// What it may touch. The workspace of this policy is the server's private directory, in which it starts.
    pub policy: Policy,
    /// What it may use up. Its time is not limited, whatever this says.
    pub limits: Limits,
    /// What agents may touch. Code from where they can write runs only as the user trusted it.
    pub agents: Policy,
    /// The directory for copies of such code, which only lango writes.
    pub copies: PathBuf,
}

impl Program {
    /// Stands for the workspace of the agents in words and in values of variables that are set.
    pub const WORKSPACE: &str = "{workspace}";

    /// Whether the command or its variables name the workspace, which is what gives a server access to it.
    pub fn names_workspace(argv: &[String], env: &[Variable]) -> bool {
        let mut words = argv.iter().map(String::as_str);
        let values = env.iter().filter(|variable| !variable.is_passed_on);
        let mut values = values.filter_map(|variable| variable.value.as_ref().map(Secret::reveal));
        let is_named = |text: &str| text.contains(Self::WORKSPACE);
        words.any(is_named) || values.any(is_named)
    }
}

/// A variable for a server.
#[derive(Debug, Clone)]
pub struct Variable {
    /// Its name.
    pub name: String,
    /// Whether the value was taken from lango's own environment, by its name.
    pub is_passed_on: bool,
    /// The value; none if it was to be passed on and is not set.
    pub value: Option<Secret>,
}

/// A server that runs elsewhere.
#[derive(Debug, Clone)]
pub struct Address {
    /// Where it is.
    pub url: String,
    /// What it is shown, if the person has it from elsewhere.
    pub token: Option<Token>,
    /// Who lango is to whoever grants access to it; otherwise lango registers by itself.
    pub client: Option<ClientSettings>,
}

/// Who lango was registered as.
#[derive(Debug, Clone)]
pub struct ClientSettings {
    /// Its name there.
    pub id: String,
    /// Its secret there, if it has one.
    pub secret: Option<Token>,
}

/// A secret, and the variable that holds it.
#[derive(Debug, Clone)]
pub struct Token {
    /// The variable.
    pub variable: String,
    /// Its value, which is looked up for each request; none if it is not set.
    pub value: Option<Credential>,
}

/// A text that is not shown by accident.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Keeps the text.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    pub(crate) fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("<secret>")
    }
}

impl Reach {
    /// The word for it.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Program(_) => "stdio",
            Self::Address(_) => "http",
        }
    }
}

impl ServerSettings {
    /// Stands for what decides which server answers. Values that are passed on are left out: a token that is renewed is no
    /// other server.
    pub(crate) fn digest(&self) -> String {
        let mut hash = Sha256::new();
        let mut part = |text: &str| {
            hash.update(text.len().to_le_bytes());
            hash.update(text);
        };
        part(self.reach.word());
        match &self.reach {
            Reach::Program(program) => {
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
            Reach::Address(address) => {
                part(&address.url);
                part(address.token.as_ref().map_or("", |token| &token.variable));
            }
        }
        crate::form::hex(&hash.finalize())
    }

    /// Whether this tool of the server is wanted.
    pub(crate) fn wants(&self, tool: &str) -> bool {
        let tools = self.tools.as_ref();
        tools.is_none_or(|tools| tools.iter().any(|wanted| wanted == tool))
    }
}
