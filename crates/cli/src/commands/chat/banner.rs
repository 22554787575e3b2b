//! The first lines of a chat: version, folder, model, agents and warnings; and the status line.

use super::Chat;
use crate::commands::chat_input::ChatStatus;
use crate::screen::{self, one_line};
use crate::terminal::{ScreenMode, wrap_prefixed};
use lango_core::text::sanitize;
use lango_core::{PermissionMode, SessionStatus, SessionSummary};
use lango_engine::{SkippedAgent, TreeMode};
use lango_models::OfflineModel;

/// How much of the title of an unfinished session is shown.
const MAX_TITLE_CHARACTERS: usize = 40;

impl Chat<'_> {
    /// Returns the opening text. It names the unfinished sessions other than this one.
    pub(super) fn banner(&self, unfinished: &[SessionSummary]) -> String {
        let (app, model) = (&self.app, self.model.name());
        let names = app.tree.agents.iter().map(|agent| agent.name.as_str());
        let agents: Vec<&str> = names.collect();
        let skipped: Vec<&str> = app
            .tree
            .skipped
            .iter()
            .filter(|skipped| skipped.reason == SkippedAgent::NO_TOOLS)
            .map(|skipped| skipped.name.as_str())
            .collect();
        let mut lines = vec![format!(
            "lango {} · {} · session {}",
            env!("CARGO_PKG_VERSION"),
            app.workspace.path().display(),
            self.conversation.session()
        )];
        let is_demo = model == OfflineModel::NAME;
        let model = if is_demo {
            lango::app::model_selector::DEMO_NOTICE
        } else {
            model
        };
        lines.push(format!("model   {model}"));
        lines.push(match (app.tree.mode, skipped.is_empty()) {
            (TreeMode::Single, _) => format!("agent   {}", app.tree.root.name),
            (TreeMode::Multi, true) => format!("agents  {}", agents.join(" · ")),
            (TreeMode::Multi, false) => format!(
                "agents  {}   (without tools: {})",
                agents.join(" · "),
                skipped.join(", ")
            ),
        });
        if app.mode.get() != PermissionMode::Ask {
            lines.push(format!("mode    {}", app.mode.get()));
        }
        let sandbox = app.sandbox_notice();
        lines.extend(sandbox.map(|notice| format!("sandbox {notice}")));
        let warnings = app.warnings().into_iter();
        lines.extend(warnings.map(|warning| format!("warning {warning}")));
        let others = unfinished
            .iter()
            .filter(|session| session.id != *self.conversation.session());
        lines.extend(others.map(unfinished_line));
        if is_demo {
            lines.push(format!("try     {}", OfflineModel::examples().join(" · ")));
        }
        if self.screen == ScreenMode::Plain {
            lines.push("/help · ctrl-c stops · ctrl-d leaves".to_owned());
            return lines.join("\n");
        }
        lines.push("/help · esc stops · ctrl-d leaves".to_owned());
        let columns = screen::columns();
        let wrapped = lines
            .iter()
            .flat_map(|line| wrap_prefixed(line, "", "        ", columns));
        wrapped.collect::<Vec<String>>().join("\n")
    }

    /// Returns what the status line says besides the mode.
    pub(super) fn status(&self) -> ChatStatus {
        let (model, model_note) = match self.model.name() {
            OfflineModel::NAME if self.has_model => (OfflineModel::NAME, "not an AI model"),
            OfflineModel::NAME => ("demo mode", "connect a model: lango setup"),
            model => (model, ""),
        };
        let folder = self.app.workspace.path();
        let folder = folder.file_name().unwrap_or(folder.as_os_str());
        ChatStatus {
            model: model.to_owned(),
            model_note,
            folder: sanitize(&folder.to_string_lossy()).into_owned(),
            session: self.conversation.session().to_string(),
        }
    }
}

/// Names a session that has not ended, and how to continue it.
fn unfinished_line(session: &SessionSummary) -> String {
    let state = match session.status {
        SessionStatus::Waiting => "waits for your answer",
        _ => "was interrupted, or runs in another window",
    };
    format!(
        "open    “{}” {state}: /resume {}",
        one_line(&session.title, MAX_TITLE_CHARACTERS),
        session.id
    )
}
