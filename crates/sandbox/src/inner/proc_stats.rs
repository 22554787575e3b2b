//! The kernel's statistics about processes, memory and sockets, read from `/proc`.

use std::fs;
use std::path::Path;

/// A process, from `/proc/PID/stat`.
pub(super) struct Process {
    pub(super) pid: i32,
    pub(super) parent: i32,
    pub(super) threads: u64,
    /// Whether it is a zombie or dead.
    pub(super) has_ended: bool,
}

/// Reads a process; `None` if it does not exist.
pub(super) fn process(pid: i32) -> Option<Process> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name in parentheses may contain anything, including parentheses.
    let (_, fields) = text.rsplit_once(')')?;
    let fields: Vec<&str> = fields.split_whitespace().collect();
    Some(Process {
        pid,
        parent: fields.get(1)?.parse().ok()?,
        threads: fields.get(17)?.parse().ok()?,
        has_ended: matches!(*fields.first()?, "Z" | "X"),
    })
}

pub(super) fn is_running(pid: i32) -> bool {
    process(pid).is_some_and(|process| !process.has_ended)
}

/// Returns how much memory of a process is not backed by files on disk, including the kernel's page tables.
pub(super) fn resident_bytes(pid: i32) -> u64 {
    let text = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let field = |name| kilobytes(&text, name).unwrap_or(0);
    field("RssAnon:") + field("RssShmem:") + field("VmPTE:")
}

/// Like [`resident_bytes`], but divides shared pages among the processes that share them. Slower.
pub(super) fn proportional_bytes(pid: i32) -> u64 {
    let text = fs::read_to_string(format!("/proc/{pid}/smaps_rollup"));
    let field = |name| text.as_ref().ok().and_then(|text| kilobytes(text, name));
    match (field("Pss_Anon:"), field("Pss_Shmem:")) {
        (Some(own), Some(shared)) => own + shared + page_table_bytes(pid),
        _ => resident_bytes(pid),
    }
}

fn page_table_bytes(pid: i32) -> u64 {
    let text = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    kilobytes(&text, "VmPTE:").unwrap_or(0)
}

/// Numbers of sockets in one network namespace.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Sockets {
    pub(super) unix: u64,
    pub(super) tcp: u64,
}

/// Counts the sockets in the network namespace of a process.
pub(super) fn sockets(pid: i32) -> Sockets {
    let text = fs::read_to_string(format!("/proc/{pid}/net/protocols")).unwrap_or_default();
    count_sockets(&text)
}

fn count_sockets(protocols: &str) -> Sockets {
    let mut sockets = Sockets::default();
    for row in protocols.lines() {
        let mut fields = row.split_whitespace();
        let name = fields.next().unwrap_or_default();
        let count = fields.nth(1).and_then(|count| count.parse().ok());
        let count: u64 = count.unwrap_or(0);
        match name {
            "UNIX" | "UNIX-STREAM" => sockets.unix += count,
            "TCP" | "TCPv6" => sockets.tcp += count,
            _ => {}
        }
    }
    sockets
}

/// Returns the bytes in the queues of all TCP sockets in a process's network namespace. Slow.
pub(super) fn queued_tcp_bytes(pid: i32) -> u64 {
    let read = |name| fs::read_to_string(format!("/proc/{pid}/net/{name}")).unwrap_or_default();
    let texts = [read("tcp"), read("tcp6")];
    let rows = texts.iter().flat_map(|text| text.lines().skip(1));
    rows.filter_map(queues).sum()
}

/// Adds up the two queues of a row, which are hexadecimal numbers separated by a colon.
fn queues(row: &str) -> Option<u64> {
    let (sent, received) = row.split_whitespace().nth(4)?.split_once(':')?;
    let bytes = |digits| u64::from_str_radix(digits, 16).ok();
    Some(bytes(sent)? + bytes(received)?)
}

/// Returns the inode number of a process's network namespace, if it is readable.
pub(super) fn network_namespace(pid: i32) -> Option<u64> {
    use std::os::unix::fs::MetadataExt;
    let metadata = fs::metadata(format!("/proc/{pid}/ns/net")).ok()?;
    Some(metadata.ino())
}

/// Returns the number of bytes that a process has written to disk.
pub(super) fn written_bytes(pid: i32) -> Option<u64> {
    let text = fs::read_to_string(format!("/proc/{pid}/io")).ok()?;
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("write_bytes: "))?;
    line.trim().parse().ok()
}

/// Returns the free space of a file system.
pub(super) fn free_bytes(path: &Path) -> u64 {
    rustix::fs::statvfs(path).map_or(u64::MAX, |numbers| numbers.f_bavail * numbers.f_frsize)
}

/// Returns the used space of a file system.
pub(super) fn used_bytes(path: &Path) -> u64 {
    rustix::fs::statvfs(path).map_or(0, |numbers| {
        numbers.f_blocks.saturating_sub(numbers.f_bfree) * numbers.f_frsize
    })
}

/// Returns the size of the System V shared memory segments in this namespace.
pub(super) fn shared_segment_bytes() -> u64 {
    let text = fs::read_to_string("/proc/sysvipc/shm").unwrap_or_default();
    let resident = |line: &str| line.split_whitespace().nth(14)?.parse::<u64>().ok();
    text.lines().skip(1).filter_map(resident).sum()
}

fn kilobytes(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    Some(line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()? * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sockets_are_counted_by_their_kind_and_queues_by_their_bytes() {
        let protocols = "protocol  size sockets  memory press maxhdr\n\
                         UNIX      1024      3      -1   NI       0\n\
                         UDP       1024      9       2   NI       0\n\
                         TCPv6     2368      2       1   no     304\n\
                         TCP       2208      5       1   no     304\n";
        assert_eq!(count_sockets(protocols), Sockets { unix: 3, tcp: 7 });
        let row = "0: 0100007F:0C38 0100007F:D2F0 01 00000010:00000001 00:00000000 00000000";
        assert_eq!(queues(row), Some(17));
        assert_eq!(queues(""), None);
    }

    #[test]
    fn sizes_are_read_in_kilobytes() {
        let text = "Name:\tx\nRssAnon:\t     12 kB\nRssShmem: 3 kB\n";
        assert_eq!(kilobytes(text, "RssAnon:"), Some(12 << 10));
        assert_eq!(kilobytes(text, "RssFile:"), None);
    }
}
