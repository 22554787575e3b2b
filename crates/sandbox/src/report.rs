//! The messages from the inner helper to the launcher, one per line. They go to the descriptor that is bubblewrap's
//! standard error; the command itself never gets that descriptor.

use crate::{CleanUpReport, ExceededLimit, ExitKind};

/// Prefix of each line of the helper, to tell it from error messages of bubblewrap.
const MARK: &str = "\u{1}lango ";

/// One message of the helper.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Report {
    /// All layers are set up and the command runs.
    Running,
    /// A layer could not be set up; the command did not run.
    Failed(String),
    /// The command's first process has ended.
    Exited(ExitKind),
    /// The command exceeded a limit and was killed.
    Stopped(ExceededLimit),
    /// All processes of the command have ended, and the guard starts the clean-up.
    CleaningUp,
    /// The clean-up is done.
    CleanedUp(CleanUpReport),
}

const CLEANING_UP: &str = "cleaning-up";

/// Whether the helper has reported that the clean-up has started.
pub(crate) fn reports_cleaning_up(output: &[u8]) -> bool {
    let line = Report::CleaningUp.line();
    output
        .windows(line.len())
        .any(|window| window == line.as_bytes())
}

fn hex(bytes: &[u8]) -> String {
    base16ct::lower::encode_string(bytes)
}

fn unhex(text: &str) -> Option<Vec<u8>> {
    base16ct::lower::decode_vec(text).ok()
}

const LIMIT_NAMES: [(ExceededLimit, &str); 4] = [
    (ExceededLimit::Time, "time"),
    (ExceededLimit::Memory, "memory"),
    (ExceededLimit::Processes, "processes"),
    (ExceededLimit::Disk, "disk"),
];

impl Report {
    /// Formats the message as a line.
    pub(crate) fn line(&self) -> String {
        let text = match self {
            Self::Running => "running".to_string(),
            Self::Failed(what) => format!("failed {}", what.replace('\n', " ")),
            Self::Exited(ExitKind::Code(code)) => format!("code {code}"),
            Self::Exited(ExitKind::Signal(signal)) => format!("signal {signal}"),
            Self::Stopped(stopped) => {
                let word = LIMIT_NAMES.iter().find(|(each, _)| each == stopped);
                format!("stopped {}", word.map_or("", |(_, word)| word))
            }
            Self::CleaningUp => CLEANING_UP.to_string(),
            Self::CleanedUp(report) => format!("cleaned-up {}", hex(&report.encode())),
        };
        format!("{MARK}{text}\n")
    }

    fn parse(line: &str) -> Option<Self> {
        let text = line.strip_prefix(MARK)?;
        let (word, rest) = text.split_once(' ').unwrap_or((text, ""));
        match word {
            "running" => Some(Self::Running),
            "failed" => Some(Self::Failed(rest.to_string())),
            "code" => Some(Self::Exited(ExitKind::Code(rest.parse().ok()?))),
            "signal" => Some(Self::Exited(ExitKind::Signal(rest.parse().ok()?))),
            "stopped" => {
                let stop = LIMIT_NAMES.iter().find(|(_, word)| *word == rest)?;
                Some(Self::Stopped(stop.0))
            }
            CLEANING_UP => Some(Self::CleaningUp),
            "cleaned-up" => Some(Self::CleanedUp(CleanUpReport::decode(&unhex(rest)?)?)),
            _ => None,
        }
    }
}

/// The conclusion from all messages of the helper.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum HelperOutcome {
    /// The command ran.
    Ran {
        exit: ExitKind,
        stopped: Option<ExceededLimit>,
        /// `None` if the guard ended before it cleaned up.
        clean_up: Option<CleanUpReport>,
    },
    /// The command did not run, for this reason.
    NotRun(String),
}

impl HelperOutcome {
    /// Parses the whole output of the helper and bubblewrap.
    pub(crate) fn parse(output: &[u8]) -> Self {
        let output = String::from_utf8_lossy(output);
        let reports: Vec<Report> = output.lines().filter_map(Report::parse).collect();
        let failed = reports.iter().find_map(|report| match report {
            Report::Failed(what) => Some(what.clone()),
            _ => None,
        });
        if let Some(what) = failed {
            return Self::NotRun(what);
        }
        if !reports.contains(&Report::Running) {
            let errors: Vec<&str> = output
                .lines()
                .map(str::trim)
                .filter(|line| !line.is_empty())
                .take(4)
                .collect();
            return Self::NotRun(if errors.is_empty() {
                "the inner helper ended without a message".to_string()
            } else {
                with_hint(errors.join("; "))
            });
        }
        // A guard that was killed could not report the exit.
        let exit = reports.iter().find_map(|report| match report {
            Report::Exited(exit) => Some(*exit),
            _ => None,
        });
        let stopped = reports.iter().find_map(|report| match report {
            Report::Stopped(stopped) => Some(*stopped),
            _ => None,
        });
        let clean_up = reports.into_iter().find_map(|report| match report {
            Report::CleanedUp(report) => Some(report),
            _ => None,
        });
        Self::Ran {
            exit: exit.unwrap_or(ExitKind::Signal(9)),
            stopped,
            clean_up,
        }
    }
}

/// Adds a hint if the error looks like disabled user namespaces: many systems disable them for ordinary users.
fn with_hint(error: String) -> String {
    let signs = ["uid map", "new namespace", "unshare", "loopback"];
    if signs.iter().any(|sign| error.contains(sign)) {
        format!(
            "{error}; user namespaces seem to be disabled, enable them with `sysctl kernel.unprivileged_userns_clone=1`, \
             or on Ubuntu with an AppArmor profile for `bwrap`"
        )
    } else {
        error
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(reports: &[Report]) -> HelperOutcome {
        let lines: String = reports.iter().map(Report::line).collect();
        HelperOutcome::parse(lines.as_bytes())
    }

    #[test]
    fn the_messages_of_the_helper_give_the_outcome() {
        let code = Report::Exited(ExitKind::Code(3));
        let clean_up = CleanUpReport {
            removed: vec!["/w/new\nline/.git".into()],
            ..CleanUpReport::default()
        };
        let cleaned_up = Report::CleanedUp(clean_up.clone());
        assert_eq!(
            outcome(&[Report::Running, code, Report::CleaningUp, cleaned_up]),
            HelperOutcome::Ran {
                exit: ExitKind::Code(3),
                stopped: None,
                clean_up: Some(clean_up),
            }
        );
        assert_eq!(
            outcome(&[Report::Running, Report::Stopped(ExceededLimit::Disk)]),
            HelperOutcome::Ran {
                exit: ExitKind::Signal(9),
                stopped: Some(ExceededLimit::Disk),
                clean_up: None,
            }
        );
        assert_eq!(
            outcome(&[Report::Failed("no\nrules".into())]),
            HelperOutcome::NotRun("no rules".into())
        );
    }

    #[test]
    fn without_messages_of_the_helper_the_errors_of_bubblewrap_are_the_reason() {
        let output = b"bwrap: setting up uid map: Permission denied\n";
        let HelperOutcome::NotRun(why) = HelperOutcome::parse(output) else {
            panic!("it ran");
        };
        assert!(why.starts_with("bwrap: setting up uid map: Permission denied; user namespaces"));
        assert!(matches!(
            HelperOutcome::parse(b""),
            HelperOutcome::NotRun(_)
        ));
    }
}
