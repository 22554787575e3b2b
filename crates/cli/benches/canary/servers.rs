//! The servers that require tokens, in a separate process, and the certificate authority that lango trusts.

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use tempfile::TempDir;

const SERVERS: &str = include_str!("servers.py");

/// The running servers.
pub(crate) struct Servers {
    child: Child,
    folder: TempDir,
    /// The port of the server with TLS.
    pub https: u64,
    /// The port of the server without TLS.
    pub http: u64,
}

impl Servers {
    pub(crate) fn start(repositories: usize) -> Self {
        let folder = tempfile::tempdir().unwrap();
        make_certificates(folder.path());
        for number in 0..repositories {
            let path = folder.path().join(format!("git/{number}.git"));
            run(Command::new("git")
                .args(["init", "-q", "--bare"])
                .arg(&path));
            run(Command::new("git").arg("-C").arg(&path).args([
                "config",
                "http.receivepack",
                "true",
            ]));
        }
        let program = folder.path().join("servers.py");
        fs::write(&program, SERVERS).unwrap();
        let mut child = Command::new("python3")
            .arg(&program)
            .arg(folder.path())
            .args(["server.pem", "server.key"].map(|name| folder.path().join(name)))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        let output = child.stdout.take().unwrap();
        BufReader::new(output).read_line(&mut line).unwrap();
        let ports: serde_json::Value = serde_json::from_str(&line).unwrap();
        let port = |name: &str| ports[name].as_u64().unwrap();
        Self {
            https: port("https"),
            http: port("http"),
            child,
            folder,
        }
    }

    /// Returns the path of the certificate authority's certificate.
    pub(crate) fn authority(&self) -> PathBuf {
        self.folder.path().join("ca.pem")
    }

    /// Returns the SHA-256 of every token that the servers received.
    pub(crate) fn received_tokens(&self) -> BTreeSet<String> {
        let text = fs::read_to_string(self.folder.path().join("arrived")).unwrap_or_default();
        let digests = text.lines().filter_map(|line| line.split(' ').next());
        digests.map(str::to_owned).collect()
    }

    /// Returns the number of commits in a repository.
    pub(crate) fn commits(&self, repository: usize) -> usize {
        let path = self.folder.path().join(format!("git/{repository}.git"));
        let mut command = Command::new("git");
        command
            .arg("-C")
            .arg(path)
            .args(["rev-list", "--all", "--count"]);
        let output = command.output().unwrap().stdout;
        String::from_utf8(output)
            .unwrap()
            .trim()
            .parse()
            .unwrap_or(0)
    }
}

impl Drop for Servers {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn make_certificates(folder: &Path) {
    let openssl = |arguments: &[&str]| {
        run(Command::new("openssl")
            .current_dir(folder)
            .args(arguments)
            .stderr(Stdio::null()));
    };
    let ca = "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -keyout ca.key -out ca.pem";
    let mut arguments: Vec<&str> = ca.split(' ').collect();
    arguments.extend(["-subj", "/CN=canary test"]);
    openssl(&arguments);
    let request = "req -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -keyout server.key -out server.csr";
    let mut arguments: Vec<&str> = request.split(' ').collect();
    arguments.extend(["-subj", "/CN=127.0.0.1"]);
    openssl(&arguments);
    fs::write(
        folder.join("names"),
        "subjectAltName=IP:127.0.0.1\nbasicConstraints=CA:FALSE\n",
    )
    .unwrap();
    let sign = "x509 -req -in server.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 2 -extfile names -out server.pem";
    openssl(&sign.split(' ').collect::<Vec<_>>());
}

fn run(command: &mut Command) {
    let status = command.status().unwrap();
    assert!(status.success(), "{command:?}: {status}");
}
