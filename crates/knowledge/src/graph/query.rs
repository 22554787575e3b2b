//! `graph_query`: the facts with a given subject, predicate or object.

use super::GraphSettings;
use super::arguments::{bounded, optional_name, store_failed};
use super::show::Page;
use super::suggest;
use lango_core::{Caller, Declaration, Effect, Risk, Subject, Tool, ToolError};
use lango_store::Store;
use lango_store::graph::{FactQuery, NameKind, Validity};
use schemars::JsonSchema;
use serde::Deserialize;
use std::sync::Arc;

const DESCRIPTION: &str = "Looks facts up in the knowledge graph by subject, predicate, object or any two of them; \
    with none of them it shows whatever is known. Gives one fact a line, `subject -predicate-> object`, with its \
    confidence, since when it holds, and its source. Case and space in names do not matter.";

pub(super) fn tool(graph: Arc<Store>, settings: GraphSettings) -> Arc<dyn Tool> {
    let declaration = Declaration {
        name: "graph_query",
        description: DESCRIPTION,
        effect: Effect::Pure,
        risk: Risk::Safe,
        subject: Subject::Arguments,
    };
    declaration
        .with_code(move |caller, arguments| query(graph.clone(), settings, caller, arguments))
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct QueryArguments {
    /// Of what the facts tell; any if not given.
    subject: Option<String>,
    /// What they tell, such as `works at`; anything if not given.
    predicate: Option<String>,
    /// The other end; any if not given.
    object: Option<String>,
    /// Whether to show facts that do not hold any more as well; false if not given.
    include_ended: Option<bool>,
    /// How many facts at most.
    limit: Option<usize>,
}

async fn query(
    graph: Arc<Store>,
    settings: GraphSettings,
    caller: Caller,
    arguments: QueryArguments,
) -> Result<String, ToolError> {
    let most = settings.max_results;
    let (limit, remark) = bounded("limit", arguments.limit, most, most);
    let query = FactQuery {
        subject: optional_name("subject", arguments.subject.as_deref())?,
        predicate: optional_name("predicate", arguments.predicate.as_deref())?,
        object: optional_name("object", arguments.object.as_deref())?,
        validity: match arguments.include_ended {
            Some(true) => Validity::Any,
            _ => Validity::Current,
        },
        limit,
    };
    let found = graph.query_facts(&caller.user, query.clone());
    let found = found.await.map_err(store_failed)?;

    let mut page = Page::default();
    for fact in &found.facts {
        page.push(fact, None);
    }
    if found.facts.is_empty() {
        page.remark("no such fact is known");
        let names = [
            (NameKind::Entity, &query.subject),
            (NameKind::Predicate, &query.predicate),
            (NameKind::Entity, &query.object),
        ];
        for (noun, name) in names {
            if let Some(name) = name
                && let Some(remark) = suggest::unknown(&graph, &caller.user, noun, name).await?
            {
                page.remark(remark);
            }
        }
    }
    if found.more {
        page.remark(format!(
            "{} facts shown, there are more; say more of the subject, predicate or object",
            page.len()
        ));
    }
    if let Some(remark) = remark {
        page.remark(remark);
    }
    Ok(page.finish())
}
