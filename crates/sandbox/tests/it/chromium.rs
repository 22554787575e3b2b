//! A real Chromium in the sandbox, for tests: it has a private directory, and a unique argument by which tests find its
//! processes from outside.

use crate::fixture::launcher;
use lango_sandbox::{
    Child, Command, Launcher, Network, Policy, ResourceLimits, SandboxProfile, Stdin,
};
use std::ffi::OsString;
use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

pub(crate) struct Chromium {
    root: tempfile::TempDir,
    pub(crate) launcher: Launcher,
    pub(crate) policy: Policy,
    pub(crate) limits: ResourceLimits,
    mark: String,
}

/// A process of Chromium, seen from outside.
#[derive(Debug)]
pub(crate) struct Process {
    pub(crate) arguments: String,
    /// Nesting depth of its PID namespace.
    pub(crate) depth: usize,
    pub(crate) filters: usize,
}

impl Process {
    pub(crate) fn is_page(&self) -> bool {
        self.arguments.contains("--type=renderer")
    }
}

impl Chromium {
    pub(crate) fn new() -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let root = tempfile::tempdir().unwrap();
        let private = root.path().join("private");
        fs::create_dir(&private).unwrap();
        let mut policy = Policy::of(private.clone());
        policy.unprotected = vec![private];
        policy.network = Network::Proxied;
        Self {
            launcher: launcher().with_trash(root.path().join("trash")),
            policy,
            limits: ResourceLimits {
                time: Some(Duration::from_secs(60)),
                processes: 1024,
                ..ResourceLimits::default()
            },
            // Chromium passes it to every process that runs scripts.
            mark: format!("--js-flags=--random-seed={}{number:03}", std::process::id()),
            root,
        }
    }

    pub(crate) fn path(&self, relative: &str) -> PathBuf {
        self.root.path().join(relative)
    }

    /// Writes a page into the private directory and returns its URL.
    pub(crate) fn page(&self, name: &str, html: &str) -> String {
        let path = self.policy.workspace.join(name);
        fs::write(&path, html).unwrap();
        format!("file://{}", path.display())
    }

    pub(crate) fn argv(&self, more: &[&str]) -> Vec<OsString> {
        let profile = self.policy.workspace.join("profile");
        let mut argv: Vec<OsString> = vec![
            "/usr/bin/chromium".into(),
            "--headless".into(),
            "--no-first-run".into(),
            "--disable-gpu".into(),
            "--disable-breakpad".into(),
            "--disable-crash-reporter".into(),
            "--proxy-server=http://127.0.0.1:3128".into(),
            "--proxy-bypass-list=<-loopback>".into(),
            format!("--user-data-dir={}", profile.display()).into(),
            self.mark.clone().into(),
        ];
        argv.extend(more.iter().map(OsString::from));
        argv
    }

    /// Starts a browser that prints a page and exits.
    pub(crate) fn print(&self, url: &str) -> Child {
        self.spawn(self.argv(&["--dump-dom", url]))
    }

    /// Starts a browser that runs until it is killed.
    pub(crate) fn keep_open(&self, url: &str) -> Child {
        let mut argv: Vec<OsString> = ["sh", "-c", KEEP_OPEN].map(OsString::from).to_vec();
        argv.extend(self.argv(&["--remote-debugging-pipe", url]));
        self.spawn(argv)
    }

    fn spawn(&self, argv: Vec<OsString>) -> Child {
        let mut command = Command::new(argv, self.policy.workspace.clone());
        command.profile = SandboxProfile::Browser;
        command.stdin = Stdin::Piped;
        command.limits = self.limits;
        self.launcher.spawn(&self.policy, command).unwrap()
    }

    /// Lists its running processes.
    pub(crate) fn processes(&self) -> Vec<Process> {
        let entries = fs::read_dir("/proc").unwrap().flatten();
        entries
            .filter_map(|entry| {
                let read = |name: &str| fs::read_to_string(entry.path().join(name)).ok();
                let arguments = read("cmdline")?.replace('\0', " ");
                // Skips the shell and the launcher, which have the same arguments.
                if !arguments.starts_with("/usr/lib/chromium") || !arguments.contains(&self.mark) {
                    return None;
                }
                let status = read("status")?;
                let field = |name: &str| {
                    let line = status.lines().find_map(|line| line.strip_prefix(name));
                    line.unwrap_or_default()
                        .split_whitespace()
                        .collect::<Vec<_>>()
                };
                Some(Process {
                    depth: field("NSpid:").len(),
                    filters: field("Seccomp_filters:").first()?.parse().ok()?,
                    arguments,
                })
            })
            .collect()
    }

    /// Waits until a page is open.
    pub(crate) async fn wait_for_page(&self) {
        self.wait_until("a page", |processes| processes.iter().any(Process::is_page))
            .await;
    }

    /// Waits until all its processes have ended.
    pub(crate) async fn wait_for_end(&self) {
        self.wait_until("no process", <[Process]>::is_empty).await;
    }

    pub(crate) async fn wait_until(&self, what: &str, wanted: impl Fn(&[Process]) -> bool) {
        let started = Instant::now();
        loop {
            let processes = self.processes();
            if wanted(&processes) {
                return;
            }
            assert!(
                started.elapsed() < Duration::from_secs(30),
                "waited for {what}: {processes:#?}"
            );
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }
}

/// Connects Chromium's debugging pipe to standard input and output, so that it runs until the input is closed.
pub(crate) const KEEP_OPEN: &str = "exec \"$0\" \"$@\" 3<&0 4>&1 0</dev/null 1>&2";
