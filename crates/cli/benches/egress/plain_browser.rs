//! A browser without lango and its sandbox, in the network namespace of the run. It shows what the sandbox blocks, and
//! that the listeners detect it.

use crate::drivers::Driver;
use std::fs;
use std::process::{Command, Stdio};
use std::time::Duration;

/// How long a page is open.
const TIME: Duration = Duration::from_secs(7);
/// The only interfaces in the namespace of the run. Another one would belong to the machine's network.
const INTERFACES: [&str; 2] = ["lo", "v0"];

pub(crate) struct PlainBrowser;

impl Driver for PlainBrowser {
    fn name(&self) -> String {
        "browser, hostile pages".to_owned()
    }

    fn open(&mut self, url: &str) {
        assert_in_namespace();
        let folder = tempfile::tempdir().unwrap();
        let mut directory = std::ffi::OsString::from("--user-data-dir=");
        directory.push(folder.path());
        let mut child = Command::new("chromium")
            .args([
                "--headless=new",
                "--no-sandbox",
                "--disable-gpu",
                "--no-first-run",
                "--disable-popup-blocking",
            ])
            // Chromium itself would block requests from public pages to private addresses.
            .arg("--disable-features=LocalNetworkAccessChecks,LocalNetworkAccessChecksWebRTC")
            .arg(directory)
            .arg(url)
            .env("HOME", folder.path())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        std::thread::sleep(TIME);
        // Its other processes exit with it, or at the latest with the namespace.
        let _ = child.kill();
        let _ = child.wait();
    }

    fn counts_targets(&self) -> bool {
        true
    }
}

fn assert_in_namespace() {
    let text = fs::read_to_string("/proc/net/dev").unwrap();
    let names = text.lines().filter_map(|line| line.split_once(':'));
    let mut others = names.filter(|(name, _)| !INTERFACES.contains(&name.trim()));
    assert_eq!(
        others.next(),
        None,
        "not in the network namespace of the run"
    );
}
