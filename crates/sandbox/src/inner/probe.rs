//! The self-test's escape attempts. The helper itself makes them when all layers are set up, and prints one line for
//! each.
//!
//! Each attempt tests a property of the sandbox. A property that does not hold here does not hold for commands either.

use std::ffi::OsString;
use std::fs;
use std::io::Write;
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::path::Path;

/// The paths and the port that the self-test tries to reach.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Targets {
    pub(crate) workspace: OsString,
    pub(crate) outside: OsString,
    pub(crate) socket: OsString,
    pub(crate) port: u16,
}

/// A protected file in the probe's workspace.
pub(crate) const PROTECTED_FILE: &str = ".env";
/// A hidden file in the probe's workspace.
pub(crate) const HIDDEN_FILE: &str = "hidden";
/// A file outside of the workspace.
pub(crate) const OUTSIDE_FILE: &str = "secret";

impl Targets {
    pub(crate) fn to_arguments(&self) -> Vec<OsString> {
        let port = self.port.to_string().into();
        vec![
            self.workspace.clone(),
            self.outside.clone(),
            self.socket.clone(),
            port,
        ]
    }

    fn from_arguments(arguments: &[OsString]) -> Option<Self> {
        let [workspace, outside, socket, port] = arguments else {
            return None;
        };
        Some(Self {
            workspace: workspace.clone(),
            outside: outside.clone(),
            socket: socket.clone(),
            port: port.to_str()?.parse().ok()?,
        })
    }
}

/// Makes all attempts, prints the results, and exits.
pub(super) fn run(arguments: &[OsString]) -> ! {
    let Some(targets) = Targets::from_arguments(arguments) else {
        std::process::exit(super::FAILED)
    };
    let mut text = String::new();
    for (claim, result) in attempts(&targets) {
        let (held, detail) = match result {
            Ok(detail) => ("held", detail),
            Err(detail) => ("broken", detail),
        };
        text.push_str(&format!("{held}\t{claim}\t{detail}\n"));
    }
    let printed = std::io::stdout().write_all(text.as_bytes());
    std::process::exit(i32::from(printed.is_err()))
}

type ProbeResult = (&'static str, Result<String, String>);

fn attempts(targets: &Targets) -> Vec<ProbeResult> {
    let workspace = Path::new(&targets.workspace);
    let outside = Path::new(&targets.outside);
    vec![
        (
            "a file in the workspace can be written",
            works(fs::write(workspace.join("probe"), "probe")),
        ),
        (
            "a file outside cannot be read",
            fails(fs::read(outside.join(OUTSIDE_FILE))),
        ),
        (
            "a file outside cannot be written",
            fails(fs::write(outside.join("new"), "probe")),
        ),
        (
            "a protected file cannot be changed",
            fails(fs::write(workspace.join(PROTECTED_FILE), "probe")),
        ),
        (
            "a hidden file cannot be read",
            match fs::read(workspace.join(HIDDEN_FILE)) {
                Ok(content) if content.is_empty() => Ok("empty".to_string()),
                other => fails(other),
            },
        ),
        (
            "a socket of another program cannot be reached",
            fails(UnixStream::connect(&targets.socket)),
        ),
        (
            "a port of this machine cannot be reached",
            fails(TcpStream::connect(("127.0.0.1", targets.port))),
        ),
        ("a namespace cannot be created", namespace()),
        ("another process cannot be traced", trace()),
        ("other processes cannot be seen", other_processes()),
        ("there are no capabilities", capabilities()),
    ]
}

fn works<T>(result: std::io::Result<T>) -> Result<String, String> {
    result
        .map(|_| "it was possible".to_string())
        .map_err(|error| error.to_string())
}

fn fails<T>(result: std::io::Result<T>) -> Result<String, String> {
    match result {
        Ok(_) => Err("it was possible".to_string()),
        Err(error) => Ok(error.to_string()),
    }
}

fn namespace() -> Result<String, String> {
    // SAFETY: affects only this process, which is about to end.
    fails(to_result(
        unsafe { libc::unshare(libc::CLONE_NEWUSER) }.into(),
    ))
}

fn trace() -> Result<String, String> {
    // SAFETY: tries to trace the guard; the last two arguments are not used.
    let answer = unsafe { libc::ptrace(libc::PTRACE_ATTACH, libc::getppid(), 0, 0) };
    fails(to_result(answer))
}

fn other_processes() -> Result<String, String> {
    let Ok(entries) = fs::read_dir("/proc") else {
        return Ok("the list of processes is not readable".to_string());
    };
    let is_process = |name: &OsString| {
        name.to_str()
            .is_some_and(|name| name.parse::<u32>().is_ok())
    };
    let count = entries
        .flatten()
        .map(|entry| entry.file_name())
        .filter(is_process)
        .count();
    // The guard and this process.
    match count {
        0..=2 => Ok(format!("{count} processes visible")),
        _ => Err(format!("{count} processes visible")),
    }
}

fn capabilities() -> Result<String, String> {
    let text = fs::read_to_string("/proc/self/status").map_err(|error| error.to_string())?;
    let effective = text.lines().find_map(|line| line.strip_prefix("CapEff:"));
    match effective.map(str::trim) {
        Some(set) if set.bytes().all(|digit| digit == b'0') => Ok("none".to_string()),
        other => Err(other.unwrap_or("unknown").to_string()),
    }
}

fn to_result(answer: libc::c_long) -> std::io::Result<()> {
    match answer {
        -1 => Err(std::io::Error::last_os_error()),
        _ => Ok(()),
    }
}
