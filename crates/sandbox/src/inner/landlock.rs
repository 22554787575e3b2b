//! The inner wall around files: the kernel's Landlock. It holds even if the view of the disk should not.
//!
//! All that the running kernel can restrict is asked for as a hard requirement, so that it refuses rather than restricts
//! in part. Inside of bubblewrap's view kernels from 5.19 will do. Without that view the kernel has to guard the length of
//! files as well, which those from 6.2 do.

use crate::plan::Plan;
use crate::{FILES_PORT, Network, PROXY_PORT, Profile};
use landlock::{
    ABI, Access, AccessFs, AccessNet, CompatLevel, Compatible, NetPort, PathBeneath, PathFd,
    Ruleset, RulesetAttr, RulesetCreated, RulesetCreatedAttr, RulesetStatus, Scope,
};
use rustix::fd::BorrowedFd;
use std::path::Path;

/// The least that is accepted where bubblewrap's view hides the rest of the disk.
const LEAST_ABI: i32 = 2;
/// The least that is accepted without it.
pub(crate) const LEAST_ABI_ALONE: i32 = 3;
/// From here on the kernel keeps a process from abstract sockets and processes outside.
pub(crate) const SCOPES_ABI: i32 = 6;
/// The newest that was tried here.
const NEWEST_ABI: i32 = 7;

/// Which version of Landlock the kernel speaks; 0 if none.
pub(crate) fn kernel_abi() -> i32 {
    const VERSION: libc::c_uint = 1;
    // SAFETY: with this flag the call takes no memory and only answers with a number.
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

/// Restricts this process for good to the directories behind these handles.
pub(super) fn restrict_to(directories: &[BorrowedFd<'_>]) -> Result<(), String> {
    let abi = ABI::from(kernel_abi().min(NEWEST_ABI));
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

/// Restricts this process for good.
pub(super) fn restrict(plan: &Plan) -> Result<(), String> {
    let kernel = kernel_abi();
    let (least, linux) = match plan.namespaces {
        true => (LEAST_ABI, "5.19"),
        false => (LEAST_ABI_ALONE, "6.2"),
    };
    if kernel < least {
        return Err(format!(
            "the kernel speaks version {kernel}, and {least} is the least; use Linux {linux} or newer"
        ));
    }
    rules(plan, ABI::from(kernel.min(NEWEST_ABI))).and_then(enforce)
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
    // Devices cannot be made, and those of the machine not reached through a folder that is written.
    let devices_made = AccessFs::MakeChar | AccessFs::MakeBlock;
    let mut write = AccessFs::from_all(abi) & !devices_made;
    if abi >= ABI::V5 {
        write &= !AccessFs::IoctlDev;
    }
    for path in &plan.write {
        rules = add(rules, path, write, abi)?;
    }
    let mut processes = read & !AccessFs::Execute;
    if plan.profile == Profile::Browser {
        // It maps the users of its own namespaces there, and says which of its processes go first when memory runs out.
        processes |= AccessFs::WriteFile | AccessFs::Truncate;
    }
    if plan.namespaces {
        rules = add(rules, Path::new("/dev"), devices, abi)?;
        rules = add(rules, Path::new("/proc"), processes, abi)?;
        // Names alone, and there are no others in view.
        return add(rules, Path::new("/"), AccessFs::ReadDir.into(), abi);
    }
    // This is the machine's own `/proc`, with all processes in it.
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

/// The ports that the command may connect to, binding none; nothing if the kernel need not guard them.
fn ports(plan: &Plan) -> Option<&'static [u16]> {
    match (plan.network, plan.profile) {
        (Network::None, _) => Some(&[]),
        (Network::Proxied, Profile::Browser) => Some(&[PROXY_PORT, FILES_PORT]),
        // In a network of its own a command may serve itself, as tests of programs do.
        (Network::Proxied, Profile::Command) | (Network::Host, _) => None,
    }
}

fn add(
    rules: RulesetCreated,
    path: &Path,
    access: landlock::BitFlags<AccessFs>,
    abi: ABI,
) -> Result<RulesetCreated, String> {
    // What is gone since the plan was made needs no rule.
    let Ok(metadata) = std::fs::metadata(path) else {
        return Ok(rules);
    };
    let access = match metadata.is_dir() {
        true => access & AccessFs::from_all(abi),
        false => access & AccessFs::from_file(abi),
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
    use crate::Limits;
    use crate::layers::Layer;
    use crate::plan::{CleanUpDescriptors, Work};

    #[test]
    fn rules_can_be_made_for_every_version_that_is_accepted() {
        let kinds = [
            (true, Network::None, Profile::Command),
            (true, Network::Proxied, Profile::Browser),
            (false, Network::Host, Profile::Command),
        ];
        for (namespaces, network, profile) in kinds {
            let plan = Plan {
                work: Work::Command,
                argv: Vec::new(),
                env: Vec::new(),
                cwd: "/".into(),
                read: vec!["/usr".into(), "/etc/passwd".into(), "/nonexistent".into()],
                write: vec!["/tmp".into()],
                in_memory: Vec::new(),
                fixed: Vec::new(),
                network,
                profile,
                unix_sockets: true,
                limits: Limits::default(),
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
            for abi in LEAST_ABI..=kernel_abi().min(NEWEST_ABI) {
                assert_eq!(rules(&plan, ABI::from(abi)).err(), None, "version {abi}");
            }
        }
    }
}
