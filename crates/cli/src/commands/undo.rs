//! `lango undo`: lists the turns that changed files, shows the differences, and undoes a turn.

use super::confirm::{confirm, has_terminal};
use crate::args::UndoArguments;
use crate::exit::Exit;
use crate::screen::{self, Layout, age, count, one_line};
use lango::app::sessions::Sessions;
use lango::app::undo::{DiffChoice, UndoChoice, UndoPlan, UndoReport};
use lango::app::{App, Failure};
use lango_core::Clock;
use lango_engine::SystemClock;
use lango_tools::{FileDifference, UndoMode};

/// Maximum number of turns in the list.
const MAX_LISTED: usize = 50;

/// Maximum number of lines of the diff of one file.
const DIFF_LINES: usize = 400;

const WITHOUT_ASKING: &str = "use --yes to undo without asking";

/// Runs the command.
pub(super) async fn undo(config: Vec<String>, arguments: UndoArguments) -> Result<Exit, Failure> {
    let app = App::load(config).await?;
    let sessions = app.sessions_for_reading().await?;
    let turn = arguments.turn.as_deref();
    let choice = turn.map_or(UndoChoice::LastHere, UndoChoice::Turn);
    if arguments.list {
        list(&app, &sessions, arguments.json, "lango undo TURN").await?;
    } else if arguments.diff {
        let choice = DiffChoice::Turn(choice);
        let files = app.file_differences(&sessions, choice, DIFF_LINES).await?;
        show_differences(&files, arguments.json)?;
    } else {
        let plan = app.undo_plan(&sessions, choice).await?;
        return undo_turn(plan, &arguments).await;
    }
    Ok(Exit::Ok)
}

async fn undo_turn(plan: UndoPlan, arguments: &UndoArguments) -> Result<Exit, Failure> {
    let mode = if arguments.partial {
        UndoMode::Partial
    } else {
        UndoMode::Whole
    };
    let is_blocked = mode == UndoMode::Whole && plan.obstacles().next().is_some();
    if !arguments.yes && !is_blocked {
        if !has_terminal() {
            let message = "undoing changes files, and there is no terminal to ask for confirmation";
            return Err(Failure::usage(message).next(WITHOUT_ASKING));
        }
        screen::say(&heading(&plan));
        plan.lines().iter().for_each(|line| screen::say(line));
        if !confirm("undo these changes?").await? {
            screen::say("nothing was changed");
            return Ok(Exit::Ok);
        }
    }
    let report = plan.run(mode).await?;
    if arguments.json {
        screen::print(&screen::json(&report, Layout::Indented)?)?;
    } else {
        show_report(&report)?;
    }
    Ok(if report.is_complete || mode == UndoMode::Partial {
        Exit::Ok
    } else {
        Exit::Failed
    })
}

fn heading(plan: &UndoPlan) -> String {
    format!("undoing turn {}: {}", plan.turn, plan.message)
}

fn show_report(report: &UndoReport) -> Result<(), Failure> {
    for path in &report.restored {
        screen::print(&format!("restored {}", one_line(path, 200)))?;
    }
    for skipped in &report.skipped {
        let path = one_line(&skipped.path, 200);
        screen::print(&format!("left {path}: {}", skipped.reason))?;
    }
    for call in &report.not_undone {
        screen::say(&format!("not undone: {call}"));
    }
    if !report.is_complete {
        let turn = &report.turn;
        screen::say(&format!(
            "`lango undo {turn}` can restore the rest later, except for what was not saved; `lango undo {turn} --diff` shows \
             what it can restore"
        ));
    }
    Ok(())
}

/// Lists the turns that changed files in this folder, and says with which command one is undone.
pub(super) async fn list(
    app: &App,
    sessions: &Sessions,
    as_json: bool,
    undo_command: &str,
) -> Result<(), Failure> {
    let turns = app.file_turns(sessions, MAX_LISTED).await?;
    if as_json {
        return Ok(screen::print(&screen::json(&turns, Layout::Indented)?)?);
    }
    if turns.is_empty() {
        return Ok(screen::print("no turn has changed files in this folder")?);
    }
    let now = SystemClock.now();
    for turn in &turns {
        let files = match turn.paths.as_slice() {
            [one] => one_line(one, 40),
            paths => count(paths.len() as u64, "path"),
        };
        let undone = match (turn.is_undone, turn.left.len() as u64) {
            (false, _) => String::new(),
            (true, 0) => "  (undone)".to_owned(),
            (true, left) => format!("  (undone, except for {})", count(left, "path")),
        };
        let age = age(turn.updated, now);
        let message = one_line(&turn.message, 40);
        screen::print(&format!(
            "{:<16}{age:>10}  {message}  {files}{undone}",
            turn.turn
        ))?;
    }
    screen::say(&format!("undo: {undo_command}"));
    Ok(())
}

fn show_differences(files: &[FileDifference], as_json: bool) -> Result<(), Failure> {
    if as_json {
        return Ok(screen::print(&screen::json(&files, Layout::Indented)?)?);
    }
    if files.is_empty() {
        return Ok(screen::print(
            "no file that can still be undone differs from its original",
        )?);
    }
    for file in files {
        let path = one_line(&file.path, 200);
        screen::print(&format!("{} {path}", file.change.name()))?;
        if !file.diff.is_empty() {
            screen::print(file.diff.trim_end_matches('\n'))?;
        }
    }
    Ok(())
}
