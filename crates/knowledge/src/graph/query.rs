//! `graph_query`: the facts with a given subject, predicate or object.

use super::GraphSettings;
use super::arguments::{bounded, optional_name, store_failed};
use super::show::FactPage;
use super::suggest;
use lango_core::{Caller, Effect, Risk, RuleSubject, Tool, ToolDeclaration, ToolError};
use lango_store::Store;
use lango_store::graph::{FactQuery, NameKind, Validity};
use schemars::JsonSchema;
use serde::Deserialize;
use std::sync::Arc;

const DESCRIPTION: &str = "Looks up facts in the knowledge graph by subject, predicate, object or any combination of them; \
    without any it returns all facts. Returns one fact per line, `subject -predicate-> object`, with its confidence, since \
    when it is valid, and its source. Case and spaces in names do not matter.";

pub(super) fn tool(graph: Arc<Store>, settings: GraphSettings) -> Arc<dyn Tool> {
    let declaration = ToolDeclaration {
        name: "graph_query",
        description: DESCRIPTION,
        effect: Effect::Pure,
        risk: Risk::Safe,
        subject: RuleSubject::Arguments,
    };
    declaration
        .with_code(move |caller, arguments| query(graph.clone(), settings, caller, arguments))
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct QueryArguments {
    /// What the facts are about; default any.
    subject: Option<String>,
    /// The relation, such as `works at`; default any.
    predicate: Option<String>,
    /// The other end of the relation; default any.
    object: Option<String>,
    /// Whether to include facts that are no longer valid; default false.
    include_ended: Option<bool>,
    /// Maximum number of facts to return.
    limit: Option<usize>,
}

async fn query(
    graph: Arc<Store>,
    settings: GraphSettings,
    caller: Caller,
    arguments: QueryArguments,
) -> Result<String, ToolError> {
    let max_results = settings.max_results;
    let (limit, remark) = bounded("limit", arguments.limit, max_results, max_results);
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

    let mut page = FactPage::default();
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
            "{} facts are shown, but there are more; narrow the search with `subject`, `predicate` or `object`",
            page.len()
        ));
    }
    if let Some(remark) = remark {
        page.remark(remark);
    }
    Ok(page.finish())
}
