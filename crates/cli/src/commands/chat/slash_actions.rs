//! What the commands of a chat do.

use super::Chat;
use super::slash::{SlashCommand, help};
use crate::commands::chat_input::ReadAttachment;
use crate::commands::resume::{pick_session, print_recap};
use crate::commands::{agents, approvals, sessions};
use crate::screen::{self, count, short_number};
use lango::app::Failure;
use lango::app::attach::{check_files, read_file};
use lango::app::model_offers::list_offers;
use lango::app::model_table::{Line, lines};
use lango::app::sessions::open_session;
use lango_config::Layout;
use lango_core::text::sanitize;
use lango_core::{AttachedFile, EventBody, EventRange, PermissionMode};
use std::collections::BTreeMap;
use std::io::IsTerminal;
use std::path::Path;

/// The number of sessions in a list, and of events that are read at once.
const LISTED_SESSIONS: usize = 15;
const EVENT_PAGE: usize = 500;

impl Chat<'_> {
    /// Performs a command. Its output goes above the input.
    pub(super) async fn perform(
        &mut self,
        command: SlashCommand,
        argument: &str,
    ) -> Result<(), Failure> {
        if command.needs_terminal() && !std::io::stdin().is_terminal() {
            let message = format!("{} works only at a terminal", command.name());
            return Err(Failure::usage(message).next("start `lango` in a terminal"));
        }
        match command {
            SlashCommand::Help => {
                screen::print(&help(self.screen, screen::columns()))?;
            }
            SlashCommand::Model => self.switch_model(argument).await?,
            SlashCommand::Agents => {
                screen::print(&sanitize(&agents::as_text(&self.app.tree, self.app)))?;
            }
            SlashCommand::Sessions => {
                sessions::list(self.app, &self.sessions, false, LISTED_SESSIONS).await?;
            }
            SlashCommand::New => self.start_session()?,
            SlashCommand::Resume => self.resume_session(argument).await?,
            SlashCommand::Approvals => self.approvals(argument).await?,
            SlashCommand::Cost => self.show_cost().await?,
            SlashCommand::Attach => self.attach(argument)?,
            SlashCommand::Config => {
                let text = lango_config::show(&self.app.loaded, Layout::Origins);
                let shown = text.lines().filter(|line| line.contains(argument));
                let shown: Vec<&str> = shown.collect();
                if shown.is_empty() {
                    screen::print(&format!("no line contains `{argument}`"))?;
                } else {
                    screen::print(&shown.join("\n"))?;
                }
            }
            SlashCommand::Mode => self.switch_mode(argument)?,
            SlashCommand::Undo => self.undo(argument).await?,
            SlashCommand::Diff => self.show_diff().await?,
            // The loop of the chat ends before this.
            SlashCommand::Quit => {}
        }
        Ok(())
    }

    async fn switch_model(&mut self, name: &str) -> Result<(), Failure> {
        if name.is_empty() {
            let current = self.model.name().to_owned();
            for Line { model, note, .. } in self.offered_models().await {
                let mark = if model == current { "●" } else { " " };
                screen::print(&format!("{mark} {model}  {note}"))?;
            }
            return Ok(screen::print(&format!(
                "in use: {current} · switch with /model NAME · connect a provider with `lango setup`"
            ))?);
        }
        let full_name = self.full_model_name(name).await?;
        let name = full_name.as_str();
        let selector = self.app.model_selector();
        let model = selector
            .agent_model(name)
            .map_err(|failure| failure.next("/model lists the models"))?;
        if let Some((provider, id)) = name.split_once('/')
            && let Ok(list) = selector.list_models(provider).await
            && !list.models.is_empty()
            && !list.models.iter().any(|listed| listed == id)
        {
            screen::say(&format!(
                "warning: {provider} does not list `{id}`; /model lists the models"
            ));
        }
        self.use_model(model)?;
        self.selected_model = Some(name.to_owned());
        self.was_key_refused = false;
        Ok(screen::print(&format!(
            "the next turns use {}; `lango config set agent.model {name}` makes it the default",
            self.model.name()
        ))?)
    }

    /// Returns the models of all providers, which the input completes from now on.
    async fn offered_models(&mut self) -> Vec<Line> {
        let providers = list_offers(&self.app.model_selector()).await;
        let lines = lines(&providers, Some(self.model.name()));
        self.input.models = lines.iter().map(|line| line.model.clone()).collect();
        lines
    }

    /// Adds the provider to a part of a model's name, if only one model has it.
    async fn full_model_name(&mut self, name: &str) -> Result<String, Failure> {
        if self.app.model_selector().agent_model(name).is_ok() {
            return Ok(name.to_owned());
        }
        let lines = self.offered_models().await;
        let names = lines.iter().map(|line| line.model.as_str());
        let is_id = |model: &&str| model.split_once('/').is_some_and(|(_, id)| id == name);
        let mut matching: Vec<&str> = names.clone().filter(is_id).collect();
        if matching.is_empty() {
            matching = names.filter(|model| model.contains(name)).collect();
        }
        match matching.as_slice() {
            [] => Ok(name.to_owned()),
            [model] => Ok((*model).to_owned()),
            [first, second, ..] => Err(Failure::usage(format!(
                "several models match `{name}`: {first}, {second}{}",
                if matching.len() > 2 { ", …" } else { "" }
            ))
            .next("/model lists the models")),
        }
    }

    fn start_session(&mut self) -> Result<(), Failure> {
        let runner = self.app.runner(&self.sessions, &self.model)?;
        self.conversation = runner.start(self.app.user());
        self.input.status = self.status();
        let session = self.conversation.session();
        Ok(screen::print(&format!("new session {session}"))?)
    }

    async fn resume_session(&mut self, id: &str) -> Result<(), Failure> {
        let id = if id.is_empty() {
            let Some(keys) = &mut self.keys else {
                let next = "/resume ID; /sessions lists them";
                return Err(Failure::usage("which session?").next(next));
            };
            match pick_session(self.app, &self.sessions, keys, &self.palette).await? {
                Some(id) => id,
                None => return Ok(()),
            }
        } else {
            let found = self.app.find_session(&self.sessions, id).await;
            found.map_err(|failure| failure.next("/sessions lists them"))?
        };
        let runner = self.app.runner(&self.sessions, &self.model)?;
        self.conversation = open_session(&runner, id).await?;
        self.input.status = self.status();
        screen::print(&format!("session {}", self.conversation.session()))?;
        let style = self.palette.markdown();
        print_recap(&self.sessions, self.conversation.session(), style).await?;
        self.finish_pending_turn().await
    }

    /// Lists pending approvals and grants, or revokes a grant.
    async fn approvals(&mut self, argument: &str) -> Result<(), Failure> {
        let words: Vec<&str> = argument.split_whitespace().collect();
        match words[..] {
            [] => {
                let revoke = "/approvals revoke ID";
                approvals::list(self.app, &self.sessions, false, revoke).await?;
            }
            ["revoke", id] => {
                approvals::revoke(self.app, &self.sessions, id).await?;
            }
            ["revoke"] => {
                return Err(
                    Failure::usage("which grant?").next("/approvals lists them with their ids")
                );
            }
            _ => {
                let message = format!("/approvals cannot be followed by `{argument}`");
                return Err(Failure::usage(message).next("/approvals, or /approvals revoke ID"));
            }
        }
        Ok(())
    }

    /// Prints the tokens and the cost of the session, per agent and model.
    async fn show_cost(&self) -> Result<(), Failure> {
        let session = self.conversation.session();
        let mut totals: BTreeMap<(String, String), SessionCost> = BTreeMap::new();
        let mut from = 1;
        if self.conversation.turns() > 0 {
            loop {
                let range = EventRange {
                    from,
                    limit: EVENT_PAGE,
                };
                let events = self.sessions.store.read(session, range).await?;
                for event in &events {
                    if let EventBody::AgentMessage {
                        model: Some(model),
                        usage,
                        cost_micros,
                        ..
                    } = &event.body
                        // A command of the user calls no model.
                        && **model != *screen::TYPED_COMMAND_MODEL
                    {
                        let key = (event.author.to_string(), model.to_string());
                        let total = totals.entry(key).or_default();
                        total.calls += 1;
                        total.input += usage.input_tokens;
                        total.output += usage.output_tokens;
                        total.micros = total.micros.zip(*cost_micros).map(|(sum, one)| sum + one);
                    }
                }
                match events.last() {
                    Some(last) if events.len() == EVENT_PAGE => from = last.seq + 1,
                    _ => break,
                }
            }
        }
        if totals.is_empty() {
            return Ok(screen::print("this session has cost nothing yet")?);
        }
        let mut sum = SessionCost::default();
        for ((agent, model), cost) in &totals {
            screen::print(&format!("{agent:<20} {model}  {cost}"))?;
            sum.calls += cost.calls;
            sum.input += cost.input;
            sum.output += cost.output;
            sum.micros = sum.micros.zip(cost.micros).map(|(sum, one)| sum + one);
        }
        Ok(screen::print(&format!("{:<20} {sum}", "together"))?)
    }

    fn attach(&mut self, argument: &str) -> Result<(), Failure> {
        if argument.is_empty() {
            return Err(
                Failure::usage("which file?").next("/attach PATH, or write @path in a message")
            );
        }
        // Read now: until the message is sent, another process could put another file there.
        let file = read_file(Path::new(argument))?;
        let attachments = self.input.attachments.iter();
        let mut files: Vec<AttachedFile> = attachments.map(|read| read.file.clone()).collect();
        files.push(file.clone());
        check_files(&files)?;
        self.input.attachments.push(ReadAttachment {
            path: argument.to_owned(),
            file,
        });
        Ok(screen::print("attached to the next message")?)
    }

    fn switch_mode(&mut self, argument: &str) -> Result<(), Failure> {
        if argument.is_empty() {
            let mode = self.app.mode.get();
            return Ok(screen::print(&format!(
                "the mode is {mode}; /mode ask, accept-edits, read-only or plan switches it, and so does shift-tab"
            ))?);
        }
        let mode: PermissionMode = argument.parse().map_err(|_| {
            Failure::usage(format!("there is no mode `{argument}`"))
                .next("/mode ask, /mode accept-edits, /mode read-only or /mode plan")
        })?;
        self.app.mode.set(mode);
        Ok(screen::print(&format!(
            "the mode is {mode} until you leave"
        ))?)
    }
}

struct SessionCost {
    calls: u64,
    input: u64,
    output: u64,
    /// Millionths of a US dollar; `None` if a price is unknown.
    micros: Option<u64>,
}

impl Default for SessionCost {
    fn default() -> Self {
        Self {
            calls: 0,
            input: 0,
            output: 0,
            micros: Some(0),
        }
    }
}

impl std::fmt::Display for SessionCost {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let calls = count(self.calls, "call");
        let (input, output) = (short_number(self.input), short_number(self.output));
        write!(f, "{calls}, {input} tokens in, {output} out")?;
        match self.micros {
            Some(micros) => write!(f, ", ${:.4}", micros as f64 / 1e6),
            None => write!(f, ", cost unknown"),
        }
    }
}
