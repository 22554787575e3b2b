//! Saved knowledge and learnings: versions, searches find the newest, and nothing is saved twice.

use super::LibraryFixture;
use lango_core::{Provenance, Trust, UserId};
use lango_knowledge::{LibraryError, NewKnowledge, NewLearning};

fn entry(key: &str, content: &str) -> NewKnowledge {
    NewKnowledge {
        key: key.to_owned(),
        category: "fact".to_owned(),
        content: content.to_owned(),
        tags: vec!["flight".to_owned()],
        source: Provenance {
            name: "librarian".into(),
            trust: Trust::Untrusted,
        },
    }
}

fn learning(trigger: &str, fix: &str, confidence: f64) -> NewLearning {
    NewLearning {
        trigger: trigger.to_owned(),
        fix: fix.to_owned(),
        error_pattern: "E0502".to_owned(),
        confidence,
        source: Provenance {
            name: "librarian".into(),
            trust: Trust::Untrusted,
        },
    }
}

#[tokio::test]
async fn versions_are_never_overwritten_and_search_finds_the_newest() {
    let fixture = LibraryFixture::new();
    let (library, user) = (&fixture.library, &fixture.user);
    assert_eq!(
        library
            .save(user, entry("tower", "frequency is elderberry"))
            .await
            .unwrap()
            .version,
        1
    );
    assert_eq!(
        library
            .save(user, entry("tower", "frequency is gooseberry"))
            .await
            .unwrap()
            .version,
        2
    );
    let again = library
        .save(user, entry("tower", "frequency is gooseberry"))
        .await
        .unwrap();
    assert_eq!((again.version, again.is_new), (2, false));

    for asked in ["gooseberry", "tower", "flight", "goosebery"] {
        let (found, _) = library.search_entries(user, None, asked, 5).await.unwrap();
        assert_eq!(found.len(), 1, "{asked}");
        assert_eq!(
            (found[0].version, &*found[0].content),
            (2, "frequency is gooseberry")
        );
    }
    let (found, _) = library
        .search_entries(user, None, "elderberry", 5)
        .await
        .unwrap();
    assert!(found.iter().all(|entry| entry.version == 2));
    let versions = library.versions(user, "tower", 10).await.unwrap();
    let contents: Vec<_> = versions.iter().map(|entry| &*entry.content).collect();
    assert_eq!(
        contents,
        ["frequency is gooseberry", "frequency is elderberry"]
    );
    assert!(
        library
            .versions(&UserId::from("bob"), "tower", 10)
            .await
            .unwrap()
            .is_empty()
    );
}

#[tokio::test]
async fn a_long_entry_is_one_result() {
    let fixture = LibraryFixture::new();
    let long = "alpha words of an entry. ".repeat(900);
    fixture
        .library
        .save(&fixture.user, entry("long", &long))
        .await
        .unwrap();
    fixture
        .library
        .save(&fixture.user, entry("short", "alpha once"))
        .await
        .unwrap();
    let (found, _) = fixture
        .library
        .search_entries(&fixture.user, None, "alpha", 5)
        .await
        .unwrap();
    assert_eq!(found.len(), 2);
}

#[tokio::test]
async fn a_learning_is_found_by_its_error_and_updated() {
    let fixture = LibraryFixture::new();
    let (library, user) = (&fixture.library, &fixture.user);
    assert!(
        library
            .learn(user, learning("borrow checker complains", "clone it", 0.4))
            .await
            .unwrap()
            .is_new
    );
    assert!(
        !library
            .learn(user, learning("borrow checker complains", "clone it", 0.9))
            .await
            .unwrap()
            .is_new
    );
    assert!(
        library
            .learn(
                user,
                learning("borrow checker complains", "split the struct", 0.7)
            )
            .await
            .unwrap()
            .is_new
    );
    for asked in ["e0502", "borrow checker", "borow cheker"] {
        let (found, _) = library
            .search_learnings(user, None, asked, 5)
            .await
            .unwrap();
        let mut fixes: Vec<_> = found
            .iter()
            .map(|found| (&*found.fix, found.confidence))
            .collect();
        fixes.sort_by(|a, b| a.0.cmp(b.0));
        assert_eq!(
            fixes,
            [("clone it", 0.9), ("split the struct", 0.7)],
            "{asked}"
        );
    }
    let (found, _) = library
        .search_learnings(&UserId::from("bob"), None, "borrow", 5)
        .await
        .unwrap();
    assert!(found.is_empty());
}

#[tokio::test]
async fn empty_or_too_long_entries_are_refused() {
    let fixture = LibraryFixture::new();
    let long = "x".repeat(40_000);
    for unusable in [
        entry("", "c"),
        entry("k", " "),
        entry("k", &long),
        entry(&long, "c"),
    ] {
        let error = fixture
            .library
            .save(&fixture.user, unusable)
            .await
            .unwrap_err();
        assert!(matches!(error, LibraryError::Unusable { .. }), "{error}");
    }
    for confidence in [-0.1, 1.1, f64::NAN] {
        let error = fixture
            .library
            .learn(&fixture.user, learning("t", "f", confidence))
            .await
            .unwrap_err();
        assert_eq!(error.to_string(), "`confidence` must be between 0 and 1");
    }
}
