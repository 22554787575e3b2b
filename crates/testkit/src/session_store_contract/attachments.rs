//! Attachments: stored once for each user, read by nobody else, and referred to by events.

use super::Subject;
use super::samples::{Sketch, attachment};
use lango_core::{CallStatus, EventBody, StoreError, Trust, UserId};
use std::sync::Arc;

/// The SHA-256 of `hello`.
const HELLO: &str = "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824";

fn local() -> UserId {
    UserId::from("local")
}

/// Bytes of any kind read back, under the SHA-256 that they have.
pub async fn an_attachment_reads_back_as_it_was_put(subject: Subject) {
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

/// Puts of the same bytes, also at once, are one attachment.
pub async fn bytes_that_are_put_again_have_the_same_digest(subject: Subject) {
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

/// A digest is no key to the bytes of another user.
pub async fn nobody_reads_an_attachment_of_another(subject: Subject) {
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
    assert!(refused.is_err(), "no store keeps such a user");
}

/// One byte more than ten mebibytes is too much, and the error says so.
pub async fn an_attachment_that_is_too_large_is_refused(subject: Subject) {
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

/// All four kinds of events that can refer to attachments keep their references.
pub async fn every_event_with_attachments_reads_back_as_it_was_written(subject: Subject) {
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
    let batch = Sketch::of(&session)
        .ask("see")
        .attach(&files[0])
        .attach(&files[0])
        .add("sketch-root", "", delegated)
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
