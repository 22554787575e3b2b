//! The graph as its handle shows it: what is kept and what is found.

use super::KIND;
use crate::place::Place;
use lango_core::{Source, Timestamp, Trust, UserId};
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

pub struct Desk {
    place: Place,
    pub graph: Arc<Store>,
    pub user: UserId,
}

pub fn desk() -> Desk {
    let place = Place::new(KIND);
    Desk {
        graph: place.open(),
        place,
        user: UserId::from("local"),
    }
}

impl Desk {
    pub async fn relate(&self, fact: NewFact) -> RelateOutcome {
        self.graph.relate(&self.user, fact).await.unwrap()
    }

    pub async fn query(&self, query: FactQuery) -> Vec<String> {
        let found = self.graph.query_facts(&self.user, query).await.unwrap();
        found.facts.iter().map(shown).collect()
    }

    pub async fn end(&self, triple: Triple, by: Trust) -> EndOutcome {
        let end = self.graph.end_fact(&self.user, triple, by, Timestamp(900));
        end.await.unwrap()
    }

    /// How many rows each table of the graph has.
    pub fn rows(&self) -> [i64; 5] {
        TABLES.map(|table| {
            let count = format!("SELECT count(*) || '' FROM {table}");
            self.place.rows(&count)[0].parse().unwrap()
        })
    }
}

pub fn name(text: &str) -> Name {
    Name::new(text).unwrap()
}

/// A fact of an untrusted file, half sure.
pub fn fact(subject: &str, predicate: &str, object: &str) -> NewFact {
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

pub fn source(name: &str, trust: Trust) -> Source {
    Source {
        name: name.into(),
        trust,
    }
}

fn said(by: Source, confidence: f64) -> NewFact {
    NewFact {
        source: by,
        confidence: Confidence::new(confidence).unwrap(),
        ..fact("Ada", "knows", "Bob")
    }
}

pub fn triple(subject: &str, predicate: &str, object: &str) -> Triple {
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

pub fn everything() -> FactQuery {
    FactQuery {
        limit: 100,
        ..FactQuery::default()
    }
}

#[tokio::test]
async fn a_fact_comes_back_as_it_was_kept() {
    let place = desk();
    let new = NewFact {
        subject: Entity {
            name: name("Ada  Lovelace"),
            kind: Some(name("person")),
        },
        valid_from: Timestamp(7),
        ..fact("-", "wrote", "Notes")
    };
    let RelateOutcome::New(kept) = place.relate(new.clone()).await else {
        panic!("it was not new");
    };
    assert_eq!(kept.subject, new.subject);
    assert_eq!(kept.predicate, new.predicate);
    assert_eq!(kept.object, new.object);
    assert_eq!(kept.source, new.source);
    assert_eq!(kept.confidence, new.confidence);
    assert_eq!(
        (kept.created, kept.valid_from),
        (Timestamp(100), Timestamp(7))
    );
    assert_eq!(kept.valid_to, None);
    let found = place
        .graph
        .query_facts(&place.user, everything())
        .await
        .unwrap();
    assert_eq!((found.facts, found.more), (vec![kept], false));
}

#[tokio::test]
async fn what_holds_is_kept_once_however_it_is_written() {
    let place = desk();
    place.relate(fact("Ada", "works at", "Acme")).await;
    let again = place.relate(fact(" ADA ", "works_at", "acme")).await;
    assert!(matches!(again, RelateOutcome::Known(_)), "{again:?}");
    assert_eq!(place.rows(), [1, 2, 1, 1, 1]);
    assert_eq!(place.query(everything()).await, ["Ada works at Acme"]);
}

#[tokio::test]
async fn the_best_word_for_a_fact_is_the_one_that_is_kept() {
    let place = desk();
    let file = |name| source(name, Trust::Untrusted);
    let person = |name| source(name, Trust::Trusted);
    let steps = [
        (said(file("a"), 0.5), "a", 0.5),
        (said(file("b"), 0.4), "a", 0.5),
        (said(file("c"), 0.5), "c", 0.5),
        (said(file("d"), 0.9), "d", 0.9),
        (said(person("user"), 0.6), "user", 0.6),
        (said(file("e"), 1.0), "user", 0.6),
        (said(person("user"), 0.7), "user", 0.7),
    ];
    for (new, source, confidence) in steps {
        let by = new.source.name.clone();
        place.relate(new).await;
        let found = place
            .graph
            .query_facts(&place.user, everything())
            .await
            .unwrap();
        let kept = &found.facts[0];
        assert_eq!(found.facts.len(), 1);
        assert_eq!(&*kept.source.name, source, "after {by}");
        assert_eq!(kept.confidence.get(), confidence, "after {by}");
    }
}

#[tokio::test]
async fn a_type_that_is_given_replaces_the_one_that_is_known() {
    let place = desk();
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
        place.relate(typed(given)).await;
        let found = place
            .graph
            .query_facts(&place.user, everything())
            .await
            .unwrap();
        assert_eq!(found.facts[0].subject.kind, known.map(name));
    }
}

#[tokio::test]
async fn a_fact_that_ended_stays_and_can_begin_again() {
    let place = desk();
    let (works, acme) = (
        fact("Ada", "works at", "Acme"),
        triple("ada", "works at", "acme"),
    );
    place.relate(works.clone()).await;
    let EndOutcome::Ended(over) = place.end(acme.clone(), Trust::Untrusted).await else {
        panic!("it should end");
    };
    assert_eq!(over.valid_to, Some(Timestamp(900)));
    assert_eq!(
        place.end(acme, Trust::Untrusted).await,
        EndOutcome::NotFound
    );
    assert!(place.query(everything()).await.is_empty());
    let ever = FactQuery {
        validity: Validity::Any,
        ..everything()
    };
    assert_eq!(place.query(ever.clone()).await.len(), 1);

    assert!(matches!(place.relate(works).await, RelateOutcome::New(_)));
    let found = place
        .graph
        .query_facts(&place.user, ever)
        .await
        .unwrap()
        .facts;
    let ends: Vec<_> = found.iter().map(|fact| fact.valid_to).collect();
    assert_eq!(ends, [None, Some(Timestamp(900))]);
    assert_eq!(place.rows(), [2, 2, 1, 1, 1]);
}

#[tokio::test]
async fn only_somebody_trusted_ends_what_a_trusted_source_said() {
    let place = desk();
    place
        .relate(said(source("user", Trust::Trusted), 1.0))
        .await;
    let knows = triple("Ada", "knows", "Bob");
    let refused = place.end(knows.clone(), Trust::Untrusted).await;
    assert!(matches!(refused, EndOutcome::Protected(_)), "{refused:?}");
    assert_eq!(place.query(everything()).await.len(), 1);
    assert!(matches!(
        place.end(knows, Trust::Trusted).await,
        EndOutcome::Ended(_)
    ));
}

#[tokio::test]
async fn a_fact_never_ends_before_it_began() {
    let place = desk();
    let late = NewFact {
        valid_from: Timestamp(5000),
        ..fact("Ada", "knows", "Bob")
    };
    place.relate(late).await;
    let ended = place.end(triple("Ada", "knows", "Bob"), Trust::Untrusted);
    let EndOutcome::Ended(over) = ended.await else {
        panic!("it should end");
    };
    assert_eq!(over.valid_to, Some(Timestamp(5000)));
}

#[tokio::test]
async fn a_query_finds_by_whatever_is_bound_at_any_time() {
    let place = desk();
    let names = ["a", "b", "c"];
    let mut all = Vec::new();
    for subject in names {
        for predicate in ["p", "q"] {
            all.extend(names.map(|object| [subject, predicate, object]));
        }
    }
    let facts = all.iter().map(|[s, p, o]| fact(s, p, o)).collect();
    assert_eq!(
        place.graph.relate_all(&place.user, facts).await.unwrap(),
        18
    );
    let is_over = |[s, p, o]: &[&str; 3]| *s == "a" && *p == "p" || *o == "c" && *p == "q";
    for [s, p, o] in all.iter().filter(|fact| is_over(fact)) {
        place.end(triple(s, p, o), Trust::Untrusted).await;
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
            let mut found = place.query(query.clone()).await;
            expected.sort();
            found.sort();
            assert_eq!(found, expected, "{query:?}");

            let few = FactQuery { limit: 1, ..query };
            let found = place.graph.query_facts(&place.user, few).await.unwrap();
            assert_eq!(found.facts.len(), expected.len().min(1));
            assert_eq!(found.more, expected.len() > 1);
        }
    }
    let unknown = FactQuery {
        subject: Some(name("nobody")),
        ..everything()
    };
    assert!(place.query(unknown).await.is_empty());
}

#[tokio::test]
async fn neighbours_are_a_fair_share_of_each_name_both_ways() {
    let place = desk();
    for number in 0..20 {
        place
            .relate(fact("hub", "has", &format!("part {number}")))
            .await;
    }
    place.relate(fact("Ada", "owns", "hub")).await;
    place.relate(fact("Ada", "knows", "Bob")).await;
    let names = ["HUB", "nobody", "bob", "hub"].map(name).to_vec();
    let around = place.graph.neighbours(&place.user, names, 4);
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
async fn near_names_are_those_around_it_in_the_alphabet() {
    let place = desk();
    for person in ["Adam", "Ada", "Bob", "Adele", "Zoe"] {
        place.relate(fact(person, "is_a", "person")).await;
    }
    let near = place
        .graph
        .names_near(&place.user, NameKind::Entity, name("ADAM"), 2);
    assert_eq!(near.await.unwrap(), ["Adam", "Adele", "Ada"].map(name));
    let near = place
        .graph
        .names_near(&place.user, NameKind::Predicate, name("is"), 2);
    assert_eq!(near.await.unwrap(), ["is_a"].map(name));
}

#[tokio::test]
async fn nobody_sees_or_changes_anothers_facts() {
    let place = desk();
    let other = UserId::from("other");
    place.relate(fact("Ada", "knows", "Bob")).await;
    let graph = &place.graph;
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
    assert_eq!(place.query(everything()).await.len(), 1);
    assert_eq!(place.rows(), [2, 4, 2, 2, 2]);
}
