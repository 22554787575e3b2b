//! Tells the user that a server is still starting.

use std::fmt;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// The interval between two messages.
const INTERVAL: Duration = Duration::from_secs(10);

type Show = dyn Fn(&str) + Send + Sync;

/// The function that shows progress lines to the user; without one, nothing is shown.
#[derive(Clone, Default)]
pub struct StartProgress(Option<Arc<Show>>);

impl StartProgress {
    pub fn new(show: impl Fn(&str) + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(show)))
    }

    /// Waits for the first start of a server that downloads a package, and shows how long it has taken so far.
    pub(crate) async fn watch<T>(
        &self,
        server: &str,
        timeout: Duration,
        start: impl Future<Output = T>,
    ) -> T {
        let show = |line: String| self.0.iter().for_each(|show| show(&line));
        show(format!(
            "MCP server `{server}`: first start; downloading its package may take up to {} s",
            timeout.as_secs()
        ));
        let started = Instant::now();
        let mut start = pin!(start);
        loop {
            tokio::select! {
                biased;
                done = &mut start => return done,
                () = tokio::time::sleep(INTERVAL) => {
                    let seconds = started.elapsed().as_secs();
                    show(format!("MCP server `{server}`: still starting after {seconds} s"));
                }
            }
        }
    }
}

impl fmt::Debug for StartProgress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_shown = self.0.is_some();
        f.debug_tuple("StartProgress").field(&is_shown).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Mutex;

    #[tokio::test(start_paused = true)]
    async fn a_long_start_is_announced_and_reported_every_ten_seconds() {
        let lines: Arc<Mutex<Vec<String>>> = Arc::default();
        let seen = Arc::clone(&lines);
        let progress = StartProgress::new(move |line| seen.lock().unwrap().push(line.to_owned()));
        let start = tokio::time::sleep(Duration::from_secs(25));
        progress.watch("s", Duration::from_secs(120), start).await;
        let lines = lines.lock().unwrap();
        assert!(lines[0].contains("first start") && lines[0].contains("120 s"));
        let later: Vec<&str> = lines[1..].iter().map(String::as_str).collect();
        assert_eq!(
            later,
            [
                "MCP server `s`: still starting after 10 s",
                "MCP server `s`: still starting after 20 s"
            ]
        );
    }
}
