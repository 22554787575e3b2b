//! Chromium without a network, driven over its pipe.

use lango_browser::Browser;
use std::process::Stdio;
use tempfile::TempDir;
use tokio::process::Command;

/// Starts Chromium in bubblewrap, with no network at all.
pub async fn offline_browser() -> Browser {
    let folder = tempfile::tempdir().unwrap();
    let private = folder.path().to_str().unwrap().to_owned();
    let mut child = chromium(&folder).spawn().unwrap();
    let (writer, reader) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
    let browser = Browser::attach(reader, writer, "http://127.0.0.1:3129", (child, folder)).await;
    browser.unwrap_or_else(|error| panic!("{private}: {error}"))
}

fn chromium(folder: &TempDir) -> Command {
    let private = folder.path().to_str().unwrap();
    let mut command = Command::new("bwrap");
    command
        .args([
            "--unshare-all",
            "--uid",
            "1000",
            "--gid",
            "1000",
            "--die-with-parent",
        ])
        .args(["--ro-bind", "/usr", "/usr", "--ro-bind", "/etc", "/etc"])
        .args([
            "--symlink",
            "usr/bin",
            "/bin",
            "--symlink",
            "usr/lib",
            "/lib",
        ])
        .args([
            "--symlink",
            "usr/lib64",
            "/lib64",
            "--proc",
            "/proc",
            "--dev",
            "/dev",
        ])
        .args([
            "--tmpfs", "/tmp", "--bind", private, private, "--setenv", "HOME", private,
        ])
        .args(["sh", "-c", r#"exec "$0" "$@" 3<&0 4>&1 0</dev/null 1>&2"#])
        .args([
            "/usr/lib/chromium/chromium",
            "--headless=new",
            "--remote-debugging-pipe",
        ])
        .args(["--no-first-run", "--no-startup-window"])
        .arg(format!("--user-data-dir={private}/profile"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .kill_on_drop(true);
    command
}
