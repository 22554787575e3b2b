//! `lango approvals`: lists, shows and answers pending approvals, and revokes grants.

use super::ask::{ApprovalMode, reason};
use super::memory::remember;
use super::present::{Presentation, answer_command};
use super::turn_screen::TurnScreen;
use super::watch::{PromptContext, TurnRequest, watch};
use crate::args::{AnswerWord, ApprovalsCommand};
use crate::exit::Exit;
use crate::screen::{self, Activity, Layout, RequestDetail, age, one_line, request, subject_line};
use crate::terminal::Output;
use lango::app::App;
use lango::app::sessions::{Sessions, open_session};
use lango::app::{Failure, grants};
use lango_core::{
    ApprovalAnswer, ApprovalId, ApprovalQuestion, Approvals, Clock, Grant, PendingApproval,
    PermissionMode, PreviewLength,
};
use lango_engine::{RunnerError, SystemClock};
use std::time::Instant;

/// Runs the command.
pub(super) async fn approvals(
    config: Vec<String>,
    mode: PermissionMode,
    command: Option<ApprovalsCommand>,
) -> Result<Exit, Failure> {
    let mut app = App::load(config).await?;
    app.mode.set(mode);
    let sessions = app.sessions_for_reading().await?;
    match command.unwrap_or(ApprovalsCommand::List { json: false }) {
        ApprovalsCommand::List { json } => {
            list(&app, &sessions, json, "lango approvals revoke ID").await
        }
        ApprovalsCommand::Show { id } => {
            let waiting = approvals_of_all_users(&app, &sessions).await?.waiting;
            let waiting = find_by_prefix(&id, "pending approval", waiting, |waiting| {
                &waiting.request.id
            })?;
            show(&app, &waiting).await
        }
        ApprovalsCommand::Answer {
            id,
            answer,
            pattern,
            because,
            json,
            quiet,
            ..
        } => {
            let waiting = approvals_of_all_users(&app, &sessions).await?.waiting;
            let waiting = find_by_prefix(&id, "pending approval", waiting, |waiting| {
                &waiting.request.id
            })?;
            let answer = read_answer(&app, &waiting, answer, pattern, because)?;
            let presentation = Presentation {
                json,
                quiet,
                is_plain: app.loaded.settings.ui.plain,
                ..Presentation::default()
            };
            app.connect().await?;
            let result = answer_and_resume(&app, &sessions, &waiting, answer, presentation).await;
            // Also after a failure, so that clean-up after servers is reported.
            app.close().await;
            result
        }
        ApprovalsCommand::Revoke { id } => revoke(&app, &sessions, &id).await,
    }
}

/// Revokes the grant whose id starts with `id`.
pub(super) async fn revoke(app: &App, sessions: &Sessions, id: &str) -> Result<Exit, Failure> {
    let granted = approvals_of_all_users(app, sessions).await?.granted;
    let grant = find_by_prefix(id, "grant", granted, |grant| &grant.id)?;
    let user = sessions.store.read_head(&grant.session).await?.user;
    sessions.catalog.revoke(&user, &grant.id).await?;
    screen::print(&format!("revoked: {}", grant_line(&grant)))?;
    Ok(Exit::Ok)
}

/// Prints a pending call in full.
async fn show(app: &App, waiting: &PendingApproval) -> Result<Exit, Failure> {
    let asked_in = &waiting.request.folder;
    let is_here = asked_in.is_empty() || **asked_in == *app.folder();
    let preview = if is_here {
        app.gate()?
            .preview(&waiting.request, PreviewLength::Full)
            .await
    } else {
        screen::say(&format!(
            "only the arguments are shown; run this command in {asked_in} to see what the call would change"
        ));
        None
    };
    let shown = RequestDetail::Everything(preview.as_deref());
    screen::print(&request(waiting, shown, 0, screen::columns()))?;
    Ok(Exit::Ok)
}

/// Returns the pending approvals and the grants of all users whose turns run here; see [`App::users`].
async fn approvals_of_all_users(app: &App, sessions: &Sessions) -> Result<Approvals, Failure> {
    let mut all = Approvals::default();
    for user in app.users() {
        let approvals = sessions.catalog.approvals(&user).await?;
        all.waiting.extend(approvals.waiting);
        all.granted.extend(approvals.granted);
    }
    all.waiting.sort_by_key(|waiting| waiting.asked);
    all.granted.sort_by_key(|grant| grant.given);
    Ok(all)
}

pub(super) async fn list(
    app: &App,
    sessions: &Sessions,
    as_json: bool,
    revoke_command: &str,
) -> Result<Exit, Failure> {
    let approvals = approvals_of_all_users(app, sessions).await?;
    if as_json {
        screen::print(&screen::json(
            &grants::approvals_json(app, &approvals),
            Layout::Indented,
        )?)?;
        return Ok(Exit::Ok);
    }
    if approvals.waiting.is_empty() && approvals.granted.is_empty() {
        screen::print("there are no pending approvals and no grants")?;
        return Ok(Exit::Ok);
    }
    let now = SystemClock.now();
    for waiting in &approvals.waiting {
        let user = sessions.store.read_head(&waiting.session).await?.user;
        let requester = if user == app.user() {
            String::new()
        } else {
            format!(", requested by {}", one_line(user.as_str(), 40))
        };
        screen::print(&format!(
            "{}  {}  {}  ({}, in {}, session {}{requester})",
            match waiting.request.question {
                ApprovalQuestion::Permission => "pending",
                ApprovalQuestion::UnknownOutcome | ApprovalQuestion::ContinueTurn => "unknown",
            },
            waiting.request.id,
            subject_line(&waiting.request),
            age(waiting.asked, now),
            one_line(&waiting.request.folder, 80),
            waiting.session
        ))?;
    }
    for grant in &approvals.granted {
        let problem = grants::problem(app, grant);
        screen::print(&format!(
            "{}  {}  ({}{})",
            if problem.is_some() {
                "lapsed "
            } else {
                "granted"
            },
            grant_line(grant),
            age(grant.given, now),
            problem.map_or(String::new(), |problem| format!(
                "; not in force: {problem}"
            )),
        ))?;
    }
    if !approvals.waiting.is_empty() {
        let is_asked = |asks| {
            approvals
                .waiting
                .iter()
                .any(|waiting| waiting.request.question == asks)
        };
        screen::say("show in full: lango approvals show ID");
        if is_asked(ApprovalQuestion::Permission) {
            screen::say("answer: lango approvals answer ID yes|session|always|no");
        }
        if is_asked(ApprovalQuestion::UnknownOutcome) {
            screen::say(
                "may have run: lango approvals answer ID retry|skip, or happened --because \"…\"",
            );
        }
        if is_asked(ApprovalQuestion::ContinueTurn) {
            screen::say(
                "running when the database was copied: lango approvals answer ID retry (continue) or skip (end it)",
            );
        }
    }
    if !approvals.granted.is_empty() {
        screen::say(&format!("revoke: {revoke_command}"));
    }
    Ok(Exit::Ok)
}

fn grant_line(grant: &Grant) -> String {
    let place = match &grant.folder {
        Some(folder) => format!("always in {folder}"),
        None => format!("in session {}", grant.session),
    };
    let line = format!(
        "{}  {} {} {}  {place}",
        grant.id, grant.agent, grant.tool, grant.pattern
    );
    one_line(&line, 300)
}

/// Finds the item whose id starts with `prefix`.
fn find_by_prefix<T>(
    prefix: &str,
    kind: &str,
    all: Vec<T>,
    id: impl Fn(&T) -> &ApprovalId,
) -> Result<T, Failure> {
    let fits = |one: &T| !prefix.is_empty() && id(one).as_str().starts_with(prefix);
    let mut found: Vec<T> = all.into_iter().filter(fits).collect();
    match (found.pop(), found.is_empty()) {
        (Some(one), true) => Ok(one),
        (Some(_), false) => Err(
            Failure::usage(format!("more than one id starts with `{prefix}`"))
                .next("give more characters of the id"),
        ),
        (None, _) => Err(Failure::usage(format!("no {kind} has the id `{prefix}`"))
            .next("run `lango approvals` to list pending approvals and grants")),
    }
}

fn read_answer(
    app: &App,
    waiting: &PendingApproval,
    word: AnswerWord,
    pattern: Option<String>,
    because: Option<String>,
) -> Result<ApprovalAnswer, Failure> {
    let fits = match waiting.request.question {
        ApprovalQuestion::Permission => !matches!(
            word,
            AnswerWord::Retry | AnswerWord::Skip | AnswerWord::Happened
        ),
        ApprovalQuestion::UnknownOutcome | ApprovalQuestion::ContinueTurn => matches!(
            word,
            AnswerWord::Retry | AnswerWord::Skip | AnswerWord::Happened
        ),
    };
    if !fits {
        let message = match waiting.request.question {
            ApprovalQuestion::Permission => {
                "the question is whether the call may run; answer yes, session, always or no"
            }
            ApprovalQuestion::UnknownOutcome => {
                "the question is what happened to the call; answer retry, skip or happened"
            }
            ApprovalQuestion::ContinueTurn => {
                "the question is whether the turn continues; answer retry, skip or happened"
            }
        };
        let next = answer_command(std::slice::from_ref(waiting));
        return Err(Failure::usage(message).next(next));
    }
    let takes_reason = matches!(word, AnswerWord::No | AnswerWord::Happened);
    if because.is_some() && !takes_reason {
        let message = "--because is only used with `no` and `happened`";
        let id = &waiting.request.id;
        let next = match waiting.request.question {
            ApprovalQuestion::Permission => {
                format!("leave out --because, or: lango approvals answer {id} no --because \"…\"")
            }
            ApprovalQuestion::UnknownOutcome | ApprovalQuestion::ContinueTurn => format!(
                "leave out --because, or say what happened: lango approvals answer {id} happened --because \"…\""
            ),
        };
        return Err(Failure::usage(message).next(next));
    }
    let pattern = || grants::pattern(app, waiting, pattern.as_deref());
    Ok(match word {
        AnswerWord::Yes => ApprovalAnswer::Once,
        AnswerWord::Session => ApprovalAnswer::Session {
            pattern: pattern()?,
        },
        AnswerWord::Always => ApprovalAnswer::Always {
            pattern: pattern()?,
            folder: app.folder().into(),
        },
        AnswerWord::No => ApprovalAnswer::No {
            reason: because.as_deref().and_then(reason),
        },
        AnswerWord::Retry => ApprovalAnswer::Retry,
        AnswerWord::Skip => ApprovalAnswer::Skip,
        AnswerWord::Happened => {
            let text = because.map(|text| text.trim().to_owned());
            let text = text.filter(|text| !text.is_empty()).ok_or_else(|| {
                Failure::usage("say what happened").next(format!(
                    "lango approvals answer {} happened --because \"…\"",
                    waiting.request.id
                ))
            })?;
            ApprovalAnswer::Happened { text: text.into() }
        }
    })
}

/// Answers an approval and continues the turn. Further approvals are requested at the terminal, or stay pending.
async fn answer_and_resume(
    app: &App,
    sessions: &Sessions,
    waiting: &PendingApproval,
    answer: ApprovalAnswer,
    presentation: Presentation,
) -> Result<Exit, Failure> {
    let asked_in = &waiting.request.folder;
    if !asked_in.is_empty() && **asked_in != *app.folder() {
        return Err(RunnerError::WrongFolder {
            request: waiting.request.id.clone(),
            folder: asked_in.clone(),
        }
        .into());
    }
    let choice = app.choose_model().await?;
    let runner = app.runner(sessions, &choice.model)?;
    let mut conversation = open_session(&runner, waiting.session.clone()).await?;
    if !presentation.quiet {
        let preview = conversation
            .runner()
            .preview(waiting, PreviewLength::Full)
            .await;
        let shown = RequestDetail::Preview(preview.as_deref(), screen::PREVIEW_ROWS);
        screen::say(&request(waiting, shown, 0, screen::columns()));
    }
    let approval_mode = match ApprovalMode::detect(Output::Stderr) {
        ApprovalMode::Deny => ApprovalMode::Defer,
        approval_mode => approval_mode,
    };
    let started = Instant::now();
    let input = TurnRequest::Answer(waiting.request.id.clone(), answer);
    app.vaults.allow_prompts();
    let context = PromptContext {
        folder: &app.folder(),
        vaults: &app.vaults,
        typed_command: None,
        mode: &app.mode,
    };
    let display = presentation.display();
    let palette = display.palette();
    let mut activity = Activity::new(palette.clone());
    let (mut keys, mut lines) = (None, None);
    let view = TurnScreen::new(display, &mut activity, palette, &mut keys, &mut lines, None);
    let watched = watch(&mut conversation, input, approval_mode, context, view).await?;
    let exit = presentation.present(&watched, choice.model.name(), started.elapsed())?;
    remember(
        app,
        conversation.user(),
        &waiting.session,
        presentation.quiet,
    )
    .await;
    Ok(exit)
}
