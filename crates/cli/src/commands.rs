//! The commands: each parses its arguments, does its work through the library, and returns its exit code.

mod agents;
mod approvals;
mod archive;
mod ask;
mod chat;
mod chat_input;
mod config;
mod confirm;
mod doctor;
mod external_editor;
mod input;
mod knowledge;
mod manual;
mod mcp;
mod memories;
mod memory;
mod models;
mod paths;
mod payments;
mod present;
mod resume;
mod run;
mod secrets;
mod serve;
mod sessions;
mod setup;
mod skills;
mod store;
mod streamed_answer;
mod tokens;
mod trash;
mod turn_screen;
mod undo;
mod watch;

use crate::args::{Arguments, Command};
use crate::exit::Exit;
use crate::screen;
use chat::ChatOptions;
use lango::app::Failure;
use lango::app::vault::VaultOwner;
use std::io::IsTerminal;
use std::time::Duration;

/// Runs the command that was given on the command line.
pub async fn run(arguments: Arguments) -> Exit {
    let mode = match arguments.permission_mode() {
        Ok(mode) => mode,
        Err(failure) => return report(&failure),
    };
    let config = arguments.config_flags();
    let Arguments {
        command, continues, ..
    } = arguments;
    let result = match command {
        None if std::io::stdin().is_terminal() => {
            chat::chat(config, ChatOptions { continues, mode }).await
        }
        None => run::run(config, mode, run::piped_arguments(continues)).await,
        Some(Command::Chat(arguments)) => {
            let continues = continues || arguments.continues;
            chat::chat(config, ChatOptions { continues, mode }).await
        }
        Some(Command::Run(mut arguments)) => {
            arguments.continues |= continues;
            run::run(config, mode, arguments).await
        }
        Some(_) if continues => Err(Failure::usage(
            "--continue continues a chat or a run, not this command",
        )
        .next("leave it out, or run `lango --continue`")),
        Some(Command::Resume(arguments)) => resume::resume(config, mode, arguments).await,
        Some(Command::Serve(arguments)) => {
            serve::serve_command(config, arguments, serve::Purpose::Serve).await
        }
        Some(Command::Web(arguments)) => {
            let purpose = if arguments.no_open {
                serve::Purpose::WebWithoutBrowser
            } else {
                serve::Purpose::Web
            };
            serve::serve_command(config, arguments.serve, purpose).await
        }
        Some(Command::Tokens { command }) => tokens::tokens(config, command).await,
        Some(Command::Agents(arguments)) => agents::agents(config, arguments).await,
        Some(Command::Sessions { command }) => sessions::sessions(config, mode, command).await,
        Some(Command::Store { command }) => store::store(config, command).await,
        Some(Command::Config { command }) => config::config(config, command).await,
        Some(Command::Doctor(arguments)) => doctor::doctor(config, arguments).await,
        Some(Command::Paths { json }) => paths::paths(config, json),
        Some(Command::Approvals { command }) => approvals::approvals(config, mode, command).await,
        Some(Command::Knowledge { command }) => knowledge::knowledge(config, command).await,
        Some(Command::Memory { command }) => memories::memories(config, command).await,
        Some(Command::Mcp { command }) => mcp::mcp(config, command).await,
        Some(Command::Skills { json }) => skills::skills(config, json).await,
        Some(Command::Secrets { server, command }) => {
            let owner = if server {
                VaultOwner::Server
            } else {
                VaultOwner::User
            };
            secrets::secrets(config, owner, command).await
        }
        Some(Command::Payments { command }) => payments::payments(config, command).await,
        Some(Command::Trash { command }) => trash::trash(config, command).await,
        Some(Command::Undo(arguments)) => undo::undo(config, arguments).await,
        Some(Command::Models { json }) => models::models(config, json).await,
        Some(Command::Setup(arguments)) => setup::setup(config, arguments).await,
        Some(Command::Completions { shell }) => manual::completions(shell),
        Some(Command::Man { folder }) => manual::man(folder.as_deref()),
    };
    result.unwrap_or_else(|failure| report(&failure))
}

/// Waits until all commands that agents started have ended and have been cleaned up, and prints what clean-up found.
pub async fn finish() {
    const SHORT: Duration = Duration::from_secs(1);
    const LONG: Duration = Duration::from_secs(90);
    if !lango_sandbox::wait_for_clean_up(SHORT).await {
        screen::say("cleaning up after commands…");
        if !lango_sandbox::wait_for_clean_up(LONG).await {
            screen::say(
                "warning: clean-up after a command is not done yet; it continues in the background, and the next start of lango reports the result",
            );
        }
    }
    lango::app::clean_up::warn();
}

fn report(failure: &Failure) -> Exit {
    screen::say(&format!("error: {failure}"));
    Exit::from(failure)
}
