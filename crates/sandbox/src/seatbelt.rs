//! Builds the profile for macOS's sandbox, which `sandbox-exec` reads, from a policy. The result is plain text, so it
//! can be tested on every system.
//!
//! Later rules override earlier ones. Protected names are refused by name, whether the files exist or not.

use crate::{Network, Policy};
use std::path::{Path, PathBuf};

/// Paths that programs need to start.
const READ: &[&str] = &[
    "/usr",
    "/bin",
    "/sbin",
    "/System",
    "/Library/Apple",
    "/Library/Developer/CommandLineTools",
    "/opt/homebrew",
    "/private/var/db/dyld",
    "/private/var/db/timezone",
    "/private/etc/localtime",
    "/private/etc/passwd",
    "/private/etc/group",
];

const NETWORK_READ: &[&str] = &[
    "/private/etc/hosts",
    "/private/etc/resolv.conf",
    "/private/etc/ssl",
];

const DEVICES: &[&str] = &["null", "zero", "random", "urandom", "tty", "dtracehelper"];

/// Builds the profile for a policy. `scratch` is the command's private folder for temporary files.
pub(crate) fn profile(policy: &Policy, scratch: &Path) -> String {
    let mut protected_names = crate::protected::path_expressions();
    if policy.allow_git_init {
        protected_names.retain(|name| name != "[.][gG][iI][tT](/|$)");
    }
    let mut lines = vec![
        "(version 1)".to_string(),
        "(deny default)".to_string(),
        "(allow process-exec process-fork)".to_string(),
        "(allow signal (target same-sandbox))".to_string(),
        "(allow sysctl-read)".to_string(),
        "(allow file-read-metadata (literal \"/\"))".to_string(),
    ];
    let network = NETWORK_READ
        .iter()
        .filter(|_| policy.network == Network::Host);
    let system = READ.iter().chain(network).map(Path::new);
    for path in system.chain(policy.read.iter().map(|path| path.as_path())) {
        lines.push(rule("allow file-read*", path));
    }
    for device in DEVICES {
        let device = quote(&Path::new("/dev").join(device));
        lines.push(format!(
            "(allow file-read* file-write-data (literal {device}))"
        ));
    }
    let writable = policy.writable().map(|path| path.as_path());
    for path in writable.chain([scratch]) {
        // Resolving a path needs the metadata of each folder on the way.
        for folder in path.ancestors().skip(1) {
            lines.push(format!(
                "(allow file-read-metadata (literal {}))",
                quote(folder)
            ));
        }
        lines.push(rule("allow file-read* file-write*", path));
    }
    if let Some(home) = &policy.hide_dotfiles_in {
        let home = escape_for_regex(home);
        lines.push(format!(
            "(deny file-read* file-write* (regex #\"^{home}/[.]\"))"
        ));
        // Paths that are listed in the policy stay open.
        let is_dotfile = |path: &&PathBuf| {
            let without_opened = Policy {
                read: Vec::new(),
                write: Vec::new(),
                ..policy.clone()
            };
            without_opened.is_hidden_dotfile(path)
        };
        for path in policy.read.iter().filter(is_dotfile) {
            lines.push(rule("allow file-read*", path));
        }
        for path in policy.write.iter().filter(is_dotfile) {
            lines.push(rule("allow file-read* file-write*", path));
        }
    }
    let is_protected = |root: &&PathBuf| !policy.unprotected.contains(root);
    for root in policy.writable().filter(is_protected) {
        for name in &protected_names {
            let root = escape_for_regex(root);
            lines.push(format!(
                "(deny file-write* (regex #\"^{root}/(.*/)?{name}\"))"
            ));
        }
    }
    for path in &policy.read_only {
        lines.push(rule("deny file-write*", path));
    }
    for path in &policy.hidden {
        lines.push(rule("deny file-read* file-write*", path));
    }
    if policy.network == Network::Host {
        lines.push("(allow network-outbound network-inbound (remote ip) (local ip))".to_string());
        lines.push("(allow mach-lookup (global-name \"com.apple.dnssd.service\"))".to_string());
    }
    lines.push(String::new());
    lines.join("\n")
}

fn rule(what: &str, path: &Path) -> String {
    format!("({what} (subpath {}))", quote(path))
}

/// Formats a path as a string literal of the profile language.
fn quote(path: &Path) -> String {
    let text = path.to_string_lossy();
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

/// Converts a path to a regular expression. Special characters become `.`, which matches any character.
fn escape_for_regex(path: &Path) -> String {
    let is_plain =
        |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '/' | '_' | '-');
    path.to_string_lossy()
        .chars()
        .map(|letter| if is_plain(letter) { letter } else { '.' })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn policy() -> Policy {
        let mut policy = Policy::of("/Users/ada/my \"work\"".into());
        policy.read = vec!["/opt/data".into()];
        policy.read_only = vec!["/Users/ada/settings".into()];
        policy.hidden = vec!["/Users/ada/.ssh".into()];
        policy
    }

    fn line_number(profile: &str, line: &str) -> usize {
        let found = profile.lines().position(|other| other == line);
        found.unwrap_or_else(|| panic!("`{line}` is not in:\n{profile}"))
    }

    #[test]
    fn everything_is_refused_except_what_the_policy_opens() {
        let profile = profile(&policy(), Path::new("/private/tmp/own"));
        assert_eq!(line_number(&profile, "(deny default)"), 1);
        line_number(&profile, "(allow file-read* (subpath \"/opt/data\"))");
        line_number(
            &profile,
            "(allow file-read* file-write* (subpath \"/private/tmp/own\"))",
        );
        assert!(!profile.contains("network"));
        assert!(!profile.contains("(subpath \"/\")"));
        assert!(!profile.contains("/etc/hosts"));
    }

    #[test]
    fn read_only_and_hidden_paths_are_refused_after_the_workspace_is_opened() {
        let profile = profile(&policy(), Path::new("/private/tmp/own"));
        let workspace = "(allow file-read* file-write* (subpath \"/Users/ada/my \\\"work\\\"\"))";
        let opened = line_number(&profile, workspace);
        let refused = [
            "(deny file-write* (subpath \"/Users/ada/settings\"))",
            "(deny file-read* file-write* (subpath \"/Users/ada/.ssh\"))",
            "(deny file-write* (regex #\"^/Users/ada/my..work./(.*/)?[.][gG][iI][tT](/|$)\"))",
        ];
        for line in refused {
            assert!(line_number(&profile, line) > opened, "{line}");
        }
    }

    #[test]
    fn the_network_is_opened_only_if_the_policy_says_so() {
        let mut policy = policy();
        policy.network = Network::Host;
        let profile = profile(&policy, Path::new("/private/tmp/own"));
        assert!(profile.contains("(allow network-outbound"));
        assert!(profile.contains("/private/etc/resolv.conf"));
    }
}
