//! `graph_relate`: adds a fact, or ends one.

use super::arguments::{name, optional_name, optional_source, store_failed};
use super::show::line;
use lango_core::{
    Caller, Clock, Effect, Provenance, Risk, RuleSubject, Timestamp, Tool, ToolDeclaration,
    ToolError, Trust,
};
use lango_store::Store;
use lango_store::graph::{Confidence, EndOutcome, Entity, NewFact, RelateOutcome, Triple};
use schemars::JsonSchema;
use serde::Deserialize;
use std::sync::Arc;

const DESCRIPTION: &str = "Adds a fact to the knowledge graph, such as subject `Ada`, predicate `works at`, object `Acme`; a \
    fact that is already known is not added twice. With `end`, marks the fact as no longer valid instead; it stays in the \
    history.";

pub(super) fn tool(graph: Arc<Store>, clock: Arc<dyn Clock>) -> Arc<dyn Tool> {
    let declaration = ToolDeclaration {
        name: "graph_relate",
        description: DESCRIPTION,
        effect: Effect::Idempotent,
        risk: Risk::Safe,
        subject: RuleSubject::Arguments,
    };
    declaration
        .with_code(move |caller, arguments| relate(graph.clone(), clock.now(), caller, arguments))
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct RelateArguments {
    /// What the fact is about: a short name.
    subject: String,
    /// The relation: a few words, such as `works at`.
    predicate: String,
    /// The other end of the relation: a short name or value.
    object: String,
    /// The type of the subject, such as `person`.
    subject_type: Option<String>,
    /// The type of the object, such as `company`.
    object_type: Option<String>,
    /// How certain it is, from 0 to 1; default 1.
    confidence: Option<f64>,
    /// Where it comes from: a file, an address or a person; default the agent itself.
    source: Option<String>,
    /// Whether the fact is no longer valid; default false.
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
                "`confidence` is {given}; it must be a number from 0 to 1"
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
        source: Provenance {
            name: source.unwrap_or_else(|| caller.agent.as_str().into()),
            trust: Trust::Untrusted,
        },
        confidence,
        created: now,
        valid_from: now,
    };
    let related = graph.relate(&caller.user, new);
    Ok(match related.await.map_err(store_failed)? {
        RelateOutcome::New(fact) => format!("{}\n[added]\n", line(&fact)),
        RelateOutcome::Confirmed(fact) => {
            format!(
                "{}\n[already known; the new source was added]\n",
                line(&fact)
            )
        }
        RelateOutcome::Known(fact) => format!("{}\n[already known]\n", line(&fact)),
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
        EndOutcome::NotFound => Ok(
            "[no such fact is valid, so nothing was ended; graph_query shows the valid facts]\n"
                .to_owned(),
        ),
        EndOutcome::Protected(fact) => Err(ToolError::new(format!(
            "this fact has a trusted source, so only the user can end it: {}",
            line(&fact)
        ))),
    }
}
