//! Tests the oracle in every run: plants one fault at a time in the evidence and checks that the oracle reports it.

use super::evidence::Evidence;
use super::oracle::{Violation, check_evidence};
use super::test_env::EffectLine;
use lango_core::AgentName;

/// A fault: its name, the violation that the oracle must report, and the function that plants it.
type PlantedFault = (&'static str, Violation, fn(&mut Evidence));

const FAULTS: [PlantedFault; 13] = [
    ("a message without its turn", Violation::Lost, remove_a_turn),
    ("a task that is missing", Violation::Lost, |evidence| {
        evidence.tasks.pop_last();
    }),
    ("a wrong answer", Violation::Lost, |evidence| {
        let mut done = evidence.tasks.values_mut();
        let done = done.find(|end| end.state == "COMPLETED");
        done.expect("a completed task").answered_job = Some(0);
    }),
    (
        "a message with two turns",
        Violation::TwoTurns,
        |evidence| {
            let first = evidence.log.sessions.values().next().expect("a session");
            let copy = first.clone();
            evidence.log.sessions.insert("copy".to_owned(), copy);
        },
    ),
    ("an effect twice", Violation::Twice, |evidence| {
        // More often than the user can have retried it.
        let first = evidence.effects[0].clone();
        evidence.effects.extend(vec![first; 50]);
    }),
    ("an effect without a call", Violation::Unasked, |evidence| {
        let line = EffectLine {
            number: 987_654_321,
            key: String::new(),
        };
        evidence.effects.push(line);
    }),
    (
        "a call without its effect",
        Violation::Missing,
        |evidence| {
            evidence.effects.clear();
        },
    ),
    ("a missing file", Violation::Missing, |evidence| {
        evidence.written.clear();
    }),
    (
        "an effect under another key",
        Violation::Unasked,
        |evidence| {
            let mut first = evidence.effects[0].clone();
            first.key.push('x');
            evidence.effects.push(first);
        },
    ),
    ("another author", Violation::Author, |evidence| {
        last_event(evidence).author = AgentName::from("somebody-else");
    }),
    ("a missing event", Violation::Gap, |evidence| {
        let mut sessions = evidence.log.sessions.values_mut();
        sessions.next().expect("a session").remove(1);
    }),
    ("a turn without an end", Violation::Stuck, |evidence| {
        evidence.log.unfinished.push("t_planted".to_owned());
    }),
    ("a corrupt log", Violation::Integrity, |evidence| {
        evidence.log.damage.push("planted".to_owned());
    }),
];

/// Plants each fault in a copy of the evidence and returns those that the oracle did not detect.
pub(crate) fn undetected_faults(evidence: &Evidence) -> Vec<&'static str> {
    let before = check_evidence(evidence);
    let is_undetected = |(_, violation, plant): &&PlantedFault| {
        let mut planted = evidence.clone();
        plant(&mut planted);
        check_evidence(&planted).count(*violation) <= before.count(*violation)
    };
    let undetected = FAULTS.iter().filter(is_undetected);
    undetected.map(|(name, ..)| *name).collect()
}

/// Plants the fault that `CHAOS_PLANT` names, to see a whole run fail.
pub(crate) fn plant_requested_fault(evidence: &mut Evidence) {
    let Ok(requested) = std::env::var("CHAOS_PLANT") else {
        return;
    };
    let found = FAULTS.iter().find(|(name, ..)| *name == requested);
    let names: Vec<_> = FAULTS.iter().map(|(name, ..)| *name).collect();
    let (_, _, plant) = found.unwrap_or_else(|| panic!("CHAOS_PLANT must be one of {names:?}"));
    plant(evidence);
}

fn remove_a_turn(evidence: &mut Evidence) {
    let acknowledged = evidence.ledger.acknowledged.first_key_value();
    let (_, task) = acknowledged.expect("an acknowledged job");
    let task = task.clone();
    for events in evidence.log.sessions.values_mut() {
        events.retain(|event| event.turn.as_str() != task);
    }
}

fn last_event(evidence: &mut Evidence) -> &mut lango_core::Event {
    let mut sessions = evidence.log.sessions.values_mut();
    let session = sessions.next().expect("a session");
    session.last_mut().expect("an event")
}
