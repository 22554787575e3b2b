//! Attempts to use more resources than allowed. An attempt that runs to its end has succeeded; one that is killed
//! prints nothing.

use crate::{Attempt, answer, number, refused};
use std::fs::File;
use std::io::Write;

const CHUNK: usize = 1 << 20;

pub(crate) fn attempt(name: &str, arguments: &[&str]) -> Option<Attempt> {
    let megabytes: usize = number(arguments, 0);
    Some(match name {
        "fork-bomb" => fork_bomb(),
        "threads" => threads(megabytes),
        "heap" => heap(megabytes),
        "shared-memory" => shared(megabytes),
        "shared-segment" => segment(megabytes),
        "socket-buffers" => socket_buffers(megabytes),
        "tcp-buffers" => tcp_buffers(megabytes),
        "page-tables" => page_tables(megabytes),
        "memory-file" => memory_file(megabytes),
        "fill" => fill(arguments.get(1)?, megabytes, usize::MAX),
        "fill-many" => fill(arguments.get(1)?, megabytes, 8),
        "sleep" => {
            std::thread::sleep(std::time::Duration::from_secs(600));
            Ok("it slept".into())
        }
        _ => return None,
    })
}

fn fork_bomb() -> Attempt {
    loop {
        // SAFETY: this program has one thread, and parent and child do the same from here.
        unsafe { libc::fork() };
    }
}

fn threads(count: usize) -> Attempt {
    let mut handles = Vec::new();
    for _ in 0..count {
        let thread = std::thread::Builder::new().stack_size(64 * 1024);
        handles.push(
            thread.spawn(|| std::thread::park_timeout(std::time::Duration::from_millis(300)))?,
        );
    }
    Ok(format!("{count} threads"))
}

fn heap(megabytes: usize) -> Attempt {
    let mut held = Vec::new();
    for _ in 0..megabytes {
        let mut chunk: Vec<u8> = Vec::new();
        chunk
            .try_reserve_exact(CHUNK)
            .map_err(std::io::Error::other)?;
        chunk.resize(CHUNK, 1);
        held.push(chunk);
    }
    Ok(format!("{} MiB", std::hint::black_box(&held).len()))
}

fn shared(megabytes: usize) -> Attempt {
    let flags = libc::MAP_SHARED | libc::MAP_ANONYMOUS;
    let both = libc::PROT_READ | libc::PROT_WRITE;
    for _ in 0..megabytes {
        // SAFETY: writes only to the newly mapped memory.
        unsafe {
            let place = libc::mmap(std::ptr::null_mut(), CHUNK, both, flags, -1, 0);
            if place == libc::MAP_FAILED {
                return Err(std::io::Error::last_os_error());
            }
            std::ptr::write_bytes(place.cast::<u8>(), 1, CHUNK);
        }
    }
    Ok(format!("{megabytes} MiB"))
}

fn segment(megabytes: usize) -> Attempt {
    for _ in 0..megabytes.div_ceil(16) {
        let size = 16 * CHUNK;
        // SAFETY: writes only to the newly attached segment, which is then detached but not removed.
        unsafe {
            let id = libc::shmget(libc::IPC_PRIVATE, size, 0o600);
            answer(id.into())?;
            let place = libc::shmat(id, std::ptr::null(), 0);
            answer(place as libc::c_long)?;
            std::ptr::write_bytes(place.cast::<u8>(), 1, size);
            libc::shmdt(place);
        }
    }
    Ok(format!("{megabytes} MiB"))
}

/// Fills memory files that are never mapped.
fn memory_file(megabytes: usize) -> Attempt {
    let mut files = Vec::new();
    for _ in 0..megabytes.div_ceil(16) {
        // SAFETY: creates a file and takes ownership of its descriptor.
        let mut file = unsafe {
            let fd = answer(libc::memfd_create(c"m".as_ptr(), 0).into())?;
            <File as std::os::fd::FromRawFd>::from_raw_fd(fd as i32)
        };
        for _ in 0..16 {
            file.write_all(&[1; CHUNK])?;
        }
        files.push(file);
    }
    Ok(format!("{} files", files.len()))
}

/// Sends data that is never received.
fn socket_buffers(megabytes: usize) -> Attempt {
    let mut pairs = Vec::new();
    let mut sent = 0;
    while sent < megabytes * CHUNK {
        let (mut near, far) = std::os::unix::net::UnixStream::pair()?;
        near.set_nonblocking(true)?;
        while let Ok(length) = near.write(&[1; 65_536]) {
            sent += length;
        }
        pairs.push((near, far));
    }
    Ok(format!("{} pairs", pairs.len()))
}

/// Like [`socket_buffers`] with TCP, where the kernel enlarges the buffers over time.
fn tcp_buffers(megabytes: usize) -> Attempt {
    let listener = std::net::TcpListener::bind("127.0.0.1:0")?;
    let mut pairs = Vec::new();
    let mut sent = 0;
    while sent < megabytes * CHUNK {
        let mut near = std::net::TcpStream::connect(listener.local_addr()?)?;
        let far = listener.accept()?;
        near.set_nonblocking(true)?;
        while let Ok(length) = near.write(&[1; 65_536]) {
            sent += length;
        }
        pairs.push((near, far));
    }
    Ok(format!("{} pairs", pairs.len()))
}

/// Reads so much empty memory that the kernel's page tables become large.
fn page_tables(megabytes: usize) -> Attempt {
    const STEP: usize = 2 << 20;
    let length = megabytes * (CHUNK / 4096) * STEP;
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
    // SAFETY: reads only the newly mapped memory.
    unsafe {
        let place = libc::mmap(std::ptr::null_mut(), length, libc::PROT_READ, flags, -1, 0);
        if place == libc::MAP_FAILED {
            return Err(std::io::Error::last_os_error());
        }
        libc::madvise(place, length, libc::MADV_NOHUGEPAGE);
        for offset in (0..length).step_by(STEP) {
            std::ptr::read_volatile(place.cast::<u8>().add(offset));
        }
    }
    Ok(format!("{megabytes} MiB of tables"))
}

fn fill(folder: &str, megabytes: usize, per_file: usize) -> Attempt {
    let chunk = vec![1_u8; CHUNK];
    let mut file = File::create(format!("{folder}/filler-0"))?;
    for written in 0..megabytes {
        if written > 0 && written % per_file == 0 {
            file = File::create(format!("{folder}/filler-{written}"))?;
        }
        file.write_all(&chunk)?;
    }
    match megabytes {
        0 => refused("nothing to write"),
        _ => Ok(format!("{megabytes} MiB")),
    }
}
