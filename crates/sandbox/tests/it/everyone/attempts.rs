//! All attempts of the battery: those that must be refused, and ordinary uses that must work.

/// One row of the battery.
pub(crate) struct Row {
    pub(crate) name: &'static str,
    pub(crate) run: Run,
    pub(crate) must: Must,
}

/// How an attempt is made.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Run {
    /// By the prober, with these arguments.
    Prober(&'static str),
    /// By a shell script, which succeeds if the attempt was possible.
    Shell(&'static str),
}

/// The required result of an attempt.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Must {
    Fail,
    Work,
    /// The attempt may succeed, but the clean-up must remove the path that it created.
    BeUndone(&'static str),
}

const fn refused(name: &'static str, run: Run) -> Row {
    let must = Must::Fail;
    Row { name, run, must }
}

const fn works(name: &'static str, run: Run) -> Row {
    let must = Must::Work;
    Row { name, run, must }
}

const fn undone(name: &'static str, made: &'static str, run: Run) -> Row {
    let must = Must::BeUndone(made);
    Row { name, run, must }
}

use Run::{Prober, Shell};

pub(crate) const ROWS: &[Row] = &[
    // Files outside.
    refused("read a file outside", Shell("cat {out}/secret")),
    refused("write a new file outside", Shell("echo x > {out}/new")),
    refused("change a file outside", Shell("echo x > {out}/secret")),
    refused("list a folder outside", Shell("ls {out}")),
    refused(
        "read a key of the user",
        Shell("cat {out}/home/.ssh/id_ed25519"),
    ),
    refused("read lango's database", Shell("cat {out}/lango.db")),
    refused(
        "read a hidden file in the workspace",
        Shell("cat {ws}/private/lango.db"),
    ),
    refused(
        "write into a hidden folder",
        Shell("echo x > {ws}/private/new"),
    ),
    refused(
        "move a hidden folder",
        Prober("rename {ws}/deep/down/private {ws}/seen"),
    ),
    refused(
        "move the parent of a hidden folder",
        Prober("rename {ws}/deep/down {ws}/seen"),
    ),
    refused(
        "move the grandparent of a hidden folder",
        Prober("rename {ws}/deep {ws}/seen"),
    ),
    refused(
        "move the parent of a read-only folder",
        Prober("rename {ws}/team {ws}/other"),
    ),
    refused("read the password file", Shell("cat /etc/shadow")),
    refused(
        "read through a symbolic link",
        Shell("ln -s {out}/secret l && cat l"),
    ),
    refused(
        "write through a symbolic link",
        Shell("ln -s {out} d && echo x > d/new"),
    ),
    refused(
        "link a file outside into the workspace",
        Prober("link {out}/secret {ws}/hard"),
    ),
    refused(
        "rename a file outside into the workspace",
        Prober("rename {out}/secret {ws}/stolen"),
    ),
    refused(
        "rename a file out of the workspace",
        Prober("rename {ws}/file {out}/moved"),
    ),
    refused("go up by dots", Shell("cat {ws}/../outside/secret")),
    refused("see that a file outside exists", Shell("stat {out}/secret")),
    refused(
        "change the mode of a folder outside",
        Shell("chmod 777 {out}"),
    ),
    refused(
        "change the owner of a folder outside",
        Shell("chown 1000:1000 {out}"),
    ),
    refused(
        "read the machine's temporary files",
        Shell("cat {host-file}"),
    ),
    refused(
        "write a program of the system",
        Shell("echo x > /usr/bin/lango-test"),
    ),
    refused(
        "write a setting of the system",
        Shell("echo x > /etc/lango-test"),
    ),
    refused("write into the root folder", Shell("echo x > /lango-test")),
    refused(
        "write into the device folder",
        Shell("echo x > /dev/lango-test"),
    ),
    refused("run the inner helper", Shell("/.lango; test $? -eq 2")),
    // Files of the kernel.
    refused(
        "read the environment of lango",
        Shell("cat /proc/{pid}/environ"),
    ),
    refused(
        "read the environment of the guard",
        Shell("cat /proc/1/environ"),
    ),
    refused(
        "see the file system through the guard",
        Shell("ls /proc/1/root/"),
    ),
    refused(
        "see what the guard has open",
        Shell("readlink /proc/1/fd/*"),
    ),
    refused(
        "open the memory of the guard",
        Prober("open-for-writing /proc/1/mem"),
    ),
    refused(
        "write a setting of the kernel",
        Prober("open-for-writing /proc/sys/kernel/core_pattern"),
    ),
    refused(
        "send a magic SysRq key",
        Prober("open-for-writing /proc/sysrq-trigger"),
    ),
    refused(
        "read the memory of the kernel",
        Prober("open-for-reading /proc/kcore"),
    ),
    refused("read the kernel's log", Prober("kernel-log")),
    refused("see the machine's devices", Shell("ls /sys/kernel")),
    refused("see other processes", Prober("processes - 4")),
    // Sockets.
    refused("connect to a port of this machine", Prober("tcp {port}")),
    refused("create an IPv6 socket", Prober("tcp6")),
    refused("create a datagram socket", Prober("udp")),
    refused("create a raw socket", Prober("raw")),
    refused("create a packet socket", Prober("packet")),
    refused("create a netlink socket", Prober("netlink")),
    refused("create a socket to the hypervisor", Prober("vsock")),
    refused(
        "create a socket to the kernel's crypto API",
        Prober("crypto"),
    ),
    refused("connect to a socket outside", Prober("unix {out}/socket")),
    refused(
        "connect to an abstract socket outside",
        Prober("abstract {abstract}"),
    ),
    refused(
        "receive a descriptor from outside",
        Prober("descriptor-from-outside {out}/rights"),
    ),
    // Processes.
    refused("trace the guard", Prober("trace 1")),
    refused("trace lango", Prober("trace {pid}")),
    refused("read the memory of the guard", Prober("read-memory-of 1")),
    refused("read the memory of lango", Prober("read-memory-of {pid}")),
    refused("signal the guard", Prober("signal 1")),
    refused("signal lango", Prober("signal {pid}")),
    refused("take a descriptor of the guard", Prober("descriptor-of 1")),
    refused("become root", Prober("become-root")),
    refused(
        "run as root with a setuid program",
        Shell("cp /usr/bin/id i && chmod 4755 i && test $(./i -u) = 0"),
    ),
    refused("have capabilities", Prober("capabilities")),
    refused("gain privileges", Prober("new-privileges")),
    refused("hide from the guard", Prober("hide-from-guard")),
    refused("have descriptors of lango", Prober("descriptors")),
    refused("have variables of lango", Prober("environment")),
    // Namespaces and mounts.
    refused("create a user namespace", Prober("unshare-user")),
    refused("create a mount namespace", Prober("unshare-mounts")),
    refused("create a network namespace", Prober("unshare-network")),
    refused("create a user namespace with clone", Prober("clone-user")),
    refused("create a user namespace with clone3", Prober("clone3-user")),
    refused("enter a namespace", Prober("setns")),
    refused("mount a file system", Prober("mount-tmpfs {ws}")),
    refused("mount a folder over another", Prober("mount-bind / {ws}")),
    refused(
        "make a mount writable again",
        Prober("remount-writable /usr"),
    ),
    refused(
        "unmount the cover of a protected folder",
        Prober("umount {ws}/.git"),
    ),
    refused("change the root with pivot_root", Prober("pivot-root {ws}")),
    refused("change the root with chroot", Prober("chroot {ws}")),
    refused("open a new file system", Prober("fsopen")),
    refused("copy a tree of mounts", Prober("open-tree /")),
    // Devices and rarely used parts of the kernel.
    refused("create a device", Prober("mknod {ws}/disk")),
    refused(
        "open the machine's memory",
        Prober("open-for-reading /dev/mem"),
    ),
    refused(
        "open a raw disk",
        Shell("for d in /dev/vda /dev/sda /dev/nvme0n1; do head -c1 $d && exit 0; done; exit 1"),
    ),
    refused("set up an io_uring", Prober("io-uring")),
    refused("load a program into the kernel", Prober("bpf")),
    refused("read performance counters", Prober("perf")),
    refused("handle page faults", Prober("userfaultfd")),
    refused("open files by handle", Prober("handle {ws}/file")),
    refused("add a key to a keyring", Prober("add-key")),
    refused("read a keyring", Prober("keyctl")),
    refused("change the personality", Prober("personality")),
    refused("make an x32 system call", Prober("other-numbering")),
    refused("make a 32-bit system call", Prober("other-architecture")),
    refused("type into a terminal", Prober("type-into-terminal")),
    refused("change the host name", Prober("set-host-name")),
    refused("reserve disk space", Prober("fallocate {ws}/room")),
    // Protected files.
    refused(
        "write a hook of the repository",
        Shell("echo x > .git/hooks/pre-commit"),
    ),
    refused(
        "change the settings of the repository",
        Shell("echo x >> .git/config"),
    ),
    refused(
        "rename the repository's git directory",
        Prober("rename {ws}/.git {ws}/old"),
    ),
    refused(
        "replace the repository's git directory",
        Shell("mkdir n && mv -T n .git"),
    ),
    refused(
        "delete files of the repository's git directory",
        Shell("rm -rf .git/hooks .git/HEAD"),
    ),
    refused(
        "write a hook of a nested repository",
        Shell("mkdir sub/.git/hooks"),
    ),
    refused(
        "move the folder of a nested repository",
        Prober("rename {ws}/sub {ws}/gone"),
    ),
    refused(
        "change the git directory of a linked worktree",
        Shell("echo x >> gitdirs/tree/config"),
    ),
    refused(
        "redirect a linked worktree",
        Shell("echo 'gitdir: /tmp' > tree/.git"),
    ),
    refused("write an environment file", Shell("echo x >> .env")),
    refused("write lango's settings", Shell("echo x >> settings.toml")),
    undone(
        "create a repository",
        "workspace/new/.git",
        Shell("mkdir -p new/.git/hooks && echo x > new/.git/hooks/pre-commit"),
    ),
    undone(
        "create a repository in a deep folder",
        "workspace/a/b/c/.git",
        Shell("mkdir -p a/b/c/.git"),
    ),
    undone(
        "create lango's settings",
        "workspace/lango.toml",
        Shell("echo x > lango.toml"),
    ),
    undone(
        "create an environment file as a link",
        "workspace/.env.local",
        Shell("ln -s /etc/passwd .env.local"),
    ),
    // Ordinary uses.
    works(
        "write next to a hidden folder",
        Shell("echo x > deep/down/new && mkdir team/dir && mv team/dir deep/down"),
    ),
    works(
        "move a file between folders",
        Shell("mv src/code sub && mv sub/code src"),
    ),
    works(
        "write the workspace",
        Shell("echo x > new && mkdir -p d/e && mv new d/e && rm -r d"),
    ),
    works(
        "read and change a file of the workspace",
        Shell("echo more >> file && grep -q more file"),
    ),
    works(
        "read protected files",
        Shell("cat .git/HEAD .env settings.toml"),
    ),
    works(
        "write temporary files",
        Shell("echo x > /tmp/x && cat /tmp/x && echo x > /dev/shm/x && echo x > /dev/null"),
    ),
    works(
        "use pipes",
        Shell("seq 1 1000 | sort -n | tail -1 | grep -q 1000"),
    ),
    works("run git", Shell("git status --short | grep -q file")),
    works(
        "run python",
        Shell(
            "/usr/bin/python3 -c 'import json, subprocess; subprocess.run([\"true\"], check=True)'",
        ),
    ),
    works(
        "compile and run a program",
        Shell("echo 'int main(){return 0;}' | cc -x c - -o program && ./program"),
    ),
    works(
        "run a new script",
        Shell("printf '#!/bin/sh\\nexit 0\\n' > s && chmod +x s && ./s"),
    ),
    works("use sockets inside", Prober("unix-inside {ws}/socket")),
    works("start a few threads", Prober("threads 8")),
];
