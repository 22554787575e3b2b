//! A binding as users and models write it. Missing parts get defaults. The doc comments of the fields are part of the
//! tools' schemas, which models read.

use lango_core::is_loopback_host;
use lango_secrets::{Binding, BindingError, BindingTarget, Origin, SecretName, ServerToolId};
use schemars::JsonSchema;
use serde::Deserialize;

/// The header if the draft names none.
const DEFAULT_HEADER: &str = "authorization";

/// The parts of a binding. A host alone means the `authorization` header of requests that commands send to it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BindingDraft {
    /// The tool that uses the secret: `exec` for commands (the default), `mcp:ID` for the program of an MCP server, or
    /// with `field` the name of a tool (`mcp:ID/TOOL` for the tool of an MCP server).
    #[serde(default)]
    pub tool: Option<String>,
    /// The only host that receives the value, such as `api.example.com`.
    #[serde(default)]
    pub host: Option<String>,
    /// The header that contains the value; default: `authorization`.
    #[serde(default)]
    pub header: Option<String>,
    /// The environment variable with the placeholder for programs; default: the name of the secret.
    #[serde(default)]
    pub variable: Option<String>,
    /// A program that must see the value itself in the variable, such as `aws`. Prefer `host`.
    #[serde(default)]
    pub program: Option<String>,
    /// The argument of the tool that may be `secret:NAME`.
    #[serde(default)]
    pub field: Option<String>,
}

/// The reason why a draft is not a valid binding.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DraftError {
    /// A part is not valid.
    #[error(transparent)]
    Part(#[from] BindingError),
    /// The parts do not fit together.
    #[error("{0}")]
    Parts(String),
}

impl BindingDraft {
    /// Builds the binding of a secret.
    pub fn build(&self, name: &SecretName) -> Result<Binding, DraftError> {
        let parts = |text: &str| Err(DraftError::Parts(text.to_owned()));
        match (&self.field, &self.program, &self.host) {
            (Some(field), None, host) => self.field(field, host.as_deref()),
            (None, Some(program), None) => {
                if self.header.is_some() {
                    return parts(
                        "a program gets the value in a variable; give a header only with a host",
                    );
                }
                let tool = self.program_tool()?;
                Ok(Binding::program(tool, program, &self.variable(name))?)
            }
            (None, None, Some(host)) => {
                let header = self.header.as_deref().unwrap_or(DEFAULT_HEADER);
                let tool = self.program_tool()?;
                let origin = origin(host)?;
                Ok(Binding::header(tool, origin, header, &self.variable(name))?)
            }
            (None, None, None) => {
                parts("name the host, the program or the field that gets the value")
            }
            _ => parts("give exactly one of a host, a program, or a field of a tool"),
        }
    }

    fn field(&self, field: &str, host: Option<&str>) -> Result<Binding, DraftError> {
        if self.header.is_some() || self.variable.is_some() {
            let text = "with a field, give neither a header nor an environment variable";
            return Err(DraftError::Parts(text.to_owned()));
        }
        match self.tool.as_deref() {
            None => Err(DraftError::Parts(format!(
                "name the tool of the field `{field}`"
            ))),
            Some(tool) => match (ServerToolId::parse(tool), host) {
                (Some(id), None) => Ok(Binding::server_field(&id, field)?),
                (Some(_), Some(_)) => Err(DraftError::Parts(format!(
                    "lango cannot control which hosts `{tool}` contacts; leave out the host"
                ))),
                (None, _) if tool == Binding::COMMANDS => Err(DraftError::Parts(format!(
                    "`{tool}` runs programs and has no fields; bind to a host instead"
                ))),
                (None, Some(host)) if !tool.contains(':') => {
                    Ok(Binding::field(tool, field, Some(origin(host)?))?)
                }
                (None, _) => Err(DraftError::Parts(format!(
                    "`{tool}` is not a tool of an MCP server; write `mcp:ID/TOOL`, with the server's id in the \
                     configuration and the server's name for the tool (`lango mcp list` shows both)"
                ))),
            },
        }
    }

    /// Returns the tool. Fails if it does not run programs.
    fn program_tool(&self) -> Result<&str, DraftError> {
        let tool = self.tool.as_deref().unwrap_or(Binding::COMMANDS);
        if tool == Binding::COMMANDS || tool.starts_with("mcp:") {
            Ok(tool)
        } else {
            Err(DraftError::Parts(format!(
                "`{tool}` does not run programs; use `exec` or `mcp:ID`, or name the field of the tool"
            )))
        }
    }

    fn variable(&self, name: &SecretName) -> String {
        let given = self.variable.clone();
        given.unwrap_or_else(|| {
            let name = name.as_str().to_ascii_uppercase().replace(['-', '.'], "_");
            if name.starts_with(|first: char| first.is_ascii_digit()) {
                format!("SECRET_{name}")
            } else {
                name
            }
        })
    }
}

/// Returns the command that creates a binding.
pub fn bind_command(name: &SecretName, binding: &Binding) -> String {
    let mut words = vec!["lango".to_owned(), "secrets".into(), "bind".into()];
    words.push(name.to_string());
    let mut flag = |flag: &str, value: &str| words.extend([flag.to_owned(), quote(value)]);
    match &binding.target {
        BindingTarget::ServerField { tool, .. } => {
            flag("--tool", &format!("{}/{tool}", binding.tool));
        }
        _ if *binding.tool != *Binding::COMMANDS => flag("--tool", &binding.tool),
        _ => {}
    }
    match &binding.target {
        BindingTarget::ServerField { field, .. } => flag("--field", field),
        BindingTarget::Header {
            origin,
            header,
            variable,
        } => {
            flag("--host", &origin.to_string());
            if **header != *DEFAULT_HEADER {
                flag("--header", header);
            }
            flag("--env", variable);
        }
        BindingTarget::Program { program, variable } => {
            flag("--program", program);
            flag("--env", variable);
        }
        BindingTarget::Field { field, origin } => {
            flag("--field", field);
            if let Some(origin) = origin {
                flag("--host", &origin.to_string());
            }
        }
    }
    words.join(" ")
}

/// Quotes a word for a shell if necessary.
fn quote(word: &str) -> String {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "_-./:@".contains(letter);
    if !word.is_empty() && word.chars().all(is_plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', "'\\''"))
    }
}

/// Parses an origin. Allows plain HTTP only to servers on this machine.
fn origin(host: &str) -> Result<Origin, DraftError> {
    let origin = Origin::parse(host)?;
    if origin.is_https() || is_loopback_host(origin.host()) {
        Ok(origin)
    } else {
        Err(DraftError::Parts(format!(
            "the value would be sent unencrypted to {origin}; use https"
        )))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(value: &str) -> Option<String> {
        Some(value.to_owned())
    }

    fn built(draft: &BindingDraft) -> Result<String, String> {
        let name = SecretName::new("github-token").unwrap();
        let built = draft.build(&name);
        built
            .map(|binding| binding.to_string())
            .map_err(|error| error.to_string())
    }

    #[test]
    fn missing_parts_get_defaults() {
        let draft = BindingDraft {
            host: text("github.com"),
            ..BindingDraft::default()
        };
        assert_eq!(
            built(&draft).unwrap(),
            "exec: header `authorization` to https://github.com, placeholder in GITHUB_TOKEN"
        );
        let draft = BindingDraft {
            program: text("aws"),
            variable: text("AWS_KEY"),
            ..BindingDraft::default()
        };
        assert_eq!(
            built(&draft).unwrap(),
            "exec: `aws` sees the value in AWS_KEY"
        );
        let draft = BindingDraft {
            tool: text("browser_act"),
            field: text("text"),
            host: text("example.com"),
            ..BindingDraft::default()
        };
        assert_eq!(
            built(&draft).unwrap(),
            "browser_act: argument `text`, sent to https://example.com"
        );
    }

    #[test]
    fn the_command_of_a_binding_names_all_its_parts() {
        let name = SecretName::new("TOKEN").unwrap();
        let origin = |text| Origin::parse(text).unwrap();
        let header = |tool, host, header| Binding::header(tool, origin(host), header, "V").unwrap();
        for (binding, arguments) in [
            (
                header("exec", "a.example", "authorization"),
                "--host https://a.example --env V",
            ),
            (
                header("mcp:x", "a.example:8443", "x-key"),
                "--tool mcp:x --host https://a.example:8443 --header x-key --env V",
            ),
            (
                header("exec", "http://[::1]:81", "authorization"),
                "--host 'http://[::1]:81' --env V",
            ),
            (
                Binding::program("exec", "aws", "V").unwrap(),
                "--program aws --env V",
            ),
            (
                Binding::field("browser_act", "text", Some(origin("a.example"))).unwrap(),
                "--tool browser_act --field text --host https://a.example",
            ),
            (
                Binding::server_field(&ServerToolId::parse("mcp:x/login").unwrap(), "word")
                    .unwrap(),
                "--tool mcp:x/login --field word",
            ),
        ] {
            let command = format!("lango secrets bind TOKEN {arguments}");
            assert_eq!(bind_command(&name, &binding), command);
        }
    }

    #[test]
    fn a_field_of_an_mcp_tool_names_the_server_and_the_tool() {
        let draft = |tool: &str| BindingDraft {
            tool: text(tool),
            field: text("password"),
            ..BindingDraft::default()
        };
        assert_eq!(
            built(&draft("mcp:pay/b_login")).unwrap(),
            "mcp:pay: argument `password` of its tool `b_login`"
        );
        assert_eq!(
            built(&draft("mcp:pay_b/login")).unwrap(),
            "mcp:pay_b: argument `password` of its tool `login`"
        );
    }

    #[test]
    fn parts_that_do_not_fit_together_are_refused() {
        let base = BindingDraft::default;
        let host = || text("github.com");
        for draft in [
            base(),
            BindingDraft {
                host: host(),
                program: text("git"),
                ..base()
            },
            BindingDraft {
                host: host(),
                tool: text("fs_write"),
                ..base()
            },
            BindingDraft {
                program: text("git"),
                header: text("a"),
                ..base()
            },
            BindingDraft {
                field: text("text"),
                ..base()
            },
            BindingDraft {
                field: text("text"),
                tool: text("exec"),
                ..base()
            },
            BindingDraft {
                field: text("text"),
                tool: text("mcp:a"),
                ..base()
            },
            BindingDraft {
                field: text("text"),
                tool: text("a_login"),
                ..base()
            },
            BindingDraft {
                field: text("text"),
                tool: text("mcp:a/login"),
                host: host(),
                ..base()
            },
            BindingDraft {
                field: text("text"),
                tool: text("a"),
                variable: text("B"),
                ..base()
            },
            BindingDraft {
                host: text("http://github.com"),
                ..base()
            },
            BindingDraft {
                host: text("*"),
                ..base()
            },
        ] {
            assert!(built(&draft).is_err(), "{draft:?}");
        }
        let local = BindingDraft {
            host: text("http://127.0.0.1:4873"),
            ..base()
        };
        assert!(built(&local).is_ok());
    }
}
