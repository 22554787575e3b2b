//! `lango resume`: chooses an earlier session and opens a chat in it.

use super::chat;
use super::confirm::{ask, has_terminal};
use crate::args::ResumeArguments;
use crate::exit::Exit;
use crate::screen::{self, age, one_line, recap};
use crate::terminal::{KeyReader, Output, Palette, PickDetail, ScreenMode, pick, width};
use lango::app::sessions::Sessions;
use lango::app::{App, Failure, Persistence};
use lango_core::text::sanitize;
use lango_core::{
    BusyPolicy, Clock, EventRange, PermissionMode, SessionId, SessionQuery, SessionStatus,
    SessionSummary, StoreError, Timestamp,
};
use lango_engine::SystemClock;
use lango_markdown::Style;

/// How many sessions there are to choose from with the arrow keys.
const MAX_PICKED: usize = 500;

/// How many sessions there are to choose from by number.
const MAX_NUMBERED: usize = 15;

/// The fewest columns for the title of a session.
const MIN_TITLE_COLUMNS: usize = 24;

/// How many unfinished sessions a new chat names.
const MAX_UNFINISHED: usize = 3;

/// How many exchanges a resumed chat shows.
const RECAP_TURNS: usize = 3;

/// Runs the command.
pub(super) async fn resume(
    config: Vec<String>,
    mode: PermissionMode,
    arguments: ResumeArguments,
) -> Result<Exit, Failure> {
    let mut app = App::load_for(config, Persistence::Everything).await?;
    app.mode.set(mode);
    let sessions = app.sessions_for_reading().await?;
    let id = match arguments.id {
        Some(id) => app.find_session(&sessions, &id).await?,
        None => match choose_session(&app, &sessions).await? {
            Some(id) => id,
            None => {
                screen::say("no session was chosen");
                return Ok(Exit::Interrupted);
            }
        },
    };
    chat::resume(&mut app, sessions, id).await
}

/// Returns the user's most recently used session in this folder. Skips sessions in which another process runs a turn.
pub(super) async fn last_session_here(
    app: &App,
    sessions: &Sessions,
) -> Result<SessionId, Failure> {
    let here = sessions_here(app, sessions, MAX_NUMBERED).await?;
    let mut last: Option<(Timestamp, &SessionSummary)> = None;
    for session in &here {
        let is_unfinished = is_unfinished(session);
        let used = if is_unfinished {
            time_of_last_event(sessions, session).await?
        } else {
            session.updated
        };
        let is_later = last.is_none_or(|(other, _)| used > other);
        if is_later && !(is_unfinished && is_running(sessions, &session.id).await) {
            last = Some((used, session));
        }
    }
    let last = last.map(|(_, session)| session).or(here.first());
    last.map(|session| session.id.clone()).ok_or_else(|| {
        let message = format!("there is no session to continue in `{}`", app.folder());
        Failure::usage(message)
            .next("start one with `lango`, or choose one of another folder with `lango resume`")
    })
}

/// Returns when something happened last in a session. Lists have the time at which a turn ended last.
async fn time_of_last_event(
    sessions: &Sessions,
    session: &SessionSummary,
) -> Result<Timestamp, StoreError> {
    let range = EventRange {
        from: session.events,
        limit: 1,
    };
    let events = sessions.store.read(&session.id, range).await?;
    Ok(events.first().map_or(session.updated, |event| event.time))
}

/// Whether another process runs a turn of this session now.
async fn is_running(sessions: &Sessions, session: &SessionId) -> bool {
    let lease = sessions.store.acquire(session, BusyPolicy::Refuse).await;
    lease.is_err()
}

/// Returns sessions of this folder whose last turn has no outcome, the most recently used first: each waits for an answer,
/// was interrupted, or is running in another process.
pub(super) async fn unfinished_here(
    app: &App,
    sessions: &Sessions,
) -> Result<Vec<SessionSummary>, StoreError> {
    // Nearly always, nothing is unfinished, and this is the cheaper query.
    if sessions.catalog.unfinished(None, 1).await?.is_empty() {
        return Ok(Vec::new());
    }
    let mut recent = sessions_here(app, sessions, MAX_NUMBERED).await?;
    recent.retain(is_unfinished);
    recent.truncate(MAX_UNFINISHED);
    Ok(recent)
}

/// Whether the last turn has no outcome.
fn is_unfinished(session: &SessionSummary) -> bool {
    matches!(
        session.status,
        SessionStatus::Waiting | SessionStatus::Running
    )
}

/// Asks which of the last sessions to resume: those of this folder first, then the others. Returns `None` if the user
/// leaves.
async fn choose_session(app: &App, sessions: &Sessions) -> Result<Option<SessionId>, Failure> {
    match ScreenMode::detect(app.loaded.settings.ui.plain, Output::Stderr) {
        ScreenMode::Live => {
            let mut keys = KeyReader::open()?;
            pick_session(app, sessions, &mut keys, &Palette::for_terminal()).await
        }
        ScreenMode::Plain => ask_for_session(app, sessions).await,
    }
}

/// Lets the user pick a session with the arrow keys. Returns `None` if the user leaves.
pub(super) async fn pick_session(
    app: &App,
    sessions: &Sessions,
    keys: &mut KeyReader,
    palette: &Palette,
) -> Result<Option<SessionId>, Failure> {
    let offered = offers(app, sessions, MAX_PICKED).await?;
    let folder = app.folder();
    let lines = |columns| offer_lines(&offered, &folder, columns);
    let details = LastExchange {
        sessions,
        offered: &offered,
    };
    let picked = pick(keys, "continue which session?", &lines, details, palette).await?;
    Ok(picked.map(|position| offered[position].id.clone()))
}

/// Describes an offered session by its last exchange.
struct LastExchange<'a> {
    sessions: &'a Sessions,
    offered: &'a [SessionSummary],
}

impl PickDetail for LastExchange<'_> {
    async fn detail(&mut self, position: usize, width: usize) -> Vec<String> {
        let session = &self.offered[position].id;
        let recap = recap_lines(self.sessions, session, 1, (width, Style::Plain)).await;
        let lines = recap.map_or_else(
            |failure| vec![sanitize(&failure.to_string()).into()],
            |recap| recap.rows,
        );
        lines.into_iter().filter(|line| !line.is_empty()).collect()
    }
}

/// Asks for the number of a session. Returns `None` if the user leaves.
async fn ask_for_session(app: &App, sessions: &Sessions) -> Result<Option<SessionId>, Failure> {
    let offered = offers(app, sessions, MAX_NUMBERED).await?;
    let lines = offer_lines(&offered, &app.folder(), usize::MAX);
    if !has_terminal() {
        let message = format!(
            "there is no terminal to choose a session; the last ones are\n{}",
            lines.join("\n")
        );
        return Err(Failure::usage(message).next("lango resume ID"));
    }
    for (number, line) in lines.iter().enumerate() {
        screen::say(&format!("{:>3}  {line}", number + 1));
    }
    loop {
        let question = format!("number of the session, 1 to {} [1]: ", lines.len());
        let Some(typed) = ask(&question).await? else {
            return Ok(None);
        };
        let number = match typed.trim() {
            "" => Some(1),
            typed => typed.parse::<usize>().ok(),
        };
        let chosen = number.and_then(|number| offered.get(number.checked_sub(1)?));
        match chosen {
            Some(session) => return Ok(Some(session.id.clone())),
            None => screen::say("  type one of the numbers, then Enter; Ctrl-D leaves"),
        }
    }
}

/// Returns the sessions to choose from, at least one.
async fn offers(
    app: &App,
    sessions: &Sessions,
    limit: usize,
) -> Result<Vec<SessionSummary>, Failure> {
    let offered = offered_sessions(app, sessions, limit).await?;
    if offered.is_empty() {
        return Err(Failure::usage("there are no sessions yet").next("start one with `lango`"));
    }
    Ok(offered)
}

async fn offered_sessions(
    app: &App,
    sessions: &Sessions,
    limit: usize,
) -> Result<Vec<SessionSummary>, StoreError> {
    let mut offered = sessions_here(app, sessions, limit).await?;
    let all = SessionQuery::recent(limit);
    let all = sessions.catalog.list(&app.user(), all).await?;
    let others = all.into_iter().filter(|other| {
        let mut known = offered.iter();
        known.all(|known| known.id != other.id)
    });
    let others: Vec<SessionSummary> = others.collect();
    offered.extend(others);
    offered.truncate(limit);
    Ok(offered)
}

async fn sessions_here(
    app: &App,
    sessions: &Sessions,
    limit: usize,
) -> Result<Vec<SessionSummary>, StoreError> {
    let query = SessionQuery {
        folder: Some(app.folder()),
        ..SessionQuery::recent(limit)
    };
    sessions.catalog.list(&app.user(), query).await
}

/// Formats the offered sessions, with the folder of those that belong to another one. In a narrow window the ids are left
/// out first, then the ages, then the numbers of turns, so that the titles stay visible.
fn offer_lines(offered: &[SessionSummary], folder: &str, columns: usize) -> Vec<String> {
    let now = SystemClock.now();
    let line = |session: &SessionSummary| {
        let place = match session.folder.as_deref() {
            Some(other) if other != folder => format!("  ({})", one_line(other, 40)),
            _ => String::new(),
        };
        let id = format!("{:<16}", session.id.as_str());
        let age = format!("{:>10}  ", age(session.updated, now));
        let turns = format!("{:>9}  ", screen::count(session.turns, "turn"));
        let heads = [
            format!("{id}{age}{turns}"),
            format!("{age}{turns}"),
            turns,
            String::new(),
        ];
        let leaves_room = |head: &&String| width(head) + MIN_TITLE_COLUMNS <= columns;
        let head = heads.iter().find(leaves_room).unwrap_or(&heads[3]);
        let question = match session.status {
            SessionStatus::Waiting if *head == heads[0] => "waits for your answer: ",
            SessionStatus::Waiting => "? ",
            _ => "",
        };
        format!("{head}{question}{}{place}", one_line(&session.title, 60))
    };
    offered.iter().map(line).collect()
}

/// Prints the last exchanges of a session. A new session has none.
pub(super) async fn print_recap(
    sessions: &Sessions,
    session: &SessionId,
    style: Style,
) -> Result<(), Failure> {
    let layout = (screen::columns(), style);
    let recap = recap_lines(sessions, session, RECAP_TURNS, layout).await?;
    if recap.earlier_turns > 0 {
        let earlier = screen::count(recap.earlier_turns as u64, "earlier turn");
        let line = format!("… {earlier} (lango sessions show {session})");
        screen::print(&format!("\n{line}"))?;
    }
    for row in recap.rows {
        screen::print_rendered(&row)?;
    }
    Ok(())
}

/// The last exchanges of a session.
#[derive(Default)]
struct Recap {
    rows: Vec<String>,
    /// The number of turns before them.
    earlier_turns: usize,
}

async fn recap_lines(
    sessions: &Sessions,
    session: &SessionId,
    turns: usize,
    (columns, style): (usize, Style),
) -> Result<Recap, Failure> {
    let head = match sessions.store.read_head(session).await {
        Err(StoreError::NotFound { .. }) => return Ok(Recap::default()),
        head => head?,
    };
    let first = head.exchanges.len().saturating_sub(turns);
    let mut events = Vec::new();
    for exchange in &head.exchanges[first..] {
        events.extend(sessions.store.turn_events(session, &exchange.turn).await?);
    }
    // The message of an unfinished turn, so that a question of that turn can be understood.
    if let Some(from) = head.unfinished {
        let message = EventRange { from, limit: 1 };
        events.extend(sessions.store.read(session, message).await?);
    }
    Ok(Recap {
        rows: recap(&events, columns, style),
        earlier_turns: first,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use lango_core::{Timestamp, UserId};

    fn summary(status: SessionStatus) -> SessionSummary {
        SessionSummary {
            id: SessionId::from("s_pb0y38mpp1hc"),
            user: UserId::from("ann"),
            title: "fix the parser".to_owned(),
            created: Timestamp(0),
            updated: SystemClock.now(),
            turns: 2,
            events: 9,
            status,
            origin: None,
            folder: None,
        }
    }

    #[test]
    fn a_narrow_list_leaves_out_the_id_then_the_age_then_the_turns_before_the_title() {
        let line =
            |columns| offer_lines(&[summary(SessionStatus::Idle)], "/here", columns).remove(0);
        let turns = "  2 turns  fix the parser";
        let age = format!("  just now  {turns}");
        assert_eq!(line(78), format!("s_pb0y38mpp1hc  {age}"));
        assert_eq!(line(58), age);
        assert_eq!(line(38), turns);
        assert_eq!(line(28), "fix the parser");
    }

    #[test]
    fn a_waiting_session_is_marked_in_a_narrow_list_too() {
        let waiting = [summary(SessionStatus::Waiting)];
        let line = |columns| offer_lines(&waiting, "/here", columns).remove(0);
        assert!(line(78).ends_with("waits for your answer: fix the parser"));
        assert_eq!(line(38), "  2 turns  ? fix the parser");
    }
}
