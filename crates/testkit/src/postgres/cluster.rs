//! A PostgreSQL server in a temporary folder, on the loopback address alone.
//!
//! It is the child of a small shell that waits for a pipe to close and then stops the server and removes the folder. The
//! other end of the pipe is in the test's process, so that the server goes with it however that process ends.

use super::PGVECTOR;
use std::fs;
use std::io;
use std::net::TcpListener;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// How long a server may take to start or to stop.
const PATIENCE: Duration = Duration::from_secs(60);

/// Stops what it started when nobody holds the pipe any more; with the folder, or without it to start again.
const SUPERVISE: &str = r#"folder=$1; shift
"$@" >>"$folder/log" 2>&1 </dev/null &
server=$!
read -r order
kill -QUIT "$server"; wait "$server"
[ "$order" = keep ] || rm -rf "$folder""#;

/// A server of one's own. It ends with this value, or with the process.
pub struct Cluster {
    folder: PathBuf,
    port: u16,
    /// Where its programs are.
    programs: PathBuf,
    settings: Vec<String>,
    shell: Option<Child>,
}

impl Cluster {
    /// Makes and starts a server with these settings on top of those for tests, such as `fsync=on`.
    ///
    /// # Panics
    ///
    /// Without PostgreSQL, with the way to get it.
    pub fn start(settings: &[&str]) -> Self {
        Self::of(programs(), settings)
    }

    /// The same with the programs of a PostgreSQL that has the extension pgvector.
    ///
    /// # Panics
    ///
    /// Without one, with the way to get it.
    pub fn with_pgvector(settings: &[&str]) -> Self {
        Self::of(programs_with_pgvector(), settings)
    }

    fn of(programs: PathBuf, settings: &[&str]) -> Self {
        let folder = fresh_folder().expect("a temporary folder can be made");
        let data = folder.join("data");
        let made = as_server(&mut Command::new(programs.join("initdb")))
            .args(["--username=postgres", "--auth=trust", "--encoding=UTF8"])
            .args(["--locale=C", "--no-sync", "--pgdata"])
            .arg(&data)
            .current_dir("/")
            .output()
            .expect("initdb can be run");
        assert!(made.status.success(), "initdb failed: {made:?}");
        let settings = settings.iter().map(|&setting| setting.into()).collect();
        Self::in_folder(folder, programs, settings)
    }

    /// Makes and starts a standby of this server, which streams its changes. Its name among standbys is `walreceiver`.
    ///
    /// # Panics
    ///
    /// If it cannot be made or started.
    pub fn standby(&self) -> Self {
        let folder = fresh_folder().expect("a temporary folder can be made");
        let made = as_server(&mut Command::new(self.programs.join("pg_basebackup")))
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
        assert!(made.status.success(), "pg_basebackup failed: {made:?}");
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

    /// Starts it again, on the same port, with what was on its disk.
    ///
    /// # Panics
    ///
    /// If it does not start.
    pub fn start_again(&mut self) {
        let began = Instant::now();
        while !self.try_to_start() {
            assert!(
                began.elapsed() < PATIENCE,
                "PostgreSQL does not start again:\n{}",
                self.log()
            );
        }
    }

    /// Starts it again with more settings.
    ///
    /// # Panics
    ///
    /// If it does not start.
    pub fn start_again_with(&mut self, settings: &[&str]) {
        let settings = settings.iter().map(|&setting| setting.into());
        self.settings.extend(settings);
        self.start_again();
    }

    /// Stops it as a crash would: whatever it was at is cut off, and the next start recovers.
    pub fn stop_immediately(&mut self) {
        self.end("keep\n");
    }

    /// Where it is reached, as its superuser and without a password.
    pub fn address(&self) -> String {
        format!("postgres://postgres@127.0.0.1:{}/postgres", self.port)
    }

    /// The port that it listens at.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The folder that has all of it; the server's own files are in `data`.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Gives a file in the folder to the user that the server runs as.
    ///
    /// # Panics
    ///
    /// If the file is not there.
    pub fn give(&self, path: &Path) {
        if let Some((user, group)) = other_user() {
            chown(path, Some(user), Some(group)).expect("a file can be given away");
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
        let began = Instant::now();
        while began.elapsed() < PATIENCE {
            if self.is_ready() {
                return true;
            }
            if !self.folder.join("data/postmaster.pid").exists()
                && began.elapsed() > Duration::from_secs(5)
            {
                break;
            }
            thread::sleep(Duration::from_millis(10));
        }
        self.end("keep\n");
        false
    }

    /// The server says itself how it stands, in the last line of the file with its process id.
    fn is_ready(&self) -> bool {
        let status = fs::read_to_string(self.folder.join("data/postmaster.pid"));
        let status = status.unwrap_or_default();
        let status = status.lines().nth(7).map(str::trim);
        matches!(status, Some("ready" | "standby"))
    }

    fn log(&self) -> String {
        fs::read_to_string(self.folder.join("log")).unwrap_or_default()
    }

    fn end(&mut self, order: &str) {
        let Some(mut shell) = self.shell.take() else {
            return;
        };
        if let Some(mut pipe) = shell.stdin.take() {
            // A shell that is gone has nothing left to stop.
            let _ = io::Write::write_all(&mut pipe, order.as_bytes());
        }
        let _ = shell.wait();
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        self.end("");
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// The folder of the newest PostgreSQL's programs.
///
/// # Panics
///
/// If there is none.
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
             or name a server for tests in LANGO_TEST_POSTGRES",
        )
}

/// The folder of the programs of a PostgreSQL that has pgvector: the one that [`PGVECTOR`] names, or else the newest.
///
/// # Panics
///
/// If there is none.
fn programs_with_pgvector() -> PathBuf {
    let programs = std::env::var_os(PGVECTOR).map_or_else(programs, PathBuf::from);
    let shared = Command::new(programs.join("pg_config"))
        .arg("--sharedir")
        .output();
    let has_it = shared.is_ok_and(|shared| {
        let folder = String::from_utf8_lossy(&shared.stdout).trim().to_owned();
        Path::new(&folder)
            .join("extension/vector.control")
            .is_file()
    });
    assert!(
        has_it,
        "this test needs pgvector, which the PostgreSQL in {} does not have: `scripts/test` gets one; or install it (on \
         Debian 13 `apt-get install postgresql-17-pgvector`), or name the folder of programs that have it in {PGVECTOR}",
        programs.display()
    );
    programs
}

/// PostgreSQL refuses to run as root; as root, tests run it as the user that its package makes.
fn as_server(command: &mut Command) -> &mut Command {
    if let Some((user, group)) = other_user() {
        command.uid(user).gid(group);
    }
    command
}

fn other_user() -> Option<(u32, u32)> {
    let own = fs::metadata("/proc/self").expect("a process sees itself");
    if own.uid() != 0 {
        return None;
    }
    let users = fs::read_to_string("/etc/passwd").expect("the list of users can be read");
    let ids = users.lines().find_map(|line| {
        let mut fields = line.strip_prefix("postgres:")?.split(':').skip(1);
        Some((fields.next()?.parse().ok()?, fields.next()?.parse().ok()?))
    });
    Some(ids.expect("PostgreSQL does not run as root, and there is no user `postgres`: make one"))
}

fn fresh_folder() -> io::Result<PathBuf> {
    let folder = tempfile::Builder::new()
        .prefix("lango-postgres-")
        .tempdir()?
        .keep();
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o700))?;
    if let Some((user, group)) = other_user() {
        chown(&folder, Some(user), Some(group))?;
    }
    Ok(folder)
}

fn free_port() -> io::Result<u16> {
    Ok(TcpListener::bind(("127.0.0.1", 0))?.local_addr()?.port())
}
