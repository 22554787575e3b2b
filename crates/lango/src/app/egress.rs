//! The egress guard of the process, built from the configuration. Every contact to a host that a model or a remote
//! agent chose goes through it.

use lango_config::{EgressSettings, NetworkAccess};
use lango_net::{Egress, EgressLimits, EgressRules, HostPattern, SecretAccess};
use lango_secrets::{Masks, Origin, SecretSource};
use lango_tools::CommandProxy;
use std::sync::Arc;

/// Builds the guard.
pub fn guard(settings: &EgressSettings) -> Egress {
    let rules = EgressRules {
        allow: settings.allow.0.clone(),
        deny: settings.deny.clone(),
    };
    let limits = EgressLimits {
        requests: settings.max_requests,
        total_bytes: settings.max_bytes,
        ..EgressLimits::default()
    };
    Egress::new(rules, limits)
}

/// Returns the proxy for commands, if they may contact only some hosts.
pub fn command_proxy(access: &NetworkAccess, egress: &Egress) -> Option<CommandProxy> {
    match access {
        NetworkAccess::Closed | NetworkAccess::Open => None,
        NetworkAccess::Hosts(hosts) => Some(CommandProxy {
            egress: egress.clone(),
            hosts: hosts.clone(),
        }),
    }
}

/// Gives commands and MCP programs access to the secrets of a source, and masks the values in what the programs
/// receive.
pub fn secret_access(source: Arc<dyn SecretSource>, masks: Masks) -> SecretAccess {
    SecretAccess::new(source, masks)
}

/// Describes what is missing before a secret bound to an origin can be used there by commands or by an MCP program;
/// `key` is the setting of their network access. `None` if nothing is missing.
pub fn missing_access(access: &NetworkAccess, key: &str, origin: &Origin) -> Option<String> {
    let entry = missing_entry(access, origin)?;
    Some(match access {
        NetworkAccess::Open => format!(
            "`{key} = true` uses no proxy, so the placeholder cannot be replaced; set `{key} = [\"{entry}\"]`, with all required hosts"
        ),
        NetworkAccess::Closed | NetworkAccess::Hosts(_) => {
            format!("add `{entry}` to `{key}`, which does not list it")
        }
    })
}

/// Returns the entry that a list of hosts lacks for an origin; `None` if the list covers it.
pub fn missing_entry(access: &NetworkAccess, origin: &Origin) -> Option<String> {
    let (host, port) = (origin.host(), origin.port());
    if let NetworkAccess::Hosts(hosts) = access
        && hosts.iter().any(|entry| entry.covers(host, port))
    {
        return None;
    }
    Some(origin.host_and_port())
}

/// Describes the network access of commands in a few words.
pub fn describe_access(access: &NetworkAccess) -> String {
    match access {
        NetworkAccess::Closed => "closed".to_owned(),
        NetworkAccess::Hosts(hosts) => format!("only {} (tools.exec.network)", list(hosts)),
        NetworkAccess::Open => "open (tools.exec.network)".to_owned(),
    }
}

/// Describes the guard on one line for `lango doctor`.
pub fn describe(egress: &Egress) -> String {
    let (rules, limits) = (egress.rules(), egress.limits());
    format!(
        "public hosts; allow: {}; deny: {}; {} requests and {} per turn",
        list(&rules.allow),
        list(&rules.deny),
        limits.requests,
        describe_size(limits.total_bytes)
    )
}

/// Formats a number of bytes in the largest unit that gives a whole number.
fn describe_size(bytes: u64) -> String {
    const UNITS: [(u64, &str); 3] = [(1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")];
    let fits = |unit: u64| bytes >= unit && bytes.is_multiple_of(unit);
    let mut units = UNITS.into_iter();
    match units.find(|(unit, _)| fits(*unit)) {
        Some((unit, name)) => format!("{} {name}", bytes / unit),
        None => format!("{bytes} bytes"),
    }
}

fn list(hosts: &[HostPattern]) -> String {
    match hosts {
        [] => "nothing".to_owned(),
        hosts => {
            let hosts: Vec<String> = hosts.iter().map(ToString::to_string).collect();
            hosts.join(", ")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bound_host_that_the_network_does_not_list_is_named() {
        let origin = |text| Origin::parse(text).unwrap();
        let hosts = ["github.com", "*.npmjs.org", "10.0.0.5:8443"];
        let access = NetworkAccess::Hosts(hosts.map(|host| host.parse().unwrap()).into());
        let missing = |text| missing_access(&access, "tools.exec.network", &origin(text));
        for listed in ["github.com", "registry.npmjs.org", "10.0.0.5:8443"] {
            assert_eq!(missing(listed), None, "{listed}");
        }
        let text = missing("api.github.com").unwrap();
        assert!(text.starts_with("add `api.github.com` to `tools.exec.network`"));
        assert!(missing("10.0.0.5").is_some() && missing("npmjs.org").is_some());
        let open = missing_access(&NetworkAccess::Open, "k", &origin("a.example"));
        assert!(open.unwrap().contains("set `k = [\"a.example\"]`"));
        for (text, entry) in [
            ("http://127.0.0.1", "127.0.0.1:80"),
            ("https://a.example:8443", "a.example:8443"),
        ] {
            for access in [NetworkAccess::Open, NetworkAccess::Closed] {
                let found = missing_entry(&access, &origin(text));
                assert_eq!(found.as_deref(), Some(entry));
            }
        }
    }

    #[test]
    fn sizes_use_the_largest_whole_unit() {
        for (bytes, text) in [
            (512 << 20, "512 MiB"),
            (3 << 30, "3 GiB"),
            (1536, "1536 bytes"),
            (2048, "2 KiB"),
            (0, "0 bytes"),
        ] {
            assert_eq!(describe_size(bytes), text);
        }
    }
}
