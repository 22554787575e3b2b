//! Paths that try to reach forbidden files, and the directory tree they need. Only data, for every tool that takes a
//! path.
//!
//! In a path, `{workspace}` and `{outside}` stand for those folders, `{name}` for a name that is too long and `{path}`
//! for a path that is too long.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;
use std::path::Path;

/// Contents of files outside and of hidden files inside; they must not appear in any result.
pub(crate) const OUTSIDE_SECRET: &str = "canary of the outside";
pub(crate) const HIDDEN_SECRET: &str = "canary that is hidden";

/// A file name outside that no link mentions, so it appears only if the folder is listed.
pub(crate) const OUTSIDE_NAME: &str = "unspoken-name";

/// Content of protected files, which may be read.
pub(crate) const PROTECTED: &str = "protected content";

/// What a path tries to reach.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Aim {
    /// A file outside: every call must fail, except one on a link itself.
    Outside,
    /// A hidden file: the same.
    Hidden,
    /// A protected file: it may be read but not changed.
    Protected,
    /// A confusing path that stays inside the workspace.
    Inside,
}

/// One attack: its description, the path, and its aim.
pub(crate) type Attack = (&'static str, &'static str, Aim);

// One line per row, however long.
#[rustfmt::skip]
pub(crate) const ATTACKS: &[Attack] = &[
    ("the folder above", "..", Aim::Outside),
    ("dots", "../outside/secret.txt", Aim::Outside),
    ("dots after a dot", "./../outside/secret.txt", Aim::Outside),
    ("dots in the middle", "sub/../../outside/secret.txt", Aim::Outside),
    ("dots between dots", "sub/./.././../outside/secret.txt", Aim::Outside),
    ("out and in and out", "../workspace/../outside/secret.txt", Aim::Outside),
    ("double slashes", "..//outside//secret.txt", Aim::Outside),
    ("more dots than folders", "sub/../../../../../../../../../../../etc/passwd", Aim::Outside),
    ("dots to a folder", "../outside/", Aim::Outside),
    ("dots to a folder's dot", "../outside/.", Aim::Outside),
    ("dots to something new", "../outside/new.txt", Aim::Outside),
    ("dots to new folders", "sub/..//../outside/new/deep.txt", Aim::Outside),
    ("dots after what is missing", "missing/../../outside/secret.txt", Aim::Outside),
    ("dots after a file", "sub/inside.txt/../../../outside/secret.txt", Aim::Outside),
    ("dots at the end", "sub/../..", Aim::Outside),
    ("absolute file", "{outside}/secret.txt", Aim::Outside),
    ("absolute folder", "{outside}", Aim::Outside),
    ("absolute new file", "{outside}/new.txt", Aim::Outside),
    ("absolute system file", "/etc/passwd", Aim::Outside),
    ("the root", "/", Aim::Outside),
    ("the root twice", "//", Aim::Outside),
    ("double slash at the start", "//etc/passwd", Aim::Outside),
    ("a dot after the root", "/.{outside}/secret.txt", Aim::Outside),
    ("dots from the workspace's path", "{workspace}/../outside/secret.txt", Aim::Outside),
    ("dots deep in the workspace's path", "{workspace}/sub/../../outside/secret.txt", Aim::Outside),
    ("dots before the workspace's path", "/../..{outside}/secret.txt", Aim::Outside),
    ("a name that begins like the workspace's", "{workspace}-twin/secret.txt", Aim::Outside),
    ("that name by dots", "../workspace-twin/secret.txt", Aim::Outside),
    ("the root of a process", "/proc/self/root{outside}/secret.txt", Aim::Outside),
    ("the folder of a process", "/proc/self/cwd", Aim::Outside),
    ("an open file of a process", "/proc/self/fd/3", Aim::Outside),
    ("an open file", "/dev/fd/3", Aim::Outside),
    ("an input", "/dev/stdin", Aim::Outside),
    ("a device by its path", "/dev/zero", Aim::Outside),
    ("the variables of a process", "/proc/self/environ", Aim::Outside),
    ("the memory of a process", "/proc/self/mem", Aim::Outside),
    ("the root of another process", "/proc/1/root/etc/passwd", Aim::Outside),
    ("link to a file", "to-file", Aim::Outside),
    ("relative link to a file", "to-file-relative", Aim::Outside),
    ("link to a file with a slash", "to-file/", Aim::Outside),
    ("link to a file with a dot", "to-file/.", Aim::Outside),
    ("link to a folder", "to-folder", Aim::Outside),
    ("through a link to a folder", "to-folder/secret.txt", Aim::Outside),
    ("something new through a link", "to-folder/new.txt", Aim::Outside),
    ("new folders through a link", "to-folder/new/deep.txt", Aim::Outside),
    ("dots behind a link", "to-folder/../outside/secret.txt", Aim::Outside),
    ("slashes behind a link", "to-folder///secret.txt", Aim::Outside),
    ("link to the folder above", "to-above/outside/secret.txt", Aim::Outside),
    ("chain of links", "chain-1/secret.txt", Aim::Outside),
    ("link in a folder", "sub/to-folder/secret.txt", Aim::Outside),
    ("link with dots through the inside", "to-dots/secret.txt", Aim::Outside),
    ("absolute link with dots", "to-absolute-dots/secret.txt", Aim::Outside),
    ("link to itself", "loop", Aim::Outside),
    ("links to each other", "loop-a/secret.txt", Aim::Outside),
    ("dots behind a loop", "loop/../../outside/secret.txt", Aim::Outside),
    ("link to the root", "to-root/etc/passwd", Aim::Outside),
    ("link to the root of a process", "to-process/etc/passwd", Aim::Outside),
    ("link to the folder of a process", "to-cwd/Cargo.toml", Aim::Outside),
    ("link to an open file", "to-open-file", Aim::Outside),
    ("link to a device", "to-device", Aim::Outside),
    ("link to a name that begins like the workspace's", "to-twin/secret.txt", Aim::Outside),
    ("link to what is missing outside", "to-missing", Aim::Outside),
    ("through a link to what is missing", "to-missing-folder/x.txt", Aim::Outside),
    ("a file as a folder", "to-file/x", Aim::Outside),
    ("hidden file", "hidden/key.txt", Aim::Hidden),
    ("hidden folder", "hidden", Aim::Hidden),
    ("hidden file by dots", "sub/../hidden/key.txt", Aim::Hidden),
    ("hidden file by an absolute path", "{workspace}/hidden/key.txt", Aim::Hidden),
    ("through a link to a hidden folder", "to-hidden/key.txt", Aim::Hidden),
    ("link to a hidden file", "to-key", Aim::Hidden),
    ("out of a hidden folder", "hidden/../sub/inside.txt", Aim::Hidden),
    ("something new in a hidden folder", "hidden/new.txt", Aim::Hidden),
    ("new folders in a hidden folder", "hidden/new/deep.txt", Aim::Hidden),
    ("hidden file in an open folder", "holder/key.txt", Aim::Hidden),
    ("folder that contains a hidden file", "holder", Aim::Inside),
    ("repository's hook", ".git/hooks/pre-commit", Aim::Protected),
    ("repository's settings", ".git/config", Aim::Protected),
    ("repository in capitals", ".GIT/config", Aim::Protected),
    ("repository in some capitals", ".Git/hooks/pre-commit", Aim::Protected),
    ("repository by dots", "sub/../.git/config", Aim::Protected),
    ("repository by dots inside it", ".git/./hooks/../config", Aim::Protected),
    ("repository by an absolute path", "{workspace}/.git/config", Aim::Protected),
    ("repository itself", ".git", Aim::Protected),
    ("repository itself with a slash", ".git/", Aim::Protected),
    ("through a link to a repository", "to-git/config", Aim::Protected),
    ("through a link to its hooks", "to-hooks/pre-commit", Aim::Protected),
    ("something new through that link", "to-hooks/post-commit", Aim::Protected),
    ("new folders through that link", "to-git/new/deep", Aim::Protected),
    ("through links to links to a repository", "to-git-chain/config", Aim::Protected),
    ("new repository", "fresh/.git/config", Aim::Protected),
    ("repository in a folder", "repo/.git/config", Aim::Protected),
    ("folder that contains a repository", "repo", Aim::Inside),
    ("file of secrets", ".env", Aim::Protected),
    ("file of secrets in capitals", ".ENV", Aim::Protected),
    ("file of secrets with an ending", ".env.local", Aim::Protected),
    ("new file of secrets", "sub/.Env.production", Aim::Protected),
    ("link to a file of secrets", "to-env", Aim::Protected),
    ("links to links to a file of secrets", "to-env-chain", Aim::Protected),
    ("file of secrets that is a link", ".env.linked", Aim::Protected),
    ("file of secrets as a folder", ".env/x", Aim::Protected),
    ("lango's settings", "lango.toml", Aim::Protected),
    ("lango's settings in capitals", "LANGO.TOML", Aim::Protected),
    ("lango's folder", ".lango/skills/x.md", Aim::Protected),
    ("new folder of lango's", "sub/.lango/x", Aim::Protected),
    ("read-only file of the policy", "conf/settings.txt", Aim::Protected),
    ("link to a read-only file of the policy", "to-settings", Aim::Protected),
    ("folder that contains a read-only file", "conf", Aim::Inside),
    ("hard link to the outside", "hard", Aim::Inside),
    ("named pipe", "pipe", Aim::Inside),
    ("link to a named pipe", "to-pipe", Aim::Inside),
    ("socket", "socket", Aim::Inside),
    ("something below a named pipe", "pipe/x", Aim::Inside),
    ("NUL at the end", "sub/inside.txt\0", Aim::Inside),
    ("NUL before dots", "sub\0/../../outside/secret.txt", Aim::Inside),
    ("long name", "{name}", Aim::Inside),
    ("long path", "{path}", Aim::Inside),
    ("long path to the outside", "{path}../outside/secret.txt", Aim::Inside),
    ("nothing", "", Aim::Inside),
    ("three dots", ".../outside/secret.txt", Aim::Inside),
    ("dots and a semicolon", "..;/outside/secret.txt", Aim::Inside),
    ("backslashes", "..\\outside\\secret.txt", Aim::Inside),
    ("escaped dots", "%2e%2e/outside/secret.txt", Aim::Inside),
    ("escaped slashes", "..%2foutside%2fsecret.txt", Aim::Inside),
    ("full-width dots", "\u{ff0e}\u{ff0e}/outside/secret.txt", Aim::Inside),
    ("one-dot leaders", "\u{2024}\u{2024}/outside/secret.txt", Aim::Inside),
    ("division slashes", "..\u{2215}outside\u{2215}secret.txt", Aim::Inside),
    ("zero-width space in the dots", ".\u{200b}./outside/secret.txt", Aim::Inside),
    ("Cyrillic letter in a repository", ".g\u{456}t/config", Aim::Inside),
    ("zero-width space in a repository", ".git\u{200b}/config", Aim::Inside),
    ("space after the dots", ".. /outside/secret.txt", Aim::Inside),
    ("space before the dots", " ../outside/secret.txt", Aim::Inside),
    ("dot after a name", "sub./inside.txt", Aim::Inside),
    ("home", "~/.ssh/id_rsa", Aim::Inside),
    ("home of another user", "~root/.bashrc", Aim::Inside),
    ("variable", "$HOME/.ssh/id_rsa", Aim::Inside),
    ("address of a file", "file:///etc/passwd", Aim::Inside),
    ("address of the outside", "file:{outside}/secret.txt", Aim::Inside),
    ("option", "--follow", Aim::Inside),
    ("command", "|cat /etc/passwd", Aim::Inside),
    ("substitution", "$(cat /etc/passwd)", Aim::Inside),
    ("pattern", "*", Aim::Inside),
    ("line break", "sub\n../outside/secret.txt", Aim::Inside),
    ("screen control", "\u{1b}[2Jsub", Aim::Inside),
];

/// Returns the path of an attack with its placeholders replaced.
pub(crate) fn path_of((_, path, _): &Attack, workspace: &Path, outside: &Path) -> String {
    path.replace("{workspace}", workspace.to_str().unwrap())
        .replace("{outside}", outside.to_str().unwrap())
        .replace("{name}", &"n".repeat(300))
        .replace("{path}", &"p/".repeat(3000))
}

/// Creates the files that the attacks need, in two sibling folders `workspace` and `outside`. The policy must hide
/// `hidden` and `holder/key.txt`, and make `conf/settings.txt` read-only.
pub(crate) fn create_files(workspace: &Path, outside: &Path) {
    let twin = workspace.with_file_name("workspace-twin");
    let write = |path: &Path, content: &str| {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    };
    write(&outside.join("secret.txt"), OUTSIDE_SECRET);
    write(&outside.join(OUTSIDE_NAME), OUTSIDE_SECRET);
    write(&twin.join("secret.txt"), OUTSIDE_SECRET);
    write(&workspace.join("sub/inside.txt"), "inside\n");
    for path in ["hidden/key.txt", "holder/key.txt"] {
        write(&workspace.join(path), HIDDEN_SECRET);
    }
    for path in [
        ".git/config",
        ".git/hooks/pre-commit",
        "repo/.git/config",
        ".env",
        ".env.local",
        "lango.toml",
        ".lango/skills/x.md",
        "conf/settings.txt",
        "plain.txt",
    ] {
        write(&workspace.join(path), PROTECTED);
    }
    let outside_text = outside.to_str().unwrap();
    let links: &[(&str, &str)] = &[
        ("to-file", &format!("{outside_text}/secret.txt")),
        ("to-file-relative", "../outside/secret.txt"),
        ("to-folder", outside_text),
        ("to-above", ".."),
        ("chain-1", "chain-2"),
        ("chain-2", "sub/../chain-3"),
        ("chain-3", "to-folder"),
        ("sub/to-folder", "../../outside"),
        ("to-dots", "sub/../../outside"),
        (
            "to-absolute-dots",
            &format!("{}/sub/../../outside", workspace.display()),
        ),
        ("loop", "loop"),
        ("loop-a", "loop-b"),
        ("loop-b", "sub/../loop-a"),
        ("to-root", "/"),
        ("to-process", "/proc/self/root"),
        ("to-cwd", "/proc/self/cwd"),
        ("to-open-file", "/dev/fd/3"),
        ("to-device", "/dev/zero"),
        ("to-twin", twin.to_str().unwrap()),
        ("to-missing", &format!("{outside_text}/created.txt")),
        ("to-missing-folder", "../outside/created"),
        ("to-hidden", "hidden"),
        ("to-key", "sub/../hidden/key.txt"),
        ("to-git", ".git"),
        ("to-hooks", "./.git/hooks"),
        ("to-git-chain", "to-git"),
        ("to-env", ".env"),
        ("to-env-chain", "sub/../to-env"),
        (".env.linked", "plain.txt"),
        ("to-settings", "conf/settings.txt"),
        ("to-pipe", "pipe"),
    ];
    for (name, target) in links {
        symlink(target, workspace.join(name)).unwrap();
    }
    std::fs::write(outside.join("hard.txt"), "linked").unwrap();
    std::fs::hard_link(outside.join("hard.txt"), workspace.join("hard")).unwrap();
    rustix::fs::mkfifoat(
        rustix::fs::CWD,
        workspace.join("pipe"),
        rustix::fs::Mode::RWXU,
    )
    .unwrap();
    // The socket file stays when the listener is dropped.
    drop(UnixListener::bind(workspace.join("socket")).unwrap());
    let neighbour = OsStr::from_bytes(b"sub/caf\xe9");
    std::fs::write(workspace.join(neighbour), "neighbour").unwrap();
}
