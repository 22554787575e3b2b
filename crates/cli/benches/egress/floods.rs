//! Servers that flood their client: endless bodies, decompression bombs, huge headers, endless redirects and single
//! slow bytes. The path below [`PREFIX`] selects the flood.

use crate::test_network::PUBLIC;
use base64::Engine as _;
use flate2::Compression;
use flate2::write::{GzEncoder, ZlibEncoder};
use std::fmt::Write as _;
use std::io::{self, Write};
use std::net::TcpStream;
use std::thread;
use std::time::Duration;

const PREFIX: &str = "/flood/";
/// Decompressed size of a gzip bomb.
const BOMB_BYTES: u64 = 10 << 30;
/// Size of a header that is too long.
const HEADER_BYTES: usize = 10 << 20;
/// Number of images or sockets that a page opens.
pub(crate) const REQUESTS_PER_PAGE: usize = 10_000;
/// Bytes per write.
const PIECE: usize = 64 * 1024;

/// Returns the URL of a flood.
pub(crate) fn url(name: &str) -> String {
    format!("http://{PUBLIC}{PREFIX}{name}")
}

/// Answers a request for a flood until the client disconnects. Returns false if the path names no flood.
pub(crate) fn answer(stream: &mut TcpStream, path: &str, head: &str) -> bool {
    let Some(name) = path.strip_prefix(PREFIX) else {
        return false;
    };
    let name = name.split('?').next().unwrap_or_default();
    // The write fails when the client disconnects.
    let _ = send(stream, name, head);
    true
}

fn send(stream: &mut TcpStream, name: &str, head: &str) -> io::Result<()> {
    match name {
        "endless" => {
            start(stream, "text/html", "")?;
            endless(stream)
        }
        "download" => {
            start(stream, "application/octet-stream", "")?;
            endless(stream)
        }
        "gzip" => {
            start(stream, "text/html", "Content-Encoding: gzip\r\n")?;
            write_spaces(GzEncoder::new(stream, Compression::fast()), BOMB_BYTES)
        }
        "brotli" => {
            start(stream, "text/html", "Content-Encoding: br\r\n")?;
            endless(stream)
        }
        "zstd" => {
            start(stream, "text/html", "Content-Encoding: zstd\r\n")?;
            endless(stream)
        }
        "pdf" => {
            start(stream, "application/pdf", "")?;
            stream.write_all(&bomb_pdf()?)
        }
        "header" => long_header(stream),
        "informational" => {
            let note = "HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n".repeat(PIECE / 40);
            loop {
                stream.write_all(note.as_bytes())?;
            }
        }
        "slow-head" => slow(stream, b"HTTP/1.1 200 OK\r\nX-Slow: "),
        "slow-body" => {
            start(stream, "text/html", "")?;
            slow(stream, b"<p>")
        }
        "images" => page(
            stream,
            "document.body.append(Object.assign(new Image(), { src: url(n) }))",
        ),
        "sockets" => page(stream, "new WebSocket(url(n).replace('http', 'ws'))"),
        "talking-socket" => page(
            stream,
            "if (n == 0) new WebSocket(url('talk').replace('http', 'ws'))",
        ),
        "talk" => talk(stream, head),
        redirect if redirect.starts_with("redirects") => {
            let number: u32 = redirect["redirects".len()..].parse().unwrap_or(0);
            let target = url(&format!("redirects{}", number + 1));
            write!(
                stream,
                "HTTP/1.1 302 Found\r\nLocation: {target}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
            )
        }
        _ => write!(
            stream,
            "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 5\r\nConnection: close\r\n\r\nsmall"
        ),
    }
}

/// Writes the head of a response that ends with its connection.
fn start(stream: &mut TcpStream, content_type: &str, headers: &str) -> io::Result<()> {
    write!(
        stream,
        "HTTP/1.1 200 OK\r\nContent-Type: {content_type}\r\n{headers}Connection: close\r\n\r\n"
    )
}

fn endless(stream: &mut TcpStream) -> io::Result<()> {
    let piece = "<p>endless words ".repeat(PIECE / 17);
    loop {
        stream.write_all(piece.as_bytes())?;
    }
}

fn write_spaces(mut encoder: impl Write, mut left: u64) -> io::Result<()> {
    let piece = [b' '; PIECE];
    while left > 0 {
        encoder.write_all(&piece)?;
        left -= left.min(PIECE as u64);
    }
    encoder.flush()
}

fn long_header(stream: &mut TcpStream) -> io::Result<()> {
    stream.write_all(b"HTTP/1.1 200 OK\r\nX-Long: ")?;
    for _ in 0..HEADER_BYTES / PIECE {
        stream.write_all(&[b'a'; PIECE])?;
    }
    stream.write_all(b"\r\nContent-Length: 0\r\n\r\n")
}

fn slow(stream: &mut TcpStream, start: &[u8]) -> io::Result<()> {
    stream.write_all(start)?;
    loop {
        stream.write_all(b"x")?;
        thread::sleep(Duration::from_millis(500));
    }
}

/// Sends a page whose script repeats a statement, with the counter `n`.
fn page(stream: &mut TcpStream, statement: &str) -> io::Result<()> {
    start(stream, "text/html", "")?;
    let base = url("small");
    write!(
        stream,
        "<title>flood</title><body><script>const url = (n) => n == 'talk' ? '{}' : '{base}?' + n;
         for (let n = 0; n < {REQUESTS_PER_PAGE}; n++) {{ {statement} }}</script>",
        url("talk")
    )
}

/// Accepts a WebSocket and sends messages forever.
fn talk(stream: &mut TcpStream, head: &str) -> io::Result<()> {
    let key = head.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        let is_key = name.eq_ignore_ascii_case("sec-websocket-key");
        is_key.then(|| value.trim().to_owned())
    });
    let text = key.unwrap_or_default() + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
    let digest = ring::digest::digest(&ring::digest::SHA1_FOR_LEGACY_USE_ONLY, text.as_bytes());
    let accept = base64::engine::general_purpose::STANDARD.encode(digest);
    write!(
        stream,
        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: {accept}\r\n\r\n"
    )?;
    // A text message of 1,000 bytes.
    let mut message = vec![0x81, 126, 3, 0xe8];
    message.extend([b'x'; 1000]);
    let messages = message.repeat(PIECE / 1004);
    loop {
        stream.write_all(&messages)?;
    }
}

/// Returns a PDF of 5,000 pages that all draw the same stream, which decompresses to 50 MB each time.
fn bomb_pdf() -> io::Result<Vec<u8>> {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::fast());
    let text = b"BT /F1 12 Tf (words) Tj ET\n".repeat(40_000);
    for _ in 0..50 {
        encoder.write_all(&text)?;
    }
    let content = encoder.finish()?;
    let count = 5000;
    let mut kids = String::new();
    for number in 0..count {
        let _ = write!(kids, "{} 0 R ", number + 5);
    }
    let mut objects = vec![
        b"<< /Type /Catalog /Pages 2 0 R >>".to_vec(),
        format!("<< /Type /Pages /Count {count} /Kids [{kids}] >>").into_bytes(),
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>".to_vec(),
    ];
    let length = content.len();
    let mut stream = format!("<< /Length {length} /Filter /FlateDecode >>\nstream\n").into_bytes();
    stream.extend(content);
    stream.extend(b"\nendstream");
    objects.push(stream);
    let page = "<< /Type /Page /Parent 2 0 R /Contents 4 0 R /MediaBox [0 0 9 9] /Resources << /Font << /F1 3 0 R >> >> >>";
    objects.extend(vec![page.as_bytes().to_vec(); count]);
    let mut file = b"%PDF-1.5\n".to_vec();
    let mut table = format!("xref\n0 {}\n0000000000 65535 f \n", objects.len() + 1);
    for (index, object) in objects.iter().enumerate() {
        let _ = writeln!(table, "{:010} 00000 n ", file.len());
        writeln!(file, "{} 0 obj", index + 1)?;
        file.extend(object);
        file.extend(b"\nendobj\n");
    }
    let at = file.len();
    let size = objects.len() + 1;
    write!(
        file,
        "{table}trailer\n<< /Size {size} /Root 1 0 R >>\nstartxref\n{at}\n%%EOF\n"
    )?;
    Ok(file)
}
