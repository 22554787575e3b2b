//! `graph_relate`: keeps a fact, or says that one does not hold any more.

use super::arguments::{name, optional_name, optional_source, store_failed};
use super::show::line;
use lango_core::{
    Caller, Clock, Declaration, Effect, Risk, Source, Subject, Timestamp, Tool, ToolError, Trust,
};
use lango_store::Store;
use lango_store::graph::{Confidence, EndOutcome, Entity, NewFact, RelateOutcome, Triple};
use schemars::JsonSchema;
use serde::Deserialize;
use std::sync::Arc;

const DESCRIPTION: &str = "Keeps a fact in the knowledge graph, such as subject `Ada`, predicate `works at`, object \
    `Acme`; one that is known already is not kept twice. With `end` it says instead that the fact does not hold any \
    more; it stays known as history.";

pub(super) fn tool(graph: Arc<Store>, clock: Arc<dyn Clock>) -> Arc<dyn Tool> {
    let declaration = Declaration {
        name: "graph_relate",
        description: DESCRIPTION,
        effect: Effect::Idempotent,
        risk: Risk::Safe,
        subject: Subject::Arguments,
    };
    declaration
        .with_code(move |caller, arguments| relate(graph.clone(), clock.now(), caller, arguments))
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct RelateArguments {
    /// Of what the fact tells: a short name.
    subject: String,
    /// What it tells: a few words, such as `works at`.
    predicate: String,
    /// The other end: a short name or value.
    object: String,
    /// What the subject is, such as `person`.
    subject_type: Option<String>,
    /// What the object is, such as `company`.
    object_type: Option<String>,
    /// How sure it is, from 0 to 1; 1 if not given.
    confidence: Option<f64>,
    /// Where it comes from: a file, an address, a person; the agent itself if not given.
    source: Option<String>,
    /// Whether the fact does not hold any more; false if not given.
    end: Option<bool>,
}

async fn relate(
    graph: Arc<Store>,
    now: Timestamp,
    caller: Caller,
    arguments: RelateArguments,
) -> Result<String, ToolError> {
    let triple = Triple {
        subject: name("subject", &arguments.subject)?,
        predicate: name("predicate", &arguments.predicate)?,
        object: name("object", &arguments.object)?,
    };
    if arguments.end == Some(true) {
        return end(graph, now, &caller, triple).await;
    }
    let confidence = match arguments.confidence {
        None => Confidence::FULL,
        Some(given) => Confidence::new(given).ok_or_else(|| {
            ToolError::new(format!(
                "`confidence` is {given}; give a number from 0 to 1"
            ))
        })?,
    };
    let source = optional_source(arguments.source.as_deref())?;
    let new = NewFact {
        subject: Entity {
            name: triple.subject,
            kind: optional_name("subject_type", arguments.subject_type.as_deref())?,
        },
        predicate: triple.predicate,
        object: Entity {
            name: triple.object,
            kind: optional_name("object_type", arguments.object_type.as_deref())?,
        },
        source: Source {
            name: source.unwrap_or_else(|| caller.agent.as_str().into()),
            trust: Trust::Untrusted,
        },
        confidence,
        created: now,
        valid_from: now,
    };
    let related = graph.relate(&caller.user, new);
    Ok(match related.await.map_err(store_failed)? {
        RelateOutcome::New(fact) => format!("{}\n[kept]\n", line(&fact)),
        RelateOutcome::Confirmed(fact) => {
            format!("{}\n[known already; its source is new]\n", line(&fact))
        }
        RelateOutcome::Known(fact) => format!("{}\n[known already]\n", line(&fact)),
    })
}

async fn end(
    graph: Arc<Store>,
    now: Timestamp,
    caller: &Caller,
    triple: Triple,
) -> Result<String, ToolError> {
    let ended = graph.end_fact(&caller.user, triple, Trust::Untrusted, now);
    match ended.await.map_err(store_failed)? {
        EndOutcome::Ended(fact) => Ok(format!("{}\n[ended]\n", line(&fact))),
        EndOutcome::NotFound => {
            Ok("[no such fact holds, so nothing ended; graph_query shows what holds]\n".to_owned())
        }
        EndOutcome::Protected(fact) => Err(ToolError::new(format!(
            "a trusted source said so, and only the person can end it: {}",
            line(&fact)
        ))),
    }
}
