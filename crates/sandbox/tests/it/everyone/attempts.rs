//! All that is tried: what must be refused, and what must work all the same.

/// One row of the battery.
pub(crate) struct Row {
    pub(crate) name: &'static str,
    pub(crate) run: Run,
    pub(crate) must: Must,
}

/// How it is tried.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Run {
    /// By the prober, with these words.
    Prober(&'static str),
    /// By a shell; it was possible if this ends well.
    Shell(&'static str),
}

/// What must come of it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Must {
    Fail,
    Work,
    /// It may be done, and what it made is taken away after the command.
    BeUndone(&'static str),
}

const fn held(name: &'static str, run: Run) -> Row {
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
    held("read a file outside", Shell("cat {out}/secret")),
    held("write a new file outside", Shell("echo x > {out}/new")),
    held("change a file outside", Shell("echo x > {out}/secret")),
    held("list a folder outside", Shell("ls {out}")),
    held(
        "read a key of the person",
        Shell("cat {out}/home/.ssh/id_ed25519"),
    ),
    held("read lango's data base", Shell("cat {out}/lango.db")),
    held(
        "read a hidden file in the workspace",
        Shell("cat {ws}/private/lango.db"),
    ),
    held(
        "write into a hidden folder",
        Shell("echo x > {ws}/private/new"),
    ),
    held(
        "move a hidden folder",
        Prober("rename {ws}/deep/down/private {ws}/seen"),
    ),
    held(
        "move what a hidden folder lies in",
        Prober("rename {ws}/deep/down {ws}/seen"),
    ),
    held(
        "move all that a hidden folder lies in",
        Prober("rename {ws}/deep {ws}/seen"),
    ),
    held(
        "move what the policy keeps",
        Prober("rename {ws}/team {ws}/other"),
    ),
    held("read the password file", Shell("cat /etc/shadow")),
    held(
        "read through a symbolic link",
        Shell("ln -s {out}/secret l && cat l"),
    ),
    held(
        "write through a symbolic link",
        Shell("ln -s {out} d && echo x > d/new"),
    ),
    held(
        "link a file outside into the workspace",
        Prober("link {out}/secret {ws}/hard"),
    ),
    held(
        "rename a file outside into the workspace",
        Prober("rename {out}/secret {ws}/stolen"),
    ),
    held(
        "rename a file out of the workspace",
        Prober("rename {ws}/file {out}/moved"),
    ),
    held("go up by dots", Shell("cat {ws}/../outside/secret")),
    held("see that a file outside exists", Shell("stat {out}/secret")),
    held(
        "change the mode of a folder outside",
        Shell("chmod 777 {out}"),
    ),
    held(
        "change the owner of a folder outside",
        Shell("chown 1000:1000 {out}"),
    ),
    held(
        "read the machine's temporary files",
        Shell("cat {host-file}"),
    ),
    held(
        "write a program of the system",
        Shell("echo x > /usr/bin/lango-test"),
    ),
    held(
        "write a setting of the system",
        Shell("echo x > /etc/lango-test"),
    ),
    held("write into the root folder", Shell("echo x > /lango-test")),
    held(
        "write into the folder of devices",
        Shell("echo x > /dev/lango-test"),
    ),
    held("run the inner helper", Shell("/.lango; test $? -eq 2")),
    // The kernel's own files.
    held(
        "read the environment of lango",
        Shell("cat /proc/{pid}/environ"),
    ),
    held(
        "read the environment of the guard",
        Shell("cat /proc/1/environ"),
    ),
    held("see the disk through the guard", Shell("ls /proc/1/root/")),
    held(
        "see what the guard has open",
        Shell("readlink /proc/1/fd/*"),
    ),
    held(
        "open the memory of the guard",
        Prober("open-for-writing /proc/1/mem"),
    ),
    held(
        "write a setting of the kernel",
        Prober("open-for-writing /proc/sys/kernel/core_pattern"),
    ),
    held(
        "press a magic key",
        Prober("open-for-writing /proc/sysrq-trigger"),
    ),
    held(
        "read the memory of the kernel",
        Prober("open-for-reading /proc/kcore"),
    ),
    held("read the kernel's log", Prober("kernel-log")),
    held("see the machine's parts", Shell("ls /sys/kernel")),
    held("see other processes", Prober("processes - 4")),
    // Sockets.
    held("connect to a port of this machine", Prober("tcp {port}")),
    held("make a socket of the newer internet", Prober("tcp6")),
    held("make a datagram socket", Prober("udp")),
    held("make a raw socket", Prober("raw")),
    held("make a packet socket", Prober("packet")),
    held("make a netlink socket", Prober("netlink")),
    held("make a socket to the host of this machine", Prober("vsock")),
    held("make a socket to the kernel's ciphers", Prober("crypto")),
    held("connect to a socket outside", Prober("unix {out}/socket")),
    held(
        "connect to an abstract socket outside",
        Prober("abstract {abstract}"),
    ),
    held(
        "be given a descriptor from outside",
        Prober("descriptor-from-outside {out}/rights"),
    ),
    // Processes.
    held("trace the guard", Prober("trace 1")),
    held("trace lango", Prober("trace {pid}")),
    held("read the memory of the guard", Prober("read-memory-of 1")),
    held("read the memory of lango", Prober("read-memory-of {pid}")),
    held("signal the guard", Prober("signal 1")),
    held("signal lango", Prober("signal {pid}")),
    held("take a descriptor of the guard", Prober("descriptor-of 1")),
    held("become root", Prober("become-root")),
    held(
        "run as root by a program's mode",
        Shell("cp /usr/bin/id i && chmod 4755 i && test $(./i -u) = 0"),
    ),
    held("have capabilities", Prober("capabilities")),
    held("gain privileges", Prober("new-privileges")),
    held("hide from the guard", Prober("hide-from-guard")),
    held("have descriptors of lango", Prober("descriptors")),
    held("have variables of lango", Prober("environment")),
    // Namespaces and mounts.
    held("make a user namespace", Prober("unshare-user")),
    held("make a mount namespace", Prober("unshare-mounts")),
    held("make a network namespace", Prober("unshare-network")),
    held("make a user namespace with a process", Prober("clone-user")),
    held(
        "make one with a process, the newer way",
        Prober("clone3-user"),
    ),
    held("enter a namespace", Prober("setns")),
    held("mount a file system", Prober("mount-tmpfs {ws}")),
    held("mount a folder over another", Prober("mount-bind / {ws}")),
    held(
        "make a mount writable again",
        Prober("remount-writable /usr"),
    ),
    held(
        "take away the mount of what is kept",
        Prober("umount {ws}/.git"),
    ),
    held("change the root", Prober("pivot-root {ws}")),
    held("change the root the old way", Prober("chroot {ws}")),
    held("open a new file system", Prober("fsopen")),
    held("copy a tree of mounts", Prober("open-tree /")),
    // Devices and corners of the kernel.
    held("make a device", Prober("mknod {ws}/disk")),
    held(
        "open the machine's memory",
        Prober("open-for-reading /dev/mem"),
    ),
    held(
        "open a raw disk",
        Shell("for d in /dev/vda /dev/sda /dev/nvme0n1; do head -c1 $d && exit 0; done; exit 1"),
    ),
    held("set up an io_uring", Prober("io-uring")),
    held("load a program into the kernel", Prober("bpf")),
    held("count events of the machine", Prober("perf")),
    held("handle page faults", Prober("userfaultfd")),
    held("open files by number", Prober("handle {ws}/file")),
    held("add a key to a keyring", Prober("add-key")),
    held("ask for a keyring", Prober("keyctl")),
    held("change the personality", Prober("personality")),
    held("call by the other numbering", Prober("other-numbering")),
    held(
        "call by the other architecture",
        Prober("other-architecture"),
    ),
    held("type into a terminal", Prober("type-into-terminal")),
    held("name the machine", Prober("set-host-name")),
    held("reserve room on disk", Prober("fallocate {ws}/room")),
    // What is kept.
    held(
        "write a hook of the repository",
        Shell("echo x > .git/hooks/pre-commit"),
    ),
    held(
        "change the settings of the repository",
        Shell("echo x >> .git/config"),
    ),
    held(
        "rename the repository's inside",
        Prober("rename {ws}/.git {ws}/old"),
    ),
    held(
        "replace the repository's inside",
        Shell("mkdir n && mv -T n .git"),
    ),
    held(
        "delete the repository's inside",
        Shell("rm -rf .git/hooks .git/HEAD"),
    ),
    held(
        "write a hook of a nested repository",
        Shell("mkdir sub/.git/hooks"),
    ),
    held(
        "replace a nested repository with its folder",
        Prober("rename {ws}/sub {ws}/gone"),
    ),
    held(
        "change a linked repository's inside",
        Shell("echo x >> gitdirs/tree/config"),
    ),
    held(
        "lead a linked repository elsewhere",
        Shell("echo 'gitdir: /tmp' > tree/.git"),
    ),
    held("write a file of secrets", Shell("echo x >> .env")),
    held("write lango's settings", Shell("echo x >> settings.toml")),
    undone(
        "make a repository",
        "workspace/new/.git",
        Shell("mkdir -p new/.git/hooks && echo x > new/.git/hooks/pre-commit"),
    ),
    undone(
        "make a repository deep down",
        "workspace/a/b/c/.git",
        Shell("mkdir -p a/b/c/.git"),
    ),
    undone(
        "make lango's settings",
        "workspace/lango.toml",
        Shell("echo x > lango.toml"),
    ),
    undone(
        "make a file of secrets by a link",
        "workspace/.env.local",
        Shell("ln -s /etc/passwd .env.local"),
    ),
    // What must work.
    works(
        "write beside what is hidden",
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
        "read what is kept",
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
        "run a script of its own",
        Shell("printf '#!/bin/sh\\nexit 0\\n' > s && chmod +x s && ./s"),
    ),
    works("use sockets inside", Prober("unix-inside {ws}/socket")),
    works("start a few threads", Prober("threads 8")),
];
