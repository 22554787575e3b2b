//! What a person is shown who is asked to allow a command.

use super::request::{Request, Words};
use lango_sandbox::{Network, Policy};
use std::fmt::Write;
use std::path::{Path, PathBuf};

/// The command exactly as it will run, where, and what it reaches.
pub(crate) fn preview(request: &Request) -> String {
    let Policy {
        workspace,
        read,
        write,
        network,
        ..
    } = &request.policy;
    let by = match request.words {
        Words::Line(_) => "/bin/sh",
        Words::Argv(_) => "itself, without a shell",
    };
    let network = match network {
        Network::None => "closed".to_owned(),
        Network::Proxied => {
            let hosts: Vec<String> = request.hosts.iter().map(ToString::to_string).collect();
            format!("only {}", hosts.join(", "))
        }
        Network::Host => "OPEN, every address this machine reaches".to_owned(),
    };
    let mut text = format!(
        "{}\nrun by: {by}\nfolder: {}\nnetwork: {network}\nwrites in: {}\n",
        request.words.shown(),
        shown_path(&request.cwd),
        shown_paths(std::iter::once(workspace).chain(write)),
    );
    if !read.is_empty() {
        // A text always takes what is written to it.
        let _ = writeln!(text, "also reads: {}", shown_paths(read));
    }
    let _ = writeln!(text, "stopped after: {} s", request.time.as_secs());
    text
}

fn shown_paths<'a>(paths: impl IntoIterator<Item = &'a PathBuf>) -> String {
    let paths: Vec<_> = paths.into_iter().map(|path| shown_path(path)).collect();
    paths.join(", ")
}

fn shown_path(path: &Path) -> String {
    crate::show::name(path.as_os_str())
}
