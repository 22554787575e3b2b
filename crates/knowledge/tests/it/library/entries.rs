//! Saved knowledge and learnings: versions, the newest is found, nothing is saved twice.

use super::Home;
use lango_core::{Source, Trust, UserId};
use lango_knowledge::{LibraryError, NewEntry, NewLearning};

fn entry(key: &str, content: &str) -> NewEntry {
    NewEntry {
        key: key.to_owned(),
        category: "fact".to_owned(),
        content: content.to_owned(),
        tags: vec!["flight".to_owned()],
        source: Source {
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
        source: Source {
            name: "librarian".into(),
            trust: Trust::Untrusted,
        },
    }
}

#[tokio::test]
async fn a_new_version_never_overwrites_and_search_finds_the_newest() {
    let home = Home::new();
    let (library, user) = (&home.library, &home.user);
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
    let home = Home::new();
    let long = "alpha words of an entry. ".repeat(900);
    home.library
        .save(&home.user, entry("long", &long))
        .await
        .unwrap();
    home.library
        .save(&home.user, entry("short", "alpha once"))
        .await
        .unwrap();
    let (found, _) = home
        .library
        .search_entries(&home.user, None, "alpha", 5)
        .await
        .unwrap();
    assert_eq!(found.len(), 2);
}

#[tokio::test]
async fn a_learning_is_found_by_its_error_and_brought_up_to_date() {
    let home = Home::new();
    let (library, user) = (&home.library, &home.user);
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
async fn what_is_empty_or_too_long_is_refused() {
    let home = Home::new();
    let long = "x".repeat(40_000);
    for unusable in [
        entry("", "c"),
        entry("k", " "),
        entry("k", &long),
        entry(&long, "c"),
    ] {
        let error = home.library.save(&home.user, unusable).await.unwrap_err();
        assert!(matches!(error, LibraryError::Unusable { .. }), "{error}");
    }
    for confidence in [-0.1, 1.1, f64::NAN] {
        let error = home
            .library
            .learn(&home.user, learning("t", "f", confidence))
            .await
            .unwrap_err();
        assert_eq!(error.to_string(), "`confidence` is not between 0 and 1");
    }
}
