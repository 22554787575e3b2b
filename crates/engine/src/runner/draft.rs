//! Text on its way to the screen. It is held back while it may still become a refusal, and withdrawn when the reply turns
//! out not to be an answer.

use super::Shown;
use crate::rejection;
use lango_core::AgentName;
use tokio::sync::mpsc;

pub(super) struct Draft {
    author: AgentName,
    watcher: mpsc::Sender<Shown>,
    /// Whether the words may become the person's answer.
    shown: bool,
    held: String,
    began: bool,
}

impl Draft {
    /// A draft that `watcher` sees if it is `shown`.
    pub fn new(author: AgentName, watcher: mpsc::Sender<Shown>, shown: bool) -> Self {
        Self {
            author,
            watcher,
            shown,
            held: String::new(),
            began: false,
        }
    }

    pub async fn push(&mut self, text: &str) {
        if !self.shown {
            return;
        }
        self.held.push_str(text);
        if !self.began && rejection::may_become_one(&self.held) {
            return;
        }
        self.began = true;
        let text = std::mem::take(&mut self.held);
        let _ = self
            .watcher
            .send(Shown::Draft {
                author: self.author.clone(),
                text,
            })
            .await;
    }

    /// The call is made again: what was shown is void, and whoever watches is told why.
    pub async fn retry(&mut self, reason: &str) {
        self.held.clear();
        self.withdraw().await;
        let agent = self.author.clone();
        let reason = reason.to_owned();
        let _ = self.watcher.send(Shown::Retrying { agent, reason }).await;
    }

    pub async fn withdraw(&mut self) {
        if std::mem::take(&mut self.began) {
            let _ = self.watcher.send(Shown::Withdrawn).await;
        }
    }
}
