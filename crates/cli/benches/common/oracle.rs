//! The oracle: checks what must be true of the evidence, whatever faults a run had. It depends on the evidence alone,
//! so it can be tested with evidence that contains planted faults.

use super::evidence::{Evidence, FinalTask};
use super::script::{answer, job_in, question};
use lango_a2a::server::first_attempt;
use lango_core::{
    AnswerSource, ApprovalAnswer, ApprovalQuestion, CallId, CallStatus, Event, EventBody,
};
use std::collections::{BTreeMap, BTreeSet};

/// The result of the check. A run is good if `violations` is empty.
#[derive(Debug, Default)]
pub(crate) struct OracleReport {
    pub acknowledged: u64,
    /// Acknowledged messages whose turn never started, and whose task says so and why.
    pub not_started: u64,
    pub turns: u64,
    pub outcomes: BTreeMap<String, u64>,
    pub states: BTreeMap<String, u64>,
    pub effects: u64,
    pub unknown: u64,
    pub unknown_that_happened: u64,
    pub retried: u64,
    pub violations: BTreeMap<Violation, Vec<String>>,
}

/// A kind of broken guarantee.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Violation {
    /// An acknowledged message without a turn, or whose task does not report the turn's outcome.
    Lost,
    /// A message with more than one turn or task.
    TwoTurns,
    /// More effects than calls and retries by the user.
    Twice,
    /// An effect that was not requested, or whose call was not logged before.
    Unasked,
    /// A call that succeeded according to the log but left no effect.
    Missing,
    /// A call of unknown outcome that was decided without the user.
    Decided,
    /// An author that is neither in the tree nor the user.
    Author,
    /// Events that are not in sequence.
    Gap,
    /// A turn or a task without an end.
    Stuck,
    /// A corrupt database or hash chain.
    Integrity,
    /// A server that crashed by itself, or refused a valid request.
    Crash,
}

impl Violation {
    pub(crate) const ALL: [(Self, &'static str); 11] = [
        (Self::Lost, "lost"),
        (Self::TwoTurns, "turns twice"),
        (Self::Twice, "effects twice"),
        (Self::Unasked, "effects unasked"),
        (Self::Missing, "effects missing"),
        (Self::Decided, "not user's choice"),
        (Self::Author, "wrong authors"),
        (Self::Gap, "gaps"),
        (Self::Stuck, "stuck"),
        (Self::Integrity, "integrity"),
        (Self::Crash, "crashes"),
    ];
}

impl OracleReport {
    fn add(&mut self, violation: Violation, detail: impl Into<String>) {
        self.violations
            .entry(violation)
            .or_default()
            .push(detail.into());
    }

    pub(crate) fn count(&self, violation: Violation) -> usize {
        self.violations.get(&violation).map_or(0, Vec::len)
    }

    pub(crate) fn is_good(&self) -> bool {
        self.violations.is_empty()
    }

    /// Prints a line for each count, and up to five violations of each kind.
    pub(crate) fn print(&self) {
        println!(
            "acknowledged      {} ({} reported as not started)",
            self.acknowledged, self.not_started
        );
        println!(
            "turns             {} {}",
            self.turns,
            listed(&self.outcomes)
        );
        println!("tasks             {}", listed(&self.states));
        println!("effects           {}", self.effects);
        println!(
            "unknown           {} ({} had happened, {} retried)",
            self.unknown, self.unknown_that_happened, self.retried
        );
        for (violation, name) in Violation::ALL {
            println!("{name:17} {}", self.count(violation));
            for detail in self
                .violations
                .get(&violation)
                .into_iter()
                .flatten()
                .take(5)
            {
                println!("    {detail}");
            }
        }
    }
}

fn listed(counts: &BTreeMap<String, u64>) -> String {
    let counts = counts.iter().map(|(name, count)| format!("{count} {name}"));
    format!("({})", counts.collect::<Vec<_>>().join(", "))
}

/// What the log contains about one job.
#[derive(Debug, Default)]
struct JobInLog {
    turns: Vec<String>,
    outcome: String,
    /// The logged calls of `exec`, the tool with an effect.
    called: BTreeSet<CallId>,
    /// The logged calls of `fs_write`, the tool that writes the job's file.
    writes: BTreeSet<CallId>,
    is_written: bool,
    retried: u64,
    /// The calls of `exec` that succeeded, without those whose success the user reported.
    succeeded: BTreeSet<CallId>,
}

/// Checks the evidence.
pub(crate) fn check_evidence(evidence: &Evidence) -> OracleReport {
    let mut report = OracleReport {
        acknowledged: evidence.ledger.acknowledged.len() as u64,
        effects: evidence.effects.len() as u64,
        unknown_that_happened: evidence.answers.had_happened,
        ..OracleReport::default()
    };
    let mut jobs: BTreeMap<u64, JobInLog> = BTreeMap::new();
    for (session, events) in &evidence.log.sessions {
        check_log(&mut report, evidence, session, events);
        read_jobs(&mut report, evidence, events, &mut jobs);
    }
    check_messages(&mut report, evidence, &jobs);
    check_effects(&mut report, evidence, &jobs);
    for turn in &evidence.log.unfinished {
        report.add(Violation::Stuck, format!("turn {turn} has no outcome"));
    }
    for damage in &evidence.log.damage {
        report.add(Violation::Integrity, damage);
    }
    let refusals = evidence.ledger.refusals.iter();
    let unexpected = evidence.answers.unexpected.iter();
    for detail in evidence.crashes.iter().chain(refusals).chain(unexpected) {
        report.add(Violation::Crash, detail);
    }
    report
}

/// Checks the structure of a session's log: sequence numbers, authors, and turns that do not overlap.
fn check_log(report: &mut OracleReport, evidence: &Evidence, session: &str, events: &[Event]) {
    let mut open: Option<&Event> = None;
    for (at, event) in events.iter().enumerate() {
        if event.seq != at as u64 + 1 {
            let detail = format!("{session}: event {} is at position {}", event.seq, at + 1);
            report.add(Violation::Gap, detail);
        }
        if !evidence.authors.contains(event.author.as_str()) {
            let detail = format!("{session}: event {} is by {}", event.seq, event.author);
            report.add(Violation::Author, detail);
        }
        let is_in_turn = open.is_some_and(|first| first.turn == event.turn);
        let is_start = matches!(event.body, EventBody::UserMessage { .. });
        if is_start == is_in_turn || (is_start && open.is_some()) {
            let detail = format!("{session}: event {} is in no turn, or in two", event.seq);
            report.add(Violation::Gap, detail);
        }
        match &event.body {
            EventBody::UserMessage { .. } => open = Some(event),
            EventBody::TurnFinished { .. } => open = None,
            _ => {}
        }
    }
}

/// Collects what a session's log contains about each job.
fn read_jobs(
    report: &mut OracleReport,
    evidence: &Evidence,
    events: &[Event],
    jobs: &mut BTreeMap<u64, JobInLog>,
) {
    let mut number = 0;
    let mut asked_about: BTreeMap<String, CallId> = BTreeMap::new();
    let mut reported_by_user: BTreeSet<CallId> = BTreeSet::new();
    for event in events {
        if let EventBody::UserMessage { text, .. } = &event.body {
            number = job_in(text).unwrap_or_default();
            if **text != *question(number) {
                report.add(Violation::Unasked, format!("no client sent {text:?}"));
            }
            report.turns += 1;
            let job = jobs.entry(number).or_default();
            job.turns.push(event.turn.to_string());
        }
        let job = jobs.entry(number).or_default();
        match &event.body {
            EventBody::ToolCalled { call, tool, .. } if tool.as_str() == "exec" => {
                job.called.insert(call.clone());
            }
            EventBody::ToolCalled { call, tool, .. } if tool.as_str() == "fs_write" => {
                job.writes.insert(call.clone());
            }
            EventBody::ToolReturned { call, status, .. } if job.writes.contains(call) => {
                job.is_written |= *status == CallStatus::Ok;
            }
            EventBody::ApprovalRequested(request)
                if request.question == ApprovalQuestion::UnknownOutcome =>
            {
                report.unknown += 1;
                asked_about.insert(request.id.to_string(), request.call.clone());
            }
            EventBody::ApprovalAnswered {
                request,
                answer,
                by,
            } => {
                let given = evidence.answers.given.get(request.as_str());
                let is_given =
                    given.is_some_and(|given| given.iter().any(|word| word == answer.name()));
                let is_closed = *by == AnswerSource::TurnEnded && !answer.allows();
                let is_by_user = is_given && *by == AnswerSource::Person;
                if !is_closed && !is_by_user {
                    report.add(
                        Violation::Decided,
                        format!("{request}: {} by {by:?}", answer.name()),
                    );
                }
                if *answer == ApprovalAnswer::Retry {
                    job.retried += 1;
                    report.retried += 1;
                }
                if let (ApprovalAnswer::Happened { .. }, Some(call)) =
                    (answer, asked_about.get(request.as_str()))
                {
                    reported_by_user.insert(call.clone());
                }
            }
            EventBody::ToolReturned { call, status, .. }
                if *status == CallStatus::Ok
                    && job.called.contains(call)
                    && !reported_by_user.contains(call) =>
            {
                job.succeeded.insert(call.clone());
            }
            EventBody::TurnFinished { outcome, .. } => {
                job.outcome = outcome.name().to_owned();
                *report.outcomes.entry(job.outcome.clone()).or_default() += 1;
            }
            _ => {}
        }
    }
}

/// Checks that every acknowledged message has one turn, with the id of its first task, and that the task reports the
/// turn's outcome.
fn check_messages(report: &mut OracleReport, evidence: &Evidence, jobs: &BTreeMap<u64, JobInLog>) {
    let no_job = JobInLog::default();
    for (number, task) in &evidence.ledger.acknowledged {
        let job = jobs.get(number).unwrap_or(&no_job);
        match (job.turns.as_slice(), evidence.tasks.get(number)) {
            (_, None) => report.add(Violation::Lost, format!("job {number}: no task {task}")),
            (turns, Some(end)) => {
                *report.states.entry(end.state.clone()).or_default() += 1;
                if turns.is_empty() && reports_no_start(end) {
                    report.not_started += 1;
                } else if let Some(detail) = find_wrong_result(*number, task, job, turns, end) {
                    report.add(Violation::Lost, detail);
                }
                if !end.is_over {
                    report.add(Violation::Stuck, format!("task {task} is {}", end.state));
                }
            }
        }
    }
    for (number, job) in jobs {
        if job.turns.len() > 1 {
            report.add(
                Violation::TwoTurns,
                format!("job {number}: {:?}", job.turns),
            );
        }
        if !evidence.ledger.sent.contains(number) {
            report.add(
                Violation::Unasked,
                format!("job {number}: no client sent it"),
            );
        }
    }
    for number in &evidence.ledger.other_tasks {
        report.add(
            Violation::TwoTurns,
            format!("job {number}: sending it again created an unrelated task"),
        );
    }
}

/// Returns whether a task reports that its turn did not start: the previous turn waits for the user, or the process was
/// killed too often before the start.
fn reports_no_start(end: &FinalTask) -> bool {
    match end.state.as_str() {
        "REJECTED" => end.message.contains("waits for an answer to"),
        "FAILED" => end.message.contains("before the work started"),
        _ => false,
    }
}

/// Compares the result that a task reports with its turn, and describes the difference, if any.
fn find_wrong_result(
    number: u64,
    task: &str,
    job: &JobInLog,
    turns: &[String],
    end: &FinalTask,
) -> Option<String> {
    let reported = format!("job {number}, task {task}: {} {}", end.state, end.message);
    if !turns.iter().any(|turn| turn == first_attempt(task)) {
        return Some(format!("{reported}, but the log has the turns {turns:?}"));
    }
    let is_answered = job.outcome == "answered";
    if end.is_over && is_answered != (end.state == "COMPLETED") {
        return Some(format!(
            "{reported}, but the outcome of its turn is {}",
            job.outcome
        ));
    }
    if is_answered && end.is_over && end.answered_job != job_in(&answer(number)) {
        return Some(format!(
            "{reported}, but the answer is about job {:?}",
            end.answered_job
        ));
    }
    None
}

/// Checks that every effect has a call, and that none was repeated unless the user asked for a retry.
fn check_effects(report: &mut OracleReport, evidence: &Evidence, jobs: &BTreeMap<u64, JobInLog>) {
    let no_job = JobInLog::default();
    let mut lines: BTreeMap<u64, Vec<&str>> = BTreeMap::new();
    for line in &evidence.effects {
        lines.entry(line.number).or_default().push(&line.key);
    }
    let mut keys: BTreeMap<&str, u64> = BTreeMap::new();
    for (number, of_job) in &lines {
        let job = jobs.get(number).unwrap_or(&no_job);
        if job.called.is_empty() {
            report.add(
                Violation::Unasked,
                format!("job {number} was done without a call in the log"),
            );
        }
        let allowed = job.called.len() as u64 + job.retried;
        if of_job.len() as u64 > allowed {
            let count = of_job.len();
            let detail = format!("job {number} was done {count} times instead of {allowed}");
            report.add(Violation::Twice, detail);
        }
        let distinct: BTreeSet<&&str> = of_job.iter().collect();
        if distinct.len() > 1 || of_job.contains(&"") {
            report.add(
                Violation::Unasked,
                format!("job {number} has the keys {distinct:?}"),
            );
        }
        if let Some(key) = of_job.first()
            && let Some(other) = keys.insert(key, *number)
        {
            report.add(
                Violation::Unasked,
                format!("jobs {number} and {other} have the same key"),
            );
        }
    }
    for (number, job) in jobs {
        if job.called.len() > 1 {
            report.add(
                Violation::Twice,
                format!("job {number} has calls {:?}", job.called),
            );
        }
        if job.is_written && !evidence.written.contains(number) {
            let detail = format!("job {number}: its file is missing or has the wrong content");
            report.add(Violation::Missing, detail);
        }
        if !job.succeeded.is_empty() && !lines.contains_key(number) {
            report.add(
                Violation::Missing,
                format!("job {number} succeeded but left no effect"),
            );
        }
    }
}
