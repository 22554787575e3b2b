//! The test network. Listeners in the namespace of the run play this machine, and listeners in a second namespace play
//! all other addresses. Both log every hit before they answer.

use crate::{STAGE, floods, namespaces, pages, vectors};
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::net::{IpAddr, TcpListener, TcpStream, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

const LOG: &str = "LANGO_EGRESS_LOG";
/// TCP ports to listen on: those of HTTP, and some that the guard refuses.
const PORTS: [u16; 10] = [80, 443, 8080, 8443, 8444, 8445, 22, 25, 6379, 3000];
/// UDP ports to listen on: those of QUIC, STUN and TURN, and NTP.
const DATAGRAM_PORTS: [u16; 5] = [443, 3478, 5349, 19302, 123];
/// The first byte of a TLS connection.
const TLS_HANDSHAKE: u8 = 0x16;
/// The DNS port. On this machine, the name server of the run uses it.
const NAMES_PORT: u16 = 53;
/// A public address in the second namespace. It serves redirects and attack pages.
pub(crate) const PUBLIC: &str = "93.184.216.34";

/// The namespaces, with what arrived in them.
pub(crate) struct TestNetwork {
    log: PathBuf,
    vectors: RefCell<BTreeSet<String>>,
    kinds: RefCell<Vec<HitKind>>,
    _folder: tempfile::TempDir,
    other: Child,
}

/// A connection, datagram or lookup that arrived.
#[derive(Debug, Clone)]
pub(crate) struct Hit {
    /// The address that was reached, or the unspecified address if only the port is known.
    pub address: IpAddr,
    pub port: u16,
    pub kind: HitKind,
}

/// The kind of a hit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HitKind {
    /// A connection to this machine.
    Local,
    /// A connection to the network.
    Network,
    /// A datagram to any address.
    Datagram,
    /// A lookup of a name below `leak.example`.
    Lookup,
    /// A request with which a page reports that it could read a file of the machine.
    File,
}

impl HitKind {
    const ALL: [(&'static str, Self); 5] = [
        ("local", Self::Local),
        ("network", Self::Network),
        ("datagram", Self::Datagram),
        ("lookup", Self::Lookup),
        ("file", Self::File),
    ];
}

impl TestNetwork {
    /// Sets up both namespaces and their listeners.
    pub(crate) fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        namespaces::use_own_names(folder.path());
        let log = folder.path().join("hits");
        File::create(&log).unwrap();
        let mut other = Command::new("unshare")
            .args(["--net", "--kill-child"])
            .arg(std::env::current_exe().unwrap())
            .env(STAGE, "network")
            .env(LOG, &log)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        // It sends a byte when it is in its namespace; then the namespaces can be linked.
        wait_for_byte(&mut other);
        namespaces::connect(&other);
        other.stdin.as_mut().unwrap().write_all(b"\n").unwrap();
        wait_for_byte(&mut other);
        listen(&log, "local");
        Self {
            log,
            vectors: RefCell::default(),
            kinds: RefCell::default(),
            _folder: folder,
            other,
        }
    }

    /// Returns the path of the file to which all hits are appended.
    pub(crate) fn log(&self) -> &Path {
        &self.log
    }

    /// Returns the vectors of the attack page that arrived since the last call.
    pub(crate) fn take_vectors(&self) -> BTreeSet<String> {
        self.vectors.take()
    }

    /// Returns the kinds of all hits since the last call.
    pub(crate) fn take_kinds(&self) -> Vec<HitKind> {
        self.kinds.take()
    }

    /// Returns the hits since the last call. Waits for `at_least` hits, but no longer than `within`.
    pub(crate) fn hits(&self, at_least: usize, within: Duration) -> Vec<Hit> {
        let start = Instant::now();
        loop {
            let hits = self.read();
            if hits.len() >= at_least && start.elapsed() >= Duration::from_millis(2)
                || start.elapsed() >= within
            {
                // Truncate the file in place, because the listeners have it open for appending.
                File::create(&self.log).unwrap();
                let kinds = hits.iter().map(|hit| hit.kind);
                self.kinds.borrow_mut().extend(kinds);
                return hits;
            }
            thread::sleep(Duration::from_millis(1));
        }
    }

    fn read(&self) -> Vec<Hit> {
        let text = std::fs::read_to_string(&self.log).unwrap();
        let vectors = text.lines().filter_map(|line| line.strip_prefix("vector "));
        let mut seen = self.vectors.borrow_mut();
        seen.extend(vectors.map(str::to_owned));
        let hits: Vec<Hit> = text.lines().filter_map(parse).collect();
        seen.extend(hits.iter().filter_map(vectors::from_hit).map(str::to_owned));
        hits
    }
}

impl Drop for TestNetwork {
    fn drop(&mut self) {
        let _ = self.other.kill();
        let _ = self.other.wait();
    }
}

fn parse(line: &str) -> Option<Hit> {
    let mut fields = line.split(' ');
    let field = fields.next()?;
    let kind = HitKind::ALL.iter().find(|(name, _)| *name == field)?.1;
    let address = fields.next()?.parse::<std::net::SocketAddr>().ok()?;
    Some(Hit {
        address: address.ip().to_canonical(),
        port: address.port(),
        kind,
    })
}

fn wait_for_byte(child: &mut Child) {
    let mut byte = [0];
    let out = child.stdout.as_mut().unwrap();
    out.read_exact(&mut byte).unwrap();
}

/// Runs as the process of the second namespace.
pub(crate) fn serve() -> ExitCode {
    let mut out = std::io::stdout();
    out.write_all(b".").and_then(|()| out.flush()).unwrap();
    let mut byte = [0];
    std::io::stdin().read_exact(&mut byte).unwrap();
    namespaces::answer_everywhere();
    listen(Path::new(&std::env::var(LOG).unwrap()), "network");
    out.write_all(b".").and_then(|()| out.flush()).unwrap();
    // The pipe is closed when the run ends.
    let _ = std::io::stdin().read(&mut byte);
    ExitCode::SUCCESS
}

fn listen(log: &Path, side: &'static str) {
    let log = OpenOptions::new().append(true).open(log).unwrap();
    let log = Arc::new(log);
    count_datagrams(&log, &DATAGRAM_PORTS);
    if side == "network" {
        count_datagrams(&log, &[NAMES_PORT]);
    }
    for port in PORTS {
        // One socket for both IPv4 and IPv6.
        let listener = TcpListener::bind(("::", port)).unwrap();
        let log = Arc::clone(&log);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let address = stream.local_addr().unwrap();
                let line = format!("{side} {address}\n");
                (&*log).write_all(line.as_bytes()).unwrap();
                let log = Arc::clone(&log);
                thread::spawn(move || answer(stream, &log));
            }
        });
    }
}

fn count_datagrams(log: &Arc<File>, ports: &[u16]) {
    for port in ports {
        let socket = UdpSocket::bind(("::", *port)).unwrap();
        let log = Arc::clone(log);
        let line = format!("datagram [::]:{port}\n");
        thread::spawn(move || {
            while socket.recv_from(&mut [0; 64]).is_ok() {
                (&*log).write_all(line.as_bytes()).unwrap();
            }
        });
    }
}

/// Answers one request, and logs the vector that its path names.
fn answer(mut stream: TcpStream, log: &File) {
    let _ = stream.set_read_timeout(Some(Duration::from_secs(2)));
    let mut head = Vec::new();
    let mut part = [0; 4096];
    while !head.windows(4).any(|end| end == b"\r\n\r\n") {
        match stream.read(&mut part) {
            // TLS is not supported. The hit has already been logged with its port.
            Ok(count) if count > 0 && head.is_empty() && part[0] == TLS_HANDSHAKE => return,
            Ok(count) if count > 0 => head.extend_from_slice(&part[..count]),
            _ => return,
        }
    }
    let head = String::from_utf8_lossy(&head);
    let path = head.split(' ').nth(1).unwrap_or("/");
    let mut lines = log;
    if path == pages::LEAK_PATH {
        lines.write_all(b"file [::]:0\n").unwrap();
    }
    if let Some(vector) = path.strip_prefix("/x-") {
        let vector = vector.split('?').next().unwrap_or_default();
        lines
            .write_all(format!("vector {vector}\n").as_bytes())
            .unwrap();
    }
    if !floods::answer(&mut stream, path, &head) {
        let _ = stream.write_all(pages::response(path).as_bytes());
    }
}
