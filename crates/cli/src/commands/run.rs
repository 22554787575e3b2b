//! `lango run`: runs one turn. The answer goes to stdout, everything else to stderr.

use super::ask::ApprovalMode;
use super::input;
use super::memory::remember;
use super::present::{Presentation, answer_command};
use super::resume::last_session_here;
use super::turn_screen::{TurnDisplay, TurnScreen};
use super::watch::{PromptContext, TurnRequest, watch};
use crate::args::RunArguments;
use crate::exit::Exit;
use crate::screen::{self, Activity, Layout, subject_line};
use crate::terminal::Output;
use lango::app::attach::read_files;
use lango::app::sessions::open_session;
use lango::app::signals::StartSignals;
use lango::app::{App, Persistence};
use lango::app::{Failure, FailureKind};
use lango_config::text_file;
use lango_core::{Outcome, PendingApproval, PermissionMode};
use lango_engine::{AnswerSchema, Conversation, TurnEnd};
use serde_json::json;
use std::fmt::Display;
use std::fs::File;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

/// Returns the arguments of `lango` without a command if standard input is not a terminal.
pub(super) fn piped_arguments(continues: bool) -> RunArguments {
    RunArguments {
        continues,
        ..RunArguments::default()
    }
}

/// Runs the command.
pub(super) async fn run(
    config: Vec<String>,
    mode: PermissionMode,
    arguments: RunArguments,
) -> Result<Exit, Failure> {
    let as_json = arguments.json || arguments.jsonl;
    let result = turn(config, mode, arguments).await;
    if let (true, Err(failure)) = (as_json, &result) {
        let error = json!({ "error": failure.to_string(), "exit": Exit::from(failure).code() });
        screen::print(&screen::json(&error, Layout::Line)?)?;
    }
    result
}

async fn turn(
    config: Vec<String>,
    mode: PermissionMode,
    arguments: RunArguments,
) -> Result<Exit, Failure> {
    let persistence = if arguments.ephemeral {
        Persistence::Nothing
    } else {
        Persistence::Everything
    };
    let schema = arguments.schema.as_deref().map(read_schema).transpose()?;
    let mut signals = StartSignals::listen()?;
    let mut app = signals.guard(App::load_for(config, persistence)).await?;
    app.mode.set(mode);
    let result = turn_in(&mut app, arguments, schema, &mut signals).await;
    // Also after a failure, so that clean-up after servers is reported.
    app.close().await;
    result
}

async fn turn_in(
    app: &mut App,
    arguments: RunArguments,
    schema: Option<AnswerSchema>,
    signals: &mut StartSignals,
) -> Result<Exit, Failure> {
    let files = read_files(&arguments.attach)?;
    signals.guard(app.connect()).await?;
    let question = input::question(&arguments.prompt, arguments.quiet);
    let mut question = signals.guard(question).await?;
    question.files = files;
    question.answer_schema = schema.map(|schema| Arc::clone(schema.value()));
    if !arguments.quiet {
        app.warnings()
            .iter()
            .for_each(|warning| screen::say(&format!("warning: {warning}")));
    }
    let sessions = if arguments.ephemeral {
        app.ephemeral_sessions()
    } else {
        app.sessions().await?
    };
    if !arguments.ephemeral {
        app.sandbox.store_result();
    }
    let choice = signals.guard(app.choose_model()).await?;
    if !arguments.quiet {
        choice.warn();
    }
    let runner = app.runner(&sessions, &choice.model)?;
    let earlier = match &arguments.session {
        Some(prefix) => Some(app.find_session(&sessions, prefix).await?),
        None if arguments.continues => Some(last_session_here(app, &sessions).await?),
        None => None,
    };
    let mut conversation = match earlier {
        Some(session) => open_session(&runner, session).await?,
        None => runner.start(app.user()),
    };
    let presentation = Presentation {
        json: arguments.json,
        jsonl: arguments.jsonl,
        quiet: arguments.quiet,
        ephemeral: arguments.ephemeral,
        structured: question.answer_schema.is_some(),
        is_plain: app.loaded.settings.ui.plain,
        demo_notice: choice.demo_notice().filter(|_| !arguments.quiet),
    };
    let approval_mode = match ApprovalMode::detect(Output::Stderr) {
        ApprovalMode::Terminal if arguments.ephemeral => ApprovalMode::TerminalOnly,
        approval_mode => approval_mode,
    };
    app.vaults.allow_prompts();
    if approval_mode == ApprovalMode::Deny {
        app.vaults.print_problems();
    }
    let folder = app.folder();
    let context = PromptContext {
        folder: &folder,
        vaults: &app.vaults,
        typed_command: None,
        mode: &app.mode,
    };
    let display = presentation.display();
    let palette = display.palette();
    let mut activity = Activity::new(palette.clone());
    let (mut keys, mut lines) = (None, None);
    if conversation.is_interrupted() || !conversation.waiting().is_empty() {
        let earlier = TurnDisplay {
            prints_events: false,
            streams_answer: false,
            opening: None,
            ..display
        };
        let view = TurnScreen::new(
            earlier,
            &mut activity,
            palette.clone(),
            &mut keys,
            &mut lines,
            None,
        );
        finish_pending_turn(&mut conversation, approval_mode, context, view).await?;
    }
    let started = Instant::now();
    let input = TurnRequest::Question(&question);
    let view = TurnScreen::new(display, &mut activity, palette, &mut keys, &mut lines, None);
    let watched = watch(&mut conversation, input, approval_mode, context, view).await?;
    let exit = presentation.present(&watched, choice.model.name(), started.elapsed())?;
    let exit = match exit {
        Exit::Interrupted if watched.is_terminated => Exit::Terminated,
        exit => exit,
    };
    let (user, session) = (conversation.user(), conversation.session());
    remember(app, user, session, arguments.quiet).await;
    Ok(exit)
}

/// Reads the JSON schema that the answer must satisfy.
fn read_schema(file: &Path) -> Result<AnswerSchema, Failure> {
    let unusable = |detail: &dyn Display| {
        let message = format!("the schema `{}` cannot be used: {detail}", file.display());
        Failure::usage(message).next(
            r#"give a JSON schema such as {"type": "object", "properties": {"files": {"type": "array"}}}"#,
        )
    };
    let text = File::open(file)
        .and_then(|file| text_file::read(file, AnswerSchema::MAX_KIB as u64))
        .map_err(|error| unusable(&error))?;
    AnswerSchema::parse(&text).map_err(|error| unusable(&error))
}

/// Finishes the session's earlier turn before a new question: resumes it if it was interrupted, and asks for pending
/// approvals.
async fn finish_pending_turn(
    conversation: &mut Conversation,
    approval_mode: ApprovalMode,
    context: PromptContext<'_>,
    view: TurnScreen<'_>,
) -> Result<(), Failure> {
    let waiting = |waiting: &[PendingApproval]| {
        let message = "an earlier turn of this session waits for approval";
        let subject = waiting.first().map(|first| subject_line(&first.request));
        let message = format!("{message}: {}", subject.unwrap_or_default());
        Failure::new(FailureKind::Denied, message).next(answer_command(waiting))
    };
    if !conversation.is_interrupted() {
        if approval_mode != ApprovalMode::Terminal {
            return Err(waiting(conversation.waiting()));
        }
        screen::say("an earlier turn of this session waits for your answer");
    }
    let request = TurnRequest::Continue;
    let watched = watch(conversation, request, approval_mode, context, view).await?;
    match watched.end {
        TurnEnd::Waiting(left) if left.is_empty() => Ok(()),
        TurnEnd::Waiting(left) => Err(waiting(&left)),
        TurnEnd::Finished(report) if report.outcome == Outcome::Cancelled => {
            let message = "the earlier turn was stopped, and the new question was not asked";
            Err(Failure::new(FailureKind::Interrupted, message))
        }
        TurnEnd::Finished(report) => {
            let answer = report
                .answer
                .as_deref()
                .unwrap_or("the earlier turn ended without an answer");
            screen::say(&format!("{answer}\n"));
            Ok(())
        }
    }
}
