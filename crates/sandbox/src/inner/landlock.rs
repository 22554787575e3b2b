//! Landlock: the kernel's file access rules. They hold even if bubblewrap's view of the file system fails.
//!
//! Everything that the running kernel can restrict is a hard requirement, so setup fails rather than restricting only
//! in part. Inside bubblewrap's view Linux 5.19 is sufficient. Without that view the kernel must also control
//! truncation of files, which it does since Linux 6.2.

use crate::plan::Plan;
use crate::{FILES_PORT, Network, PROXY_PORT, SandboxProfile};
use landlock::{
    ABI, Access, AccessFs, AccessNet, CompatLevel, Compatible, NetPort, PathBeneath, PathFd,
    Ruleset, RulesetAttr, RulesetCreated, RulesetCreatedAttr, RulesetStatus, Scope,
};
use rustix::fd::BorrowedFd;
use std::path::Path;

/// Minimum version inside bubblewrap's view.
const MIN_ABI: i32 = 2;
/// Minimum version without bubblewrap.
pub(crate) const MIN_ABI_STANDALONE: i32 = 3;
/// First version that can block access to abstract sockets and processes outside.
pub(crate) const SCOPES_ABI: i32 = 6;
/// Newest version that lango was tested with.
const MAX_ABI: i32 = 7;

/// Returns the kernel's Landlock version; 0 if it has none.
pub(crate) fn kernel_abi() -> i32 {
    const VERSION: libc::c_uint = 1;
    // SAFETY: with this flag the call accesses no memory and only returns a number.
    let answer = unsafe {
        libc::syscall(
            libc::SYS_landlock_create_ruleset,
            std::ptr::null::<libc::c_void>(),
            0_usize,
            VERSION,
        )
    };
    i32::try_from(answer).unwrap_or(0).max(0)
}

/// Irrevocably restricts this process to the directories of these handles.
pub(super) fn restrict_to(directories: &[BorrowedFd<'_>]) -> Result<(), String> {
    let abi = ABI::from(kernel_abi().min(MAX_ABI));
    let all = AccessFs::from_all(abi);
    let mut rules = Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(all)
        .and_then(Ruleset::create)
        .map_err(text)?;
    for directory in directories {
        let rule = PathBeneath::new(directory, all);
        rules = rules.add_rule(rule).map_err(text)?;
    }
    enforce(rules)
}

/// Irrevocably restricts this process to what the plan allows.
pub(super) fn restrict(plan: &Plan) -> Result<(), String> {
    let kernel = kernel_abi();
    let (minimum, linux) = if plan.namespaces {
        (MIN_ABI, "5.19")
    } else {
        (MIN_ABI_STANDALONE, "6.2")
    };
    if kernel < minimum {
        return Err(format!(
            "the kernel has version {kernel}, but at least {minimum} is needed; use Linux {linux} or newer"
        ));
    }
    rules(plan, ABI::from(kernel.min(MAX_ABI))).and_then(enforce)
}

fn enforce(rules: RulesetCreated) -> Result<(), String> {
    match rules.restrict_self().map_err(text)?.ruleset {
        RulesetStatus::FullyEnforced => Ok(()),
        RulesetStatus::PartiallyEnforced | RulesetStatus::NotEnforced => {
            Err("the kernel enforces the rules only in part".to_string())
        }
    }
}

fn rules(plan: &Plan, abi: ABI) -> Result<RulesetCreated, String> {
    let mut rules = Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(AccessFs::from_all(abi))
        .map_err(text)?;
    let ports = ports(plan).filter(|_| abi >= ABI::V4);
    if ports.is_some() {
        rules = rules
            .handle_access(AccessNet::from_all(abi))
            .map_err(text)?;
    }
    if abi >= ABI::V6 {
        rules = rules.scope(Scope::from_all(abi)).map_err(text)?;
    }
    let mut rules = rules.create().map_err(text)?;
    for port in ports.unwrap_or_default() {
        let rule = NetPort::new(*port, AccessNet::ConnectTcp);
        rules = rules.add_rule(rule).map_err(text)?;
    }
    let read = AccessFs::from_read(abi);
    let mut devices =
        AccessFs::ReadFile | AccessFs::ReadDir | AccessFs::WriteFile | AccessFs::Truncate;
    if abi >= ABI::V5 {
        devices |= AccessFs::IoctlDev;
    }
    for path in &plan.read {
        rules = add(rules, path, read, abi)?;
    }
    // In writable folders, devices can neither be created nor controlled.
    let creating_devices = AccessFs::MakeChar | AccessFs::MakeBlock;
    let mut write = AccessFs::from_all(abi) & !creating_devices;
    if abi >= ABI::V5 {
        write &= !AccessFs::IoctlDev;
    }
    for path in &plan.write {
        rules = add(rules, path, write, abi)?;
    }
    let mut processes = read & !AccessFs::Execute;
    if plan.profile == SandboxProfile::Browser {
        // A browser maps the users of its namespaces there, and sets which of its processes the OOM killer prefers.
        processes |= AccessFs::WriteFile | AccessFs::Truncate;
    }
    if plan.namespaces {
        rules = add(rules, Path::new("/dev"), devices, abi)?;
        rules = add(rules, Path::new("/proc"), processes, abi)?;
        // Only listing names, and there are none but those of the view.
        return add(rules, Path::new("/"), AccessFs::ReadDir.into(), abi);
    }
    // This is the machine's `/proc`, with all processes.
    rules = add(
        rules,
        Path::new("/proc/self"),
        read & !AccessFs::Execute,
        abi,
    )?;
    for device in ["null", "zero", "full", "random", "urandom", "tty"] {
        rules = add(rules, &Path::new("/dev").join(device), devices, abi)?;
    }
    Ok(rules)
}

/// Returns the only ports that the command may connect to; it may then bind no port. `None` means no restriction.
fn ports(plan: &Plan) -> Option<&'static [u16]> {
    match (plan.network, plan.profile) {
        (Network::None, _) => Some(&[]),
        (Network::Proxied, SandboxProfile::Browser) => Some(&[PROXY_PORT, FILES_PORT]),
        // In a separate network a command may run servers for itself, for example in tests.
        (Network::Proxied, SandboxProfile::Command) | (Network::Host, _) => None,
    }
}

fn add(
    rules: RulesetCreated,
    path: &Path,
    access: landlock::BitFlags<AccessFs>,
    abi: ABI,
) -> Result<RulesetCreated, String> {
    // A path that was removed since the plan was built needs no rule.
    let Ok(metadata) = std::fs::metadata(path) else {
        return Ok(rules);
    };
    let access = if metadata.is_dir() {
        access & AccessFs::from_all(abi)
    } else {
        access & AccessFs::from_file(abi)
    };
    let path = PathFd::new(path).map_err(text)?;
    rules.add_rule(PathBeneath::new(path, access)).map_err(text)
}

fn text(error: impl std::error::Error) -> String {
    let cause = error.source().map(|cause| format!(": {cause}"));
    format!("{error}{}", cause.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ResourceLimits;
    use crate::layers::Layer;
    use crate::plan::{CleanUpDescriptors, HelperTask};

    #[test]
    fn rules_can_be_created_for_every_supported_version() {
        let kinds = [
            (true, Network::None, SandboxProfile::Command),
            (true, Network::Proxied, SandboxProfile::Browser),
            (false, Network::Host, SandboxProfile::Command),
        ];
        for (namespaces, network, profile) in kinds {
            let plan = Plan {
                task: HelperTask::Command,
                argv: Vec::new(),
                env: Vec::new(),
                cwd: "/".into(),
                read: vec!["/usr".into(), "/etc/passwd".into(), "/nonexistent".into()],
                write: vec!["/tmp".into()],
                in_memory: Vec::new(),
                expected_paths: Vec::new(),
                network,
                profile,
                unix_sockets: true,
                limits: ResourceLimits::default(),
                landlock: Layer::Used,
                seccomp: Layer::Used,
                watchdog: Layer::Used,
                namespaces,
                memory_group: false,
                memory_events: None,
                stdio: [0; 3],
                lifeline: 0,
                handover: None,
                clean_up: CleanUpDescriptors::default(),
            };
            for abi in MIN_ABI..=kernel_abi().min(MAX_ABI) {
                assert_eq!(rules(&plan, ABI::from(abi)).err(), None, "version {abi}");
            }
        }
    }
}
