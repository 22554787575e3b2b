//! Sets up user, mount and network namespaces for the run, with a link to a second network namespace that plays all
//! other addresses. They have no connection to the machine's network.

use crate::{PARTS, STAGE};
use std::fs;
use std::path::Path;
use std::process::{Child, Command, ExitCode, Stdio};
use std::thread;

/// A public address of this machine, which the guard must refuse.
pub(crate) const OWN_ADDRESS: &str = "93.184.215.14";

/// Starts this program again in new namespaces for each part of the run. The parts run concurrently.
pub(crate) fn enter() -> ExitCode {
    let has_part = std::env::args().any(|argument| PARTS.contains(&argument.as_str()));
    let [first, second] = PARTS;
    let is_good = if has_part {
        start(None, Stdio::inherit()).wait().unwrap().success()
    } else {
        let first = start(Some(first), Stdio::piped());
        let first = thread::spawn(move || first.wait_with_output().unwrap());
        let second = start(Some(second), Stdio::inherit()).wait().unwrap();
        let first = first.join().unwrap();
        println!("\n{}", String::from_utf8_lossy(&first.stdout));
        first.status.success() && second.success()
    };
    if is_good {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

fn start(part: Option<&str>, output: Stdio) -> Child {
    let mut command = Command::new("unshare");
    command.args([
        "--net",
        "--mount",
        "--pid",
        "--fork",
        "--kill-child",
        "--mount-proc",
    ]);
    if !is_root() {
        command.arg("--map-root-user");
    }
    command
        .arg(std::env::current_exe().unwrap())
        .args(std::env::args().skip(1))
        .args(part)
        .env(STAGE, "inside")
        .stdout(output)
        .spawn()
        .unwrap_or_else(|error| panic!("cannot start `unshare`: {error}; install util-linux"))
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Links this network namespace with that of another process, and makes it the default route.
pub(crate) fn connect(other: &Child) {
    let pid = other.id().to_string();
    ip(&["link", "set", "lo", "up"]);
    ip(&[
        "link", "add", "v0", "type", "veth", "peer", "name", "v1", "netns", &pid,
    ]);
    ip(&["addr", "add", "198.51.100.2/24", "dev", "v0"]);
    ip(&["addr", "add", "2001:db8:c::2/64", "dev", "v0", "nodad"]);
    ip(&["addr", "add", &format!("{OWN_ADDRESS}/32"), "dev", "lo"]);
    ip(&["link", "set", "v0", "up"]);
    ip(&["route", "add", "default", "via", "198.51.100.1"]);
    ip(&["-6", "route", "add", "default", "via", "2001:db8:c::1"]);
}

/// Makes this network namespace answer on every address.
pub(crate) fn answer_everywhere() {
    ip(&["link", "set", "lo", "up"]);
    ip(&["addr", "add", "198.51.100.1/24", "dev", "v1"]);
    ip(&["addr", "add", "2001:db8:c::1/64", "dev", "v1", "nodad"]);
    ip(&["link", "set", "v1", "up"]);
    // The route to the other namespace stays more specific than these.
    ip(&[
        "route",
        "add",
        "local",
        "0.0.0.0/0",
        "dev",
        "lo",
        "table",
        "main",
    ]);
    ip(&[
        "-6", "route", "add", "local", "::/0", "dev", "lo", "table", "main",
    ]);
}

/// Makes the resolver in this mount namespace use the name server of the run.
pub(crate) fn use_own_names(folder: &Path) {
    run("mount", &["--make-rprivate", "/"]);
    let hosts = "127.0.0.1 localhost\n::1 localhost ip6-localhost ip6-loopback\n";
    for (name, text) in [
        (
            "resolv.conf",
            "nameserver 127.0.0.1\noptions timeout:1 attempts:1\n",
        ),
        (
            "nsswitch.conf",
            "hosts: files dns\npasswd: files\ngroup: files\n",
        ),
        ("hosts", hosts),
    ] {
        let own = folder.join(name);
        fs::write(&own, text).unwrap();
        let target = fs::canonicalize(Path::new("/etc").join(name));
        // A file that the system does not have is not read by its resolver either.
        if let Ok(target) = target {
            run(
                "mount",
                &["--bind", own.to_str().unwrap(), target.to_str().unwrap()],
            );
        }
    }
}

fn ip(arguments: &[&str]) {
    run("ip", arguments);
}

fn run(program: &str, arguments: &[&str]) {
    let output = Command::new(program)
        .args(arguments)
        .stdin(Stdio::null())
        .output();
    let output = output.unwrap_or_else(|error| panic!("cannot start `{program}`: {error}"));
    assert!(
        output.status.success(),
        "{program} {}: {}",
        arguments.join(" "),
        String::from_utf8_lossy(&output.stderr)
    );
}
