//! The preview of a command for the user who approves it.

use super::request::{CommandLine, CommandRequest};
use lango_sandbox::{Network, Policy};
use std::fmt::Write;
use std::path::{Path, PathBuf};

/// Formats the exact command, its folder, and what it can access.
pub(crate) fn preview(request: &CommandRequest) -> String {
    let Policy {
        workspace,
        read,
        write,
        network,
        ..
    } = &request.policy;
    let by = match request.command_line {
        CommandLine::Shell(_) => "/bin/sh",
        CommandLine::Argv(_) => "itself, without a shell",
    };
    let network = match network {
        Network::None => "closed".to_owned(),
        Network::Proxied => {
            let hosts: Vec<String> = request.hosts.iter().map(ToString::to_string).collect();
            format!("only {}", hosts.join(", "))
        }
        Network::Host => "OPEN, every address that this machine can reach".to_owned(),
    };
    let mut text = format!(
        "{}\nrun by: {by}\nfolder: {}\nnetwork: {network}\nwrites in: {} (not .git, .env and other protected files)\n",
        request.command_line.display(),
        display_path(&request.cwd),
        display_paths(std::iter::once(workspace).chain(write)),
    );
    if !read.is_empty() {
        // Writing to a `String` cannot fail.
        let _ = writeln!(text, "also reads: {}", display_paths(read));
    }
    let _ = writeln!(text, "time limit: {} s", request.time.as_secs());
    text
}

fn display_paths<'a>(paths: impl IntoIterator<Item = &'a PathBuf>) -> String {
    let paths: Vec<_> = paths.into_iter().map(|path| display_path(path)).collect();
    paths.join(", ")
}

fn display_path(path: &Path) -> String {
    crate::show::name(path.as_os_str())
}
