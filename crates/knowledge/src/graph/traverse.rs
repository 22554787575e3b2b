//! `graph_traverse`: the facts around an entity, and those around what they lead to.

use super::GraphSettings;
use super::arguments::{bounded, name, names, store_failed};
use super::show::{Page, shown};
use super::suggest;
use lango_core::{Caller, Declaration, Effect, Risk, Subject, Tool, ToolError};
use lango_store::Store;
use lango_store::graph::{Direction, NameKind, Truncation, Walk, WalkLimits};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// How deep a walk goes that does not say.
const USUAL_DEPTH: usize = 2;

/// How many hubs a remark names.
const NAMED_HUBS: usize = 5;

const DESCRIPTION: &str = "Follows facts of the knowledge graph from one entity to those around it, and on from there, \
    the nearest first. Gives one fact a line, `subject -predicate-> object`, with its depth (how many facts away from \
    the start it leads), its confidence, since when it holds, and its source. Remarks in brackets say what was left \
    out.";

pub(super) fn tool(graph: Arc<Store>, settings: GraphSettings) -> Arc<dyn Tool> {
    let declaration = Declaration {
        name: "graph_traverse",
        description: DESCRIPTION,
        effect: Effect::Pure,
        risk: Risk::Safe,
        subject: Subject::Arguments,
    };
    declaration
        .with_code(move |caller, arguments| traverse(graph.clone(), settings, caller, arguments))
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct TraverseArguments {
    /// The entity to start from. Case and space do not matter.
    start: String,
    /// How many facts away from the start to go; 2 if not given.
    depth: Option<usize>,
    /// Which way to follow facts: `out` from subject to object, `in` from object to subject, or both.
    #[serde(default)]
    direction: Way,
    /// Follow only facts with one of these predicates; all if not given.
    #[serde(default)]
    predicates: Vec<String>,
    /// Follow only facts that lead to an entity of one of these types; all if not given.
    #[serde(default)]
    types: Vec<String>,
    /// How many facts at most.
    limit: Option<usize>,
}

// The argument says what they mean: with descriptions of their own, their schema is one that few models are used to.
#[derive(Clone, Copy, Default, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Way {
    Out,
    In,
    #[default]
    Both,
}

async fn traverse(
    graph: Arc<Store>,
    settings: GraphSettings,
    caller: Caller,
    arguments: TraverseArguments,
) -> Result<String, ToolError> {
    let most = settings.max_results;
    let (facts, facts_remark) = bounded("limit", arguments.limit, most, most);
    let (depth, depth_remark) = bounded("depth", arguments.depth, USUAL_DEPTH, settings.max_depth);
    let walk = Walk {
        start: name("start", &arguments.start)?,
        direction: match arguments.direction {
            Way::Out => Direction::Out,
            Way::In => Direction::In,
            Way::Both => Direction::Both,
        },
        predicates: names("predicates", &arguments.predicates)?,
        kinds: names("types", &arguments.types)?,
        limits: WalkLimits::new(depth, facts),
    };
    let found = graph.traverse(&caller.user, walk.clone());
    let Some(found) = found.await.map_err(store_failed)? else {
        let remark = suggest::unknown(&graph, &caller.user, NameKind::Entity, &walk.start).await?;
        // Somebody may have told of it since.
        let remark = remark.unwrap_or_else(|| "it became known just now; ask again".to_owned());
        return Ok(format!("[{remark}]\n"));
    };

    let mut page = Page::default();
    for step in &found.steps {
        page.push(&step.fact, Some(step.depth));
    }
    if found.steps.is_empty() {
        page.remark(format!(
            "no such fact around `{}`",
            shown(&found.start.name)
        ));
    }
    for predicate in &walk.predicates {
        let remark = suggest::unknown(&graph, &caller.user, NameKind::Predicate, predicate).await?;
        remark.into_iter().for_each(|remark| page.remark(remark));
    }
    say_what_is_missing(&mut page, &found.truncation, depth);
    for remark in [facts_remark, depth_remark].into_iter().flatten() {
        page.remark(remark);
    }
    Ok(page.finish())
}

fn say_what_is_missing(page: &mut Page, truncation: &Truncation, depth: usize) {
    if truncation.facts {
        page.remark(format!(
            "cut after {} facts, there are more; name predicates or types to follow, or go less deep",
            page.len()
        ));
    }
    if truncation.work {
        page.remark("cut: too many facts had to be looked at; name predicates to follow");
    }
    if !truncation.hubs.is_empty() {
        let named: Vec<_> = truncation.hubs.iter().take(NAMED_HUBS).map(shown).collect();
        let others = truncation.hubs.len() - named.len();
        let others = match others {
            0 => String::new(),
            others => format!(" and {others} others"),
        };
        page.remark(format!(
            "only some facts shown of {}{others}, which have many; start from there to see more",
            named.join(", ")
        ));
    }
    if truncation.not_followed > 0 {
        page.remark(format!(
            "depth {depth} reached: {} entities not followed further",
            truncation.not_followed
        ));
    }
}
