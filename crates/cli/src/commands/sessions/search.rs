//! `lango sessions search`: finds a text in titles, questions and answers.

use crate::screen::{self, Layout, age, count, one_line};
use lango::app::sessions::Sessions;
use lango::app::{App, Failure};
use lango_core::{Clock, MessageHit, MessageQuery, SessionQuery, SessionSummary};
use lango_engine::SystemClock;
use serde_json::json;

/// How many sessions are searched for messages, the most recently used first. There is no index of words, so every
/// message of these is read.
const MAX_SESSIONS: usize = 1_000;

/// How many characters of a message are shown around a hit.
const EXCERPT_CHARS: usize = 100;

/// Searches and prints the result: sessions whose title contains the text, then messages.
pub(super) async fn search(
    app: &App,
    sessions: &Sessions,
    text: &str,
    as_json: bool,
    limit: usize,
) -> Result<(), Failure> {
    if text.trim().is_empty() {
        return Err(Failure::usage("the text to search for is empty")
            .next("run `lango sessions list` to see all sessions"));
    }
    let user = app.user();
    let titled = SessionQuery {
        search: Some(text.to_owned()),
        ..SessionQuery::recent(limit.saturating_add(1))
    };
    let titled = sessions.catalog.list(&user, titled).await?;
    let query = MessageQuery {
        text: text.to_owned(),
        sessions: MAX_SESSIONS,
        limit: limit.saturating_add(1),
    };
    let found = sessions.catalog.search_messages(&user, query).await?;
    let messages = found.messages;
    let has_more = titled.len() > limit || messages.len() > limit;
    let (titled, messages) = (
        &titled[..titled.len().min(limit)],
        &messages[..messages.len().min(limit)],
    );
    if as_json {
        let messages: Vec<_> = messages
            .iter()
            .map(|hit| {
                json!({
                    "session": hit.session,
                    "title": hit.title,
                    "seq": hit.seq,
                    "author": hit.author,
                    "time": hit.time,
                    "text": excerpt(&hit.text, text),
                })
            })
            .collect();
        let result = json!({ "sessions": titled, "messages": messages });
        screen::print(&screen::json(&result, Layout::Indented)?)?;
    } else {
        print_hits(titled, messages, text)?;
    }
    if has_more {
        screen::say("there are more; use --limit to see them");
    }
    if found.skipped_sessions {
        screen::say(&format!(
            "messages were searched in the {MAX_SESSIONS} most recently used sessions only"
        ));
    }
    Ok(())
}

fn print_hits(
    titled: &[SessionSummary],
    messages: &[MessageHit],
    text: &str,
) -> Result<(), Failure> {
    if titled.is_empty() && messages.is_empty() {
        return Ok(screen::print(
            "no title, question or answer contains this text",
        )?);
    }
    let now = SystemClock.now();
    // A session with messages that contain the text is shown once, above them.
    let has_hit = |session: &&SessionSummary| messages.iter().any(|hit| hit.session == session.id);
    for session in titled.iter().filter(|session| !has_hit(session)) {
        let turns = count(session.turns, "turn");
        screen::print(&format!(
            "{:<16}{}  {}, {turns}",
            session.id.as_str(),
            one_line(&session.title, EXCERPT_CHARS),
            age(session.updated, now),
        ))?;
    }
    let mut last = None;
    for hit in messages {
        if last != Some(&hit.session) {
            screen::print(&format!(
                "{:<16}{}",
                hit.session.as_str(),
                one_line(&hit.title, 60)
            ))?;
            last = Some(&hit.session);
        }
        screen::print(&format!(
            "  {:>10}  {}: {}",
            age(hit.time, now),
            hit.author,
            excerpt(&hit.text, text)
        ))?;
    }
    Ok(())
}

/// Returns the part of a message around the first place where it contains the text, as one line.
fn excerpt(message: &str, text: &str) -> String {
    let characters: Vec<char> = message.chars().collect();
    let wanted: Vec<char> = text.chars().collect();
    let is_same =
        |one: &char, other: &char| one == other || one.to_lowercase().eq(other.to_lowercase());
    let found = characters.windows(wanted.len()).position(|part| {
        part.iter()
            .zip(&wanted)
            .all(|(one, other)| is_same(one, other))
    });
    let spare = EXCERPT_CHARS.saturating_sub(wanted.len()) / 2;
    let start = found.unwrap_or(0).saturating_sub(spare);
    let part: String = characters[start..].iter().take(EXCERPT_CHARS * 4).collect();
    let dots = if start > 0 { "…" } else { "" };
    format!("{dots}{}", one_line(&part, EXCERPT_CHARS))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_excerpt_shows_the_text_with_what_surrounds_it() {
        let message = format!(
            "{}the NEEDLE\nis here {}",
            "hay ".repeat(100),
            "hay ".repeat(100)
        );
        let shown = excerpt(&message, "needle");
        assert!(shown.starts_with('…') && shown.ends_with('…'), "{shown}");
        assert!(shown.contains("the NEEDLE is here"), "{shown}");
        assert!(shown.chars().count() <= EXCERPT_CHARS + 1);
        assert_eq!(excerpt("ÄÖ", "äö"), "ÄÖ");
        assert_eq!(excerpt("short", "longer than it"), "short");
    }
}
