//! Searches with any query, by user and session, and with misspelled words.

use super::{LibraryFixture, names, query, session};
use lango_core::UserId;
use lango_knowledge::{AddOptions, LibraryQuery, LibrarySearchMode};
use proptest::prelude::*;
use std::sync::OnceLock;

#[tokio::test]
async fn endings_and_accents_do_not_matter_and_titles_count() {
    let fixture = LibraryFixture::new();
    fixture.write("a.md", "# Propellers\n\nHow naïve flows behave.");
    fixture.write("b.md", "# Wings\n\nHow lifting surfaces behave.");
    fixture.add().await;
    for (text, name) in [
        ("propeller", "a.md"),
        ("NAIVE flow", "a.md"),
        ("lifts a surface", "b.md"),
        ("wing", "b.md"),
    ] {
        assert_eq!(fixture.found(text).await, [name], "{text}");
    }
}

#[tokio::test]
async fn rare_words_count_more_than_common_ones() {
    let fixture = LibraryFixture::new();
    for number in 0..20 {
        fixture.write(
            &format!("{number}.txt"),
            "the engine the engine the engine of a plane",
        );
    }
    fixture.write(
        "rare.txt",
        "one engine with a turbocharger, and much else besides that is said here",
    );
    fixture.add().await;
    assert_eq!(fixture.found("engine turbocharger").await[0], "rare.txt");
}

#[tokio::test]
async fn misspelled_words_are_found_by_vector_and_fused_search() {
    let fixture = LibraryFixture::new();
    fixture.write(
        "a.txt",
        "The turbocharger compresses the air before combustion.",
    );
    fixture.write("b.txt", "Gardening in spring needs patience and water.");
    fixture.write(
        "c.txt",
        "An orchestra tunes its instruments before the concert.",
    );
    fixture.add().await;
    assert!(fixture.found("turbochagrer combustoin").await.is_empty());
    for (text, name) in [
        ("turbochagrer combustoin", "a.txt"),
        ("orchesra insturments", "c.txt"),
        ("gardning patiense", "b.txt"),
    ] {
        assert_eq!(
            names(&fixture.search(text, LibrarySearchMode::Vector).await.hits)[0],
            name
        );
        assert_eq!(
            names(&fixture.search(text, LibrarySearchMode::Fused).await.hits)[0],
            name
        );
    }
}

#[tokio::test]
async fn nothing_is_found_if_neither_words_nor_their_spelling_match() {
    let fixture = LibraryFixture::new();
    fixture.write("hello.txt", "hello");
    fixture.write(
        "main.rs",
        "fn main() {\n    println!(\"hello world\");\n}\n",
    );
    fixture.write("list.md", "# Shopping\n\n- milk and eggs\n- stamps\n");
    fixture.write("budget.csv", "month,rent,food\njanuary,900,310\n");
    let post = "The parcels that we receive on Monday are brought to the office on the second floor by noon.";
    fixture.write("post.txt", post);
    fixture.add().await;
    let hits = fixture
        .search("recieve", LibrarySearchMode::Fused)
        .await
        .hits;
    assert_eq!(names(&hits), ["post.txt"]);
    for text in [
        "qqqqxyz",
        "bread",
        "zebras",
        "what do you know about zebras?",
    ] {
        for mode in [LibrarySearchMode::Fused, LibrarySearchMode::Vector] {
            let found = fixture.search(text, mode).await;
            assert!(found.hits.is_empty(), "{text}: {:?}", names(&found.hits));
        }
    }
}

#[tokio::test]
async fn changed_vectors_are_used_by_the_next_search_even_in_another_process() {
    let fixture = LibraryFixture::new();
    fixture.write("a.txt", "turbocharger");
    fixture.add().await;
    let other = fixture.place.open();
    let embedder = std::sync::Arc::new(lango_knowledge::OfflineEmbedder::new());
    let clock = std::sync::Arc::new(super::FixedClock);
    let other = lango_knowledge::Library::new(other, Some(embedder), clock);
    let found = async || {
        let query = query("turbochager", LibrarySearchMode::Vector);
        let here = fixture
            .library
            .search(&fixture.user, None, &query)
            .await
            .unwrap();
        let there = other.search(&fixture.user, None, &query).await.unwrap();
        assert_eq!(names(&here.hits), names(&there.hits));
        names(&here.hits)
    };
    assert_eq!(found().await, ["a.txt"]);
    fixture.write("b.txt", "turbocharger");
    fixture.add().await;
    assert_eq!(found().await, ["a.txt", "b.txt"]);
    std::fs::remove_file(fixture.files.join("a.txt")).unwrap();
    fixture.add().await;
    assert_eq!(found().await, ["b.txt"]);
}

#[tokio::test]
async fn the_words_of_other_users_do_not_affect_results() {
    let fixture = LibraryFixture::new();
    fixture.write("a.txt", "alpha beta");
    fixture.add().await;
    let score = fixture
        .search("alpha", LibrarySearchMode::Lexical)
        .await
        .hits[0]
        .score;
    let bob = UserId::from("bob");
    for number in 0..30 {
        fixture.write(&format!("bob/{number}.txt"), "alpha gamma");
    }
    let paths = [fixture.files.join("bob")];
    fixture
        .library
        .add(&bob, &paths, &AddOptions::default(), &|_| {})
        .await
        .unwrap();
    for mode in [
        LibrarySearchMode::Lexical,
        LibrarySearchMode::Vector,
        LibrarySearchMode::Fused,
    ] {
        assert_eq!(
            names(&fixture.search("alpha gamma", mode).await.hits),
            ["a.txt"]
        );
    }
    let after = fixture
        .search("alpha", LibrarySearchMode::Lexical)
        .await
        .hits[0]
        .score;
    assert!((score - after).abs() < 1e-12, "{score} {after}");
    let carol = fixture
        .library
        .search(
            &UserId::from("carol"),
            None,
            &query("alpha", LibrarySearchMode::Fused),
        )
        .await;
    assert!(carol.unwrap().hits.is_empty());
}

#[tokio::test]
async fn a_collection_of_a_session_is_visible_only_there() {
    let fixture = LibraryFixture::new();
    fixture.write("shared/a.txt", "alpha shared");
    fixture.write("bound/b.txt", "alpha bound");
    fixture
        .try_add(&fixture.files.join("shared"))
        .await
        .unwrap();
    let options = AddOptions {
        session: Some(session("s_1")),
        ..AddOptions::default()
    };
    let paths = [fixture.files.join("bound")];
    fixture
        .library
        .add(&fixture.user, &paths, &options, &|_| {})
        .await
        .unwrap();
    for mode in [
        LibrarySearchMode::Lexical,
        LibrarySearchMode::Vector,
        LibrarySearchMode::Fused,
    ] {
        let (here, elsewhere) = (session("s_1"), session("s_2"));
        let found = async |session| {
            let found = fixture
                .library
                .search(&fixture.user, session, &query("alpha", mode))
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
    let seen = fixture
        .library
        .search(
            &stranger,
            Some(&session("s_1")),
            &query("alpha", LibrarySearchMode::Fused),
        )
        .await;
    assert!(seen.unwrap().hits.is_empty());
}

#[tokio::test]
async fn only_the_named_collections_are_searched() {
    let fixture = LibraryFixture::new();
    fixture.write("x/a.txt", "alpha");
    fixture.write("y/b.txt", "alpha");
    for name in ["x", "y"] {
        let options = AddOptions {
            collection: Some(name.to_owned()),
            ..AddOptions::default()
        };
        let paths = [fixture.files.join(name)];
        fixture
            .library
            .add(&fixture.user, &paths, &options, &|_| {})
            .await
            .unwrap();
    }
    let one = LibraryQuery {
        collections: vec!["y".to_owned(), "z".to_owned()],
        ..query("alpha", LibrarySearchMode::Fused)
    };
    let found = fixture
        .library
        .search(&fixture.user, None, &one)
        .await
        .unwrap();
    assert_eq!(names(&found.hits), ["b.txt"]);
    assert_eq!(found.notes, ["there is no collection `z`"]);
}

#[tokio::test]
async fn a_hit_has_its_source_and_a_matching_snippet() {
    let fixture = LibraryFixture::new();
    let text = format!(
        "# Guide\n\n{}\n\n## Flaps\n\n{} the flaps extend {}",
        "x ".repeat(90),
        "y ".repeat(60),
        "z ".repeat(60)
    );
    let path = fixture.write("guide.md", text);
    fixture.add().await;
    let hit = fixture
        .search("flap extension", LibrarySearchMode::Fused)
        .await
        .hits
        .remove(0);
    assert_eq!(&*hit.source.name, path.to_str().unwrap());
    assert_eq!((&*hit.title, &*hit.heading), ("Guide", "Guide > Flaps"));
    assert!(hit.snippet.contains("the flaps extend"), "{}", hit.snippet);
    assert_eq!(hit.position, 7);
}

/// Returns the library that all cases share; they only read it.
fn searched() -> &'static (tokio::runtime::Runtime, LibraryFixture) {
    static SEARCHED: OnceLock<(tokio::runtime::Runtime, LibraryFixture)> = OnceLock::new();
    SEARCHED.get_or_init(|| {
        let runtime = tokio::runtime::Runtime::new().unwrap();
        let fixture = LibraryFixture::new();
        fixture.write("a.txt", "the quick brown fox AND OR NOT NEAR heading text");
        runtime.block_on(fixture.add());
        (runtime, fixture)
    })
}

#[test]
fn no_query_fails() {
    let (runtime, fixture) = searched();
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
        for mode in [
            LibrarySearchMode::Lexical,
            LibrarySearchMode::Vector,
            LibrarySearchMode::Fused,
        ] {
            runtime.block_on(fixture.search(&question, mode));
        }
    }
    assert_eq!(runtime.block_on(fixture.found("\"fox\0")), ["a.txt"]);
    assert_eq!(runtime.block_on(fixture.found("what is the")), ["a.txt"]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn no_bytes_make_a_search_fail(bytes: Vec<u8>, limit in 0..2000_usize) {
        let (runtime, fixture) = searched();
        let text = String::from_utf8_lossy(&bytes).into_owned();
        for mode in [LibrarySearchMode::Lexical, LibrarySearchMode::Vector, LibrarySearchMode::Fused] {
            let query = LibraryQuery { limit, ..query(&text, mode) };
            let found = runtime.block_on(fixture.library.search(&fixture.user, None, &query));
            prop_assert!(found.is_ok_and(|found| found.hits.len() <= limit));
        }
    }
}
