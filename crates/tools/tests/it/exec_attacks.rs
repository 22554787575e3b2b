//! Escape attempts from the workspace, by a command and by a skill's script. None succeeds.

use crate::command_fixture::{CommandFixture, FixtureOptions};
use crate::support::SECRET;
use serde_json::json;
use std::net::TcpListener;
use std::path::Path;
use std::process::Stdio;

/// Shell scripts that try to escape, but do no harm to the machine if they succeed. A successful one prints the secret
/// or leaves a trace. `$O` is the folder outside, `$D` lango's data, `$W` the workspace, `$H` a process of the host,
/// and `$P` a port on which the host listens.
const ATTACKS: [&str; 36] = [
    // Reading files next to the workspace.
    "cat ../outside/secret.txt",
    "cat $O/secret.txt",
    "cat sub/../../outside/secret.txt",
    "cd ..; cat outside/secret.txt; ls -la; cat */secret.txt",
    "cat host-link/secret.txt host-file relative-link/secret.txt",
    "ln -s $O fresh; cat fresh/secret.txt",
    "ln $O/secret.txt hard && cat hard",
    "cp -r ../outside copy; cp $O/secret.txt copy.txt; cat copy/secret.txt copy.txt",
    "tar cf - -C $O . | tar xf - -O",
    "find .. /tmp /home /root /var/tmp /mnt /media -name secret.txt -exec cat {} +",
    // Through the process table.
    "cat /proc/self/root$O/secret.txt",
    "cat /proc/1/root$O/secret.txt",
    "for p in /proc/[0-9]*; do cat $p/root$O/secret.txt $p/cwd/../outside/secret.txt; done",
    "cat /proc/$H/root$O/secret.txt; cat /proc/$H/environ /proc/*/environ | grep -ao CARGO_MANIFEST",
    "cat /proc/self/fd/*/../secret.txt; for f in /proc/*/fd/*; do cat $f/outside/secret.txt $f/../outside/secret.txt; done",
    "kill -0 $H && echo the secret outside; kill -9 $H",
    // lango's own folder and the machine's secrets.
    "cat $D/key; ls $D; cat $D/outputs/*",
    "cat /etc/shadow | grep root: && echo the secret outside",
    "env | grep -E 'CARGO|RUST' && echo the secret outside",
    // Writing.
    "echo x > ../outside/written; echo x >> $O/secret.txt; rm -rf $O; mv $O/secret.txt .; cat secret.txt",
    "touch /etc/lango-attack /usr/lango-attack /lango-attack /var/lango-attack $HOME/../lango-attack",
    "ln -s ../outside/written door; echo x > door; echo x > host-link/written; truncate -s 0 host-file",
    "mv $W $W.moved; rmdir $W; mkdir ../beside; touch ../beside/x",
    "rm -f $D/key; echo x > $D/outputs/planted.out",
    // Files that other programs run later.
    "mkdir -p .git/hooks; echo 'echo bad' > .git/hooks/pre-commit; chmod +x .git/hooks/pre-commit",
    "echo '[core] pager = bad' >> .git/config; rm -rf .git; mv .git git-away; mv git-away .git",
    "ln -sfn /tmp .git; mkdir other && mv other .git; cp -r .git/. planted-git",
    "mkdir -p deep/er; mkdir deep/er/.git; echo x > deep/er/.git/config; echo K=1 > .env; echo K=1 > deep/.env.local",
    "mkdir .lango; echo 'x = 1' > lango.toml; ln -s /tmp .GIT; echo x > .Env",
    // Mounts, namespaces, devices.
    "mkdir m; mount -t tmpfs none m && echo the secret outside",
    "unshare -Urm sh -c \"mount --bind / /mnt; cat /mnt$O/secret.txt $O/secret.txt\"; chroot / cat $O/secret.txt",
    "nsenter -t 1 -a cat $O/secret.txt; nsenter -t $H -m cat $O/secret.txt",
    "mknod disk b 8 0 && head -c 1 disk && echo the secret outside",
    "for f in /proc/sysrq-trigger /proc/sys/kernel/core_pattern; do : >> $f && echo the secret outside; done",
    // Open descriptors, and the network.
    "python3 -c 'import os\nfor fd in range(1024):\n  for p in (\"../outside/secret.txt\",\"outside/secret.txt\",\"secret.txt\"):\n    try: print(os.read(os.open(p,os.O_RDONLY,dir_fd=fd),99))\n    except OSError: pass'",
    "python3 -c 'import socket,sys\ntry: print(socket.create_connection((\"127.0.0.1\",int(sys.argv[1])),2).recv(99))\nexcept OSError as e: print(e)' $P",
];

/// Runs every attack with `run`, which returns its output, and checks after each that nothing outside has changed.
fn try_all(fixture: &CommandFixture, run: impl Fn(&str) -> String) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let mut host = HostProcess::start();
    let root = fixture.path("");
    let root = root.to_str().unwrap().trim_end_matches('/');
    let variables = format!(
        "O={root}/outside D={root}/data W={root}/workspace H={} P={}\n",
        host.0.id(),
        listener.local_addr().unwrap().port()
    );
    // The first command creates lango's folder for outputs.
    prepare(fixture);
    run("true");
    for attack in ATTACKS {
        prepare(fixture);
        let before = tree(&fixture.path(""));
        let printed = run(&format!("{variables}{attack}"));
        assert!(!printed.contains(SECRET), "{attack}\n{printed}");
        assert!(!printed.contains("CARGO_MANIFEST"), "{attack}\n{printed}");
        // Nothing has changed except lango's outputs and unprotected files in the workspace.
        let after = tree(&fixture.path(""));
        assert_eq!(after, before, "{attack}\n{printed}");
        assert!(host.0.try_wait().unwrap().is_none(), "{attack}\n{printed}");
        let refused = listener.accept().unwrap_err();
        assert_eq!(refused.kind(), std::io::ErrorKind::WouldBlock, "{attack}");
        for folder in ["/etc", "/usr", "/", "/var"] {
            let planted = Path::new(folder).join("lango-attack");
            assert!(!planted.exists(), "{attack}\n{printed}");
        }
    }
}

/// A process of the host that no command may reach.
struct HostProcess(std::process::Child);

impl HostProcess {
    fn start() -> Self {
        let mut command = std::process::Command::new("sleep");
        command.arg("1000").stdin(Stdio::null());
        Self(
            command
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .spawn()
                .unwrap(),
        )
    }
}

impl Drop for HostProcess {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Resets the workspace and creates files that attacks can use.
fn prepare(fixture: &CommandFixture) {
    let workspace = fixture.inside("");
    for entry in std::fs::read_dir(&workspace).unwrap().flatten() {
        let removed = if entry.file_type().unwrap().is_dir() {
            std::fs::remove_dir_all(entry.path())
        } else {
            std::fs::remove_file(entry.path())
        };
        removed.unwrap();
    }
    std::fs::create_dir_all(fixture.inside("sub")).unwrap();
    std::fs::create_dir_all(fixture.inside(".git/hooks")).unwrap();
    std::fs::write(fixture.inside(".git/config"), "[core]\n").unwrap();
    for (target, link) in [
        (fixture.path("outside"), "host-link"),
        (fixture.path("outside/secret.txt"), "host-file"),
        ("../outside".into(), "relative-link"),
    ] {
        std::os::unix::fs::symlink(target, fixture.inside(link)).unwrap();
    }
}

/// Lists every path outside of the workspace and every protected path in it, with the content of files.
fn tree(root: &Path) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut folders = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap().flatten() {
            let path = entry.path();
            let name = path
                .strip_prefix(root)
                .unwrap()
                .to_str()
                .unwrap()
                .to_owned();
            let inside = name.starts_with("workspace/");
            let is_protected = lango_sandbox::protection_of_path(&path).is_some();
            if entry.file_type().unwrap().is_dir() {
                folders.push(path.clone());
            }
            if (!inside || is_protected) && !name.starts_with("data/outputs/t_1-") {
                let content = std::fs::read(&path).unwrap_or_default();
                found.push((name, String::from_utf8_lossy(&content).into_owned()));
            }
        }
    }
    found.sort();
    found
}

#[test]
fn no_command_escapes_from_the_workspace() {
    let fixture = CommandFixture::new();
    fixture.text("exec", json!({"command": "true"}));
    try_all(&fixture, |attack| {
        fixture.text("exec", json!({"command": attack, "timeout_s": 20}))
    });
}

#[test]
fn no_script_of_a_skill_escapes_from_the_workspace() {
    let fixture = CommandFixture::with(FixtureOptions {
        skills: vec![("attack", vec![("scripts/attack.sh", String::new())])],
        ..FixtureOptions::default()
    });
    let script = fixture.path("skills/attack/scripts/attack.sh");
    try_all(&fixture, |attack| {
        // The skill itself is readable but not writable.
        let own =
            "touch $W/../skills/attack/planted; echo x >> $W/../skills/attack/scripts/attack.sh";
        let text = format!("{attack}\n{own}\n");
        std::fs::write(&script, &text).unwrap();
        let printed = fixture.text("skill_attack", json!({"script": "scripts/attack.sh"}));
        assert_eq!(std::fs::read_to_string(&script).unwrap(), text, "{attack}");
        std::fs::write(&script, "").unwrap();
        printed
    });
}

#[test]
fn protected_files_that_a_command_creates_are_removed_and_reported() {
    let fixture = CommandFixture::new();
    let text = fixture.text(
        "exec",
        json!({"command": "mkdir sub; echo K=1 > sub/.env; mkdir .git"}),
    );
    assert!(
        !fixture.inside(".git").exists() && !fixture.inside("sub/.env").exists(),
        "{text}"
    );
    assert!(fixture.inside("sub").exists());
    let remark = text.lines().last().unwrap();
    assert!(
        remark
            .ends_with("moved to the trash, because other programs act on files with these names]"),
        "{text}"
    );
    assert!(
        remark.contains(".git") && remark.contains("sub/.env"),
        "{text}"
    );
}

#[test]
fn a_command_can_write_in_the_workspace_and_in_opened_folders() {
    let fixture = CommandFixture::with(FixtureOptions {
        policy: Some(|policy, root| policy.write = vec![root.join("outside")]),
        ..FixtureOptions::default()
    });
    let outside = fixture.path("outside");
    let line = format!(
        "echo a > here; echo b > {}/there; cat {}/secret.txt",
        outside.display(),
        outside.display()
    );
    let text = fixture.text("exec", json!({"command": line}));
    assert!(text.ends_with(&format!("{SECRET}\n")), "{text}");
    assert_eq!(
        std::fs::read_to_string(fixture.inside("here")).unwrap(),
        "a\n"
    );
    assert_eq!(
        std::fs::read_to_string(outside.join("there")).unwrap(),
        "b\n"
    );
}

#[test]
fn the_network_is_open_only_if_the_policy_says_so() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let connect = format!(
        "import socket; socket.create_connection(('127.0.0.1', {}), 5); print('connected')",
        listener.local_addr().unwrap().port()
    );
    let arguments = json!({"argv": ["python3", "-c", connect]});
    let closed = CommandFixture::new().text("exec", arguments.clone());
    assert!(
        closed.starts_with("exit code 1 ") && closed.contains("Error: "),
        "{closed}"
    );
    let open = CommandFixture::with(FixtureOptions {
        policy: Some(|policy, _| policy.network = lango_sandbox::Network::Host),
        ..FixtureOptions::default()
    });
    assert!(open.text("exec", arguments).ends_with("\nconnected\n"));
}
