//! Cases about attachments, which are stored once per user, readable by that user only, and referenced by events.

use super::StoreUnderTest;
use super::samples::{LogBuilder, attachment};
use lango_core::{CallStatus, EventBody, StoreError, Trust, UserId};
use std::sync::Arc;

/// The SHA-256 of `hello`.
const HELLO: &str = "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824";

fn local() -> UserId {
    UserId::from("local")
}

/// Any bytes can be stored and are read by their SHA-256.
pub async fn an_attachment_reads_back_unchanged(subject: StoreUnderTest) {
    let store = &subject.attachments;
    let digest = store
        .put(&local(), Arc::from(*b"hello"))
        .await
        .expect("bytes can be put");
    assert_eq!(&*digest, HELLO);
    let every_byte: Vec<u8> = (0..=255).cycle().take(3 << 20).collect();
    for bytes in [Vec::new(), b"\0".to_vec(), every_byte] {
        let digest = store
            .put(&local(), bytes.clone().into())
            .await
            .expect("bytes can be put");
        let read = store
            .read(&local(), &digest)
            .await
            .expect("bytes can be read");
        assert!(read.as_deref() == Some(&bytes[..]), "{}", bytes.len());
    }
    for digest in ["", "\0", HELLO.get(1..).unwrap_or_default()] {
        assert_eq!(
            store
                .read(&local(), digest)
                .await
                .expect("bytes can be read"),
            None
        );
    }
}

/// Storing the same bytes again, even concurrently, results in one attachment.
pub async fn storing_the_same_bytes_again_gives_the_same_digest(subject: StoreUnderTest) {
    let store = &subject.attachments;
    let user = local();
    let put = || store.put(&user, Arc::from(*b"hello"));
    let (one, two, three) = tokio::join!(put(), put(), put());
    for digest in [one, two, three] {
        assert_eq!(&*digest.expect("bytes can be put"), HELLO);
    }
    let read = store.read(&local(), HELLO).await.expect("bytes can be put");
    assert_eq!(read.as_deref(), Some(&b"hello"[..]));
}

/// Knowing a digest does not give access to another user's bytes.
pub async fn a_user_cannot_read_the_attachments_of_another(subject: StoreUnderTest) {
    let store = &subject.attachments;
    store
        .put(&local(), Arc::from(*b"hello"))
        .await
        .expect("bytes can be put");
    for user in ["other", "", "loca", "Local", "\u{1}local"] {
        let read = store
            .read(&UserId::from(user), HELLO)
            .await
            .expect("bytes can be read");
        assert_eq!(read, None, "{user}");
    }
    let hidden = UserId::from("\u{1}local");
    let refused = store.put(&hidden, Arc::from(*b"hello")).await;
    assert!(refused.is_err(), "the user name is not valid");
}

/// Ten mebibytes are stored; one byte more is refused with an error that states the size.
pub async fn an_attachment_that_is_too_large_is_refused(subject: StoreUnderTest) {
    let store = &subject.attachments;
    let largest: Arc<[u8]> = vec![7; 10 << 20].into();
    let digest = store
        .put(&local(), largest)
        .await
        .expect("bytes can be put");
    let read = store
        .read(&local(), &digest)
        .await
        .expect("bytes can be read");
    assert_eq!(read.map(|bytes| bytes.len()), Some(10 << 20));
    let refused = store.put(&local(), vec![7; (10 << 20) + 1].into()).await;
    let Err(StoreError::Failed { detail }) = refused else {
        panic!("it should be refused: {refused:?}");
    };
    assert!(detail.contains("10485761 bytes is too large"), "{detail}");
}

/// All four kinds of events that can have attachments read back with them.
pub async fn every_event_with_attachments_reads_back_unchanged(subject: StoreUnderTest) {
    let session = subject.session("s_1").await;
    let mut files = Vec::new();
    for (name, bytes) in [("a.txt", &b"one"[..]), ("b.png", b"two")] {
        let digest = subject
            .attachments
            .put(&local(), bytes.into())
            .await
            .expect("bytes can be put");
        files.push(attachment(name, &digest, bytes.len()));
    }
    let delegated = EventBody::AgentDelegated {
        call: "c_1".into(),
        agent: "operator".into(),
        task: "look".into(),
        round: 1,
        finish: false,
        attachments: files.clone(),
    };
    let returned = EventBody::ToolReturned {
        call: "c_2".into(),
        status: CallStatus::Ok,
        output: "seen".into(),
        attachments: files.clone(),
        trust: Trust::Untrusted,
    };
    let remote = EventBody::RemoteReturned {
        status: CallStatus::Ok,
        output: "seen".into(),
        attachments: files.clone(),
        is_final: true,
        thread: None,
    };
    let batch = LogBuilder::new(&session)
        .ask("see")
        .attach(&files[0])
        .attach(&files[0])
        .add("test-root", "", delegated)
        .add("operator", "c_1", returned)
        .add("remote", "c_3", remote)
        .batch();
    subject
        .store
        .append(batch.clone())
        .await
        .expect("a batch can be stored");
    assert_eq!(subject.log(&session).await, *batch);
    for file in &files {
        let read = subject.attachments.read(&local(), &file.digest).await;
        assert!(read.expect("bytes can be read").is_some(), "{}", file.name);
    }
}
