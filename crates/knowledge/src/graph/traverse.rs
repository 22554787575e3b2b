//! `graph_traverse`: the facts around an entity, and those around the entities they lead to.

use super::GraphSettings;
use super::arguments::{bounded, name, names, store_failed};
use super::show::{FactPage, shown};
use super::suggest;
use lango_core::{Caller, Effect, Risk, RuleSubject, Tool, ToolDeclaration, ToolError};
use lango_store::Store;
use lango_store::graph::{Direction, NameKind, Truncation, Walk, WalkLimits};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

const DEFAULT_DEPTH: usize = 2;

/// Maximum number of hubs that a remark names.
const NAMED_HUBS: usize = 5;

const DESCRIPTION: &str = "Follows facts of the knowledge graph from one entity to its neighbours and onwards, the nearest \
    first. Returns one fact per line, `subject -predicate-> object`, with its depth (how many facts away from the start it \
    leads), its confidence, since when it is valid, and its source. Remarks in brackets say what was left out.";

pub(super) fn tool(graph: Arc<Store>, settings: GraphSettings) -> Arc<dyn Tool> {
    let declaration = ToolDeclaration {
        name: "graph_traverse",
        description: DESCRIPTION,
        effect: Effect::Pure,
        risk: Risk::Safe,
        subject: RuleSubject::Arguments,
    };
    declaration
        .with_code(move |caller, arguments| traverse(graph.clone(), settings, caller, arguments))
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct TraverseArguments {
    /// The entity to start from. Case and spaces do not matter.
    start: String,
    /// How many facts away from the start to go; default 2.
    depth: Option<usize>,
    /// In which direction to follow facts: `out` from subject to object, `in` from object to subject, or both.
    #[serde(default)]
    direction: TraverseDirection,
    /// Follow only facts with one of these predicates; default all.
    #[serde(default)]
    predicates: Vec<String>,
    /// Follow only facts that lead to an entity of one of these types; default all.
    #[serde(default)]
    types: Vec<String>,
    /// Maximum number of facts to return.
    limit: Option<usize>,
}

// The variants have no doc comments, because those would change the schema to a form that few models know. The
// argument's description explains them.
#[derive(Clone, Copy, Default, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum TraverseDirection {
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
    let max_results = settings.max_results;
    let (facts, facts_remark) = bounded("limit", arguments.limit, max_results, max_results);
    let (depth, depth_remark) =
        bounded("depth", arguments.depth, DEFAULT_DEPTH, settings.max_depth);
    let walk = Walk {
        start: name("start", &arguments.start)?,
        direction: match arguments.direction {
            TraverseDirection::Out => Direction::Out,
            TraverseDirection::In => Direction::In,
            TraverseDirection::Both => Direction::Both,
        },
        predicates: names("predicates", &arguments.predicates)?,
        kinds: names("types", &arguments.types)?,
        limits: WalkLimits::new(depth, facts),
    };
    let found = graph.traverse(&caller.user, walk.clone());
    let Some(found) = found.await.map_err(store_failed)? else {
        let remark = suggest::unknown(&graph, &caller.user, NameKind::Entity, &walk.start).await?;
        // A concurrent call may have added it.
        let remark = remark.unwrap_or_else(|| "it was added just now; call again".to_owned());
        return Ok(format!("[{remark}]\n"));
    };

    let mut page = FactPage::default();
    for step in &found.steps {
        page.push(&step.fact, Some(step.depth));
    }
    if found.steps.is_empty() {
        page.remark(format!(
            "no matching fact around `{}`",
            shown(&found.start.name)
        ));
    }
    for predicate in &walk.predicates {
        let remark = suggest::unknown(&graph, &caller.user, NameKind::Predicate, predicate).await?;
        remark.into_iter().for_each(|remark| page.remark(remark));
    }
    add_truncation_remarks(&mut page, &found.truncation, depth);
    for remark in [facts_remark, depth_remark].into_iter().flatten() {
        page.remark(remark);
    }
    Ok(page.finish())
}

fn add_truncation_remarks(page: &mut FactPage, truncation: &Truncation, depth: usize) {
    if truncation.facts {
        page.remark(format!(
            "stopped after {} facts, there are more; set `predicates` or `types`, or a smaller `depth`",
            page.len()
        ));
    }
    if truncation.work {
        page.remark("stopped, because too many facts had to be examined; set `predicates`");
    }
    if !truncation.hubs.is_empty() {
        let named: Vec<_> = truncation.hubs.iter().take(NAMED_HUBS).map(shown).collect();
        let others = truncation.hubs.len() - named.len();
        let others = match others {
            0 => String::new(),
            others => format!(" and {others} others"),
        };
        page.remark(format!(
            "only some facts are shown for {}{others}, which have many; start from there to see more",
            named.join(", ")
        ));
    }
    if truncation.not_followed > 0 {
        page.remark(format!(
            "reached depth {depth}; {} entities were not followed further",
            truncation.not_followed
        ));
    }
}
