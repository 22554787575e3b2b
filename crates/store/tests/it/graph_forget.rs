//! Whose facts they are, and forgetting them: by the rows that are there.

use super::graph::{desk, everything, fact, name, source, triple};
use lango_core::{Timestamp, Trust, UserId};
use lango_store::graph::{EndOutcome, GraphSize, NameKind, NewFact, RelateOutcome};

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
    assert_eq!(
        graph.graph_size(&other).await.unwrap(),
        GraphSize::default()
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
    assert_eq!(graph.forget_graph(&other).await.unwrap(), 1);
    assert_eq!(place.query(everything()).await.len(), 1);
    assert_eq!(place.rows(), [1, 2, 1, 1, 1]);
}

#[tokio::test]
async fn a_forgotten_source_takes_what_only_it_knew() {
    let place = desk();
    let from = |file: &str, trust, subject: &str, object: &str| NewFact {
        source: source(file, trust),
        ..fact(subject, "knows", object)
    };
    let mut facts = vec![
        from("b.txt", Trust::Untrusted, "Ada", "Bob"),
        from("a.txt", Trust::Trusted, "Ada", "Zoe"),
    ];
    // More than one portion.
    facts.extend((0..1200).map(|number| {
        from(
            "a.txt",
            Trust::Untrusted,
            "Ada",
            &format!("friend {number}"),
        )
    }));
    place.graph.relate_all(&place.user, facts).await.unwrap();
    place
        .end(triple("Ada", "knows", "friend 7"), Trust::Untrusted)
        .await;
    let forget = place.graph.forget_source(&place.user, "a.txt");
    assert_eq!(forget.await.unwrap(), 1201);
    assert_eq!(place.query(everything()).await, ["Ada knows Bob"]);
    assert_eq!(place.rows(), [1, 2, 1, 1, 1]);
    let forget = place.graph.forget_source(&place.user, "a.txt");
    assert_eq!(forget.await.unwrap(), 0);
}

#[tokio::test]
async fn a_forgotten_user_leaves_no_row() {
    let place = desk();
    let facts = (0..1200).map(|number| fact(&format!("e{number}"), "knows", "Ada"));
    place
        .graph
        .relate_all(&place.user, facts.collect())
        .await
        .unwrap();
    place
        .end(triple("e7", "knows", "Ada"), Trust::Untrusted)
        .await;
    assert_eq!(place.graph.forget_graph(&place.user).await.unwrap(), 1200);
    assert_eq!(place.rows(), [0; 5]);
}
