//! The first lines of a chat: version, folder, model, agents and warnings; and the status line.

use super::Chat;
use crate::commands::chat_input::ChatStatus;
use crate::screen;
use crate::terminal::{ScreenMode, wrap_prefixed};
use lango_core::PermissionMode;
use lango_core::text::sanitize;
use lango_engine::{SkippedAgent, TreeMode};
use lango_models::OfflineModel;

impl Chat<'_> {
    /// Returns the opening text.
    pub(super) fn banner(&self) -> String {
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
        let model = self.model.name();
        let model = match model {
            OfflineModel::NAME if self.has_model => "offline/rules, not an AI model",
            OfflineModel::NAME => "demo mode, connect a model: lango setup",
            model => model,
        };
        let folder = self.app.workspace.path();
        let folder = folder.file_name().unwrap_or(folder.as_os_str());
        ChatStatus {
            model: model.to_owned(),
            folder: sanitize(&folder.to_string_lossy()).into_owned(),
            session: self.conversation.session().to_string(),
        }
    }
}
