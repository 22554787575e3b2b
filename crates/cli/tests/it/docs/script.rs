//! Runs the blocks of a page as one shell script, with the real binary, in a home and a project folder of its own.

use super::blocks::Mark;
use super::pages::Page;
use crate::lango::{BINARY, ISOLATION, Lango};
use rustix::process::{Pid, Signal, kill_process_group};
use std::fs;
use std::net::TcpListener;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// Time limit of all blocks of a page together.
const TIMEOUT: Duration = Duration::from_secs(60);

/// What the pages call the home of their reader.
const READERS_HOME: &str = "/home/you";

/// The address that the pages use, which is the default of `lango serve`.
const DOCUMENTED_ADDRESS: &str = "127.0.0.1:18789";

/// Precedes the output of each block.
const MARKER: &str = "== block";

/// Defines what the blocks may use besides the machine's programs. A server is started in the background, and the script
/// continues when its banner is complete.
const PRELUDE: &str = r#"
set -euo pipefail
cargo() {
    [ "$1 $2 $3" = "run --release --" ] || { echo "only \`cargo run --release --\` can run here" >&2; return 1; }
    shift 3
    lango "$@"
}
servers=()
stop_servers() { [ ${#servers[@]} = 0 ] || { kill "${servers[@]}"; wait; } >/dev/null 2>&1 || true; }
trap stop_servers EXIT
in_background() {
    "$@" >"$HOME/server.log" 2>&1 &
    servers+=($!)
    for _ in $(seq 600); do
        if grep -q "ctrl-c stops" "$HOME/server.log"; then
            cat "$HOME/server.log"
            return
        fi
        kill -0 "${servers[-1]}" 2>/dev/null || break
        sleep 0.05
    done
    cat "$HOME/server.log"
    echo "the server did not start"
    return 1
}
"#;

/// What happened to the blocks of a page.
pub(super) struct PageRun {
    /// The indexes of the blocks that ran, each with what it printed on stdout and stderr.
    pub outputs: Vec<(usize, String)>,
    /// Which block failed, and its error output.
    pub failure: Option<String>,
}

/// Runs all blocks of a page that can run.
pub(super) fn run(page: &Page) -> PageRun {
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path().join("home");
    let address = free_address();
    let blocks = page.blocks.iter().enumerate();
    let runs = |language: &str, mark: &Mark| language == "sh" && *mark == Mark::None;
    let mut script = PRELUDE.to_owned();
    let mut expected = Vec::new();
    for (index, block) in blocks {
        if let Mark::File(path) = &block.mark {
            let path = match path.strip_prefix("~/") {
                Some(path) => home.join(path),
                None => home.join("project").join(path),
            };
            script.push_str(&write_file(&path, &block.text));
        } else if runs(&block.language, &block.mark) {
            expected.push(index);
            script.push_str(&format!("printf '\n{MARKER} {index}\n'\n"));
            script.push_str(&commands(&block.text).replace(DOCUMENTED_ADDRESS, &address));
        }
    }
    if expected.is_empty() {
        return PageRun {
            outputs: Vec::new(),
            failure: None,
        };
    }
    prepare(&home);
    let (problem, output) = bash(&script, &home, &address);
    let output = output
        .replace(&*home.to_string_lossy(), READERS_HOME)
        .replace(&address, DOCUMENTED_ADDRESS);
    let outputs = split(&output);
    let failure = problem.map(|problem| {
        let (index, output) = outputs.last().cloned().unwrap_or((expected[0], output));
        let line = page.blocks[index].line;
        format!("{}:{line}: {problem}:\n{output}", page.name)
    });
    PageRun { outputs, failure }
}

/// Creates the project of the reader: the files that every test of the binary starts with.
fn prepare(home: &Path) {
    let project = home.join("project");
    let example = Lango::new();
    fs::create_dir_all(project.join("src")).unwrap();
    for file in ["notes.md", "budget.csv", "src/main.rs"] {
        fs::copy(example.workspace().join(file), project.join(file)).unwrap();
    }
    let programs = home.join("bin");
    fs::create_dir(&programs).unwrap();
    std::os::unix::fs::symlink(BINARY, programs.join("lango")).unwrap();
}

fn free_address() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().to_string()
}

/// Returns the commands of a block, with `… &` in place of which the script waits for the server.
fn commands(block: &str) -> String {
    let line = |line: &str| match line.strip_suffix(" &") {
        Some(server) => format!("in_background {server}\n"),
        None => format!("{line}\n"),
    };
    block.lines().map(line).collect()
}

fn write_file(path: &Path, text: &str) -> String {
    let folder = path.parent().unwrap().display();
    let path = path.display();
    format!("mkdir -p '{folder}'\ncat > '{path}' <<'END OF FILE'\n{text}END OF FILE\n")
}

/// Runs a script. Returns what went wrong, and everything that was printed.
fn bash(script: &str, home: &Path, address: &str) -> (Option<String>, String) {
    let path = std::env::var("PATH").unwrap();
    let port = address.rsplit(':').next().unwrap();
    let output = home.join("output");
    let file = fs::File::create(&output).unwrap();
    let mut child = Command::new("bash")
        .args(["-c", script])
        .env_clear()
        .env("PATH", format!("{}:{path}", home.join("bin").display()))
        .env("HOME", home)
        .env("LANGO_SERVER_PORT", port)
        .envs(ISOLATION)
        .current_dir(home.join("project"))
        .stdin(Stdio::null())
        .stdout(file.try_clone().unwrap())
        .stderr(file)
        .process_group(0)
        .spawn()
        .unwrap();
    let start = Instant::now();
    let problem = loop {
        if let Some(status) = child.try_wait().unwrap() {
            break (!status.success()).then(|| format!("the commands fail ({status})"));
        }
        if start.elapsed() > TIMEOUT {
            let group = Pid::from_raw(child.id().try_into().unwrap()).unwrap();
            kill_process_group(group, Signal::KILL).unwrap();
            child.wait().unwrap();
            break Some(format!("the commands take more than {TIMEOUT:?}"));
        }
        thread::sleep(Duration::from_millis(10));
    };
    (problem, fs::read_to_string(output).unwrap())
}

/// Splits everything that a script printed at its markers.
fn split(output: &str) -> Vec<(usize, String)> {
    let marker = format!("\n{MARKER} ");
    let parts = output.split(&marker).skip(1);
    parts
        .map(|part| {
            let (index, text) = part.split_once('\n').unwrap();
            (index.parse().unwrap(), text.to_owned())
        })
        .collect()
}
