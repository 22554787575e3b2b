//! The listeners: one set in the namespace of the run, which stands for this machine, and one in a second namespace, which
//! stands for every other address. Both write down who was reached, before they answer.

use crate::{STAGE, namespaces};
use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::net::{IpAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

const LOG: &str = "LANGO_EGRESS_LOG";
/// Ports that are listened on: those of HTTP, and some that the guard refuses.
const PORTS: [u16; 7] = [80, 443, 8080, 22, 25, 6379, 3000];
/// A public address of the world, at which redirects can be had.
pub const PUBLIC: &str = "93.184.216.34";

/// The world around the run.
pub struct World {
    log: PathBuf,
    _folder: tempfile::TempDir,
    other: Child,
}

/// A connection that was accepted.
#[derive(Debug, Clone)]
pub struct Hit {
    /// The address that was connected to.
    pub address: IpAddr,
    /// The port.
    pub port: u16,
    /// Whether it was on this machine.
    pub is_here: bool,
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
            _folder: folder,
            other,
        }
    }

    /// The connections since the last call. Waits a moment for those that are on their way.
    pub fn hits(&self, at_least: usize, within: Duration) -> Vec<Hit> {
        let start = Instant::now();
        loop {
            let hits = self.read();
            if hits.len() >= at_least && start.elapsed() >= Duration::from_millis(2)
                || start.elapsed() >= within
            {
                // Emptied in place: the writers append.
                File::create(&self.log).unwrap();
                return hits;
            }
            thread::sleep(Duration::from_millis(1));
        }
    }

    fn read(&self) -> Vec<Hit> {
        let text = std::fs::read_to_string(&self.log).unwrap();
        text.lines().filter_map(parse).collect()
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
    let place = words.next()?;
    let address = words.next()?.parse::<std::net::SocketAddr>().ok()?;
    Some(Hit {
        address: address.ip().to_canonical(),
        port: address.port(),
        is_here: place == "here",
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
    for port in PORTS {
        // One socket for both families.
        let listener = TcpListener::bind(("::", port)).unwrap();
        let log = Arc::clone(&log);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let address = stream.local_addr().unwrap();
                let line = format!("{place} {address}\n");
                (&*log).write_all(line.as_bytes()).unwrap();
                thread::spawn(move || answer(stream));
            }
        });
    }
}

/// Answers one request: with a redirect if its path asks for one, in one of the forms that clients follow.
fn answer(mut stream: TcpStream) {
    let _ = stream.set_read_timeout(Some(Duration::from_secs(2)));
    let mut head = Vec::new();
    let mut part = [0; 4096];
    while !head.windows(4).any(|end| end == b"\r\n\r\n") {
        match stream.read(&mut part) {
            Ok(count) if count > 0 => head.extend_from_slice(&part[..count]),
            _ => return,
        }
    }
    let head = String::from_utf8_lossy(&head);
    let path = head.split(' ').nth(1).unwrap_or("/");
    let _ = stream.write_all(response(path).as_bytes());
}

fn response(path: &str) -> String {
    let page = |headers: &str, body: &str| {
        format!(
            "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n{headers}Content-Length: {}\r\nConnection: close\r\n\r\n{body}",
            body.len()
        )
    };
    let Some((form, target)) = path
        .strip_prefix("/to/")
        .and_then(|rest| rest.split_once('/'))
    else {
        return page("", "the secret page");
    };
    let target = decode(target);
    match form {
        "meta" => page(
            "",
            &format!("<meta http-equiv=refresh content='0;url={target}'>"),
        ),
        "script" => page("", &format!("<script>location.href='{target}'</script>")),
        "frame" => page(
            "",
            &format!("<iframe src='{target}'></iframe><img src='{target}'>"),
        ),
        "refresh" => page(&format!("Refresh: 0;url={target}\r\n"), "wait"),
        status => format!(
            "HTTP/1.1 {status} Elsewhere\r\nLocation: {target}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
        ),
    }
}

/// Reads the hexadecimal form in which a target stands in a path.
fn decode(text: &str) -> String {
    let bytes = (0..text.len() / 2)
        .filter_map(|at| u8::from_str_radix(text.get(2 * at..2 * at + 2)?, 16).ok());
    String::from_utf8_lossy(&bytes.collect::<Vec<_>>()).into_owned()
}

/// A URL at the public address that redirects to a target, in one of the forms of [`response`].
pub fn redirecting(form: &str, target: &str) -> String {
    let hex: String = target.bytes().map(|byte| format!("{byte:02x}")).collect();
    format!("http://{PUBLIC}/to/{form}/{hex}")
}
