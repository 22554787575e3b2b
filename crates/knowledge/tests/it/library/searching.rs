//! Searching: any question, the user's own chunks, this session's, and misspelled words.

use super::{Home, names, query, session};
use lango_core::UserId;
use lango_knowledge::{AddOptions, Mode, Query};
use proptest::prelude::*;
use std::sync::OnceLock;

#[tokio::test]
async fn endings_and_accents_do_not_matter_and_titles_count() {
    let home = Home::new();
    home.write("a.md", "# Propellers\n\nHow naïve flows behave.");
    home.write("b.md", "# Wings\n\nHow lifting surfaces behave.");
    home.add().await;
    for (asked, name) in [
        ("propeller", "a.md"),
        ("NAIVE flow", "a.md"),
        ("lifts a surface", "b.md"),
        ("wing", "b.md"),
    ] {
        assert_eq!(home.found(asked).await, [name], "{asked}");
    }
}

#[tokio::test]
async fn rare_words_count_more_than_common_ones() {
    let home = Home::new();
    for number in 0..20 {
        home.write(
            &format!("{number}.txt"),
            "the engine the engine the engine of a plane",
        );
    }
    home.write(
        "rare.txt",
        "one engine with a turbocharger, and much else besides that is said here",
    );
    home.add().await;
    assert_eq!(home.found("engine turbocharger").await[0], "rare.txt");
}

#[tokio::test]
async fn misspelled_words_are_found_by_vectors_and_joined_search() {
    let home = Home::new();
    home.write(
        "a.txt",
        "The turbocharger compresses the air before combustion.",
    );
    home.write("b.txt", "Gardening in spring needs patience and water.");
    home.write(
        "c.txt",
        "An orchestra tunes its instruments before the concert.",
    );
    home.add().await;
    assert!(home.found("turbochagrer combustoin").await.is_empty());
    for (asked, name) in [
        ("turbochagrer combustoin", "a.txt"),
        ("orchesra insturments", "c.txt"),
        ("gardning patiense", "b.txt"),
    ] {
        assert_eq!(names(&home.search(asked, Mode::Vector).await.hits)[0], name);
        assert_eq!(names(&home.search(asked, Mode::Fused).await.hits)[0], name);
    }
}

#[tokio::test]
async fn vectors_that_change_are_seen_by_the_next_search_also_in_another_process() {
    let home = Home::new();
    home.write("a.txt", "turbocharger");
    home.add().await;
    let other = home.place.open();
    let embedder = std::sync::Arc::new(lango_knowledge::OfflineEmbedder::new());
    let clock = std::sync::Arc::new(super::Fixed);
    let other = lango_knowledge::Library::new(other, Some(embedder), clock);
    let found = async || {
        let asked = query("turbochager", Mode::Vector);
        let here = home.library.search(&home.user, None, &asked).await.unwrap();
        let there = other.search(&home.user, None, &asked).await.unwrap();
        assert_eq!(names(&here.hits), names(&there.hits));
        names(&here.hits)
    };
    assert_eq!(found().await, ["a.txt"]);
    home.write("b.txt", "turbocharger");
    home.add().await;
    assert_eq!(found().await, ["a.txt", "b.txt"]);
    std::fs::remove_file(home.files.join("a.txt")).unwrap();
    home.add().await;
    assert_eq!(found().await, ["b.txt"]);
}

#[tokio::test]
async fn users_do_not_see_or_weigh_each_others_words() {
    let home = Home::new();
    home.write("a.txt", "alpha beta");
    home.add().await;
    let score = home.search("alpha", Mode::Lexical).await.hits[0].score;
    let bob = UserId::from("bob");
    for number in 0..30 {
        home.write(&format!("bob/{number}.txt"), "alpha gamma");
    }
    let paths = [home.files.join("bob")];
    home.library
        .add(&bob, &paths, &AddOptions::default(), &|_| {})
        .await
        .unwrap();
    for mode in [Mode::Lexical, Mode::Vector, Mode::Fused] {
        assert_eq!(
            names(&home.search("alpha gamma", mode).await.hits),
            ["a.txt"]
        );
    }
    let after = home.search("alpha", Mode::Lexical).await.hits[0].score;
    assert!((score - after).abs() < 1e-12, "{score} {after}");
    let carol = home
        .library
        .search(&UserId::from("carol"), None, &query("alpha", Mode::Fused))
        .await;
    assert!(carol.unwrap().hits.is_empty());
}

#[tokio::test]
async fn a_collection_with_a_session_is_seen_there_alone() {
    let home = Home::new();
    home.write("shared/a.txt", "alpha shared");
    home.write("bound/b.txt", "alpha bound");
    home.try_add(&home.files.join("shared")).await.unwrap();
    let options = AddOptions {
        session: Some(session("s_1")),
        ..AddOptions::default()
    };
    let paths = [home.files.join("bound")];
    home.library
        .add(&home.user, &paths, &options, &|_| {})
        .await
        .unwrap();
    for mode in [Mode::Lexical, Mode::Vector, Mode::Fused] {
        let (here, elsewhere) = (session("s_1"), session("s_2"));
        let found = async |session| {
            let found = home
                .library
                .search(&home.user, session, &query("alpha", mode))
                .await;
            let mut names = names(&found.unwrap().hits);
            names.sort();
            names
        };
        assert_eq!(found(None).await, ["a.txt"]);
        assert_eq!(found(Some(&here)).await, ["a.txt", "b.txt"]);
        assert_eq!(found(Some(&elsewhere)).await, ["a.txt"]);
    }
    let stranger = UserId::from("bob");
    let seen = home
        .library
        .search(
            &stranger,
            Some(&session("s_1")),
            &query("alpha", Mode::Fused),
        )
        .await;
    assert!(seen.unwrap().hits.is_empty());
}

#[tokio::test]
async fn named_collections_are_searched_alone() {
    let home = Home::new();
    home.write("x/a.txt", "alpha");
    home.write("y/b.txt", "alpha");
    for name in ["x", "y"] {
        let options = AddOptions {
            collection: Some(name.to_owned()),
            ..AddOptions::default()
        };
        let paths = [home.files.join(name)];
        home.library
            .add(&home.user, &paths, &options, &|_| {})
            .await
            .unwrap();
    }
    let one = Query {
        collections: vec!["y".to_owned(), "z".to_owned()],
        ..query("alpha", Mode::Fused)
    };
    let found = home.library.search(&home.user, None, &one).await.unwrap();
    assert_eq!(names(&found.hits), ["b.txt"]);
    assert_eq!(found.notes, ["there is no collection `z`"]);
}

#[tokio::test]
async fn a_hit_says_where_it_is_from_and_shows_what_fits() {
    let home = Home::new();
    let text = format!(
        "# Guide\n\n{}\n\n## Flaps\n\n{} the flaps extend {}",
        "x ".repeat(90),
        "y ".repeat(60),
        "z ".repeat(60)
    );
    let path = home.write("guide.md", text);
    home.add().await;
    let hit = home
        .search("flap extension", Mode::Fused)
        .await
        .hits
        .remove(0);
    assert_eq!(&*hit.source.name, path.to_str().unwrap());
    assert_eq!((&*hit.title, &*hit.heading), ("Guide", "Guide > Flaps"));
    assert!(hit.snippet.contains("the flaps extend"), "{}", hit.snippet);
    assert_eq!(hit.position, 7);
}

/// One library for all cases; they only look.
fn searched() -> &'static (tokio::runtime::Runtime, Home) {
    static SEARCHED: OnceLock<(tokio::runtime::Runtime, Home)> = OnceLock::new();
    SEARCHED.get_or_init(|| {
        let runtime = tokio::runtime::Runtime::new().unwrap();
        let home = Home::new();
        home.write("a.txt", "the quick brown fox AND OR NOT NEAR heading text");
        runtime.block_on(home.add());
        (runtime, home)
    })
}

#[test]
fn no_question_fails() {
    let (runtime, home) = searched();
    let odd = [
        "",
        "?",
        "\"",
        "'",
        "\"unclosed",
        "a AND",
        "OR",
        "NOT x",
        "NEAR(a b)",
        "a*",
        "^a",
        "text:fox",
        "-x",
        "+",
        "()",
        "{a b}:c",
        "\0",
        "fox\0fox",
        "the of and",
        "; DROP TABLE library_chunks",
        "%_",
        "\u{202e}\u{0}",
        "ﬁ",
        "语言",
    ];
    let mut questions: Vec<String> = odd.iter().map(|text| (*text).to_owned()).collect();
    questions.push("fox ".repeat(25_000));
    questions.push((0..20_000).map(|number| format!("w{number} ")).collect());
    questions.push("x".repeat(100_000));
    questions.push("\"".repeat(100_000));
    for question in questions {
        for mode in [Mode::Lexical, Mode::Vector, Mode::Fused] {
            runtime.block_on(home.search(&question, mode));
        }
    }
    assert_eq!(runtime.block_on(home.found("\"fox\0")), ["a.txt"]);
    assert_eq!(runtime.block_on(home.found("what is the")), ["a.txt"]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn no_bytes_make_a_search_fail(bytes: Vec<u8>, limit in 0..2000_usize) {
        let (runtime, home) = searched();
        let text = String::from_utf8_lossy(&bytes).into_owned();
        for mode in [Mode::Lexical, Mode::Vector, Mode::Fused] {
            let query = Query { limit, ..query(&text, mode) };
            let found = runtime.block_on(home.library.search(&home.user, None, &query));
            prop_assert!(found.is_ok_and(|found| found.hits.len() <= limit));
        }
    }
}
