//! Logs for operators, on stderr, as text or as JSON lines; and notices for the user, which are always printed.
//!
//! `LANGO_LOG` selects what is logged. Without it, only notices are enabled, and any other span or event costs one
//! comparison.
//! Logs contain ids, names, sizes and times, but never messages, arguments, results or secrets.

use chrono::{SecondsFormat, Utc};
use clap::ValueEnum;
use lango::app::NOTICE_TARGET;
use lango_config::LOG_VARIABLE;
use serde_json::json;
use std::env;
use std::fmt::Debug;
use std::sync::OnceLock;
use tracing::field::{Field, Visit};
use tracing::level_filters::LevelFilter;
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::filter::Targets;
use tracing_subscriber::fmt::format::FmtSpan;
use tracing_subscriber::layer::{Context, SubscriberExt};
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{Layer, Registry, fmt};

/// The format of logs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    Text,
    Json,
}

/// Set if all of stderr consists of JSON lines.
static ONLY_JSON: OnceLock<()> = OnceLock::new();

/// Prints notices from now on, and logs if `LANGO_LOG` or a format asks for it. A format without `LANGO_LOG` logs at level `info`. The stderr of a
/// server with JSON logs has nothing but JSON lines.
pub fn init(format: Option<LogFormat>, is_server: bool) -> Result<(), String> {
    let notices = Targets::new().with_target(NOTICE_TARGET, LevelFilter::INFO);
    let registry = Registry::default().with(NoticePrinter.with_filter(notices));
    let selection = env::var(LOG_VARIABLE)
        .ok()
        .filter(|text| !text.trim().is_empty());
    let selection = match (selection, format) {
        (Some(selection), _) => selection,
        (None, Some(_)) => "info".to_owned(),
        (None, None) => {
            // Fails if logging is installed already, which only a test does.
            let _ = registry.try_init();
            return Ok(());
        }
    };
    let targets = parse(&selection)?.with_target(NOTICE_TARGET, LevelFilter::OFF);
    let format = format.unwrap_or(LogFormat::Text);
    if is_server && format == LogFormat::Json {
        ONLY_JSON.get_or_init(|| ());
    }
    let layer = fmt::layer()
        .with_writer(std::io::stderr)
        .with_ansi(false)
        .with_span_events(FmtSpan::CLOSE);
    let _ = match format {
        LogFormat::Text => registry.with(layer.with_filter(targets)).try_init(),
        LogFormat::Json => registry.with(layer.json().with_filter(targets)).try_init(),
    };
    Ok(())
}

/// Prints notices of the library on stderr.
struct NoticePrinter;

impl<S: Subscriber> Layer<S> for NoticePrinter {
    fn on_event(&self, event: &Event<'_>, _context: Context<'_, S>) {
        event.record(&mut MessagePrinter);
    }
}

struct MessagePrinter;

impl Visit for MessagePrinter {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        if field.name() == "message" {
            crate::screen::say(&format!("{value:?}"));
        }
    }
}

/// Returns a sign-in link as it is shown on stderr. JSON lines go to log collectors, which must not get the link.
pub fn link_to_show(link: &str) -> &str {
    if ONLY_JSON.get().is_some() {
        "run `lango tokens link`"
    } else {
        link
    }
}

/// Formats a message to the operator as a JSON line, if stderr may have nothing else. `LANGO_LOG` does not filter it.
pub fn json_line(message: &str) -> Option<String> {
    ONLY_JSON.get()?;
    let level = match message.split_once(':') {
        Some(("error", _)) => "ERROR",
        Some(("warning", _)) => "WARN",
        _ => "INFO",
    };
    let timestamp = Utc::now().to_rfc3339_opts(SecondsFormat::Micros, true);
    let line = json!({
        "timestamp": timestamp,
        "level": level,
        "fields": { "message": message },
        "target": "lango",
    });
    Some(line.to_string())
}

/// Parses a comma-separated list of levels. A level alone applies to lango's own crates, and `target=level` applies to
/// a crate or module. Libraries log only if they are named, because some of them log what they send.
fn parse(selection: &str) -> Result<Targets, String> {
    let mut targets = Targets::new();
    for part in selection.split(',').map(str::trim) {
        let (target, level) = part.split_once('=').unwrap_or(("lango", part));
        let level: Level = level.trim().parse().map_err(|_| {
            format!(
                "{LOG_VARIABLE} has `{part}`, which is not a level\n  next: use error, warn, info, debug or trace, or a list \
                 such as `info,lango_store=debug`"
            )
        })?;
        targets = targets.with_target(target.trim().to_owned(), level);
    }
    Ok(targets)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_level_alone_is_for_lango_and_libraries_must_be_named() {
        let targets = parse("info, lango_store=debug,hyper=warn").unwrap();
        assert!(targets.would_enable("lango_engine::runner", &Level::INFO));
        assert!(!targets.would_enable("lango_engine::runner", &Level::DEBUG));
        assert!(targets.would_enable("lango_store::log", &Level::DEBUG));
        assert!(targets.would_enable("hyper", &Level::WARN));
        assert!(!targets.would_enable("rmcp", &Level::ERROR));
    }

    #[test]
    fn a_wrong_level_is_named_with_the_right_ones() {
        let problem = parse("loud").unwrap_err();
        assert!(
            problem.contains("`loud`") && problem.contains("info"),
            "{problem}"
        );
        assert!(parse("lango_store=").is_err());
    }
}
