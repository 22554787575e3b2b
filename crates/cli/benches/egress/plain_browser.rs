//! The browser without lango: in the namespace of the run, with its network. It shows what the sandbox holds back, and that
//! the listeners notice it.

use crate::drivers::Driver;
use std::fs;
use std::process::{Command, Stdio};
use std::time::Duration;

/// How long a page may attack.
const TIME: Duration = Duration::from_secs(7);
/// The interfaces of the namespace of the run; one more would be a network of the machine.
const INTERFACES: [&str; 2] = ["lo", "v0"];

pub struct PlainBrowser;

impl Driver for PlainBrowser {
    fn name(&self) -> String {
        "browser, hostile pages".to_owned()
    }

    fn open(&mut self, url: &str) {
        expect_own_network();
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
            // Chromium's own hold on requests from public pages to private addresses.
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
        // It takes its other processes with it; the rest ends with the namespace.
        let _ = child.kill();
        let _ = child.wait();
    }

    fn counts_targets(&self) -> bool {
        true
    }
}

fn expect_own_network() {
    let text = fs::read_to_string("/proc/net/dev").unwrap();
    let names = text.lines().filter_map(|line| line.split_once(':'));
    let mut others = names.filter(|(name, _)| !INTERFACES.contains(&name.trim()));
    assert_eq!(others.next(), None, "not in the battery's own network");
}
