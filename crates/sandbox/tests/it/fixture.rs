//! The fixture of one test: a workspace, files outside of it that are worth stealing, and a launcher.

use lango_sandbox::{
    Command, CommandOutcome, HelperCommand, Launcher, Layers, Policy, ResourceLimits,
};
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags};
use std::fs;
use std::io::IoSlice;
use std::net::TcpListener;
use std::os::fd::AsFd;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::io::AsyncReadExt;

pub(crate) struct Fixture {
    root: tempfile::TempDir,
    host_file: tempfile::NamedTempFile,
    port: TcpListener,
    abstract_name: String,
    _open: Vec<Box<dyn std::any::Any + Send + Sync>>,
    pub(crate) policy: Policy,
    pub(crate) launcher: Launcher,
}

/// The output and the outcome of a command.
#[derive(Debug)]
pub(crate) struct RunResult {
    pub(crate) stdout: String,
    pub(crate) stderr: String,
    pub(crate) outcome: CommandOutcome,
}

/// Returns the path of a test program, also if the tests were copied for another user.
pub(crate) fn program(name: &str) -> PathBuf {
    if let Some(folder) = std::env::var_os("LANGO_TEST_PROGRAMS") {
        return Path::new(&folder).join(name);
    }
    PathBuf::from(match name {
        "sandbox-stand-in" => env!("CARGO_BIN_EXE_sandbox-stand-in"),
        _ => env!("CARGO_BIN_EXE_sandbox-prober"),
    })
}

pub(crate) fn launcher() -> Launcher {
    Launcher::new(HelperCommand {
        program: program("sandbox-stand-in"),
        arguments: vec!["__sandbox".into()],
    })
}

pub(crate) fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Limits that are small enough to be exceeded quickly.
pub(crate) fn small_limits() -> ResourceLimits {
    ResourceLimits {
        time: Some(Duration::from_secs(20)),
        processes: 64,
        memory_bytes: 128 << 20,
        file_bytes: 32 << 20,
        written_bytes: 64 << 20,
    }
}

impl Fixture {
    pub(crate) fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        fs::set_permissions(root.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let outside = root.path().join("outside");
        let workspace = root.path().join("workspace");
        for (path, content) in FILES {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, content).unwrap();
        }
        for folder in ["objects", "refs", "hooks"] {
            fs::create_dir_all(workspace.join(".git").join(folder)).unwrap();
        }
        let mut policy = Policy::of(workspace.clone());
        policy.read = vec![program("sandbox-prober")];
        policy.read_only = vec![
            workspace.join("settings.toml"),
            workspace.join("team/agents"),
        ];
        policy.hidden = vec![
            outside.clone(),
            workspace.join("private"),
            workspace.join("deep/down/private"),
        ];
        let abstract_name = root.path().display().to_string();
        let address = SocketAddr::from_abstract_name(&abstract_name).unwrap();
        let secret = fs::File::open(outside.join("secret")).unwrap();
        rustix::io::fcntl_setfd(&secret, rustix::io::FdFlags::empty()).unwrap();
        offer_descriptor(
            UnixListener::bind(outside.join("rights")).unwrap(),
            secret.try_clone().unwrap(),
        );
        Self {
            _open: vec![
                Box::new(UnixListener::bind(outside.join("socket")).unwrap()),
                Box::new(UnixListener::bind_addr(&address).unwrap()),
                Box::new(secret),
            ],
            host_file: tempfile::NamedTempFile::new().unwrap(),
            port: TcpListener::bind("127.0.0.1:0").unwrap(),
            abstract_name,
            policy,
            launcher: launcher(),
            root,
        }
    }

    pub(crate) fn with_layers(mut self, layers: Layers) -> Self {
        self.launcher = self.launcher.with_layers(layers);
        self
    }

    pub(crate) fn path(&self, relative: &str) -> PathBuf {
        self.root.path().join(relative)
    }

    pub(crate) fn workspace(&self) -> &Path {
        &self.policy.workspace
    }

    /// Replaces the placeholders in the text of an attempt.
    pub(crate) fn fill_in(&self, text: &str) -> String {
        text.replace("{ws}", &self.workspace().display().to_string())
            .replace("{out}", &self.path("outside").display().to_string())
            .replace("{host-file}", &self.host_file.path().display().to_string())
            .replace(
                "{port}",
                &self.port.local_addr().unwrap().port().to_string(),
            )
            .replace("{abstract}", &self.abstract_name)
            .replace("{pid}", &std::process::id().to_string())
    }

    pub(crate) fn command(&self, argv: &[&str]) -> Command {
        Command::new(argv, self.workspace().to_path_buf())
    }

    /// Returns the command that makes one attempt with the prober.
    pub(crate) fn attempt(&self, words: &str) -> Command {
        let prober = program("sandbox-prober").display().to_string();
        let words = self.fill_in(words);
        let argv: Vec<&str> = std::iter::once(prober.as_str())
            .chain(words.split(' '))
            .collect();
        self.command(&argv)
    }

    pub(crate) fn shell(&self, script: &str) -> Command {
        self.command(&["sh", "-c", &self.fill_in(script)])
    }

    pub(crate) async fn run(&self, command: Command) -> RunResult {
        let mut child = self.launcher.spawn(&self.policy, command).unwrap();
        let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
        let mut out = child.stdout.take().unwrap().take(1 << 20);
        let mut err = child.stderr.take().unwrap().take(1 << 20);
        let (one, other) = tokio::join!(out.read_to_end(&mut stdout), err.read_to_end(&mut stderr));
        one.and(other).unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
        RunResult {
            stdout: text(stdout),
            stderr: text(stderr),
            outcome: child.wait().await.unwrap(),
        }
    }
}

const FILES: &[(&str, &str)] = &[
    ("outside/secret", "secret"),
    ("outside/lango.db", "sessions"),
    ("outside/home/.ssh/id_ed25519", "key"),
    ("workspace/file", "text\n"),
    ("workspace/src/code", "text\n"),
    ("workspace/.git/HEAD", "ref: refs/heads/main\n"),
    (
        "workspace/.git/config",
        "[core]\n\trepositoryformatversion = 0\n",
    ),
    ("workspace/.env", "TOKEN=1\n"),
    ("workspace/settings.toml", "a = 1\n"),
    ("workspace/private/lango.db", "sessions"),
    ("workspace/deep/down/private/key", "key"),
    ("workspace/team/agents/one.toml", "a = 1"),
    ("workspace/sub/.git/config", "[core]\n"),
    ("workspace/tree/.git", "gitdir: ../gitdirs/tree\n"),
    ("workspace/gitdirs/tree/config", "[core]\n"),
];

/// Sends an open file to the first client that connects.
fn offer_descriptor(listener: UnixListener, file: fs::File) {
    std::thread::spawn(move || {
        let Ok((stream, _)) = listener.accept() else {
            return;
        };
        let mut space = [std::mem::MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut rights = SendAncillaryBuffer::new(&mut space);
        let files = [file.as_fd()];
        rights.push(SendAncillaryMessage::ScmRights(&files));
        let _ = rustix::net::sendmsg(
            &stream,
            &[IoSlice::new(b"x")],
            &mut rights,
            SendFlags::empty(),
        );
    });
}
