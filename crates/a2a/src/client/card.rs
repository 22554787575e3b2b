//! What lango takes from a card: which interface it uses, and what the agent says of itself.
//!
//! Read by hand and leniently: a field that lango does not need may be missing or odd.

use super::fault::CardFault;
use super::fetch::Fetched;
use super::words::one_line;
use a2a::{TRANSPORT_PROTOCOL_HTTP_JSON, TRANSPORT_PROTOCOL_JSONRPC};
use reqwest::Url;
use serde_json::Value;

/// The longest description, in characters; the skills have as much again, together.
const DESCRIPTION_CHARS: usize = 600;

/// The most skills that are told of.
const SKILLS: usize = 12;

const SKILL_CHARS: usize = 120;

/// How an interface is spoken to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Binding {
    /// JSON-RPC 2.0 over HTTP.
    JsonRpc,
    /// Plain HTTP with JSON.
    HttpJson,
}

impl Binding {
    /// Its name in a card.
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

/// Where calls go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Interface {
    pub url: Url,
    pub binding: Binding,
    pub tenant: Option<String>,
}

/// A card that can be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Card {
    pub description: String,
    pub interface: Interface,
    pub streams: bool,
}

impl Card {
    pub fn read(fetched: &Fetched) -> Result<Self, CardFault> {
        let card = &fetched.card;
        let interfaces = card.get("supportedInterfaces").and_then(Value::as_array);
        if interfaces.is_none() {
            old_protocol(card)?;
        }
        let is_there = |field: &str| match card.get(field) {
            Some(Value::String(text)) => !text.trim().is_empty(),
            Some(Value::Array(list)) => !list.is_empty(),
            _ => false,
        };
        let missing: Vec<String> = ["name", "description", "supportedInterfaces"]
            .into_iter()
            .filter(|field| !is_there(field))
            .map(|field| format!("`{field}`"))
            .collect();
        if !missing.is_empty() {
            return Err(CardFault::Missing {
                fields: missing.join(", "),
            });
        }
        needed_extension(card)?;
        let interface = choose(interfaces.map_or(&[], Vec::as_slice))?;
        Ok(Self {
            description: description(card),
            interface,
            streams: card["capabilities"]["streaming"] == true,
        })
    }
}

/// Cards before 1.0 name one URL and no interfaces.
fn old_protocol(card: &Value) -> Result<(), CardFault> {
    let version = card.get("protocolVersion").and_then(Value::as_str);
    if version.is_none() && card["preferredTransport"].is_null() && card["url"].is_null() {
        return Ok(());
    }
    Err(CardFault::OldProtocol {
        version: version.map_or_else(|| "0.3 or earlier".to_owned(), |text| one_line(text, 20)),
    })
}

fn needed_extension(card: &Value) -> Result<(), CardFault> {
    let extensions = card
        .get("capabilities")
        .and_then(|all| all["extensions"].as_array());
    let needed = extensions
        .into_iter()
        .flatten()
        .find(|extension| extension["required"] == true);
    match needed {
        None => Ok(()),
        Some(extension) => Err(CardFault::NeedsExtension {
            uri: one_line(extension["uri"].as_str().unwrap_or("without a name"), 200),
        }),
    }
}

/// The first interface in the card's own order that lango speaks. Only that one is checked later: a card that starts with a
/// forbidden place is not trusted with its second choice.
fn choose(interfaces: &[Value]) -> Result<Interface, CardFault> {
    let text = |interface: &Value, field: &str| {
        interface[field]
            .as_str()
            .unwrap_or_default()
            .trim()
            .to_owned()
    };
    let spoken: Vec<(&Value, Binding)> = interfaces
        .iter()
        .filter_map(|interface| {
            Some((interface, Binding::of(&text(interface, "protocolBinding"))?))
        })
        .collect();
    if spoken.is_empty() {
        let bindings = interfaces.iter().map(|one| text(one, "protocolBinding"));
        return Err(CardFault::UnsupportedBinding {
            bindings: listed(bindings),
        });
    }
    let Some((interface, binding)) = spoken
        .iter()
        .find(|(interface, _)| speaks_version_1(&text(interface, "protocolVersion")))
    else {
        let versions = spoken.iter().map(|(one, _)| text(one, "protocolVersion"));
        return Err(CardFault::UnsupportedVersion {
            versions: listed(versions),
        });
    };
    let url = text(interface, "url");
    let parsed: Url = url.parse().map_err(|_| CardFault::InterfaceRefused {
        url: one_line(&url, 200),
        why: "it is not a whole URL".to_owned(),
    })?;
    Ok(Interface {
        url: parsed,
        binding: *binding,
        tenant: Some(text(interface, "tenant")).filter(|tenant| !tenant.is_empty()),
    })
}

/// Returns whether an interface of a 1.0 card speaks version 1. The protocol requires `protocolVersion`, but SDKs publish and
/// accept cards without it, so a missing or empty one is read as 1.0: cards of 0.3 have no `supportedInterfaces`.
fn speaks_version_1(version: &str) -> bool {
    version.is_empty() || version.split('.').next() == Some("1")
}

/// What was seen, each once, in a form that can be shown.
fn listed(seen: impl Iterator<Item = String>) -> String {
    let mut names: Vec<String> = Vec::new();
    for name in seen {
        let name = if name.is_empty() {
            "none named".to_owned()
        } else {
            one_line(&name, 30)
        };
        if !names.contains(&name) && names.len() < 8 {
            names.push(name);
        }
    }
    names.join(", ")
}

/// What it says of itself, with its skills, in one line.
fn description(card: &Value) -> String {
    let words = |value: &Value, most: usize| one_line(value.as_str().unwrap_or_default(), most);
    let mut line = words(&card["description"], DESCRIPTION_CHARS);
    let skills = card.get("skills").and_then(Value::as_array);
    let skills = skills.map_or(&[][..], Vec::as_slice);
    let told: Vec<String> = skills
        .iter()
        .map(|skill| {
            let name = words(&skill["name"], 60);
            let description = words(&skill["description"], SKILL_CHARS);
            match (name.is_empty(), description.is_empty()) {
                (false, false) => format!("{name} ({description})"),
                (false, true) => name,
                (true, _) => description,
            }
        })
        .filter(|skill| !skill.is_empty())
        .take(SKILLS)
        .collect();
    if !told.is_empty() {
        if !line.ends_with(['.', '!', '?', '…', ':', ';', '。']) {
            line.push('.');
        }
        line.push_str(" Skills: ");
        line.push_str(&told.join("; "));
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
    fn the_first_interface_that_lango_speaks_is_taken() {
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
        let card = Card::read(&Fetched { card, url }).unwrap();
        assert_eq!(card.interface.url.as_str(), "https://first.example/");
    }

    #[test]
    fn an_interface_without_a_protocol_version_speaks_version_1() {
        let read = |interface: Value| {
            let card =
                json!({ "name": "n", "description": "d", "supportedInterfaces": [interface] });
            let url = "https://agents.example/card.json".parse().unwrap();
            Card::read(&Fetched { card, url })
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
