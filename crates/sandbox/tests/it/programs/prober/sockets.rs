//! Attempts to create and connect sockets of every kind.

use crate::{Attempt, answer, number, possible, refused};
use std::io::Read;
use std::net::TcpStream;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixStream};

/// The obsolete type of packet sockets, from before they had a separate family.
const SOCK_PACKET: i32 = 10;

pub(crate) fn attempt(name: &str, arguments: &[&str]) -> Option<Attempt> {
    Some(match name {
        "tcp" => {
            TcpStream::connect(("127.0.0.1", number(arguments, 0))).map(|_| "connected".into())
        }
        "tcp6" => socket(libc::AF_INET6, libc::SOCK_STREAM, 0),
        "udp" => socket(libc::AF_INET, libc::SOCK_DGRAM, 0),
        "raw" => socket(libc::AF_INET, libc::SOCK_RAW, libc::IPPROTO_ICMP),
        "packet" => socket(libc::AF_PACKET, libc::SOCK_RAW, 0),
        "old-packet" => socket(libc::AF_INET, SOCK_PACKET, 3 << 8),
        "multipath" => socket(libc::AF_INET, libc::SOCK_STREAM, libc::IPPROTO_MPTCP),
        "netlink" => socket(libc::AF_NETLINK, libc::SOCK_RAW, 0),
        "vsock" => socket(libc::AF_VSOCK, libc::SOCK_STREAM, 0),
        "crypto" => socket(libc::AF_ALG, libc::SOCK_SEQPACKET, 0),
        "unix" => read_from(UnixStream::connect(arguments.first()?)),
        "abstract" => read_from(
            SocketAddr::from_abstract_name(arguments.first()?)
                .and_then(|address| UnixStream::connect_addr(&address)),
        ),
        "descriptor-from-outside" => descriptor(arguments.first()?),
        "unix-inside" => unix_inside(arguments.first()?),
        _ => return None,
    })
}

fn socket(family: i32, kind: i32, protocol: i32) -> Attempt {
    // SAFETY: creates a socket and accesses no memory.
    possible(unsafe { libc::socket(family, kind, protocol) }.into())
}

fn read_from(stream: std::io::Result<UnixStream>) -> Attempt {
    stream.map(|_| "connected".to_string())
}

/// Tries to receive an open file from a program outside.
fn descriptor(path: &str) -> Attempt {
    let stream = UnixStream::connect(path)?;
    let mut data = [0_u8; 8];
    let mut space = [0_u8; 64];
    let mut part = libc::iovec {
        iov_base: data.as_mut_ptr().cast(),
        iov_len: data.len(),
    };
    // SAFETY: a zeroed header is a valid empty one.
    let mut header: libc::msghdr = unsafe { std::mem::zeroed() };
    header.msg_iov = &raw mut part;
    header.msg_iovlen = 1;
    header.msg_control = space.as_mut_ptr().cast();
    header.msg_controllen = space.len() as _;
    let socket = std::os::fd::AsRawFd::as_raw_fd(&stream);
    // SAFETY: the header points to live buffers of the lengths given.
    answer(unsafe { libc::recvmsg(socket, &raw mut header, 0) } as libc::c_long)?;
    match header.msg_controllen {
        0 => refused("no descriptor was received"),
        _ => Ok("a descriptor was received".to_string()),
    }
}

/// Connects two ends of a socket inside the sandbox.
fn unix_inside(path: &str) -> Attempt {
    let listener = std::os::unix::net::UnixListener::bind(path)?;
    let mut client = UnixStream::connect(path)?;
    let (mut server, _) = listener.accept()?;
    std::io::Write::write_all(&mut server, b"hello")?;
    drop(server);
    let mut text = String::new();
    client.read_to_string(&mut text)?;
    Ok(text)
}
