//! A PostgreSQL server in a temporary folder, listening on the loopback address only.
//!
//! It is the child of a small shell script that waits for a pipe to close, then stops the server and removes the
//! folder. The test's process has the other end of the pipe, so the server stops with it, however that process ends.

use super::PGVECTOR_VARIABLE;
use std::fs;
use std::io;
use std::net::TcpListener;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// How long a server may take to start.
const START_TIMEOUT: Duration = Duration::from_secs(60);

/// Runs the server until standard input delivers a line or is closed, then stops it. Removes the folder, unless the
/// line says `keep`.
const SUPERVISE: &str = r#"folder=$1; shift
"$@" >>"$folder/log" 2>&1 </dev/null &
server=$!
read -r order
kill -QUIT "$server"; wait "$server"
[ "$order" = keep ] || rm -rf "$folder""#;

/// A private server. It stops when this value is dropped or the process ends.
pub struct Cluster {
    folder: PathBuf,
    port: u16,
    /// The folder of PostgreSQL's programs.
    programs: PathBuf,
    settings: Vec<String>,
    shell: Option<Child>,
}

impl Cluster {
    /// Creates and starts a server with these settings, such as `fsync=on`, in addition to the defaults for tests.
    ///
    /// # Panics
    ///
    /// If PostgreSQL is not installed. The message says how to install it.
    pub fn start(settings: &[&str]) -> Self {
        Self::create(programs(), settings)
    }

    /// Creates and starts a server that has the extension pgvector.
    ///
    /// # Panics
    ///
    /// If no PostgreSQL with pgvector is installed. The message says how to install it.
    pub fn with_pgvector(settings: &[&str]) -> Self {
        Self::create(programs_with_pgvector(), settings)
    }

    fn create(programs: PathBuf, settings: &[&str]) -> Self {
        let folder = fresh_folder().expect("a temporary folder can be created");
        let data = folder.join("data");
        let output = as_server(&mut Command::new(programs.join("initdb")))
            .args(["--username=postgres", "--auth=trust", "--encoding=UTF8"])
            .args(["--locale=C", "--no-sync", "--pgdata"])
            .arg(&data)
            .current_dir("/")
            .output()
            .expect("initdb can be run");
        assert!(output.status.success(), "initdb failed: {output:?}");
        let settings = settings.iter().map(|&setting| setting.into()).collect();
        Self::in_folder(folder, programs, settings)
    }

    /// Creates and starts a standby that replicates this server by streaming. Its `application_name` is `walreceiver`.
    ///
    /// # Panics
    ///
    /// If it cannot be created or started.
    pub fn standby(&self) -> Self {
        let folder = fresh_folder().expect("a temporary folder can be created");
        let output = as_server(&mut Command::new(self.programs.join("pg_basebackup")))
            .args([
                "--write-recovery-conf",
                "--wal-method=stream",
                "--checkpoint=fast",
            ])
            .args(["--no-sync", "--dbname", &self.address(), "--pgdata"])
            .arg(folder.join("data"))
            .current_dir("/")
            .output()
            .expect("pg_basebackup can be run");
        assert!(output.status.success(), "pg_basebackup failed: {output:?}");
        Self::in_folder(folder, self.programs.clone(), self.settings.clone())
    }

    fn in_folder(folder: PathBuf, programs: PathBuf, settings: Vec<String>) -> Self {
        let mut cluster = Self {
            folder,
            port: 0,
            programs,
            settings,
            shell: None,
        };
        for _ in 0..5 {
            cluster.port = free_port().expect("there is a free port");
            if cluster.try_to_start() {
                return cluster;
            }
        }
        panic!("PostgreSQL does not start:\n{}", cluster.log());
    }

    /// Starts a stopped server again, on the same port and with the same data.
    ///
    /// # Panics
    ///
    /// If it does not start.
    pub fn start_again(&mut self) {
        let started = Instant::now();
        while !self.try_to_start() {
            assert!(
                started.elapsed() < START_TIMEOUT,
                "PostgreSQL does not start again:\n{}",
                self.log()
            );
        }
    }

    /// Starts a stopped server again with additional settings.
    ///
    /// # Panics
    ///
    /// If it does not start.
    pub fn start_again_with(&mut self, settings: &[&str]) {
        let settings = settings.iter().map(|&setting| setting.into());
        self.settings.extend(settings);
        self.start_again();
    }

    /// Stops the server as a crash would: it finishes nothing, and the next start has to recover.
    pub fn stop_immediately(&mut self) {
        self.stop("keep\n");
    }

    /// Returns the address of its database, for the superuser and without a password.
    pub fn address(&self) -> String {
        format!("postgres://postgres@127.0.0.1:{}/postgres", self.port)
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    /// Returns the server's folder. The database files are in its subfolder `data`.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Makes the user that the server runs as the owner of a file.
    ///
    /// # Panics
    ///
    /// If the file does not exist.
    pub fn chown_to_server(&self, path: &Path) {
        if let Some((user, group)) = server_user() {
            chown(path, Some(user), Some(group)).expect("the owner of a file can be changed");
        }
    }

    fn try_to_start(&mut self) -> bool {
        let mut command = Command::new("sh");
        command
            .args(["-c", SUPERVISE, "sh"])
            .arg(&self.folder)
            .arg(self.programs.join("postgres"))
            .arg("-D")
            .arg(self.folder.join("data"))
            .arg("-k")
            .arg(&self.folder)
            .args(["-h", "127.0.0.1", "-p", &self.port.to_string()])
            .args(["-c", "fsync=off", "-c", "max_connections=300"])
            .args(["-c", "max_wal_size=128MB", "-c", "shared_buffers=32MB"]);
        for setting in &self.settings {
            command.args(["-c", setting]);
        }
        let shell = as_server(&mut command)
            .current_dir("/")
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("a shell can be started");
        self.shell = Some(shell);
        let started = Instant::now();
        while started.elapsed() < START_TIMEOUT {
            if self.is_ready() {
                return true;
            }
            if !self.folder.join("data/postmaster.pid").exists()
                && started.elapsed() > Duration::from_secs(5)
            {
                break;
            }
            thread::sleep(Duration::from_millis(10));
        }
        self.stop("keep\n");
        false
    }

    /// Reads the status that the server writes to line 8 of `postmaster.pid`.
    fn is_ready(&self) -> bool {
        let status = fs::read_to_string(self.folder.join("data/postmaster.pid"));
        let status = status.unwrap_or_default();
        let status = status.lines().nth(7).map(str::trim);
        matches!(status, Some("ready" | "standby"))
    }

    fn log(&self) -> String {
        fs::read_to_string(self.folder.join("log")).unwrap_or_default()
    }

    fn stop(&mut self, order: &str) {
        let Some(mut shell) = self.shell.take() else {
            return;
        };
        if let Some(mut pipe) = shell.stdin.take() {
            // If the shell has exited, the server has stopped too.
            let _ = io::Write::write_all(&mut pipe, order.as_bytes());
        }
        let _ = shell.wait();
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        self.stop("");
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// Returns the folder with the programs of the newest installed PostgreSQL.
///
/// # Panics
///
/// If PostgreSQL is not installed.
pub fn programs() -> PathBuf {
    let installed = fs::read_dir("/usr/lib/postgresql").into_iter().flatten();
    let mut versions: Vec<(u32, PathBuf)> = installed
        .filter_map(|entry| entry.ok())
        .filter_map(|entry| {
            let version = entry.file_name().to_str()?.parse().ok()?;
            Some((version, entry.path().join("bin")))
        })
        .collect();
    versions.sort();
    let versions = versions.into_iter().rev().map(|(_, folder)| folder);
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = versions.chain(std::env::split_paths(&path));
    folders
        .into_iter()
        .find(|folder| folder.join("initdb").is_file() && folder.join("postgres").is_file())
        .expect(
            "this test needs PostgreSQL: install it (on Debian `apt-get install postgresql`), \
             or set LANGO_TEST_POSTGRES to the address of a server for tests",
        )
}

/// Returns the folder with the programs of a PostgreSQL that has pgvector: the one that [`PGVECTOR_VARIABLE`] names, or
/// else the newest installed one.
///
/// # Panics
///
/// If that PostgreSQL does not have pgvector.
fn programs_with_pgvector() -> PathBuf {
    let programs = std::env::var_os(PGVECTOR_VARIABLE).map_or_else(programs, PathBuf::from);
    let shared = Command::new(programs.join("pg_config"))
        .arg("--sharedir")
        .output();
    let has_pgvector = shared.is_ok_and(|shared| {
        let folder = String::from_utf8_lossy(&shared.stdout).trim().to_owned();
        Path::new(&folder)
            .join("extension/vector.control")
            .is_file()
    });
    assert!(
        has_pgvector,
        "this test needs pgvector, which the PostgreSQL in {} does not have: run `scripts/test`, which gets it, install it \
         (on Debian 13 `apt-get install postgresql-17-pgvector`), or set {PGVECTOR_VARIABLE} to the `bin` folder of a \
         PostgreSQL that has it",
        programs.display()
    );
    programs
}

/// Makes a command run as the user `postgres`, which its package creates, if the test runs as root: PostgreSQL refuses
/// to run as root.
fn as_server(command: &mut Command) -> &mut Command {
    if let Some((user, group)) = server_user() {
        command.uid(user).gid(group);
    }
    command
}

/// Returns the user and group of the server if it cannot run as the current user, who is root.
fn server_user() -> Option<(u32, u32)> {
    let own = fs::metadata("/proc/self").expect("/proc/self can be read");
    if own.uid() != 0 {
        return None;
    }
    let users = fs::read_to_string("/etc/passwd").expect("the list of users can be read");
    let ids = users.lines().find_map(|line| {
        let mut fields = line.strip_prefix("postgres:")?.split(':').skip(1);
        Some((fields.next()?.parse().ok()?, fields.next()?.parse().ok()?))
    });
    Some(ids.expect("PostgreSQL does not run as root; create a user `postgres`"))
}

fn fresh_folder() -> io::Result<PathBuf> {
    let folder = tempfile::Builder::new()
        .prefix("lango-postgres-")
        .tempdir()?
        .keep();
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o700))?;
    if let Some((user, group)) = server_user() {
        chown(&folder, Some(user), Some(group))?;
    }
    Ok(folder)
}

fn free_port() -> io::Result<u16> {
    Ok(TcpListener::bind(("127.0.0.1", 0))?.local_addr()?.port())
}
