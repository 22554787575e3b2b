//! What the kernel writes down about processes and memory, read from `/proc`.

use std::fs;
use std::path::Path;

/// One process, as `/proc/PID/stat` says.
pub(super) struct Process {
    pub(super) pid: i32,
    pub(super) parent: i32,
    pub(super) threads: u64,
    pub(super) is_gone: bool,
}

/// What is written down about a process, if there is one of this number.
pub(super) fn process(pid: i32) -> Option<Process> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name in brackets may hold anything, brackets too.
    let (_, fields) = text.rsplit_once(')')?;
    let fields: Vec<&str> = fields.split_whitespace().collect();
    Some(Process {
        pid,
        parent: fields.get(1)?.parse().ok()?,
        threads: fields.get(17)?.parse().ok()?,
        is_gone: matches!(*fields.first()?, "Z" | "X"),
    })
}

/// Whether a process is there and not just a remainder.
pub(super) fn process_is_there(pid: i32) -> bool {
    process(pid).is_some_and(|process| !process.is_gone)
}

/// What a process holds in memory that is not backed by a file on disk, tables of the kernel included.
pub(super) fn held(pid: i32) -> u64 {
    let text = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let field = |name| kilobytes(&text, name).unwrap_or(0);
    field("RssAnon:") + field("RssShmem:") + field("VmPTE:")
}

/// The same, with pages that several processes share divided among them. Takes the kernel some time to find out.
pub(super) fn share(pid: i32) -> u64 {
    let text = fs::read_to_string(format!("/proc/{pid}/smaps_rollup"));
    let field = |name| text.as_ref().ok().and_then(|text| kilobytes(text, name));
    match (field("Pss_Anon:"), field("Pss_Shmem:")) {
        (Some(own), Some(shared)) => own + shared + tables(pid),
        _ => held(pid),
    }
}

/// What the kernel needs to find the pages of a process.
fn tables(pid: i32) -> u64 {
    let text = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    kilobytes(&text, "VmPTE:").unwrap_or(0)
}

/// How many sockets there are in one network namespace.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Sockets {
    /// Of this machine's own kind.
    pub(super) unix: u64,
    pub(super) tcp: u64,
}

/// How many sockets there are in the network namespace of a process.
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

/// How much lies in the TCP sockets of a process's network namespace, sent and not received. Takes the kernel some time.
pub(super) fn queued(pid: i32) -> u64 {
    let read = |name| fs::read_to_string(format!("/proc/{pid}/net/{name}")).unwrap_or_default();
    let texts = [read("tcp"), read("tcp6")];
    let rows = texts.iter().flat_map(|text| text.lines().skip(1));
    rows.filter_map(queues).sum()
}

/// The two queues of a row, which are written in hexadecimal digits with a colon between.
fn queues(row: &str) -> Option<u64> {
    let (sent, received) = row.split_whitespace().nth(4)?.split_once(':')?;
    let bytes = |digits| u64::from_str_radix(digits, 16).ok();
    Some(bytes(sent)? + bytes(received)?)
}

/// Which network namespace a process is in, if that can be seen.
pub(super) fn network_namespace(pid: i32) -> Option<u64> {
    use std::os::unix::fs::MetadataExt;
    let metadata = fs::metadata(format!("/proc/{pid}/ns/net")).ok()?;
    Some(metadata.ino())
}

/// How many bytes a process had written to disks.
pub(super) fn account(pid: i32) -> Option<u64> {
    let text = fs::read_to_string(format!("/proc/{pid}/io")).ok()?;
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("write_bytes: "))?;
    line.trim().parse().ok()
}

/// How much can still be written there.
pub(super) fn room(path: &Path) -> u64 {
    rustix::fs::statvfs(path).map_or(u64::MAX, |numbers| numbers.f_bavail * numbers.f_frsize)
}

/// How much of a file system is in use.
pub(super) fn used(path: &Path) -> u64 {
    rustix::fs::statvfs(path).map_or(0, |numbers| {
        numbers.f_blocks.saturating_sub(numbers.f_bfree) * numbers.f_frsize
    })
}

/// How much the shared segments of this namespace hold.
pub(super) fn segments() -> u64 {
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
