//! The one egress guard of the process, from the configuration. Everything that contacts a host which a model or a remote
//! agent chose goes through it.

use crate::config::EgressSettings;
use lango_net::{Egress, EgressLimits, EgressRules, HostPattern};

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

/// Describes the guard in a line for `lango doctor`.
pub fn describe(egress: &Egress) -> String {
    let list = |hosts: &[HostPattern]| match hosts {
        [] => "nothing".to_owned(),
        hosts => {
            let hosts: Vec<String> = hosts.iter().map(ToString::to_string).collect();
            hosts.join(", ")
        }
    };
    let (rules, limits) = (egress.rules(), egress.limits());
    format!(
        "public hosts; allow: {}; deny: {}; {} requests and {} bytes per turn",
        list(&rules.allow),
        list(&rules.deny),
        limits.requests,
        limits.total_bytes
    )
}
