//! `lango approvals`: what waits for an answer, what was granted, and taking it back.

pub(crate) mod grants;

use super::ask::{Asker, reason};
use super::memory::remember;
use super::present::{Presentation, how_to_answer};
use super::watch::{Given, Place, watch};
use crate::app::App;
use crate::args::{AnswerWord, ApprovalsCommand};
use crate::exit::{Exit, Failure};
use crate::screen::{self, Layout, Shown, age, one_line, request, subject_line};
use crate::sessions::{Sessions, open_session};
use lango_core::{Answer, ApprovalId, Approvals, Asks, Clock, Extent, Grant, Waiting};
use lango_engine::{RunnerError, SystemClock};
use std::time::Instant;

/// Runs the command.
pub async fn approvals(
    config: Vec<String>,
    command: Option<ApprovalsCommand>,
) -> Result<Exit, Failure> {
    let mut app = App::load(config).await?;
    let sessions = app.past_sessions().await?;
    match command.unwrap_or(ApprovalsCommand::List { json: false }) {
        ApprovalsCommand::List { json } => list(&app, &sessions, json).await,
        ApprovalsCommand::Show { id } => {
            let waiting = everybodys(&app, &sessions).await?.waiting;
            let waiting = only(&id, "waits", waiting, |waiting| &waiting.request.id)?;
            show(&app, &waiting).await
        }
        ApprovalsCommand::Answer {
            id,
            answer,
            pattern,
            because,
            json,
            quiet,
        } => {
            let waiting = everybodys(&app, &sessions).await?.waiting;
            let waiting = only(&id, "waits", waiting, |waiting| &waiting.request.id)?;
            let answer = read_answer(&app, &waiting, answer, pattern, because)?;
            let presentation = Presentation {
                json,
                quiet,
                ..Presentation::default()
            };
            app.connect().await?;
            let result = go_on(&app, &sessions, &waiting, answer, presentation).await;
            // Also after a failure: what servers left behind has to be reported.
            app.close().await;
            result
        }
        ApprovalsCommand::Revoke { id } => {
            let granted = everybodys(&app, &sessions).await?.granted;
            let grant = only(&id, "is granted", granted, |grant| &grant.id)?;
            let user = sessions.store.open(&grant.session).await?.user;
            sessions.catalog.revoke(&user, &grant.id).await?;
            screen::print(&format!("taken back: {}", grant_line(&grant)))?;
            Ok(Exit::Ok)
        }
    }
}

/// Shows all of a call that waits.
async fn show(app: &App, waiting: &Waiting) -> Result<Exit, Failure> {
    let asked_in = &waiting.request.folder;
    let is_here = asked_in.is_empty() || **asked_in == *app.folder();
    let preview = if is_here {
        app.gate()?.preview(&waiting.request, Extent::Whole).await
    } else {
        screen::say(&format!(
            "only the arguments are shown here; run this in {asked_in} to see what the call would change"
        ));
        None
    };
    let shown = Shown::Everything(preview.as_deref());
    screen::print(&request(waiting, shown, 0, screen::columns()))?;
    Ok(Exit::Ok)
}

/// What waits for somebody at this machine, and what they granted: in their own sessions and in those of callers.
async fn everybodys(app: &App, sessions: &Sessions) -> Result<Approvals, Failure> {
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

async fn list(app: &App, sessions: &Sessions, as_json: bool) -> Result<Exit, Failure> {
    let approvals = everybodys(app, sessions).await?;
    if as_json {
        screen::print(&screen::json(
            &grants::listed(app, &approvals),
            Layout::Indented,
        )?)?;
        return Ok(Exit::Ok);
    }
    if approvals.waiting.is_empty() && approvals.granted.is_empty() {
        screen::print("nothing waits, and nothing is granted")?;
        return Ok(Exit::Ok);
    }
    let now = SystemClock.now();
    for waiting in &approvals.waiting {
        let user = sessions.store.open(&waiting.session).await?.user;
        let whose = match user == app.user() {
            true => String::new(),
            false => format!(", asked for by {}", one_line(user.as_str(), 40)),
        };
        screen::print(&format!(
            "{}  {}  {}  ({}, in {}, session {}{whose})",
            match waiting.request.asks {
                Asks::Permission => "waits  ",
                Asks::Fate | Asks::Turn => "unknown",
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
                .any(|waiting| waiting.request.asks == asks)
        };
        screen::say("see all of it: lango approvals show ID");
        if is_asked(Asks::Permission) {
            screen::say("answer: lango approvals answer ID yes|session|always|no");
        }
        if is_asked(Asks::Fate) {
            screen::say(
                "may have run: lango approvals answer ID retry|skip, or happened --because \"…\"",
            );
        }
        if is_asked(Asks::Turn) {
            screen::say(
                "in flight when the database was copied: lango approvals answer ID retry (go on) or skip (end it)",
            );
        }
    }
    if !approvals.granted.is_empty() {
        screen::say("take back: lango approvals revoke ID");
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

/// The one whose id begins like this.
fn only<T>(
    prefix: &str,
    state: &str,
    all: Vec<T>,
    id: impl Fn(&T) -> &ApprovalId,
) -> Result<T, Failure> {
    let fits = |one: &T| !prefix.is_empty() && id(one).as_str().starts_with(prefix);
    let mut found: Vec<T> = all.into_iter().filter(fits).collect();
    match (found.pop(), found.is_empty()) {
        (Some(one), true) => Ok(one),
        (Some(_), false) => Err(Failure::new(
            Exit::Usage,
            format!("more than one begins with `{prefix}`"),
        )
        .next("write more of the id")),
        (None, _) => Err(Failure::new(
            Exit::Usage,
            format!("nothing of the id `{prefix}` {state}"),
        )
        .next("`lango approvals` lists what waits and what is granted")),
    }
}

fn read_answer(
    app: &App,
    waiting: &Waiting,
    word: AnswerWord,
    pattern: Option<String>,
    because: Option<String>,
) -> Result<Answer, Failure> {
    let fits = match waiting.request.asks {
        Asks::Permission => !matches!(
            word,
            AnswerWord::Retry | AnswerWord::Skip | AnswerWord::Happened
        ),
        Asks::Fate | Asks::Turn => matches!(
            word,
            AnswerWord::Retry | AnswerWord::Skip | AnswerWord::Happened
        ),
    };
    if !fits {
        let message = match waiting.request.asks {
            Asks::Permission => "what is asked is whether it may run: yes, session, always or no",
            Asks::Fate => "what is asked is what became of it: retry, skip or happened",
            Asks::Turn => "what is asked is whether the turn goes on: retry, skip or happened",
        };
        let next = how_to_answer(std::slice::from_ref(waiting));
        return Err(Failure::new(Exit::Usage, message).next(next));
    }
    let takes_reason = matches!(word, AnswerWord::No | AnswerWord::Happened);
    if because.is_some() && !takes_reason {
        let message =
            "a reason goes with `no` and with `happened`, and nobody would hear of this one";
        let id = &waiting.request.id;
        let next = match waiting.request.asks {
            Asks::Permission => {
                format!("leave out --because, or: lango approvals answer {id} no --because \"…\"")
            }
            Asks::Fate | Asks::Turn => format!(
                "leave out --because, or tell what became of it: lango approvals answer {id} happened --because \"…\""
            ),
        };
        return Err(Failure::new(Exit::Usage, message).next(next));
    }
    let pattern = || grants::pattern(app, waiting, pattern.as_deref());
    Ok(match word {
        AnswerWord::Yes => Answer::Once,
        AnswerWord::Session => Answer::Session {
            pattern: pattern()?,
        },
        AnswerWord::Always => Answer::Always {
            pattern: pattern()?,
            folder: app.folder().into(),
        },
        AnswerWord::No => Answer::No {
            reason: because.as_deref().and_then(reason),
        },
        AnswerWord::Retry => Answer::Retry,
        AnswerWord::Skip => Answer::Skip,
        AnswerWord::Happened => {
            let text = because.map(|text| text.trim().to_owned());
            let text = text.filter(|text| !text.is_empty()).ok_or_else(|| {
                Failure::new(Exit::Usage, "say what happened").next(format!(
                    "lango approvals answer {} happened --because \"…\"",
                    waiting.request.id
                ))
            })?;
            Answer::Happened { text: text.into() }
        }
    })
}

/// Answers, and runs the turn on. What it asks for next is asked at the terminal, or waits in its turn.
async fn go_on(
    app: &App,
    sessions: &Sessions,
    waiting: &Waiting,
    answer: Answer,
    presentation: Presentation,
) -> Result<Exit, Failure> {
    let asked_in = &waiting.request.folder;
    if !asked_in.is_empty() && **asked_in != *app.folder() {
        return Err(RunnerError::Elsewhere {
            request: waiting.request.id.clone(),
            folder: asked_in.clone(),
        }
        .into());
    }
    let choice = app.choose_model().await?;
    let runner = app.runner(sessions, &choice.model)?;
    let mut conversation = open_session(&runner, waiting.session.clone()).await?;
    if !presentation.quiet {
        let preview = conversation.preview(waiting, Extent::Short).await;
        let shown = Shown::Preview(preview.as_deref());
        screen::say(&request(waiting, shown, 0, screen::columns()));
    }
    let asker = match Asker::of_this_process() {
        Asker::Nobody => Asker::Later,
        asker => asker,
    };
    let started = Instant::now();
    let given = Given::Answer(waiting.request.id.clone(), answer);
    let shower = presentation.shower();
    app.vaults.allow_prompts();
    let place = Place {
        folder: &app.folder(),
        vaults: &app.vaults,
    };
    let watched = watch(&mut conversation, given, asker, place, shower).await?;
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
