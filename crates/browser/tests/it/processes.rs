//! Finds the processes of a test's browsers by the private directory in their command lines.

use rustix::process::{Pid, Signal, kill_process};
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

/// Returns the processes whose command line contains this folder.
pub(crate) fn processes(folder: &Path) -> Vec<i32> {
    let named = folder.to_str().unwrap();
    let ids = all().into_iter();
    ids.filter(|id| command_line(*id).contains(named)).collect()
}

/// Returns the main Chromium process of the only browser in this folder. The command line of the sandbox around it
/// contains the folder too, but it is a different program.
pub(crate) fn main_process(folder: &Path) -> i32 {
    let ids = processes(folder).into_iter();
    let mut mains = ids.filter(|id| {
        let program = fs::read_link(format!("/proc/{id}/exe")).unwrap_or_default();
        let program = program.file_name().unwrap_or_default().to_string_lossy();
        // The crash reporter is a separate program.
        let is_chromium = program.contains("chrom") && !program.contains("crashpad");
        is_chromium && !command_line(*id).contains("--type=")
    });
    let main = mains.next().unwrap();
    assert_eq!(mains.next(), None, "one browser");
    main
}

/// Returns the renderer processes of a browser.
pub(crate) fn renderers(main: i32) -> Vec<i32> {
    let is_renderer = |id: &i32| command_line(*id).contains("--type=renderer");
    let ids = all().into_iter().filter(is_renderer);
    ids.filter(|id| is_below(*id, main)).collect()
}

pub(crate) fn kill(id: i32) {
    let id = Pid::from_raw(id).unwrap();
    // The process may have ended by itself.
    let _ = kill_process(id, Signal::KILL);
}

/// Waits until all processes have ended and all directories are removed.
pub(crate) async fn wait_until_gone(folder: &Path) {
    let is_empty = || fs::read_dir(folder).is_ok_and(|entries| entries.count() == 0);
    wait_until("processes and directories end", || {
        processes(folder).is_empty() && is_empty()
    })
    .await;
}

pub(crate) async fn wait_until(description: &str, condition: impl Fn() -> bool) {
    let started = Instant::now();
    while !condition() {
        assert!(started.elapsed() < Duration::from_secs(10), "{description}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

fn all() -> Vec<i32> {
    let entries = fs::read_dir("/proc").unwrap().flatten();
    let ids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    ids.collect()
}

fn command_line(id: i32) -> String {
    let line = fs::read(format!("/proc/{id}/cmdline")).unwrap_or_default();
    String::from_utf8_lossy(&line).into_owned()
}

fn is_below(id: i32, ancestor: i32) -> bool {
    let parent = |id: i32| -> Option<i32> {
        let status = fs::read_to_string(format!("/proc/{id}/status")).ok()?;
        let line = status.lines().find_map(|line| line.strip_prefix("PPid:"))?;
        line.trim().parse().ok()
    };
    let mut ancestors = std::iter::successors(Some(id), |id| parent(*id));
    ancestors.any(|id| id == ancestor)
}
