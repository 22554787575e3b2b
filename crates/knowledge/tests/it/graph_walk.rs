//! The walk against a plain breadth-first search, on random graphs.

use super::graph::{Desk, desk};
use lango_core::{Source, Timestamp, Trust, UserId};
use lango_store::Store;
use lango_store::graph::{
    Confidence, Direction, Entity, Name, NewFact, Traversal, Triple, Walk, WalkLimits,
};
use proptest::collection::vec;
use proptest::prelude::*;
use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::sync::Arc;

/// Subject, predicate and object, by number.
type Edge = (u8, u8, u8);

#[derive(Debug, Clone)]
struct Case {
    edges: Vec<Edge>,
    /// Facts that ended, by their place among the edges.
    ended: Vec<usize>,
    /// The type of each entity; 0 for none.
    kinds: Vec<u8>,
    walk: Choice,
}

#[derive(Debug, Clone)]
struct Choice {
    start: u8,
    depth: usize,
    direction: Direction,
    predicates: BTreeSet<u8>,
    kinds: BTreeSet<u8>,
}

const ENTITIES: u8 = 12;

fn cases() -> impl Strategy<Value = Case> {
    let edge = (0..ENTITIES, 0..3u8, 0..ENTITIES);
    let direction = prop_oneof![
        Just(Direction::Out),
        Just(Direction::In),
        Just(Direction::Both)
    ];
    let few = |numbers: std::ops::Range<u8>| proptest::collection::btree_set(numbers, 0..3);
    let choice = (0..ENTITIES, 0..=6usize, direction, few(0..4), few(1..4)).prop_map(
        |(start, depth, direction, predicates, kinds)| Choice {
            start,
            depth,
            direction,
            predicates,
            kinds,
        },
    );
    let kinds = vec(0..4u8, usize::from(ENTITIES));
    (vec(edge, 1..40), vec(0..40usize, 0..6), kinds, choice).prop_map(
        |(edges, ended, kinds, walk)| Case {
            edges,
            ended,
            kinds,
            walk,
        },
    )
}

/// What holds in the end, by the book.
fn holding(case: &Case) -> BTreeSet<Edge> {
    let mut holding: BTreeSet<_> = case.edges.iter().copied().collect();
    for ended in &case.ended {
        if let Some(edge) = case.edges.get(*ended) {
            holding.remove(edge);
        }
    }
    holding
}

/// The plain search: every edge that leads from an entity within reach, with the depth at which it is first found, and
/// how many entities are just out of reach.
fn plain_search(case: &Case) -> (BTreeMap<Edge, usize>, usize) {
    let Choice {
        start,
        depth,
        direction,
        predicates,
        kinds,
    } = &case.walk;
    let holding = holding(case);
    let mut distances = HashMap::from([(*start, 0)]);
    let mut queue = VecDeque::from([*start]);
    let mut found = BTreeMap::new();
    while let Some(entity) = queue.pop_front() {
        let next = distances[&entity] + 1;
        if next > *depth {
            continue;
        }
        for edge @ (subject, predicate, object) in holding.iter().copied() {
            let mut ends = Vec::new();
            if *direction != Direction::In && subject == entity {
                ends.push(object);
            }
            if *direction != Direction::Out && object == entity {
                ends.push(subject);
            }
            for far in ends {
                let kind = case.kinds[usize::from(far)];
                let fits = (predicates.is_empty() || predicates.contains(&predicate))
                    && (kinds.is_empty() || kinds.contains(&kind));
                if fits {
                    found.entry(edge).or_insert(next);
                    distances.entry(far).or_insert_with(|| {
                        queue.push_back(far);
                        next
                    });
                }
            }
        }
    }
    let is_last = |distance: &&usize| *distance == depth;
    let not_followed = distances.values().filter(is_last).count();
    (found, not_followed)
}

fn name(prefix: &str, number: u8) -> Name {
    Name::new(&format!("{prefix}{number}")).unwrap()
}

fn number(name: &Name) -> u8 {
    name.as_str()[1..].parse().unwrap()
}

fn user() -> UserId {
    UserId::from("local")
}

async fn keep(graph: &Arc<Store>, user: &UserId, case: &Case) {
    let entity = |number: u8| {
        let kind = case.kinds[usize::from(number)];
        Entity {
            name: name("e", number),
            kind: (kind > 0).then(|| name("k", kind)),
        }
    };
    let fact = |(subject, predicate, object): Edge| NewFact {
        subject: entity(subject),
        predicate: name("p", predicate),
        object: entity(object),
        source: Source {
            name: "a.txt".into(),
            trust: Trust::Untrusted,
        },
        confidence: Confidence::FULL,
        created: Timestamp(1),
        valid_from: Timestamp(1),
    };
    let facts = case.edges.iter().copied().map(fact).collect();
    graph.relate_all(user, facts).await.unwrap();
    for ended in &case.ended {
        if let Some((subject, predicate, object)) = case.edges.get(*ended).copied() {
            let triple = Triple {
                subject: name("e", subject),
                predicate: name("p", predicate),
                object: name("e", object),
            };
            let end = graph.end_fact(user, triple, Trust::Untrusted, Timestamp(2));
            end.await.unwrap();
        }
    }
}

/// One database for all cases, each of which has a user of its own.
struct World {
    desk: Desk,
    runtime: tokio::runtime::Runtime,
    users: Cell<u32>,
}

impl World {
    fn new() -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build();
        Self {
            desk: desk(),
            runtime: runtime.unwrap(),
            users: Cell::new(0),
        }
    }

    /// The walk that a case asks for; nothing if its start has no facts at all.
    fn walked(&self, case: &Case, limits: WalkLimits) -> Option<Traversal> {
        self.users.set(self.users.get() + 1);
        let user = UserId::new(format!("user {}", self.users.get()));
        let names = |prefix: &str, numbers: &BTreeSet<u8>| {
            let named = numbers.iter().map(|number| name(prefix, *number));
            named.collect()
        };
        let walk = Walk {
            start: name("e", case.walk.start),
            direction: case.walk.direction,
            predicates: names("p", &case.walk.predicates),
            kinds: names("k", &case.walk.kinds),
            limits,
        };
        let graph = &self.desk.graph;
        self.runtime.block_on(async {
            keep(graph, &user, case).await;
            graph.traverse(&user, walk).await.unwrap()
        })
    }
}

fn found(traversal: &Traversal) -> Vec<(Edge, usize)> {
    let edge = |step: &lango_store::graph::Step| {
        let fact = &step.fact;
        let edge = (
            number(&fact.subject.name),
            number(&fact.predicate),
            number(&fact.object.name),
        );
        (edge, step.depth)
    };
    traversal.steps.iter().map(edge).collect()
}

fn settings() -> ProptestConfig {
    ProptestConfig {
        cases: 256,
        failure_persistence: None,
        ..ProptestConfig::default()
    }
}

#[test]
fn a_walk_finds_what_a_plain_search_finds() {
    let world = World::new();
    proptest!(settings(), |(case in cases())| {
        let limits = WalkLimits { depth: case.walk.depth, facts: 1000, facts_per_entity: 1000 };
        let (expected, not_followed) = plain_search(&case);
        let Some(traversal) = world.walked(&case, limits) else {
            prop_assert!(expected.is_empty());
            return Ok(());
        };
        let found = found(&traversal);
        let depths: Vec<_> = found.iter().map(|(_, depth)| *depth).collect();
        prop_assert!(depths.is_sorted(), "the nearest come first: {:?}", found);
        let unique: BTreeMap<_, _> = found.iter().copied().collect();
        prop_assert_eq!(unique.len(), found.len(), "each once: {:?}", found);
        prop_assert_eq!(unique, expected);
        prop_assert!(traversal.truncation.is_complete());
        prop_assert_eq!(traversal.truncation.not_followed, not_followed);
    });
}

#[test]
fn a_walk_within_limits_finds_some_of_it_and_says_so() {
    let world = World::new();
    proptest!(settings(), |(case in cases(), facts in 0..12usize, facts_per_entity in 0..4usize)| {
        let limits = WalkLimits { depth: case.walk.depth, facts, facts_per_entity };
        let (expected, _) = plain_search(&case);
        let Some(traversal) = world.walked(&case, limits) else {
            return Ok(());
        };
        let found = found(&traversal);
        prop_assert!(found.len() <= facts);
        for (edge, depth) in &found {
            // A hub that was cut may make the way to it longer.
            prop_assert!(expected.get(edge).is_some_and(|shortest| shortest <= depth), "{:?}", edge);
        }
        let is_all = found.len() == expected.len();
        prop_assert!(is_all || !traversal.truncation.is_complete(), "{:?}", traversal.truncation);
        prop_assert!(!traversal.truncation.facts || found.len() == facts);
    });
}

/// A graph of hubs that share their parts, none of which is of a type.
async fn hubs(graph: &Arc<Store>, hubs: u32, parts: u32) {
    let name = |text: String| Name::new(&text).unwrap();
    let fact = |subject: String, object: String| NewFact {
        subject: name(subject).into(),
        predicate: name("has".to_owned()),
        object: name(object).into(),
        source: Source {
            name: "a.txt".into(),
            trust: Trust::Untrusted,
        },
        confidence: Confidence::FULL,
        created: Timestamp(1),
        valid_from: Timestamp(1),
    };
    let mut facts = Vec::new();
    for hub in 0..hubs {
        let mut lead = fact("start".to_owned(), format!("hub {hub}"));
        lead.object.kind = Some(name("hub".to_owned()));
        facts.push(lead);
        facts.extend((0..parts).map(|part| fact(format!("hub {hub}"), format!("part {part}"))));
    }
    graph.relate_all(&user(), facts).await.unwrap();
}

async fn walk_to_hubs(graph: &Arc<Store>) -> Traversal {
    let walk = Walk {
        start: Name::new("start").unwrap(),
        direction: Direction::Out,
        predicates: Vec::new(),
        kinds: vec![Name::new("hub").unwrap()],
        limits: WalkLimits::default(),
    };
    graph.traverse(&user(), walk).await.unwrap().unwrap()
}

#[tokio::test]
async fn a_hub_whose_facts_do_not_fit_is_not_read_to_its_end() {
    let desk = desk();
    hubs(&desk.graph, 2, 2_000).await;
    assert!(walk_to_hubs(&desk.graph).await.truncation.is_complete());
    hubs(&desk.graph, 1, 2_001).await;
    let truncation = walk_to_hubs(&desk.graph).await.truncation;
    assert_eq!(truncation.hubs, [Name::new("hub 0").unwrap()]);
    assert!(!truncation.work);
}

#[tokio::test]
async fn a_walk_looks_at_so_many_facts_and_no_more() {
    let desk = desk();
    hubs(&desk.graph, 11, 1_900).await;
    let traversal = walk_to_hubs(&desk.graph).await;
    assert_eq!(traversal.steps.len(), 11);
    assert!(traversal.truncation.work);
}
