//! The oracle: what must hold of the evidence, whatever happened on the way. It is a function of the evidence alone, so
//! that it can be tried on evidence in which something is wrong on purpose.

use super::evidence::{Evidence, TaskEnd};
use super::script::{answer, job_in, question};
use lango_a2a::server::first_attempt;
use lango_core::{Answer, AnsweredBy, Asks, CallId, CallStatus, Event, EventBody};
use std::collections::{BTreeMap, BTreeSet};

/// What was found. Everything in `wrong` must be empty.
#[derive(Debug, Default)]
pub struct Verdict {
    pub acknowledged: u64,
    /// Those of them of which nothing was begun, as the caller was told, with the reason.
    pub not_begun: u64,
    pub turns: u64,
    pub outcomes: BTreeMap<String, u64>,
    pub states: BTreeMap<String, u64>,
    pub effects: u64,
    pub unknown: u64,
    pub unknown_that_happened: u64,
    pub retried: u64,
    pub wrong: BTreeMap<Wrong, Vec<String>>,
}

/// A way in which a promise is broken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Wrong {
    /// An acknowledged message without a turn, or whose turn's end was not told to the caller as it is.
    Lost,
    /// A message with more than one turn or task.
    TwoTurns,
    /// More effects for a call than anybody wanted.
    Twice,
    /// An effect that nobody asked for, or that was not in the log before.
    Unasked,
    /// A call that went well by the log and left no effect.
    Missing,
    /// A decision about a call of unknown fate that no person made.
    Decided,
    /// An author that is neither in the tree nor the user.
    Author,
    /// Events that do not follow one another.
    Gap,
    /// A turn or a task without an end.
    Stuck,
    /// A database or hash chain that is not what was written.
    Integrity,
    /// A server that broke down by itself, or refused what it should take.
    Crash,
}

impl Wrong {
    pub const ALL: [(Self, &'static str); 11] = [
        (Self::Lost, "lost"),
        (Self::TwoTurns, "turns twice"),
        (Self::Twice, "effects twice"),
        (Self::Unasked, "effects unasked"),
        (Self::Missing, "effects missing"),
        (Self::Decided, "decided by nobody"),
        (Self::Author, "wrong authors"),
        (Self::Gap, "gaps"),
        (Self::Stuck, "stuck"),
        (Self::Integrity, "integrity"),
        (Self::Crash, "crashes"),
    ];
}

impl Verdict {
    fn say(&mut self, wrong: Wrong, what: impl Into<String>) {
        self.wrong.entry(wrong).or_default().push(what.into());
    }

    pub fn count(&self, wrong: Wrong) -> usize {
        self.wrong.get(&wrong).map_or(0, Vec::len)
    }

    pub fn is_good(&self) -> bool {
        self.wrong.is_empty()
    }

    /// One line for each count, and what was wrong.
    pub fn print(&self) {
        println!(
            "acknowledged      {} ({} not begun, and told so)",
            self.acknowledged, self.not_begun
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
        for (wrong, name) in Wrong::ALL {
            println!("{name:17} {}", self.count(wrong));
            for what in self.wrong.get(&wrong).into_iter().flatten().take(5) {
                println!("    {what}");
            }
        }
    }
}

fn listed(counts: &BTreeMap<String, u64>) -> String {
    let counts = counts.iter().map(|(name, count)| format!("{count} {name}"));
    format!("({})", counts.collect::<Vec<_>>().join(", "))
}

/// What the log says of one job.
#[derive(Debug, Default)]
struct JobInLog {
    turns: Vec<String>,
    outcome: String,
    /// The calls of the tool with effect that were stored before they ran.
    called: BTreeSet<CallId>,
    /// The calls of the tool that writes the job's file.
    writes: BTreeSet<CallId>,
    is_written: bool,
    retried: u64,
    /// Those that ran well, without those of which a person said so.
    went_well: BTreeSet<CallId>,
}

/// Judges it.
pub fn judge(evidence: &Evidence) -> Verdict {
    let mut verdict = Verdict {
        acknowledged: evidence.ledger.acknowledged.len() as u64,
        effects: evidence.effects.len() as u64,
        unknown_that_happened: evidence.answers.had_happened,
        ..Verdict::default()
    };
    let mut jobs: BTreeMap<u64, JobInLog> = BTreeMap::new();
    for (session, events) in &evidence.log.sessions {
        judge_log(&mut verdict, evidence, session, events);
        read_jobs(&mut verdict, evidence, events, &mut jobs);
    }
    judge_messages(&mut verdict, evidence, &jobs);
    judge_effects(&mut verdict, evidence, &jobs);
    for turn in &evidence.log.unfinished {
        verdict.say(Wrong::Stuck, format!("turn {turn} has no outcome"));
    }
    for damage in &evidence.log.damage {
        verdict.say(Wrong::Integrity, damage);
    }
    let refusals = evidence.ledger.refusals.iter();
    let strange = evidence.answers.strange.iter();
    for words in evidence.crashes.iter().chain(refusals).chain(strange) {
        verdict.say(Wrong::Crash, words);
    }
    verdict
}

/// The form of a session's log: numbers, authors, and turns one after the other.
fn judge_log(verdict: &mut Verdict, evidence: &Evidence, session: &str, events: &[Event]) {
    let mut open: Option<&Event> = None;
    for (at, event) in events.iter().enumerate() {
        if event.seq != at as u64 + 1 {
            let what = format!("{session}: event {} is at place {}", event.seq, at + 1);
            verdict.say(Wrong::Gap, what);
        }
        if !evidence.authors.contains(event.author.as_str()) {
            let what = format!("{session}: event {} is by {}", event.seq, event.author);
            verdict.say(Wrong::Author, what);
        }
        let is_in_turn = open.is_some_and(|first| first.turn == event.turn);
        let is_begin = matches!(event.body, EventBody::UserMessage { .. });
        if is_begin == is_in_turn || (is_begin && open.is_some()) {
            let what = format!("{session}: event {} is in no turn, or in two", event.seq);
            verdict.say(Wrong::Gap, what);
        }
        match &event.body {
            EventBody::UserMessage { .. } => open = Some(event),
            EventBody::TurnFinished { .. } => open = None,
            _ => {}
        }
    }
}

/// Collects what the log says of each job.
fn read_jobs(
    verdict: &mut Verdict,
    evidence: &Evidence,
    events: &[Event],
    jobs: &mut BTreeMap<u64, JobInLog>,
) {
    let mut number = 0;
    let mut asked_about: BTreeMap<String, CallId> = BTreeMap::new();
    let mut told_by_person: BTreeSet<CallId> = BTreeSet::new();
    for event in events {
        if let EventBody::UserMessage { text, .. } = &event.body {
            number = job_in(text).unwrap_or_default();
            if **text != *question(number) {
                verdict.say(Wrong::Unasked, format!("nobody said {text:?}"));
            }
            verdict.turns += 1;
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
            EventBody::ApprovalRequested(request) if request.asks == Asks::Fate => {
                verdict.unknown += 1;
                asked_about.insert(request.id.to_string(), request.call.clone());
            }
            EventBody::ApprovalAnswered {
                request,
                answer,
                by,
            } => {
                let said = evidence.answers.said.get(request.as_str());
                let is_said =
                    said.is_some_and(|said| said.iter().any(|word| word == answer.word()));
                let is_closed = *by == AnsweredBy::TurnEnded && !answer.allows();
                let is_a_persons = is_said && *by == AnsweredBy::Person;
                if !is_closed && !is_a_persons {
                    verdict.say(
                        Wrong::Decided,
                        format!("{request}: {} by {by:?}", answer.word()),
                    );
                }
                if *answer == Answer::Retry {
                    job.retried += 1;
                    verdict.retried += 1;
                }
                if let (Answer::Happened { .. }, Some(call)) =
                    (answer, asked_about.get(request.as_str()))
                {
                    told_by_person.insert(call.clone());
                }
            }
            EventBody::ToolReturned { call, status, .. }
                if *status == CallStatus::Ok
                    && job.called.contains(call)
                    && !told_by_person.contains(call) =>
            {
                job.went_well.insert(call.clone());
            }
            EventBody::TurnFinished { outcome, .. } => {
                job.outcome = outcome.word().to_owned();
                *verdict.outcomes.entry(job.outcome.clone()).or_default() += 1;
            }
            _ => {}
        }
    }
}

/// Every acknowledged message has one turn, under the id of its first task, and the caller is told how it ended.
fn judge_messages(verdict: &mut Verdict, evidence: &Evidence, jobs: &BTreeMap<u64, JobInLog>) {
    let nothing = JobInLog::default();
    for (number, task) in &evidence.ledger.acknowledged {
        let job = jobs.get(number).unwrap_or(&nothing);
        match (job.turns.as_slice(), evidence.tasks.get(number)) {
            (_, None) => verdict.say(Wrong::Lost, format!("job {number}: no task {task}")),
            (turns, Some(end)) => {
                *verdict.states.entry(end.state.clone()).or_default() += 1;
                if turns.is_empty() && is_told_that_nothing_began(end) {
                    verdict.not_begun += 1;
                } else if let Some(what) = told_wrongly(*number, task, job, turns, end) {
                    verdict.say(Wrong::Lost, what);
                }
                if !end.is_over {
                    verdict.say(Wrong::Stuck, format!("task {task} is {}", end.state));
                }
            }
        }
    }
    for (number, job) in jobs {
        if job.turns.len() > 1 {
            verdict.say(Wrong::TwoTurns, format!("job {number}: {:?}", job.turns));
        }
        if !evidence.ledger.sent.contains(number) {
            verdict.say(Wrong::Unasked, format!("job {number}: nobody sent it"));
        }
    }
    for number in &evidence.ledger.other_tasks {
        verdict.say(
            Wrong::TwoTurns,
            format!("job {number}: sent again, other work"),
        );
    }
}

/// The turn before it waits for a person, or the process ended again and again before it could begin.
fn is_told_that_nothing_began(end: &TaskEnd) -> bool {
    match end.state.as_str() {
        "REJECTED" => end.words.contains("waits for an answer to"),
        "FAILED" => end.words.contains("before the work started"),
        _ => false,
    }
}

fn told_wrongly(
    number: u64,
    task: &str,
    job: &JobInLog,
    turns: &[String],
    end: &TaskEnd,
) -> Option<String> {
    let told = format!("job {number}, task {task}: {} {}", end.state, end.words);
    if !turns.iter().any(|turn| turn == first_attempt(task)) {
        return Some(format!("{told}, and the log has {turns:?}"));
    }
    let is_answered = job.outcome == "answered";
    if end.is_over && is_answered != (end.state == "COMPLETED") {
        return Some(format!("{told}, and its turn {}", job.outcome));
    }
    if is_answered && end.is_over && end.answered_job != job_in(&answer(number)) {
        return Some(format!(
            "{told}, and the answer is about {:?}",
            end.answered_job
        ));
    }
    None
}

/// No effect without a call, and none twice unless a person wanted it again.
fn judge_effects(verdict: &mut Verdict, evidence: &Evidence, jobs: &BTreeMap<u64, JobInLog>) {
    let nothing = JobInLog::default();
    let mut lines: BTreeMap<u64, Vec<&str>> = BTreeMap::new();
    for line in &evidence.effects {
        lines.entry(line.number).or_default().push(&line.key);
    }
    let mut keys: BTreeMap<&str, u64> = BTreeMap::new();
    for (number, of_job) in &lines {
        let job = jobs.get(number).unwrap_or(&nothing);
        if job.called.is_empty() {
            verdict.say(
                Wrong::Unasked,
                format!("job {number} was done without a call in the log"),
            );
        }
        let wanted = job.called.len() as u64 + job.retried;
        if of_job.len() as u64 > wanted {
            let what = format!("job {number} was done {} times of {wanted}", of_job.len());
            verdict.say(Wrong::Twice, what);
        }
        let distinct: BTreeSet<&&str> = of_job.iter().collect();
        if distinct.len() > 1 || of_job.contains(&"") {
            verdict.say(
                Wrong::Unasked,
                format!("job {number} has the keys {distinct:?}"),
            );
        }
        if let Some(key) = of_job.first()
            && let Some(other) = keys.insert(key, *number)
        {
            verdict.say(
                Wrong::Unasked,
                format!("jobs {number} and {other} have one key"),
            );
        }
    }
    for (number, job) in jobs {
        if job.called.len() > 1 {
            verdict.say(
                Wrong::Twice,
                format!("job {number} has calls {:?}", job.called),
            );
        }
        if job.is_written && !evidence.written.contains(number) {
            let what = format!("job {number}: its file is not there, or another");
            verdict.say(Wrong::Missing, what);
        }
        if !job.went_well.is_empty() && !lines.contains_key(number) {
            verdict.say(
                Wrong::Missing,
                format!("job {number} went well and left nothing"),
            );
        }
    }
}
