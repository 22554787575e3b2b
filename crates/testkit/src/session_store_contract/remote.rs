//! Cases about the threads with remote agents.

use super::{LogBuilder, StoreUnderTest};
use lango_core::{CallStatus, EventBody, RemoteThread, SessionId};

/// The last event decides the state of a thread: the task is set until it ends, the context stays.
pub async fn a_remote_thread_reflects_its_last_event(subject: StoreUnderTest) {
    let session = subject.session("s_1").await;
    let other = subject.session("s_2").await;
    assert_eq!(thread(&subject, &session, "weather").await, None);
    let mut builder = LogBuilder::new(&session).ask("how warm is it?");
    let steps = [
        (accepted("c1", Some("t1")), thread_at("c1", Some("t1"))),
        (
            returned(thread_at("c1", Some("t1"))),
            thread_at("c1", Some("t1")),
        ),
        (returned(None), thread_at("c1", None)),
        (accepted("c2", Some("t2")), thread_at("c2", Some("t2"))),
        (returned(thread_at("c2", None)), thread_at("c2", None)),
        (accepted("c2", Some("t3")), thread_at("c2", Some("t3"))),
    ];
    for (event, expected) in steps {
        builder = builder.add("weather", "c_1", event);
        store(&subject, &mut builder).await;
        assert_eq!(thread(&subject, &session, "weather").await, expected);
    }
    assert_eq!(thread(&subject, &session, "news").await, None);
    assert_eq!(thread(&subject, &other, "weather").await, None);
}

fn thread_at(context: &str, task: Option<&str>) -> Option<RemoteThread> {
    Some(RemoteThread {
        context: context.into(),
        task: task.map(Into::into),
    })
}

fn accepted(context: &str, task: Option<&str>) -> EventBody {
    EventBody::RemoteAccepted {
        thread: thread_at(context, task).expect("a thread"),
    }
}

fn returned(thread: Option<RemoteThread>) -> EventBody {
    EventBody::RemoteReturned {
        status: CallStatus::Ok,
        output: "12 °C".into(),
        is_final: true,
        thread,
        attachments: Vec::new(),
    }
}

async fn store(subject: &StoreUnderTest, builder: &mut LogBuilder) {
    let stored = subject.store.append(builder.batch()).await;
    stored.expect("events can be appended");
}

async fn thread(
    subject: &StoreUnderTest,
    session: &SessionId,
    agent: &str,
) -> Option<RemoteThread> {
    let found = subject.store.remote_thread(session, &agent.into()).await;
    found.expect("the lookup succeeds")
}
