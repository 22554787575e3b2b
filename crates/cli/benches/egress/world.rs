//! The listeners: one set in the namespace of the run, which stands for this machine, and one in a second namespace, which
//! stands for every other address. Both write down who was reached, before they answer.

use crate::{STAGE, floods, namespaces, pages, ways};
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
/// Ports that are listened on: those of HTTP, and some that the guard refuses.
const PORTS: [u16; 10] = [80, 443, 8080, 8443, 8444, 8445, 22, 25, 6379, 3000];
/// Ports at which datagrams are counted: those of QUIC, of WebRTC's servers, and of time.
const DATAGRAM_PORTS: [u16; 5] = [443, 3478, 5349, 19302, 123];
/// The first byte of a connection with TLS.
const TLS_HANDSHAKE: u8 = 0x16;
/// The port of name servers, which the run itself uses on this machine.
const NAMES_PORT: u16 = 53;
/// A public address of the world, at which redirects can be had.
pub const PUBLIC: &str = "93.184.216.34";

/// The world around the run.
pub struct World {
    log: PathBuf,
    ways: RefCell<BTreeSet<String>>,
    places: RefCell<Vec<HitKind>>,
    _folder: tempfile::TempDir,
    other: Child,
}

/// Something that arrived.
#[derive(Debug, Clone)]
pub struct Hit {
    /// The address that was reached; unspecified if only the port is known.
    pub address: IpAddr,
    pub port: u16,
    pub kind: HitKind,
}

/// Where and as what something arrived.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HitKind {
    /// A connection to this machine.
    Here,
    /// A connection to the network.
    World,
    /// A datagram, anywhere.
    Datagram,
    /// The question for a name that only a leak asks for.
    Lookup,
    /// The message of a page that it could read a file of the machine.
    File,
}

impl HitKind {
    const ALL: [(&'static str, Self); 5] = [
        ("here", Self::Here),
        ("world", Self::World),
        ("datagram", Self::Datagram),
        ("lookup", Self::Lookup),
        ("file", Self::File),
    ];
}

impl World {
    /// Sets everything up.
    pub fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        namespaces::use_own_names(folder.path());
        let log = folder.path().join("hits");
        File::create(&log).unwrap();
        let mut other = Command::new("unshare")
            .args(["--net", "--kill-child"])
            .arg(std::env::current_exe().unwrap())
            .env(STAGE, "world")
            .env(LOG, &log)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        // It says when it is in its namespace; then the link can be made.
        wait_for_byte(&mut other);
        namespaces::connect(&other);
        other.stdin.as_mut().unwrap().write_all(b"\n").unwrap();
        wait_for_byte(&mut other);
        listen(&log, "here");
        Self {
            log,
            ways: RefCell::default(),
            places: RefCell::default(),
            _folder: folder,
            other,
        }
    }

    /// The file that everything which arrives is appended to.
    pub fn log(&self) -> &Path {
        &self.log
    }

    /// The ways of the attack page that arrived since the last call.
    pub fn take_ways(&self) -> BTreeSet<String> {
        self.ways.take()
    }

    /// As what each thing arrived since the last call.
    pub fn take_places(&self) -> Vec<HitKind> {
        self.places.take()
    }

    /// What arrived since the last call. Waits a moment for what is on its way.
    pub fn hits(&self, at_least: usize, within: Duration) -> Vec<Hit> {
        let start = Instant::now();
        loop {
            let hits = self.read();
            if hits.len() >= at_least && start.elapsed() >= Duration::from_millis(2)
                || start.elapsed() >= within
            {
                // Emptied in place: the writers append.
                File::create(&self.log).unwrap();
                let places = hits.iter().map(|hit| hit.kind);
                self.places.borrow_mut().extend(places);
                return hits;
            }
            thread::sleep(Duration::from_millis(1));
        }
    }

    fn read(&self) -> Vec<Hit> {
        let text = std::fs::read_to_string(&self.log).unwrap();
        let ways = text.lines().filter_map(|line| line.strip_prefix("way "));
        let mut seen = self.ways.borrow_mut();
        seen.extend(ways.map(str::to_owned));
        let hits: Vec<Hit> = text.lines().filter_map(parse).collect();
        seen.extend(hits.iter().filter_map(ways::of_hit).map(str::to_owned));
        hits
    }
}

impl Drop for World {
    fn drop(&mut self) {
        let _ = self.other.kill();
        let _ = self.other.wait();
    }
}

fn parse(line: &str) -> Option<Hit> {
    let mut words = line.split(' ');
    let word = words.next()?;
    let kind = HitKind::ALL.iter().find(|(name, _)| *name == word)?.1;
    let address = words.next()?.parse::<std::net::SocketAddr>().ok()?;
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

/// The process of the other namespace.
pub fn serve() -> ExitCode {
    let mut out = std::io::stdout();
    out.write_all(b".").and_then(|()| out.flush()).unwrap();
    let mut byte = [0];
    std::io::stdin().read_exact(&mut byte).unwrap();
    namespaces::answer_everywhere();
    listen(Path::new(&std::env::var(LOG).unwrap()), "world");
    out.write_all(b".").and_then(|()| out.flush()).unwrap();
    // Ends with the run, whose end closes the pipe.
    let _ = std::io::stdin().read(&mut byte);
    ExitCode::SUCCESS
}

fn listen(log: &Path, place: &'static str) {
    let log = OpenOptions::new().append(true).open(log).unwrap();
    let log = Arc::new(log);
    count_datagrams(&log, &DATAGRAM_PORTS);
    if place == "world" {
        count_datagrams(&log, &[NAMES_PORT]);
    }
    for port in PORTS {
        // One socket for both families.
        let listener = TcpListener::bind(("::", port)).unwrap();
        let log = Arc::clone(&log);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let address = stream.local_addr().unwrap();
                let line = format!("{place} {address}\n");
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

/// Answers one request, and writes down what its path says about how it was made.
fn answer(mut stream: TcpStream, log: &File) {
    let _ = stream.set_read_timeout(Some(Duration::from_secs(2)));
    let mut head = Vec::new();
    let mut part = [0; 4096];
    while !head.windows(4).any(|end| end == b"\r\n\r\n") {
        match stream.read(&mut part) {
            // TLS, which is not spoken here; that it came is known by its port.
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
    if let Some(way) = path.strip_prefix("/x-") {
        let way = way.split('?').next().unwrap_or_default();
        lines.write_all(format!("way {way}\n").as_bytes()).unwrap();
    }
    if !floods::answer(&mut stream, path, &head) {
        let _ = stream.write_all(pages::response(path).as_bytes());
    }
}
