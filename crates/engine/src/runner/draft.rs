//! Text on its way to the screen. It is held back while it may still become a refusal, and withdrawn when the reply turns
//! out not to be an answer.

use super::Shown;
use crate::rejection;
use lango_core::AgentName;
use tokio::sync::mpsc;

pub(super) struct Draft {
    author: AgentName,
    shown: Option<mpsc::Sender<Shown>>,
    held: String,
    began: bool,
}

impl Draft {
    /// A draft that is shown to `shown`, or to nobody.
    pub fn new(author: AgentName, shown: Option<mpsc::Sender<Shown>>) -> Self {
        Self {
            author,
            shown,
            held: String::new(),
            began: false,
        }
    }

    pub async fn push(&mut self, text: &str) {
        let Some(shown) = &self.shown else { return };
        self.held.push_str(text);
        if !self.began && rejection::may_become_one(&self.held) {
            return;
        }
        self.began = true;
        let text = std::mem::take(&mut self.held);
        let _ = shown
            .send(Shown::Draft {
                author: self.author.clone(),
                text,
            })
            .await;
    }

    pub async fn withdraw(&mut self) {
        if let Some(shown) = &self.shown
            && std::mem::take(&mut self.began)
        {
            let _ = shown.send(Shown::Withdrawn).await;
        }
    }
}
