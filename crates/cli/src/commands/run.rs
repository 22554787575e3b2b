//! `lango run`: one turn. The answer goes to stdout, everything else to stderr.

use super::ask::Asker;
use super::input;
use super::memory::remember;
use super::present::{Presentation, how_to_answer};
use super::watch::{Given, Place, watch};
use crate::app::{App, Keeping};
use crate::args::RunArguments;
use crate::attach::read_files;
use crate::exit::{Exit, Failure};
use crate::screen::{self, Layout, subject_line};
use crate::sessions::open_session;
use crate::signals::StartSignals;
use crate::text_file;
use lango_core::{Outcome, Waiting};
use lango_engine::{AnswerSchema, Conversation, TurnEnd};
use serde_json::json;
use std::fmt::Display;
use std::fs::File;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

/// The arguments of a bare `lango` whose standard input is not a terminal.
pub fn piped() -> RunArguments {
    RunArguments::default()
}

/// Runs the command.
pub async fn run(config: Vec<String>, arguments: RunArguments) -> Result<Exit, Failure> {
    let as_json = arguments.json || arguments.jsonl;
    let result = turn(config, arguments).await;
    if let (true, Err(failure)) = (as_json, &result) {
        let error = json!({ "error": failure.to_string(), "exit": failure.exit.code() });
        screen::print(&screen::json(&error, Layout::Line)?)?;
    }
    result
}

async fn turn(config: Vec<String>, arguments: RunArguments) -> Result<Exit, Failure> {
    let keeping = match arguments.ephemeral {
        true => Keeping::Nothing,
        false => Keeping::Everything,
    };
    let schema = arguments.schema.as_deref().map(read_schema).transpose()?;
    let mut signals = StartSignals::listen()?;
    let mut app = signals.guard(App::load_for(config, keeping)).await?;
    let result = turn_in(&mut app, arguments, schema, &mut signals).await;
    // Also after a failure: what servers left behind has to be reported.
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
        app.held.remember();
    }
    let choice = signals.guard(app.choose_model()).await?;
    if !arguments.quiet {
        choice.warn();
    }
    let runner = app.runner(&sessions, &choice.model)?;
    let mut conversation = match &arguments.session {
        Some(prefix) => {
            let session = app.find_session(&sessions, prefix).await?;
            open_session(&runner, session).await?
        }
        None => runner.start(app.user()),
    };
    let presentation = Presentation {
        json: arguments.json,
        jsonl: arguments.jsonl,
        quiet: arguments.quiet,
        ephemeral: arguments.ephemeral,
    };
    let asker = match Asker::of_this_process() {
        Asker::Terminal if arguments.ephemeral => Asker::TerminalNow,
        asker => asker,
    };
    app.vaults.allow_prompts();
    if asker == Asker::Nobody {
        app.vaults.print_problems();
    }
    let folder = app.folder();
    let place = Place {
        folder: &folder,
        vaults: &app.vaults,
    };
    if conversation.is_cut_off() || !conversation.waiting().is_empty() {
        finish_what_is_left(&mut conversation, asker, place, presentation).await?;
    }
    let started = Instant::now();
    let given = Given::Question(&question);
    let shower = presentation.shower();
    let watched = watch(&mut conversation, given, asker, place, shower).await?;
    let exit = presentation.present(&watched, choice.model.name(), started.elapsed())?;
    let (user, session) = (conversation.user(), conversation.session());
    remember(app, user, session, arguments.quiet).await;
    Ok(exit)
}

/// Reads the schema that the answer must satisfy.
fn read_schema(file: &Path) -> Result<AnswerSchema, Failure> {
    let wrong = |detail: &dyn Display| {
        let message = format!("the schema `{}` cannot be used: {detail}", file.display());
        Failure::new(Exit::Usage, message).next(
            r#"give a JSON schema such as {"type": "object", "properties": {"files": {"type": "array"}}}"#,
        )
    };
    let text = File::open(file)
        .and_then(|file| text_file::read(file, AnswerSchema::LARGEST_KIB as u64))
        .map_err(|error| wrong(&error))?;
    AnswerSchema::parse(&text).map_err(|error| wrong(&error))
}

/// A new question waits behind a turn that has no outcome: one that was cut off goes on first, one that waits for an
/// answer is asked about.
async fn finish_what_is_left(
    conversation: &mut Conversation,
    asker: Asker,
    place: Place<'_>,
    presentation: Presentation,
) -> Result<(), Failure> {
    let waiting = |waiting: &[Waiting]| {
        let message = "the session has to wait for an answer to what is asked for here";
        let subject = waiting.first().map(|first| subject_line(&first.request));
        let message = format!("{message}: {}", subject.unwrap_or_default());
        Failure::new(Exit::Denied, message).next(how_to_answer(waiting))
    };
    if !conversation.is_cut_off() {
        if asker != Asker::Terminal {
            return Err(waiting(conversation.waiting()));
        }
        screen::say("an earlier turn of this session waits for your answer");
    }
    let shower = Presentation {
        jsonl: false,
        ..presentation
    }
    .shower();
    let watched = watch(conversation, Given::Nothing, asker, place, shower).await?;
    match watched.end {
        TurnEnd::Waiting(left) if left.is_empty() => Ok(()),
        TurnEnd::Waiting(left) => Err(waiting(&left)),
        TurnEnd::Finished(report) if report.outcome == Outcome::Cancelled => {
            let message = "the earlier turn was stopped, and nothing else was asked";
            Err(Failure::new(Exit::Interrupted, message))
        }
        TurnEnd::Finished(report) => {
            let answer = report
                .answer
                .as_deref()
                .unwrap_or("it ended without a word");
            screen::say(&format!("{answer}\n"));
            Ok(())
        }
    }
}
