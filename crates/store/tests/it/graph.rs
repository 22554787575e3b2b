//! Tests of the knowledge graph: storing, ending and finding facts.

use super::KIND;
use crate::database::TestDatabase;
use lango_core::{Provenance, Timestamp, Trust, UserId};
use lango_store::Store;
use lango_store::graph::{
    Confidence, EndOutcome, Entity, Fact, FactQuery, Name, NameKind, NewFact, RelateOutcome,
    Triple, Validity,
};
use std::sync::Arc;

const TABLES: [&str; 5] = [
    "graph_facts",
    "graph_entities",
    "graph_predicates",
    "graph_sources",
    "graph_users",
];

pub(super) struct GraphTest {
    database: TestDatabase,
    pub graph: Arc<Store>,
    pub user: UserId,
}

pub(super) fn graph_test() -> GraphTest {
    let database = TestDatabase::new(KIND);
    GraphTest {
        graph: database.open(),
        database,
        user: UserId::from("local"),
    }
}

impl GraphTest {
    pub(super) async fn relate(&self, fact: NewFact) -> RelateOutcome {
        self.graph.relate(&self.user, fact).await.unwrap()
    }

    pub(super) async fn query(&self, query: FactQuery) -> Vec<String> {
        let found = self.graph.query_facts(&self.user, query).await.unwrap();
        found.facts.iter().map(shown).collect()
    }

    pub(super) async fn end(&self, triple: Triple, by: Trust) -> EndOutcome {
        let end = self.graph.end_fact(&self.user, triple, by, Timestamp(900));
        end.await.unwrap()
    }

    /// Counts the rows of each table of the graph.
    pub(super) fn rows(&self) -> [i64; 5] {
        TABLES.map(|table| {
            let count = format!("SELECT count(*) || '' FROM {table}");
            self.database.rows(&count)[0].parse().unwrap()
        })
    }
}

pub(super) fn name(text: &str) -> Name {
    Name::new(text).unwrap()
}

/// Returns a fact from an untrusted file, with confidence 0.5.
pub(super) fn fact(subject: &str, predicate: &str, object: &str) -> NewFact {
    NewFact {
        subject: name(subject).into(),
        predicate: name(predicate),
        object: name(object).into(),
        source: source("a.txt", Trust::Untrusted),
        confidence: Confidence::new(0.5).unwrap(),
        created: Timestamp(100),
        valid_from: Timestamp(100),
    }
}

pub(super) fn source(name: &str, trust: Trust) -> Provenance {
    Provenance {
        name: name.into(),
        trust,
    }
}

fn known_fact(by: Provenance, confidence: f64) -> NewFact {
    NewFact {
        source: by,
        confidence: Confidence::new(confidence).unwrap(),
        ..fact("Ada", "knows", "Bob")
    }
}

pub(super) fn triple(subject: &str, predicate: &str, object: &str) -> Triple {
    Triple {
        subject: name(subject),
        predicate: name(predicate),
        object: name(object),
    }
}

fn shown(fact: &Fact) -> String {
    format!(
        "{} {} {}",
        fact.subject.name, fact.predicate, fact.object.name
    )
}

pub(super) fn everything() -> FactQuery {
    FactQuery {
        limit: 100,
        ..FactQuery::default()
    }
}

#[tokio::test]
async fn a_fact_is_read_as_it_was_stored() {
    let test = graph_test();
    let new = NewFact {
        subject: Entity {
            name: name("Ada  Lovelace"),
            kind: Some(name("person")),
        },
        valid_from: Timestamp(7),
        ..fact("-", "wrote", "Notes")
    };
    let RelateOutcome::New(stored) = test.relate(new.clone()).await else {
        panic!("it was not new");
    };
    assert_eq!(stored.subject, new.subject);
    assert_eq!(stored.predicate, new.predicate);
    assert_eq!(stored.object, new.object);
    assert_eq!(stored.source, new.source);
    assert_eq!(stored.confidence, new.confidence);
    assert_eq!(
        (stored.created, stored.valid_from),
        (Timestamp(100), Timestamp(7))
    );
    assert_eq!(stored.valid_to, None);
    let found = test
        .graph
        .query_facts(&test.user, everything())
        .await
        .unwrap();
    assert_eq!((found.facts, found.more), (vec![stored], false));
}

#[tokio::test]
async fn a_current_fact_is_stored_once_however_it_is_spelled() {
    let test = graph_test();
    test.relate(fact("Ada", "works at", "Acme")).await;
    let again = test.relate(fact(" ADA ", "works_at", "acme")).await;
    assert!(matches!(again, RelateOutcome::Known(_)), "{again:?}");
    assert_eq!(test.rows(), [1, 2, 1, 1, 1]);
    assert_eq!(test.query(everything()).await, ["Ada works at Acme"]);
}

#[tokio::test]
async fn the_best_source_of_a_fact_is_stored() {
    let test = graph_test();
    let file = |name| source(name, Trust::Untrusted);
    let person = |name| source(name, Trust::Trusted);
    let steps = [
        (known_fact(file("a"), 0.5), "a", 0.5),
        (known_fact(file("b"), 0.4), "a", 0.5),
        (known_fact(file("c"), 0.5), "c", 0.5),
        (known_fact(file("d"), 0.9), "d", 0.9),
        (known_fact(person("user"), 0.6), "user", 0.6),
        (known_fact(file("e"), 1.0), "user", 0.6),
        (known_fact(person("user"), 0.7), "user", 0.7),
    ];
    for (new, source, confidence) in steps {
        let by = new.source.name.clone();
        test.relate(new).await;
        let found = test
            .graph
            .query_facts(&test.user, everything())
            .await
            .unwrap();
        let stored = &found.facts[0];
        assert_eq!(found.facts.len(), 1);
        assert_eq!(&*stored.source.name, source, "after {by}");
        assert_eq!(stored.confidence.get(), confidence, "after {by}");
    }
}

#[tokio::test]
async fn a_given_type_replaces_the_stored_one() {
    let test = graph_test();
    let typed = |kind: Option<&str>| NewFact {
        subject: Entity {
            name: name("Ada"),
            kind: kind.map(name),
        },
        ..fact("Ada", "knows", "Bob")
    };
    let steps = [
        (None, None),
        (Some("x"), Some("x")),
        (None, Some("x")),
        (Some("y"), Some("y")),
    ];
    for (given, known) in steps {
        test.relate(typed(given)).await;
        let found = test
            .graph
            .query_facts(&test.user, everything())
            .await
            .unwrap();
        assert_eq!(found.facts[0].subject.kind, known.map(name));
    }
}

#[tokio::test]
async fn an_ended_fact_stays_and_can_become_current_again() {
    let test = graph_test();
    let (works, acme) = (
        fact("Ada", "works at", "Acme"),
        triple("ada", "works at", "acme"),
    );
    test.relate(works.clone()).await;
    let EndOutcome::Ended(ended) = test.end(acme.clone(), Trust::Untrusted).await else {
        panic!("it should end");
    };
    assert_eq!(ended.valid_to, Some(Timestamp(900)));
    assert_eq!(test.end(acme, Trust::Untrusted).await, EndOutcome::NotFound);
    assert!(test.query(everything()).await.is_empty());
    let ever = FactQuery {
        validity: Validity::Any,
        ..everything()
    };
    assert_eq!(test.query(ever.clone()).await.len(), 1);

    assert!(matches!(test.relate(works).await, RelateOutcome::New(_)));
    let found = test
        .graph
        .query_facts(&test.user, ever)
        .await
        .unwrap()
        .facts;
    let ends: Vec<_> = found.iter().map(|fact| fact.valid_to).collect();
    assert_eq!(ends, [None, Some(Timestamp(900))]);
    assert_eq!(test.rows(), [2, 2, 1, 1, 1]);
}

#[tokio::test]
async fn only_a_trusted_caller_can_end_a_fact_of_a_trusted_source() {
    let test = graph_test();
    test.relate(known_fact(source("user", Trust::Trusted), 1.0))
        .await;
    let knows = triple("Ada", "knows", "Bob");
    let refused = test.end(knows.clone(), Trust::Untrusted).await;
    assert!(matches!(refused, EndOutcome::Protected(_)), "{refused:?}");
    assert_eq!(test.query(everything()).await.len(), 1);
    assert!(matches!(
        test.end(knows, Trust::Trusted).await,
        EndOutcome::Ended(_)
    ));
}

#[tokio::test]
async fn a_fact_never_ends_before_it_started() {
    let test = graph_test();
    let late = NewFact {
        valid_from: Timestamp(5000),
        ..fact("Ada", "knows", "Bob")
    };
    test.relate(late).await;
    let end = test.end(triple("Ada", "knows", "Bob"), Trust::Untrusted);
    let EndOutcome::Ended(ended) = end.await else {
        panic!("it should end");
    };
    assert_eq!(ended.valid_to, Some(Timestamp(5000)));
}

#[tokio::test]
async fn a_query_matches_any_combination_of_names_and_validity() {
    let test = graph_test();
    let names = ["a", "b", "c"];
    let mut all = Vec::new();
    for subject in names {
        for predicate in ["p", "q"] {
            all.extend(names.map(|object| [subject, predicate, object]));
        }
    }
    let facts = all.iter().map(|[s, p, o]| fact(s, p, o)).collect();
    assert_eq!(test.graph.relate_all(&test.user, facts).await.unwrap(), 18);
    let is_over = |[s, p, o]: &[&str; 3]| *s == "a" && *p == "p" || *o == "c" && *p == "q";
    for [s, p, o] in all.iter().filter(|fact| is_over(fact)) {
        test.end(triple(s, p, o), Trust::Untrusted).await;
    }
    for bound in 0..8 {
        let bind = |bit: u8, text: &str| (bound & bit != 0).then(|| name(text));
        for validity in [Validity::Current, Validity::Any] {
            let query = FactQuery {
                subject: bind(1, "A"),
                predicate: bind(2, "P"),
                object: bind(4, "C"),
                validity,
                limit: 100,
            };
            let fits = |[s, p, o]: &&[&str; 3]| {
                (bound & 1 == 0 || *s == "a")
                    && (bound & 2 == 0 || *p == "p")
                    && (bound & 4 == 0 || *o == "c")
                    && (validity == Validity::Any || !is_over(&[s, p, o]))
            };
            let mut expected: Vec<_> = all.iter().filter(fits).map(|fact| fact.join(" ")).collect();
            let mut found = test.query(query.clone()).await;
            expected.sort();
            found.sort();
            assert_eq!(found, expected, "{query:?}");

            let few = FactQuery { limit: 1, ..query };
            let found = test.graph.query_facts(&test.user, few).await.unwrap();
            assert_eq!(found.facts.len(), expected.len().min(1));
            assert_eq!(found.more, expected.len() > 1);
        }
    }
    let unknown = FactQuery {
        subject: Some(name("unknown")),
        ..everything()
    };
    assert!(test.query(unknown).await.is_empty());
}

#[tokio::test]
async fn neighbours_are_a_fair_share_of_each_name_in_both_directions() {
    let test = graph_test();
    for number in 0..20 {
        test.relate(fact("hub", "has", &format!("part {number}")))
            .await;
    }
    test.relate(fact("Ada", "owns", "hub")).await;
    test.relate(fact("Ada", "knows", "Bob")).await;
    let names = ["HUB", "unknown", "bob", "hub"].map(name).to_vec();
    let around = test.graph.neighbours(&test.user, names, 4);
    let around: Vec<_> = around.await.unwrap().iter().map(shown).collect();
    assert_eq!(
        around,
        [
            "hub has part 0",
            "Ada knows Bob",
            "Ada owns hub",
            "hub has part 1"
        ]
    );
}

#[tokio::test]
async fn near_names_are_close_in_alphabetical_order() {
    let test = graph_test();
    for person in ["Adam", "Ada", "Bob", "Adele", "Zoe"] {
        test.relate(fact(person, "is_a", "person")).await;
    }
    let near = test
        .graph
        .names_near(&test.user, NameKind::Entity, name("ADAM"), 2);
    assert_eq!(near.await.unwrap(), ["Adam", "Adele", "Ada"].map(name));
    let near = test
        .graph
        .names_near(&test.user, NameKind::Predicate, name("is"), 2);
    assert_eq!(near.await.unwrap(), ["is_a"].map(name));
}

#[tokio::test]
async fn users_cannot_see_or_change_facts_of_other_users() {
    let test = graph_test();
    let other = UserId::from("other");
    test.relate(fact("Ada", "knows", "Bob")).await;
    let graph = &test.graph;
    assert_eq!(
        graph.query_facts(&other, everything()).await.unwrap().facts,
        []
    );
    let near = graph.names_near(&other, NameKind::Entity, name("Ada"), 10);
    assert_eq!(near.await.unwrap(), []);
    let neighbours = graph.neighbours(&other, vec![name("Ada")], 10);
    assert_eq!(neighbours.await.unwrap(), []);
    let end = graph.end_fact(
        &other,
        triple("Ada", "knows", "Bob"),
        Trust::Trusted,
        Timestamp(1),
    );
    assert_eq!(end.await.unwrap(), EndOutcome::NotFound);

    let theirs = graph
        .relate(&other, fact("Ada", "knows", "Bob"))
        .await
        .unwrap();
    assert!(matches!(theirs, RelateOutcome::New(_)));
    assert_eq!(test.query(everything()).await.len(), 1);
    assert_eq!(test.rows(), [2, 4, 2, 2, 2]);
}
