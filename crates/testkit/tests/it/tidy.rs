//! The project's shape: the crate graph, SQL and prompts in their places, files that begin with their purpose and stay
//! short, one binary of integration tests per crate.

use crate::source::{crates, entries, files, literals, name, read, root, shown};
use std::collections::BTreeSet;
use std::path::Path;
use toml::Table;

/// Which of our crates each crate may use. A new crate gets a line here when it is born.
const GRAPH: [(&str, &[&str]); 21] = [
    ("a2a", &["core", "documents", "net", "secrets"]),
    ("api", &["core", "documents", "engine", "server", "store"]),
    (
        "browser",
        &["core", "documents", "net", "sandbox", "secrets", "tools"],
    ),
    ("core", &[]),
    ("documents", &["core"]),
    ("engine", &["core", "frontmatter", "secrets"]),
    ("frontmatter", &[]),
    ("knowledge", &["core", "documents", "store"]),
    ("mcp", &["core", "net", "sandbox", "secrets"]),
    ("models", &["core", "secrets"]),
    ("net", &["core", "secrets"]),
    ("payment", &["core", "net"]),
    ("sandbox", &[]),
    ("secrets", &["core"]),
    ("server", &["a2a", "core", "documents", "engine", "net"]),
    ("store", &["core"]),
    ("testkit", &["core", "secrets"]),
    (
        "tools",
        &["core", "frontmatter", "net", "sandbox", "secrets"],
    ),
    ("vault", &["core", "secrets"]),
    ("web", &["core", "documents", "net", "secrets"]),
    (
        "cli",
        &[
            "a2a",
            "api",
            "browser",
            "core",
            "documents",
            "engine",
            "knowledge",
            "mcp",
            "models",
            "net",
            "payment",
            "sandbox",
            "secrets",
            "server",
            "store",
            "tools",
            "vault",
            "web",
        ],
    ),
];

/// The longest a file may be, in lines.
const MOST_LINES: usize = 500;
const MOST_ARCHITECTURE_LINES: usize = 300;

#[track_caller]
pub fn assert_none(violations: &[String]) {
    assert!(violations.is_empty(), "\n{}\n", violations.join("\n"));
}

fn manifest(folder: &Path) -> Table {
    read(&folder.join("Cargo.toml")).parse().unwrap()
}

/// The packages in the dependency tables of a manifest, those for one target only included.
fn packages(manifest: &Table, tables: &[&str]) -> BTreeSet<String> {
    let mut holders = vec![manifest];
    if let Some(targets) = manifest.get("target").and_then(toml::Value::as_table) {
        holders.extend(targets.values().filter_map(toml::Value::as_table));
    }
    let tables = holders.iter().flat_map(|holder| {
        tables
            .iter()
            .filter_map(|table| holder.get(*table)?.as_table())
    });
    let package = |(key, value): (&String, &toml::Value)| {
        let renamed = value.get("package").and_then(toml::Value::as_str);
        renamed.unwrap_or(key).to_owned()
    };
    tables.flat_map(|table| table.iter().map(package)).collect()
}

#[test]
fn crates_depend_only_downwards() {
    let mut violations = Vec::new();
    for folder in crates() {
        let manifest = manifest(&folder);
        let package = manifest["package"]["name"].as_str().unwrap();
        if package != format!("lango-{}", name(&folder)) {
            violations.push(format!(
                "{}: its package is called `{package}`",
                shown(&folder)
            ));
        }
        let Some((_, allowed)) = GRAPH.iter().find(|(known, _)| *known == name(&folder)) else {
            violations.push(format!(
                "{}: a new crate needs a line in GRAPH",
                shown(&folder)
            ));
            continue;
        };
        for used in packages(&manifest, &["dependencies", "build-dependencies"]) {
            if let Some(used) = used
                .strip_prefix("lango-")
                .filter(|used| !allowed.contains(used))
            {
                violations.push(format!(
                    "{}: must not depend on `lango-{used}`",
                    shown(&folder)
                ));
            }
        }
    }
    assert_none(&violations);
}

/// Whether a string is an SQL statement, or the beginning of one. Words such as `select` and `update` are English too:
/// what is written small counts only where no sentence would have it.
fn is_sql(text: &str) -> bool {
    let starts = [
        "SELECT ",
        "INSERT ",
        "REPLACE INTO ",
        "UPDATE ",
        "DELETE FROM ",
        "CREATE ",
        "ALTER TABLE ",
        "DROP ",
    ];
    let others = [
        "PRAGMA ",
        "WITH RECURSIVE ",
        "BEGIN IMMEDIATE",
        "VACUUM",
        "SAVEPOINT ",
        " RETURNING ",
    ];
    let small_starts = [
        "insert into ",
        "insert or ",
        "create table ",
        "create index ",
        "create virtual table ",
        "pragma ",
    ];
    let small_select = text.starts_with("select ")
        && text.contains(" from ")
        && ["*", " where ", " limit ", " order by ", "?1", "$1"]
            .iter()
            .any(|sign| text.contains(sign));
    let contained =
        text.contains("INSERT INTO ") || text.contains("SELECT ") && text.contains(" FROM ");
    starts.iter().any(|start| text.starts_with(start))
        || others.iter().any(|part| text.contains(part))
        || small_starts.iter().any(|start| text.starts_with(start))
        || small_select
        || contained
}

#[test]
fn sql_is_told_from_english() {
    let sql = [
        "SELECT id FROM sessions",
        "insert into events values (?1)",
        "PRAGMA user_version",
        "CREATE UNIQUE INDEX i ON t (a)",
        "select * from events",
        "UPDATE sessions SET turns = 1",
        "x; INSERT INTO t",
    ];
    assert!(
        sql.iter().all(|text| is_sql(text)),
        "{:?}",
        sql.iter().find(|text| !is_sql(text))
    );
    let english = [
        "select a session from the list",
        "update the file",
        "Select an agent FROM these",
        "created",
        "",
    ];
    assert!(
        english.iter().all(|text| !is_sql(text)),
        "{:?}",
        english.iter().find(|text| is_sql(text))
    );
}

#[test]
fn sql_is_in_the_store_only() {
    let mut violations = Vec::new();
    for folder in crates().iter().filter(|folder| name(folder) != "store") {
        for path in files(&folder.join("src"), &["rs"]) {
            let found = literals(&read(&path))
                .into_iter()
                .filter(|literal| is_sql(&literal.text));
            violations.extend(
                found.map(|literal| format!("{}:{}: {}", shown(&path), literal.line, literal.text)),
            );
        }
        violations.extend(files(folder, &["sql"]).iter().map(|path| shown(path)));
        let used = packages(&manifest(folder), &["dependencies"]);
        for driver in ["rusqlite", "tokio-postgres", "deadpool-postgres", "sqlx"] {
            if used.contains(driver) {
                violations.push(format!("{}: uses `{driver}`", shown(folder)));
            }
        }
    }
    assert_none(&violations);
}

/// Whether a string speaks to a model as an instruction does, or is a template of one. The short error results of single
/// calls ("the tool `x` is not yours; …") are no prompts: they begin small and say what happened.
fn is_prompt(text: &str) -> bool {
    let openings = [
        "You are ",
        "You have ",
        "You must ",
        "You cannot ",
        "You can ",
        "Your task",
        "Your role",
        "Your job",
    ];
    let parts = [
        ". You are ",
        "You are an ",
        "NEVER ",
        "ALWAYS ",
        "{{#",
        "{{/",
        "## Routing",
        "## Task\\n\\n",
    ];
    openings.iter().any(|opening| text.starts_with(opening))
        || parts.iter().any(|part| text.contains(part))
}

#[test]
fn prompts_are_told_from_messages() {
    let prompts = [
        "You are {name}, an agent",
        "Hi. You are a bot",
        "NEVER invent names",
        "{{#tools}}x{{/tools}}",
    ];
    assert!(prompts.iter().all(|text| is_prompt(text)));
    let messages = [
        "there is no tool `{shown}`; you have no tools",
        "the session is busy",
        "{}",
        "the rule {{ action = {word} }}",
        "never mind",
    ];
    assert!(messages.iter().all(|text| !is_prompt(text)));
}

/// Sources that must talk like a prompt, with the reason.
const MAY_TALK: [(&str, &str); 3] = [
    (
        "crates/models/src/offline",
        "is itself a model: it speaks to the person, and reads the instruction's headings",
    ),
    (
        "crates/engine/src/template.rs",
        "is the template language, so it has to write its braces",
    ),
    (
        "crates/testkit/src",
        "plays models for tests and is never part of the product",
    ),
];

/// Where prompts are, and the modules that read them. Each file is read by one of its crate's, once.
const PROMPT_READERS: [(&str, &str); 2] = [
    ("crates/engine/prompts", "crates/engine/src/instruction.rs"),
    (
        "crates/knowledge/prompts",
        "crates/knowledge/src/memory/prompt.rs",
    ),
];

#[test]
fn prompts_are_under_prompts_only() {
    let mut violations = Vec::new();
    for folder in crates() {
        for path in files(&folder.join("src"), &["rs"]) {
            let place = shown(&path);
            if MAY_TALK.iter().any(|(exempt, _)| place.starts_with(exempt)) {
                continue;
            }
            let source = read(&path);
            // Tests of a module stand at its end, and may quote what they look for.
            let code = source.split("#[cfg(test)]").next().unwrap_or(&source);
            let found = literals(code)
                .into_iter()
                .filter(|literal| is_prompt(&literal.text));
            violations
                .extend(found.map(|literal| format!("{place}:{}: {}", literal.line, literal.text)));
            let may_read = PROMPT_READERS.iter().any(|(_, reader)| *reader == place);
            if code.contains("prompts/") && !may_read {
                violations.push(format!("{place}: only {PROMPT_READERS:?} read prompts"));
            }
        }
    }
    assert_none(&violations);
}

#[test]
fn every_prompt_file_is_used_by_one_function() {
    let mut wrong = Vec::new();
    for folder in crates() {
        for path in entries(&folder.join("prompts")) {
            let place = shown(&path);
            let file_use = format!("prompts/{}\"", name(&path));
            let readers = PROMPT_READERS
                .iter()
                .filter(|(prompts, _)| place.starts_with(prompts));
            let uses: usize = readers
                .map(|(_, reader)| read(&root().join(reader)).matches(&file_use).count())
                .sum();
            if uses != 1 {
                wrong.push(format!("{place}: used {uses} times"));
            }
        }
    }
    assert_none(&wrong);
    assert!(entries(&root().join("crates/engine/prompts")).len() > 10);
}

#[test]
fn no_product_code_switches_a_check_of_the_egress_guard_off() {
    let others = crates()
        .into_iter()
        .filter(|folder| name(folder) != "net")
        .flat_map(|folder| files(&folder.join("src"), &["rs"]));
    let switching = others.filter(|path| {
        let source = read(path);
        source.contains("lango_net::Check")
            || source.contains("Check::SingleLookup")
            || source.contains("lango_net") && source.contains(".without(")
    });
    assert_none(&switching.map(|path| shown(&path)).collect::<Vec<_>>());
}

#[test]
fn every_source_begins_with_its_purpose() {
    let sources = crates()
        .into_iter()
        .flat_map(|folder| files(&folder.join("src"), &["rs"]));
    let without = sources.filter(|path| !read(path).starts_with("//! "));
    assert_none(
        &without
            .map(|path| format!("{}: does not begin with `//! `", shown(&path)))
            .collect::<Vec<_>>(),
    );
}

#[test]
fn no_file_is_too_long() {
    let kinds = ["rs", "md", "toml", "sh", "sql"];
    let below = ["crates", "docs", "scripts", ".ci"]
        .iter()
        .flat_map(|folder| files(&root().join(folder), &kinds));
    let beside = entries(&root())
        .into_iter()
        .filter(|path| path.extension().is_some_and(|is| is == "md"));
    let lengths = below
        .chain(beside)
        .map(|path| (read(&path).lines().count(), path));
    let long = lengths.filter(|(lines, _)| *lines > MOST_LINES);
    assert_none(
        &long
            .map(|(lines, path)| format!("{}: {lines} lines", shown(&path)))
            .collect::<Vec<_>>(),
    );
}

#[test]
fn the_architecture_can_be_read_in_one_sitting() {
    let lines = read(&root().join("ARCHITECTURE.md")).lines().count();
    assert!(
        lines <= MOST_ARCHITECTURE_LINES,
        "{lines} lines; move details to docs/"
    );
}

#[test]
fn each_crate_has_one_binary_of_integration_tests() {
    let mut violations = Vec::new();
    for folder in crates() {
        for path in entries(&folder.join("tests")) {
            let is_data = path.is_dir() && files(&path, &["rs"]).is_empty();
            if name(&path) != "it" && !is_data {
                violations.push(format!("{}: tests go into `tests/it`", shown(&path)));
            }
        }
        let manifest = manifest(&folder);
        let targets = manifest
            .get("test")
            .and_then(toml::Value::as_array)
            .map_or(&[][..], Vec::as_slice);
        let targets: Vec<&str> = targets
            .iter()
            .filter_map(|target| target.get("name")?.as_str())
            .collect();
        let expected: &[&str] = if folder.join("tests").is_dir() {
            &["it"]
        } else {
            &[]
        };
        if targets != expected {
            violations.push(format!(
                "{}: has the test targets {targets:?}, not {expected:?}",
                shown(&folder)
            ));
        }
    }
    assert_none(&violations);
}
