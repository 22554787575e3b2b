//! The keyring of the operating system, accessed with its own program: `secret-tool` for the Secret Service of Linux
//! desktops, `security` for the macOS Keychain. The key passes through standard input and output, never the command
//! line.
//!
//! A library would need D-Bus and more crates than the rest of the vault, while these programs come with every
//! keyring. If a keyring is missing or does not respond, lango tries the next method.

use lango_vault::{Key, key_file};
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::io::{Read, Write};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use zeroize::Zeroizing;

/// Timeout of a keyring, which may ask the user to unlock it first.
const TIMEOUT: Duration = Duration::from_secs(60);

/// Interval between checks whether the program has ended.
const CHECK_INTERVAL: Duration = Duration::from_millis(10);

/// Maximum size of a response in bytes.
const MAX_RESPONSE_BYTES: u64 = 4096;

/// Environment variables for the programs, which need them to find the desktop session.
const VARIABLES: [&str; 7] = [
    "PATH",
    "HOME",
    "USER",
    "DBUS_SESSION_BUS_ADDRESS",
    "XDG_RUNTIME_DIR",
    "DISPLAY",
    "WAYLAND_DISPLAY",
];

/// The service name of stored keys.
const SERVICE: &str = "lango-vault";

/// The keyring of this desktop session.
#[derive(Clone)]
pub struct OsKeyring {
    env: BTreeMap<OsString, OsString>,
}

/// A command line with the program's input.
struct Request {
    program: &'static str,
    arguments: Vec<String>,
    input: Zeroizing<String>,
}

impl OsKeyring {
    /// Finds the keyring of the desktop session in these variables.
    pub fn new(env: &BTreeMap<OsString, OsString>) -> Self {
        let passed = VARIABLES.iter().filter_map(|name| {
            let name = OsStr::new(name);
            Some((name.to_owned(), env.get(name)?.clone()))
        });
        Self {
            env: passed.collect(),
        }
    }

    /// Returns the stored key of a vault.
    pub fn lookup(&self, vault: [u8; 16]) -> Result<Key, String> {
        let answer = self.run(lookup(&account(vault)))?;
        key_file::from_hex(answer.trim())
            .ok_or_else(|| "the keyring has no key for this vault".to_owned())
    }

    /// Stores a key for a vault in place of an older one, and reads it back.
    pub fn store(&self, vault: [u8; 16], key: &Key) -> Result<(), String> {
        self.run(store(&account(vault), &key_file::to_hex(key)))?;
        if self.lookup(vault)?.expose() == key.expose() {
            Ok(())
        } else {
            Err("the keyring did not store the key".to_owned())
        }
    }

    fn run(&self, request: Request) -> Result<Zeroizing<String>, String> {
        let program = request.program;
        let mut child = Command::new(program)
            .args(&request.arguments)
            .env_clear()
            .envs(&self.env)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .map_err(|error| format!("the keyring cannot be used: `{program}`: {error}"))?;
        if let Some(mut input) = child.stdin.take() {
            // If the program does not read it, the program itself fails.
            let _ = input.write_all(request.input.as_bytes());
        }
        let output = child.stdout.take();
        let answer = std::thread::spawn(move || {
            let mut answer = Zeroizing::new(String::with_capacity(MAX_RESPONSE_BYTES as usize));
            let output = output.map(|output| output.take(MAX_RESPONSE_BYTES));
            let read = output.map(|mut output| output.read_to_string(&mut answer));
            read.is_none_or(|read| read.is_ok()).then_some(answer)
        });
        wait(&mut child)
            .map_err(|problem| format!("the keyring cannot be used: `{program}` {problem}"))?;
        let answer = answer.join().ok().flatten();
        answer.ok_or_else(|| format!("the keyring cannot be used: `{program}` did not return text"))
    }
}

fn wait(child: &mut Child) -> Result<(), String> {
    let started = Instant::now();
    loop {
        match child.try_wait() {
            Ok(Some(status)) if status.success() => return Ok(()),
            Ok(Some(status)) => return Err(format!("found nothing or failed ({status})")),
            Ok(None) if started.elapsed() < TIMEOUT => std::thread::sleep(CHECK_INTERVAL),
            Ok(None) => {
                let _ = child.kill();
                let _ = child.wait();
                return Err(format!("did not answer within {} s", TIMEOUT.as_secs()));
            }
            Err(error) => return Err(error.to_string()),
        }
    }
}

fn account(vault: [u8; 16]) -> String {
    base16ct::lower::encode_string(&vault)
}

#[cfg(not(target_os = "macos"))]
fn lookup(account: &str) -> Request {
    Request {
        program: "secret-tool",
        arguments: to_strings(&["lookup", "service", SERVICE, "vault", account]),
        input: Zeroizing::default(),
    }
}

#[cfg(not(target_os = "macos"))]
fn store(account: &str, key: &str) -> Request {
    Request {
        program: "secret-tool",
        arguments: to_strings(&[
            "store",
            "--label=lango vault",
            "service",
            SERVICE,
            "vault",
            account,
        ]),
        input: Zeroizing::new(key.to_owned()),
    }
}

#[cfg(target_os = "macos")]
fn lookup(account: &str) -> Request {
    Request {
        program: "/usr/bin/security",
        arguments: to_strings(&["find-generic-password", "-s", SERVICE, "-a", account, "-w"]),
        input: Zeroizing::default(),
    }
}

#[cfg(target_os = "macos")]
fn store(account: &str, key: &str) -> Request {
    // With `-i` it reads commands from standard input; as an argument the key would be visible to others.
    let line = format!("add-generic-password -U -s {SERVICE} -a {account} -w {key}\n");
    Request {
        program: "/usr/bin/security",
        arguments: to_strings(&["-i"]),
        input: Zeroizing::new(line),
    }
}

fn to_strings(arguments: &[&str]) -> Vec<String> {
    arguments
        .iter()
        .map(|argument| (*argument).to_owned())
        .collect()
}
