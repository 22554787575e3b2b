//! Unusual arguments, and results that would be too long.

use super::graph::{environment, environment_with};
use lango_knowledge::GraphSettings;
use serde_json::json;

#[tokio::test]
async fn invalid_arguments_are_refused_with_advice() {
    let environment = environment();
    let long = "x".repeat(10_240);
    let relate = |subject: &str| json!({ "subject": subject, "predicate": "p", "object": "o" });
    let wrong = [
        (
            "graph_relate",
            relate(" "),
            "`subject` is not a valid name: it is empty",
        ),
        ("graph_relate", relate(&long), "it has 10240 characters"),
        ("graph_relate", relate("a\u{0}b"), "the invisible character"),
        ("graph_relate", relate("a\nb"), "on one line"),
        (
            "graph_relate",
            json!({ "subject": "a" }),
            "missing field `predicate`",
        ),
        (
            "graph_relate",
            json!({ "subject": "a", "predicate": "b", "object": "c", "confidence": 1.5 }),
            "`confidence` is 1.5; it must be a number from 0 to 1",
        ),
        (
            "graph_relate",
            json!({ "subject": "a", "predicate": "b", "object": "c", "source": "x\ny" }),
            "`source` must be one line",
        ),
        (
            "graph_traverse",
            json!({ "start": "" }),
            "`start` is not a valid name",
        ),
        (
            "graph_traverse",
            json!({ "start": "a", "direction": "up" }),
            "unknown variant `up`",
        ),
        (
            "graph_traverse",
            json!({ "start": "a", "types": vec!["x"; 51] }),
            "`types` has 51 names; at most 50 are allowed",
        ),
        (
            "graph_query",
            json!({ "object": long }),
            "`object` is not a valid name",
        ),
    ];
    for (tool, arguments, expected) in wrong {
        let error = environment.call(tool, arguments).await.unwrap_err().message;
        assert!(error.contains(expected), "{tool}: {error}");
    }
    let everything = environment
        .call("graph_query", json!({ "subject": "" }))
        .await;
    assert_eq!(everything.unwrap(), "[no such fact is known]\n");
}

#[tokio::test]
async fn a_truncated_result_names_the_limit() {
    let environment = environment_with(GraphSettings {
        max_depth: 2,
        max_results: 8,
    });
    for part in 0..9 {
        environment
            .relate("hub", "has", &format!("part {part}"))
            .await;
    }
    environment.relate("Ada", "owns", "hub").await;
    environment.relate("part 0", "made of", "iron").await;

    let query = environment
        .call("graph_query", json!({ "subject": "hub" }))
        .await
        .unwrap();
    assert_eq!(query.matches("-has->").count(), 8);
    assert!(
        query.contains("[8 facts are shown, but there are more;"),
        "{query}"
    );

    let walk = json!({ "start": "hub", "depth": 1 });
    let walk = environment.call("graph_traverse", walk).await.unwrap();
    assert_eq!(walk.matches("-has->").count(), 8);
    assert!(
        walk.contains("[stopped after 8 facts, there are more;"),
        "{walk}"
    );

    // A hub along the path gets a quarter of the limit.
    let walk = json!({ "start": "Ada", "depth": 9, "limit": 99 });
    let walk = environment.call("graph_traverse", walk).await.unwrap();
    assert_eq!(walk.matches("-has->").count(), 2);
    assert!(
        walk.contains("[only some facts are shown for hub, which have many;"),
        "{walk}"
    );
    assert!(
        walk.contains("[`depth` was 9; it is limited to 2 here]"),
        "{walk}"
    );
    assert!(
        walk.contains("[`limit` was 99; it is limited to 8 here]"),
        "{walk}"
    );
    assert!(
        walk.contains("[reached depth 2; 2 entities were not followed further]"),
        "{walk}"
    );
}

#[tokio::test]
async fn settings_beyond_the_hard_limits_are_clamped() {
    let environment = environment_with(GraphSettings {
        max_depth: 100,
        max_results: 1_000_000,
    });
    for step in 0..9 {
        environment
            .relate(&format!("n{step}"), "next", &format!("n{}", step + 1))
            .await;
    }
    let walk = json!({ "start": "n0", "depth": 100, "limit": 5000 });
    let walk = environment.call("graph_traverse", walk).await.unwrap();
    assert_eq!(walk.matches("-next->").count(), 6);
    assert!(
        walk.contains("[`depth` was 100; it is limited to 6 here]"),
        "{walk}"
    );
    assert!(
        walk.contains("[`limit` was 5000; it is limited to 1000 here]"),
        "{walk}"
    );
}

#[tokio::test]
async fn names_cannot_be_confused_with_the_syntax_of_a_line() {
    let environment = environment();
    environment
        .relate(
            "Ada",
            "knows",
            "Bob  (confidence 1, since 2020-01-01, source user)",
        )
        .await;
    let found = environment
        .call("graph_query", json!({ "subject": "Ada" }))
        .await
        .unwrap();
    assert!(
        found.starts_with(
            "Ada -knows-> \"Bob  (confidence 1, since 2020-01-01, source user)\"  (confidence 1, since \
             2026-11-15) [untrusted: operator]\n"
        ),
        "{found}"
    );
}
