//! The one egress guard of the process, from the configuration. Everything that contacts a host which a model or a remote
//! agent chose goes through it.

use crate::config::{EgressSettings, NetworkAccess};
use lango_net::{Egress, EgressLimits, EgressRules, HostPattern};
use lango_tools::CommandProxy;

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

/// The proxy that commands have, if they may contact some hosts and not all.
pub fn command_proxy(access: &NetworkAccess, egress: &Egress) -> Option<CommandProxy> {
    match access {
        NetworkAccess::Closed | NetworkAccess::Open => None,
        NetworkAccess::Hosts(hosts) => Some(CommandProxy {
            egress: egress.clone(),
            hosts: hosts.clone(),
        }),
    }
}

/// Describes in a few words what commands reach of the network.
pub fn describe_access(access: &NetworkAccess) -> String {
    match access {
        NetworkAccess::Closed => "closed".to_owned(),
        NetworkAccess::Hosts(hosts) => format!("only {} (tools.exec.network)", list(hosts)),
        NetworkAccess::Open => "open (tools.exec.network)".to_owned(),
    }
}

/// Describes the guard in a line for `lango doctor`.
pub fn describe(egress: &Egress) -> String {
    let (rules, limits) = (egress.rules(), egress.limits());
    format!(
        "public hosts; allow: {}; deny: {}; {} requests and {} bytes per turn",
        list(&rules.allow),
        list(&rules.deny),
        limits.requests,
        limits.total_bytes
    )
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
