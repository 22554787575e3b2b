//! Reads a card: the interface that lango uses, and the description of the agent.
//!
//! The card is parsed by hand, so fields that lango does not need may be missing or malformed.

use super::card_error::CardError;
use super::fetch::FetchedCard;
use super::sanitize::one_line;
use a2a::{TRANSPORT_PROTOCOL_HTTP_JSON, TRANSPORT_PROTOCOL_JSONRPC};
use reqwest::Url;
use serde_json::Value;

/// The maximum length of the agent's own description, in characters.
const DESCRIPTION_CHARS: usize = 600;

/// The maximum number of skills in a description.
const SKILLS: usize = 12;

const SKILL_CHARS: usize = 120;

/// The protocol binding of an interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Binding {
    /// JSON-RPC 2.0 over HTTP.
    JsonRpc,
    /// Plain HTTP with JSON.
    HttpJson,
}

impl Binding {
    /// Returns the name of the binding in a card.
    pub fn name(self) -> &'static str {
        match self {
            Self::JsonRpc => TRANSPORT_PROTOCOL_JSONRPC,
            Self::HttpJson => TRANSPORT_PROTOCOL_HTTP_JSON,
        }
    }

    fn of(name: &str) -> Option<Self> {
        [Self::JsonRpc, Self::HttpJson]
            .into_iter()
            .find(|binding| binding.name().eq_ignore_ascii_case(name))
    }
}

/// The interface that receives the calls.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Interface {
    pub url: Url,
    pub binding: Binding,
    pub tenant: Option<String>,
}

/// The content of a usable card.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Card {
    pub description: String,
    pub interface: Interface,
    pub streams: bool,
}

impl Card {
    pub(crate) fn read(fetched: &FetchedCard) -> Result<Self, CardError> {
        let card = &fetched.card;
        let interfaces = card.get("supportedInterfaces").and_then(Value::as_array);
        if interfaces.is_none() {
            check_protocol(card)?;
        }
        let is_present = |field: &str| match card.get(field) {
            Some(Value::String(text)) => !text.trim().is_empty(),
            Some(Value::Array(list)) => !list.is_empty(),
            _ => false,
        };
        let missing: Vec<String> = ["name", "description", "supportedInterfaces"]
            .into_iter()
            .filter(|field| !is_present(field))
            .map(|field| format!("`{field}`"))
            .collect();
        if !missing.is_empty() {
            return Err(CardError::Missing {
                fields: missing.join(", "),
            });
        }
        check_extensions(card)?;
        let interface = choose(interfaces.map_or(&[], Vec::as_slice))?;
        Ok(Self {
            description: description(card),
            interface,
            streams: card["capabilities"]["streaming"] == true,
        })
    }
}

/// Refuses a card from before 1.0, which has one URL and no interfaces.
fn check_protocol(card: &Value) -> Result<(), CardError> {
    let version = card.get("protocolVersion").and_then(Value::as_str);
    if version.is_none() && card["preferredTransport"].is_null() && card["url"].is_null() {
        return Ok(());
    }
    Err(CardError::OldProtocol {
        version: version.map_or_else(|| "0.3 or earlier".to_owned(), |text| one_line(text, 20)),
    })
}

/// Refuses a card that requires an extension, because lango supports none.
fn check_extensions(card: &Value) -> Result<(), CardError> {
    let extensions = card
        .get("capabilities")
        .and_then(|all| all["extensions"].as_array());
    let required = extensions
        .into_iter()
        .flatten()
        .find(|extension| extension["required"] == true);
    match required {
        None => Ok(()),
        Some(extension) => Err(CardError::NeedsExtension {
            uri: one_line(extension["uri"].as_str().unwrap_or("(unnamed)"), 200),
        }),
    }
}

/// Returns the first supported interface of the card. Later checks apply only to this one: if its URL is refused, lango
/// does not try the next interface of an untrusted card.
fn choose(interfaces: &[Value]) -> Result<Interface, CardError> {
    let text = |interface: &Value, field: &str| {
        interface[field]
            .as_str()
            .unwrap_or_default()
            .trim()
            .to_owned()
    };
    let supported: Vec<(&Value, Binding)> = interfaces
        .iter()
        .filter_map(|interface| {
            Some((interface, Binding::of(&text(interface, "protocolBinding"))?))
        })
        .collect();
    if supported.is_empty() {
        let bindings = interfaces.iter().map(|one| text(one, "protocolBinding"));
        return Err(CardError::UnsupportedBinding {
            bindings: join_unique(bindings),
        });
    }
    let Some((interface, binding)) = supported
        .iter()
        .find(|(interface, _)| is_version_1(&text(interface, "protocolVersion")))
    else {
        let versions = supported
            .iter()
            .map(|(one, _)| text(one, "protocolVersion"));
        return Err(CardError::UnsupportedVersion {
            versions: join_unique(versions),
        });
    };
    let url = text(interface, "url");
    let parsed: Url = url.parse().map_err(|_| CardError::InterfaceRefused {
        url: one_line(&url, 200),
        why: "it is not an absolute URL".to_owned(),
    })?;
    Ok(Interface {
        url: parsed,
        binding: *binding,
        tenant: Some(text(interface, "tenant")).filter(|tenant| !tenant.is_empty()),
    })
}

/// Returns whether an interface has version 1 of the protocol. `protocolVersion` is required, but some SDKs publish and
/// accept cards without it. A missing or empty version counts as 1.0, because cards of version 0.3 have no
/// `supportedInterfaces`.
fn is_version_1(version: &str) -> bool {
    version.is_empty() || version.split('.').next() == Some("1")
}

/// Joins the distinct values, at most eight, for an error message.
fn join_unique(values: impl Iterator<Item = String>) -> String {
    let mut names: Vec<String> = Vec::new();
    for name in values {
        let name = if name.is_empty() {
            "(unnamed)".to_owned()
        } else {
            one_line(&name, 30)
        };
        if !names.contains(&name) && names.len() < 8 {
            names.push(name);
        }
    }
    names.join(", ")
}

/// Returns the description and the skills of the agent, in one line.
fn description(card: &Value) -> String {
    let text = |value: &Value, max: usize| one_line(value.as_str().unwrap_or_default(), max);
    let mut line = text(&card["description"], DESCRIPTION_CHARS);
    let skills = card.get("skills").and_then(Value::as_array);
    let skills = skills.map_or(&[][..], Vec::as_slice);
    let listed: Vec<String> = skills
        .iter()
        .map(|skill| {
            let name = text(&skill["name"], 60);
            let description = text(&skill["description"], SKILL_CHARS);
            match (name.is_empty(), description.is_empty()) {
                (false, false) => format!("{name} ({description})"),
                (false, true) => name,
                (true, _) => description,
            }
        })
        .filter(|skill| !skill.is_empty())
        .take(SKILLS)
        .collect();
    if !listed.is_empty() {
        if !line.ends_with(['.', '!', '?', '…', ':', ';', '。']) {
            line.push('.');
        }
        line.push_str(" Skills: ");
        line.push_str(&listed.join("; "));
        if skills.len() > SKILLS {
            line.push_str(&format!("; and {} more", skills.len() - SKILLS));
        }
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_first_supported_interface_is_used() {
        let interface = |url: &str, binding: &str| json!({ "url": url, "protocolBinding": binding, "protocolVersion": "1.0" });
        let card = json!({
            "name": "n", "description": "d",
            "supportedInterfaces": [
                interface("https://grpc.example/", "GRPC"),
                interface("https://first.example/", "JSONRPC"),
                interface("https://second.example/", "JSONRPC"),
            ],
        });
        let url = "https://agents.example/card.json".parse().unwrap();
        let card = Card::read(&FetchedCard { card, url }).unwrap();
        assert_eq!(card.interface.url.as_str(), "https://first.example/");
    }

    #[test]
    fn an_interface_without_a_protocol_version_counts_as_version_1() {
        let read = |interface: Value| {
            let card =
                json!({ "name": "n", "description": "d", "supportedInterfaces": [interface] });
            let url = "https://agents.example/card.json".parse().unwrap();
            Card::read(&FetchedCard { card, url })
        };
        let mut interface = json!({ "url": "https://a.example/", "protocolBinding": "JSONRPC" });
        assert!(read(interface.clone()).is_ok());
        for (version, is_read) in [
            ("", true),
            ("1", true),
            ("1.0", true),
            ("0.3", false),
            ("10.0", false),
        ] {
            interface["protocolVersion"] = json!(version);
            assert_eq!(read(interface.clone()).is_ok(), is_read, "{version}");
        }
    }

    #[test]
    fn a_description_and_its_skills_are_two_sentences() {
        let line = |text: &str, skills: Value| {
            description(&json!({ "description": text, "skills": skills }))
        };
        let skills = json!([{ "name": "Summing" }]);
        assert_eq!(line("Adds", skills.clone()), "Adds. Skills: Summing");
        assert_eq!(line("Adds. ", skills.clone()), "Adds. Skills: Summing");
        assert_eq!(line("Adds!", skills), "Adds! Skills: Summing");
        assert_eq!(line("Adds", json!([])), "Adds");
    }
}
