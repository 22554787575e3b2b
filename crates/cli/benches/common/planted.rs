//! The oracle is tried itself, in every run: one thing is made wrong in the evidence, and it has to say so.

use super::evidence::Evidence;
use super::oracle::{Wrong, judge};
use super::place::EffectLine;
use lango_core::AgentName;

/// What can be made wrong.
const PLANTS: [(&str, Wrong, fn(&mut Evidence)); 13] = [
    ("a message without its turn", Wrong::Lost, forget_a_turn),
    ("a task that nobody knows", Wrong::Lost, |evidence| {
        evidence.tasks.pop_last();
    }),
    ("a wrong answer", Wrong::Lost, |evidence| {
        let mut done = evidence.tasks.values_mut();
        let done = done.find(|end| end.state == "COMPLETED");
        done.expect("one was done").answered_job = Some(0);
    }),
    ("a message with two turns", Wrong::TwoTurns, |evidence| {
        let first = evidence.log.sessions.values().next().expect("a session");
        let copy = first.clone();
        evidence.log.sessions.insert("copy".to_owned(), copy);
    }),
    ("an effect twice", Wrong::Twice, |evidence| {
        // More often than a person can have wanted it.
        let first = evidence.effects[0].clone();
        evidence.effects.extend(vec![first; 50]);
    }),
    ("an effect of no call", Wrong::Unasked, |evidence| {
        let line = EffectLine {
            number: 987_654_321,
            key: String::new(),
        };
        evidence.effects.push(line);
    }),
    ("a call without its effect", Wrong::Missing, |evidence| {
        evidence.effects.clear();
    }),
    ("a file that is gone", Wrong::Missing, |evidence| {
        evidence.written.clear();
    }),
    ("an effect under another key", Wrong::Unasked, |evidence| {
        let mut first = evidence.effects[0].clone();
        first.key.push('x');
        evidence.effects.push(first);
    }),
    ("another author", Wrong::Author, |evidence| {
        last_event(evidence).author = AgentName::from("somebody-else");
    }),
    ("an event that is gone", Wrong::Gap, |evidence| {
        let mut sessions = evidence.log.sessions.values_mut();
        sessions.next().expect("a session").remove(1);
    }),
    ("a turn without an end", Wrong::Stuck, |evidence| {
        evidence.log.unfinished.push("t_planted".to_owned());
    }),
    ("damage", Wrong::Integrity, |evidence| {
        evidence.log.damage.push("planted".to_owned());
    }),
];

/// Plants one after the other and gives those that the oracle did not see.
pub fn unseen(evidence: &Evidence) -> Vec<&'static str> {
    let before = judge(evidence);
    let is_unseen = |(_, wrong, plant): &&(&str, Wrong, fn(&mut Evidence))| {
        let mut planted = evidence.clone();
        plant(&mut planted);
        judge(&planted).count(*wrong) <= before.count(*wrong)
    };
    let unseen = PLANTS.iter().filter(is_unseen);
    unseen.map(|(name, ..)| *name).collect()
}

/// Plants what `CHAOS_PLANT` names, to see a whole run fail.
pub fn plant_what_is_wanted(evidence: &mut Evidence) {
    let Ok(wanted) = std::env::var("CHAOS_PLANT") else {
        return;
    };
    let found = PLANTS.iter().find(|(name, ..)| *name == wanted);
    let names: Vec<_> = PLANTS.iter().map(|(name, ..)| *name).collect();
    let (_, _, plant) = found.unwrap_or_else(|| panic!("CHAOS_PLANT is one of {names:?}"));
    plant(evidence);
}

fn forget_a_turn(evidence: &mut Evidence) {
    let (_, task) = evidence.ledger.acknowledged.first_key_value().expect("one");
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
