//! What the inner helper tells the launcher, line by line, on the descriptor that is bubblewrap's own complaints at
//! first. The command never holds it.

use crate::{CleanUpReport, ExitKind, Stopped};

/// Begins each line of the helper, so that complaints of bubblewrap are not taken for one.
const MARK: &str = "\u{1}lango ";

/// One thing the helper has to say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Report {
    /// All layers hold and the command runs.
    Running,
    /// A layer does not hold; nothing of the command ran.
    Failed(String),
    /// The command's first process is gone.
    Exited(ExitKind),
    /// The command went over a limit and was ended.
    Stopped(Stopped),
    /// All of its processes are gone, and the guard cleans up.
    CleaningUp,
    /// Clean-up is done.
    CleanedUp(CleanUpReport),
}

const CLEANING_UP: &str = "cleaning-up";

/// Whether the helper has said that it cleans up.
pub(crate) fn says_cleaning_up(said: &[u8]) -> bool {
    let line = Report::CleaningUp.line();
    said.windows(line.len())
        .any(|window| window == line.as_bytes())
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn unhex(text: &str) -> Option<Vec<u8>> {
    let digits = text.as_bytes().chunks(2);
    digits
        .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok())
        .collect()
}

const STOPS: [(Stopped, &str); 4] = [
    (Stopped::Time, "time"),
    (Stopped::Memory, "memory"),
    (Stopped::Processes, "processes"),
    (Stopped::Disk, "disk"),
];

impl Report {
    /// The line that says it.
    pub(crate) fn line(&self) -> String {
        let text = match self {
            Self::Running => "running".to_string(),
            Self::Failed(what) => format!("failed {}", what.replace('\n', " ")),
            Self::Exited(ExitKind::Code(code)) => format!("code {code}"),
            Self::Exited(ExitKind::Signal(signal)) => format!("signal {signal}"),
            Self::Stopped(stopped) => {
                let word = STOPS.iter().find(|(each, _)| each == stopped);
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
                let stop = STOPS.iter().find(|(_, word)| *word == rest)?;
                Some(Self::Stopped(stop.0))
            }
            CLEANING_UP => Some(Self::CleaningUp),
            "cleaned-up" => Some(Self::CleanedUp(CleanUpReport::decode(&unhex(rest)?)?)),
            _ => None,
        }
    }
}

/// What all the lines come to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// The command ran.
    Ran {
        exit: ExitKind,
        stopped: Option<Stopped>,
        /// Nothing if the guard did not come to it.
        clean_up: Option<CleanUpReport>,
    },
    /// Nothing of the command ran, for this reason.
    NotRun(String),
}

impl Outcome {
    /// Reads all that was said.
    pub(crate) fn of(said: &[u8]) -> Self {
        let said = String::from_utf8_lossy(said);
        let reports: Vec<Report> = said.lines().filter_map(Report::parse).collect();
        let failed = reports.iter().find_map(|report| match report {
            Report::Failed(what) => Some(what.clone()),
            _ => None,
        });
        if let Some(what) = failed {
            return Self::NotRun(what);
        }
        if !reports.contains(&Report::Running) {
            let complaint: Vec<&str> = said
                .lines()
                .map(str::trim)
                .filter(|line| !line.is_empty())
                .take(4)
                .collect();
            return Self::NotRun(match complaint.is_empty() {
                true => "the inner helper ended without a word".to_string(),
                false => with_way_out(complaint.join("; ")),
            });
        }
        // One that was ended from outside has no time to say how.
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

/// Adds the way out where one is known: many systems close user namespaces to ordinary users.
fn with_way_out(complaint: String) -> String {
    let is_closed = ["uid map", "new namespace", "unshare", "loopback"];
    match is_closed.iter().any(|words| complaint.contains(words)) {
        true => format!(
            "{complaint}; user namespaces seem to be closed, open them with `sysctl kernel.unprivileged_userns_clone=1`, \
             or on Ubuntu with an AppArmor profile for `bwrap`"
        ),
        false => complaint,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(reports: &[Report]) -> Outcome {
        let lines: String = reports.iter().map(Report::line).collect();
        Outcome::of(lines.as_bytes())
    }

    #[test]
    fn what_the_helper_says_comes_to_an_outcome() {
        let code = Report::Exited(ExitKind::Code(3));
        let clean_up = CleanUpReport {
            removed: vec!["/w/new\nline/.git".into()],
            ..CleanUpReport::default()
        };
        let cleaned_up = Report::CleanedUp(clean_up.clone());
        assert_eq!(
            outcome(&[Report::Running, code, Report::CleaningUp, cleaned_up]),
            Outcome::Ran {
                exit: ExitKind::Code(3),
                stopped: None,
                clean_up: Some(clean_up),
            }
        );
        assert_eq!(
            outcome(&[Report::Running, Report::Stopped(Stopped::Disk)]),
            Outcome::Ran {
                exit: ExitKind::Signal(9),
                stopped: Some(Stopped::Disk),
                clean_up: None,
            }
        );
        assert_eq!(
            outcome(&[Report::Failed("no\nrules".into())]),
            Outcome::NotRun("no rules".into())
        );
    }

    #[test]
    fn without_a_word_of_the_helper_the_complaints_of_bubblewrap_are_the_reason() {
        let said = b"bwrap: setting up uid map: Permission denied\n";
        let Outcome::NotRun(why) = Outcome::of(said) else {
            panic!("it ran");
        };
        assert!(why.starts_with("bwrap: setting up uid map: Permission denied; user namespaces"));
        assert!(matches!(Outcome::of(b""), Outcome::NotRun(_)));
    }
}
