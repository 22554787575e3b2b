//! seccomp: the system call filter. It refuses calls that no command needs and that can lead out of a sandbox or use
//! resources that are not counted. A call for another architecture kills the process.
//!
//! The filter lists refused calls, not allowed ones, because all kinds of programs run here. If several filters apply,
//! the kernel uses the strictest result, so there is a separate filter for each error code.

use crate::plan::Plan;
use crate::{Network, SandboxProfile};
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen as Length, SeccompCmpOp as Compare,
    SeccompCondition, SeccompFilter, SeccompRule, apply_filter, sock_filter,
};
use std::collections::BTreeMap;

/// Calls that no command needs.
const REFUSED: &[libc::c_long] = &[
    // Access to other processes.
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_process_madvise,
    libc::SYS_kcmp,
    libc::SYS_pidfd_getfd,
    // Access to other namespaces and other views of the file system.
    libc::SYS_unshare,
    libc::SYS_setns,
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_open_tree,
    libc::SYS_move_mount,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_mount_setattr,
    libc::SYS_open_by_handle_at,
    libc::SYS_name_to_handle_at,
    // Parts of the kernel with a long history of vulnerabilities.
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    libc::SYS_keyctl,
    libc::SYS_add_key,
    libc::SYS_request_key,
    // Control of the whole machine.
    libc::SYS_kexec_load,
    libc::SYS_kexec_file_load,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_reboot,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_acct,
    libc::SYS_quotactl,
    libc::SYS_quotactl_fd,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_clock_adjtime,
    libc::SYS_adjtimex,
    libc::SYS_sethostname,
    libc::SYS_setdomainname,
    libc::SYS_syslog,
    libc::SYS_vhangup,
    libc::SYS_nfsservctl,
    libc::SYS_lookup_dcookie,
    libc::SYS_move_pages,
    libc::SYS_migrate_pages,
    libc::SYS_mbind,
    libc::SYS_set_mempolicy,
    libc::SYS_fanotify_init,
];

#[cfg(target_arch = "x86_64")]
const REFUSED_ON_THIS_ARCH: &[libc::c_long] = &[
    libc::SYS_ioperm,
    libc::SYS_iopl,
    libc::SYS_uselib,
    libc::SYS_ustat,
    libc::SYS_sysfs,
    libc::SYS__sysctl,
    libc::SYS_modify_ldt,
];
#[cfg(not(target_arch = "x86_64"))]
const REFUSED_ON_THIS_ARCH: &[libc::c_long] = &[];

/// Calls that fail as if the kernel did not have them; programs then fall back to others.
const UNKNOWN: &[libc::c_long] = &[
    // Their arguments are in memory, which filters cannot read.
    libc::SYS_clone3,
    libc::SYS_openat2,
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_memfd_secret,
];

/// The newest call that these lists consider: `mseal`, which has the same number on every architecture.
const LATEST: u32 = 462;

/// Calls that set the mode of a file, each with the index of its mode argument.
const MODE_ARGUMENTS: &[(libc::c_long, u8)] = &[
    (libc::SYS_fchmod, 1),
    (libc::SYS_fchmodat, 2),
    (FCHMODAT2, 2),
    (libc::SYS_mknodat, 2),
    (libc::SYS_mkdirat, 2),
];
/// The number of `fchmodat2`, which is the same on every architecture. Not every C library defines it.
const FCHMODAT2: libc::c_long = 452;

#[cfg(target_arch = "x86_64")]
const MODE_ARGUMENTS_ON_THIS_ARCH: &[(libc::c_long, u8)] = &[
    (libc::SYS_chmod, 1),
    (libc::SYS_mknod, 1),
    (libc::SYS_mkdir, 1),
    (libc::SYS_creat, 1),
];
#[cfg(not(target_arch = "x86_64"))]
const MODE_ARGUMENTS_ON_THIS_ARCH: &[(libc::c_long, u8)] = &[];

/// Calls that open a file, each with the indices of the flags and of the mode of a new file.
#[cfg(target_arch = "x86_64")]
const OPENING: &[(libc::c_long, u8, u8)] = &[(libc::SYS_open, 1, 2), (libc::SYS_openat, 2, 3)];
#[cfg(not(target_arch = "x86_64"))]
const OPENING: &[(libc::c_long, u8, u8)] = &[(libc::SYS_openat, 2, 3)];

/// Calls that set extended attributes. In a user namespace a process could use them to give a file capabilities, which
/// are also valid outside if lango runs as root. A browser only uses them to record where a download comes from.
const ATTRIBUTES: &[libc::c_long] = &[libc::SYS_setxattr, libc::SYS_lsetxattr, libc::SYS_fsetxattr];

/// The socket type `SOCK_PACKET`. Not every C library defines it.
const SOCK_PACKET: i32 = 10;

const NAMESPACES: &[i32] = &[
    libc::CLONE_NEWUSER,
    libc::CLONE_NEWNS,
    libc::CLONE_NEWPID,
    libc::CLONE_NEWNET,
    libc::CLONE_NEWIPC,
    libc::CLONE_NEWUTS,
    libc::CLONE_NEWCGROUP,
];

/// The namespaces that Chromium's own sandbox uses. It needs no mount, host name or IPC namespaces.
const BROWSER_NAMESPACES: &[i32] = &[libc::CLONE_NEWUSER, libc::CLONE_NEWPID, libc::CLONE_NEWNET];

/// Irrevocably installs the filters in this process.
pub(super) fn restrict(plan: &Plan) -> Result<(), String> {
    for filter in filters(plan)? {
        apply_filter(&filter).map_err(|error| error.to_string())?;
    }
    Ok(())
}

fn filters(plan: &Plan) -> Result<Vec<BpfProgram>, String> {
    let mut unknown = always(UNKNOWN);
    if !plan.memory_group {
        // Only a control group counts the memory of these files.
        unknown.extend(always(&[libc::SYS_memfd_create]));
    }
    let mut unsupported = always(&[libc::SYS_fallocate]);
    if plan.profile == SandboxProfile::Browser {
        unsupported.extend(always(ATTRIBUTES));
    }
    let mut programs = vec![
        filter(refused_calls(plan.profile)?, libc::EPERM)?,
        filter(privileged_modes()?, libc::EPERM)?,
        filter(unknown, libc::ENOSYS)?,
        filter(socket_rules(plan)?, libc::EAFNOSUPPORT)?,
        // The kernel's statistics do not show reserved disk space; programs fall back to writing.
        filter(unsupported, libc::EOPNOTSUPP)?,
        // A process that hides from its guard would hide its resource usage. The call does nothing and reports success.
        filter(hiding_calls()?, 0)?,
    ];
    programs.push(later_calls());
    Ok(programs)
}

type Rules = BTreeMap<i64, Vec<SeccompRule>>;

fn always(calls: &[libc::c_long]) -> Rules {
    calls.iter().map(|call| (*call, Vec::new())).collect()
}

fn refused_calls(profile: SandboxProfile) -> Result<Rules, String> {
    let mut rules = always(REFUSED);
    rules.extend(always(REFUSED_ON_THIS_ARCH));
    let allowed: &[i32] = match profile {
        SandboxProfile::Command => &[],
        SandboxProfile::Browser => {
            rules.remove(&libc::SYS_chroot);
            let user = u64::from(libc::CLONE_NEWUSER.unsigned_abs());
            rules.insert(libc::SYS_unshare, vec![rule(&[(0, Compare::Ne, user)])?]);
            BROWSER_NAMESPACES
        }
    };
    let namespaces = NAMESPACES
        .iter()
        .filter(|flag| !allowed.contains(flag))
        .map(|flag| u64::from(flag.unsigned_abs()))
        .map(|flag| rule(&[(0, Compare::MaskedEq(flag), flag)]))
        .collect::<Result<_, _>>()?;
    rules.insert(libc::SYS_clone, namespaces);
    // Injecting input into a terminal, and similar requests.
    let terminal = [
        libc::TIOCSTI,
        libc::TIOCLINUX,
        libc::TIOCSETD,
        libc::TIOCCONS,
    ];
    let terminal = terminal
        .iter()
        .map(|request| rule(&[(1, Compare::Eq, *request)]))
        .collect::<Result<_, _>>()?;
    rules.insert(libc::SYS_ioctl, terminal);
    // Querying the personality (all bits set) and setting the default one stay allowed.
    let other = rule(&[(0, Compare::Ne, 0), (0, Compare::Ne, 0xffff_ffff)])?;
    rules.insert(libc::SYS_personality, vec![other]);
    Ok(rules)
}

/// Refuses to set the setuid or setgid bit. A directory may still inherit the setgid bit from its parent.
fn privileged_modes() -> Result<Rules, String> {
    const BITS: [u64; 2] = [0o4000, 0o2000];
    let with_bit = |argument: u8, bit: u64| (argument, Compare::MaskedEq(bit), bit);
    let mut rules = Rules::new();
    for (call, mode) in MODE_ARGUMENTS.iter().chain(MODE_ARGUMENTS_ON_THIS_ARCH) {
        for bit in BITS {
            let refused = rule(&[with_bit(*mode, bit)])?;
            rules.entry(*call).or_default().push(refused);
        }
    }
    let temporary = u64::from((libc::O_TMPFILE & !libc::O_DIRECTORY).unsigned_abs());
    let creating = [u64::from(libc::O_CREAT.unsigned_abs()), temporary];
    for (call, flags, mode) in OPENING {
        for (flag, bit) in creating
            .iter()
            .flat_map(|flag| BITS.map(|bit| (*flag, bit)))
        {
            let refused = rule(&[with_bit(*flags, flag), with_bit(*mode, bit)])?;
            rules.entry(*call).or_default().push(refused);
        }
    }
    Ok(rules)
}

fn socket_rules(plan: &Plan) -> Result<Rules, String> {
    let mut allowed = Vec::new();
    if plan.unix_sockets {
        allowed.push(libc::AF_UNIX);
    }
    if plan.network != Network::None {
        allowed.extend([libc::AF_INET, libc::AF_INET6]);
    }
    let other: Vec<(u8, Compare, u64)> = allowed
        .iter()
        .map(|family| (0, Compare::Ne, u64::from(family.unsigned_abs())))
        .collect();
    let mut rules = if other.is_empty() {
        always(&[libc::SYS_socket])
    } else {
        Rules::from([(libc::SYS_socket, vec![rule(&other)?])])
    };
    if plan.network != Network::None {
        rules
            .entry(libc::SYS_socket)
            .or_default()
            .extend(ip_socket_rules(plan.network)?);
    }
    // Socket pairs only connect related processes, so Unix pairs are always allowed.
    let not_unix = (0, Compare::Ne, u64::from(libc::AF_UNIX.unsigned_abs()));
    rules.insert(libc::SYS_socketpair, vec![rule(&[not_unix])?]);
    Ok(rules)
}

/// Refuses IP sockets other than streams and datagrams. With a proxy, refuses all except TCP, the only protocol that
/// the proxy supports.
fn ip_socket_rules(network: Network) -> Result<Vec<SeccompRule>, String> {
    // The type's upper bits are flags.
    const TYPE: u64 = 0xf;
    let mut kinds = vec![
        libc::SOCK_RAW,
        libc::SOCK_RDM,
        libc::SOCK_SEQPACKET,
        libc::SOCK_DCCP,
        // The kernel treats it as a socket of another family.
        SOCK_PACKET,
    ];
    if network == Network::Proxied {
        kinds.push(libc::SOCK_DGRAM);
    }
    let mut rules = Vec::new();
    for family in [libc::AF_INET, libc::AF_INET6] {
        let family = (0, Compare::Eq, u64::from(family.unsigned_abs()));
        for kind in &kinds {
            let kind = (1, Compare::MaskedEq(TYPE), u64::from(kind.unsigned_abs()));
            rules.push(rule(&[family.clone(), kind])?);
        }
        if network == Network::Proxied {
            let tcp = u64::from(libc::IPPROTO_TCP.unsigned_abs());
            let other = [(2, Compare::Ne, 0), (2, Compare::Ne, tcp)];
            rules.push(rule(&[family, other[0].clone(), other[1].clone()])?);
        }
    }
    Ok(rules)
}

fn hiding_calls() -> Result<Rules, String> {
    let dumpable = u64::from(libc::PR_SET_DUMPABLE.unsigned_abs());
    let rules = vec![rule(&[(0, Compare::Eq, dumpable)])?];
    Ok(Rules::from([(libc::SYS_prctl, rules)]))
}

fn rule(conditions: &[(u8, Compare, u64)]) -> Result<SeccompRule, String> {
    let conditions = conditions
        .iter()
        .map(|(argument, compare, value)| {
            SeccompCondition::new(*argument, Length::Dword, compare.clone(), *value)
        })
        .collect::<Result<_, _>>()
        .map_err(|error| error.to_string())?;
    SeccompRule::new(conditions).map_err(|error| error.to_string())
}

fn filter(rules: Rules, answer: i32) -> Result<BpfProgram, String> {
    let architecture = std::env::consts::ARCH
        .try_into()
        .map_err(|_| format!("no filter for {}", std::env::consts::ARCH))?;
    let answer = SeccompAction::Errno(answer.unsigned_abs());
    SeccompFilter::new(rules, SeccompAction::Allow, answer, architecture)
        .and_then(BpfProgram::try_from)
        .map_err(|error| error.to_string())
}

/// Refuses calls that are newer than the lists above, and those of the x32 numbering on x86-64, as if the kernel did
/// not have them.
fn later_calls() -> BpfProgram {
    const LOAD: u16 = (libc::BPF_LD | libc::BPF_W | libc::BPF_ABS) as u16;
    const GREATER: u16 = (libc::BPF_JMP | libc::BPF_JGT | libc::BPF_K) as u16;
    const RETURN: u16 = (libc::BPF_RET | libc::BPF_K) as u16;
    let step = |code, jt, jf, k| sock_filter { code, jt, jf, k };
    vec![
        step(LOAD, 0, 0, 0),
        step(GREATER, 0, 1, LATEST),
        step(
            RETURN,
            0,
            0,
            libc::SECCOMP_RET_ERRNO | libc::ENOSYS.unsigned_abs(),
        ),
        step(RETURN, 0, 0, libc::SECCOMP_RET_ALLOW),
    ]
}
