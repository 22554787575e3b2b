//! Computes the difference between two revisions of a task, as updates for subscribers. Needed if another replica runs
//! the task: this replica sees the revisions that the other one stores, but not the updates that it publishes.

use super::render;
use super::task::Update;
use a2a::{Artifact, Part, PartContent, Task};
use serde_json::Value;
use std::collections::HashMap;

/// Returns the updates that lead from one task to the other, the artifacts first.
pub(super) fn between(before: &Task, after: &Task) -> Vec<Update> {
    let known = before.artifacts.as_deref().unwrap_or_default();
    let artifacts = after.artifacts.as_deref().unwrap_or_default();
    let mut updates: Vec<Update> = artifacts
        .iter()
        .filter_map(|artifact| {
            let same = |known: &&Artifact| known.artifact_id == artifact.artifact_id;
            let (changed, is_appended) = match known.iter().find(same) {
                Some(known) if known == artifact => return None,
                Some(known) => match appended(known, artifact) {
                    Some(more) => (more, true),
                    None => (artifact.clone(), false),
                },
                None => (artifact.clone(), false),
            };
            let json = render::artifact_update(after, &changed, is_appended, false).into();
            Some(Update {
                json,
                // The stream must not close before the status is sent.
                state: before.status.state.clone(),
                is_binding: false,
            })
        })
        .collect();
    let metadata = new_metadata(before, after);
    if before.status != after.status || !metadata.is_empty() {
        updates.push(Update {
            json: render::status_update(after, &metadata).into(),
            state: after.status.state.clone(),
            is_binding: true,
        });
    }
    updates
}

fn new_metadata(before: &Task, after: &Task) -> HashMap<String, Value> {
    let known = |key: &String| before.metadata.as_ref()?.get(key);
    let all = after.metadata.iter().flatten();
    all.filter(|(key, value)| known(key) != Some(value))
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect()
}

/// Returns the content that was appended to an artifact, or `None` if anything else in it has changed.
fn appended(before: &Artifact, after: &Artifact) -> Option<Artifact> {
    let count = before.parts.len();
    let (last, earlier) = before.parts.split_last()?;
    let is_same_so_far = before.name == after.name
        && before.description == after.description
        && before.metadata == after.metadata
        && before.extensions == after.extensions
        && after.parts.get(..count - 1) == Some(earlier);
    if !is_same_so_far {
        return None;
    }
    let grown = after.parts.get(count - 1)?;
    let mut parts: Vec<Part> = match (&last.content, &grown.content) {
        _ if last == grown => Vec::new(),
        (PartContent::Text(text), PartContent::Text(longer)) => {
            let new_text = longer.strip_prefix(text.as_str())?;
            let mut new_part = grown.clone();
            new_part.content = PartContent::Text(new_text.to_owned());
            vec![new_part]
        }
        _ => return None,
    };
    parts.extend_from_slice(&after.parts[count..]);
    (!parts.is_empty()).then(|| Artifact {
        parts,
        ..after.clone()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use a2a::{TaskState, TaskStatus};
    use serde_json::json;

    fn task(state: TaskState, texts: &[(&str, &str)]) -> Task {
        let artifacts = texts.iter().map(|(id, text)| Artifact {
            artifact_id: (*id).to_owned(),
            name: None,
            description: None,
            parts: vec![Part::text(*text)],
            metadata: None,
            extensions: None,
        });
        Task {
            id: "t".to_owned(),
            context_id: "c".to_owned(),
            status: TaskStatus {
                state,
                message: None,
                timestamp: None,
            },
            artifacts: Some(artifacts.collect()),
            history: None,
            metadata: None,
        }
    }

    #[test]
    fn a_longer_text_is_sent_as_an_append_and_a_changed_one_as_a_whole() {
        let before = task(
            TaskState::Working,
            &[("a", "one"), ("b", "old"), ("c", "x")],
        );
        let after = task(
            TaskState::Completed,
            &[("a", "one two"), ("b", "new"), ("c", "x"), ("d", "more")],
        );
        let sent: Vec<Value> = between(&before, &after)
            .iter()
            .map(|update| serde_json::from_str(&update.json).unwrap())
            .collect();
        let artifact = |at: usize| {
            let update = &sent[at]["artifactUpdate"];
            let text = update["artifact"]["parts"][0]["text"].clone();
            (
                update["artifact"]["artifactId"].clone(),
                text,
                update["append"].clone(),
            )
        };
        assert_eq!(artifact(0), (json!("a"), json!(" two"), json!(true)));
        assert_eq!(artifact(1), (json!("b"), json!("new"), json!(false)));
        assert_eq!(artifact(2), (json!("d"), json!("more"), json!(false)));
        assert_eq!(
            sent[3]["statusUpdate"]["status"]["state"],
            "TASK_STATE_COMPLETED"
        );
        assert_eq!(sent.len(), 4);
        let states = between(&before, &after);
        assert!(!states[2].state.is_terminal(), "the status comes last");
    }

    #[test]
    fn new_metadata_is_sent() {
        let before = task(TaskState::Working, &[]);
        let mut after = before.clone();
        assert!(between(&before, &after).is_empty());
        after.metadata = Some(HashMap::from([("author".to_owned(), json!("x"))]));
        let sent = between(&before, &after);
        assert!(sent[0].json.contains("author"), "{}", sent[0].json);
        assert!(between(&after, &after).is_empty());
    }
}
