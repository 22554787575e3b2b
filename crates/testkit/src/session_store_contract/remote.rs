//! Cases about conversations with remote agents.

use super::{Sketch, Subject};
use lango_core::{CallStatus, EventBody, RemoteThread, SessionId};

/// The last word in the log says where it stands: the task is there while it is not over, the conversation stays.
pub async fn a_conversation_with_a_remote_agent_stands_where_its_last_event_left_it(
    subject: Subject,
) {
    let session = subject.session("s_1").await;
    let other = subject.session("s_2").await;
    assert_eq!(thread(&subject, &session, "weather").await, None);
    let mut sketch = Sketch::of(&session).ask("how warm is it?");
    let steps = [
        (accepted("c1", Some("t1")), at("c1", Some("t1"))),
        (returned(at("c1", Some("t1"))), at("c1", Some("t1"))),
        (returned(None), at("c1", None)),
        (accepted("c2", Some("t2")), at("c2", Some("t2"))),
        (returned(at("c2", None)), at("c2", None)),
        (accepted("c2", Some("t3")), at("c2", Some("t3"))),
    ];
    for (event, expected) in steps {
        sketch = sketch.add("weather", "c_1", event);
        store(&subject, &mut sketch).await;
        assert_eq!(thread(&subject, &session, "weather").await, expected);
    }
    assert_eq!(thread(&subject, &session, "news").await, None);
    assert_eq!(thread(&subject, &other, "weather").await, None);
}

fn at(context: &str, task: Option<&str>) -> Option<RemoteThread> {
    Some(RemoteThread {
        context: context.into(),
        task: task.map(Into::into),
    })
}

fn accepted(context: &str, task: Option<&str>) -> EventBody {
    EventBody::RemoteAccepted {
        thread: at(context, task).expect("it is one"),
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

async fn store(subject: &Subject, sketch: &mut Sketch) {
    let stored = subject.store.append(sketch.batch()).await;
    stored.expect("events can be appended");
}

async fn thread(subject: &Subject, session: &SessionId, agent: &str) -> Option<RemoteThread> {
    let found = subject.store.remote_thread(session, &agent.into()).await;
    found.expect("it can be looked up")
}
