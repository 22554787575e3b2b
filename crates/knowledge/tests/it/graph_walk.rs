//! Compares traversals with a plain breadth-first search on random graphs.

use super::graph::{TestEnvironment, environment};
use lango_core::{Provenance, Timestamp, Trust, UserId};
use lango_store::Store;
use lango_store::graph::{
    Confidence, Direction, Entity, Name, NewFact, Traversal, Triple, Walk, WalkLimits,
};
use proptest::collection::vec;
use proptest::prelude::*;
use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::sync::Arc;

/// The numbers of subject, predicate and object.
type Edge = (u8, u8, u8);

#[derive(Debug, Clone)]
struct Case {
    edges: Vec<Edge>,
    /// The indexes of the edges that ended.
    ended: Vec<usize>,
    /// The type of each entity; 0 means none.
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

/// Returns the edges that are valid in the end.
fn valid_edges(case: &Case) -> BTreeSet<Edge> {
    let mut valid_edges: BTreeSet<_> = case.edges.iter().copied().collect();
    for ended in &case.ended {
        if let Some(edge) = case.edges.get(*ended) {
            valid_edges.remove(edge);
        }
    }
    valid_edges
}

/// Searches breadth-first. Returns every edge from an entity within the depth limit, with the depth at which it is
/// first found, and the number of entities just beyond the limit.
fn plain_search(case: &Case) -> (BTreeMap<Edge, usize>, usize) {
    let Choice {
        start,
        depth,
        direction,
        predicates,
        kinds,
    } = &case.walk;
    let valid_edges = valid_edges(case);
    let mut distances = HashMap::from([(*start, 0)]);
    let mut queue = VecDeque::from([*start]);
    let mut found = BTreeMap::new();
    while let Some(entity) = queue.pop_front() {
        let next = distances[&entity] + 1;
        if next > *depth {
            continue;
        }
        for edge @ (subject, predicate, object) in valid_edges.iter().copied() {
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
        source: Provenance {
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

/// One database for all cases; each case has its own user.
struct SharedGraph {
    environment: TestEnvironment,
    runtime: tokio::runtime::Runtime,
    users: Cell<u32>,
}

impl SharedGraph {
    fn new() -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build();
        Self {
            environment: environment(),
            runtime: runtime.unwrap(),
            users: Cell::new(0),
        }
    }

    /// Runs the traversal of a case; `None` if its start has no facts at all.
    fn traversal_of(&self, case: &Case, limits: WalkLimits) -> Option<Traversal> {
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
        let graph = &self.environment.graph;
        self.runtime.block_on(async {
            keep(graph, &user, case).await;
            graph.traverse(&user, walk).await.unwrap()
        })
    }
}

fn found(traversal: &Traversal) -> Vec<(Edge, usize)> {
    let edge = |step: &lango_store::graph::TraversalStep| {
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
fn a_traversal_finds_what_a_plain_search_finds() {
    let world = SharedGraph::new();
    proptest!(settings(), |(case in cases())| {
        let limits = WalkLimits { depth: case.walk.depth, facts: 1000, facts_per_entity: 1000 };
        let (expected, not_followed) = plain_search(&case);
        let Some(traversal) = world.traversal_of(&case, limits) else {
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
fn a_limited_traversal_finds_a_part_and_says_so() {
    let world = SharedGraph::new();
    proptest!(settings(), |(case in cases(), facts in 0..12usize, facts_per_entity in 0..4usize)| {
        let limits = WalkLimits { depth: case.walk.depth, facts, facts_per_entity };
        let (expected, _) = plain_search(&case);
        let Some(traversal) = world.traversal_of(&case, limits) else {
            return Ok(());
        };
        let found = found(&traversal);
        prop_assert!(found.len() <= facts);
        for (edge, depth) in &found {
            // A truncated hub may make paths longer.
            prop_assert!(expected.get(edge).is_some_and(|shortest| shortest <= depth), "{:?}", edge);
        }
        let is_all = found.len() == expected.len();
        prop_assert!(is_all || !traversal.truncation.is_complete(), "{:?}", traversal.truncation);
        prop_assert!(!traversal.truncation.facts || found.len() == facts);
    });
}

/// Adds hubs that share their parts; the parts have no type.
async fn hubs(graph: &Arc<Store>, hubs: u32, parts: u32) {
    let name = |text: String| Name::new(&text).unwrap();
    let fact = |subject: String, object: String| NewFact {
        subject: name(subject).into(),
        predicate: name("has".to_owned()),
        object: name(object).into(),
        source: Provenance {
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
async fn a_hub_with_too_many_facts_is_not_read_completely() {
    let environment = environment();
    hubs(&environment.graph, 2, 2_000).await;
    assert!(
        walk_to_hubs(&environment.graph)
            .await
            .truncation
            .is_complete()
    );
    hubs(&environment.graph, 1, 2_001).await;
    let truncation = walk_to_hubs(&environment.graph).await.truncation;
    assert_eq!(truncation.hubs, [Name::new("hub 0").unwrap()]);
    assert!(!truncation.work);
}

#[tokio::test]
async fn a_traversal_examines_a_bounded_number_of_facts() {
    let environment = environment();
    hubs(&environment.graph, 11, 1_900).await;
    let traversal = walk_to_hubs(&environment.graph).await;
    assert_eq!(traversal.steps.len(), 11);
    assert!(traversal.truncation.work);
}
