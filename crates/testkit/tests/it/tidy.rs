//! Checks the structure of the project: the crate graph, where SQL and prompts may be, a header and a limited length
//! for every file, and one binary of integration tests per crate.

use crate::source::{crates, display_path, entries, files, literals, name, read, root};
use std::collections::BTreeSet;
use std::path::Path;
use toml::Table;

/// The crates of this project that each crate may depend on. A new crate needs a line here.
const GRAPH: [(&str, &[&str]); 24] = [
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
    ("models", &["core", "net", "secrets"]),
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
    ("markdown", &["core"]),
    (
        "config",
        &[
            "a2a", "core", "engine", "models", "net", "payment", "secrets", "store", "tools",
            "vault", "web",
        ],
    ),
    (
        "lango",
        &[
            "a2a",
            "api",
            "browser",
            "config",
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
    (
        "cli",
        &[
            "a2a",
            "api",
            "browser",
            "config",
            "core",
            "documents",
            "engine",
            "knowledge",
            "lango",
            "markdown",
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
        ],
    ),
];

/// Maximum length of a file.
const MAX_LINES: usize = 500;
const MAX_ARCHITECTURE_LINES: usize = 300;

#[track_caller]
pub(crate) fn assert_none(violations: &[String]) {
    assert!(violations.is_empty(), "\n{}\n", violations.join("\n"));
}

fn manifest(folder: &Path) -> Table {
    read(&folder.join("Cargo.toml")).parse().unwrap()
}

/// Returns the packages in the dependency tables of a manifest, including those for a single target.
fn packages(manifest: &Table, tables: &[&str]) -> BTreeSet<String> {
    let mut parents = vec![manifest];
    if let Some(targets) = manifest.get("target").and_then(toml::Value::as_table) {
        parents.extend(targets.values().filter_map(toml::Value::as_table));
    }
    let tables = parents.iter().flat_map(|parent| {
        tables
            .iter()
            .filter_map(|table| parent.get(*table)?.as_table())
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
        // The library for other programs has the plain name.
        let expected = match name(&folder) {
            "lango" => "lango".to_owned(),
            folder => format!("lango-{folder}"),
        };
        if package != expected {
            violations.push(format!(
                "{}: its package is called `{package}`",
                display_path(&folder)
            ));
        }
        let Some((_, allowed)) = GRAPH.iter().find(|(known, _)| *known == name(&folder)) else {
            violations.push(format!(
                "{}: a new crate needs a line in GRAPH",
                display_path(&folder)
            ));
            continue;
        };
        for used in packages(&manifest, &["dependencies", "build-dependencies"]) {
            let used = match used.as_str() {
                "lango" => Some("lango"),
                used => used.strip_prefix("lango-"),
            };
            if let Some(used) = used.filter(|used| !allowed.contains(used)) {
                violations.push(format!(
                    "{}: must not depend on `{used}`",
                    display_path(&folder)
                ));
            }
        }
    }
    assert_none(&violations);
}

/// Returns whether a string is an SQL statement or the start of one. Words such as `select` and `update` are English
/// too, so lower-case keywords count only in forms that no English sentence has.
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
    let lower_case_starts = [
        "insert into ",
        "insert or ",
        "create table ",
        "create index ",
        "create virtual table ",
        "pragma ",
    ];
    let is_lower_case_select = text.starts_with("select ")
        && text.contains(" from ")
        && ["*", " where ", " limit ", " order by ", "?1", "$1"]
            .iter()
            .any(|sign| text.contains(sign));
    let contains_statement =
        text.contains("INSERT INTO ") || text.contains("SELECT ") && text.contains(" FROM ");
    starts.iter().any(|start| text.starts_with(start))
        || others.iter().any(|part| text.contains(part))
        || lower_case_starts
            .iter()
            .any(|start| text.starts_with(start))
        || is_lower_case_select
        || contains_statement
}

#[test]
fn sql_is_distinguished_from_english() {
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
            violations.extend(found.map(|literal| {
                format!("{}:{}: {}", display_path(&path), literal.line, literal.text)
            }));
        }
        violations.extend(
            files(folder, &["sql"])
                .iter()
                .map(|path| display_path(path)),
        );
        let used = packages(&manifest(folder), &["dependencies"]);
        for driver in ["rusqlite", "tokio-postgres", "deadpool-postgres", "sqlx"] {
            if used.contains(driver) {
                violations.push(format!("{}: uses `{driver}`", display_path(folder)));
            }
        }
    }
    assert_none(&violations);
}

/// Returns whether a string is an instruction for a model, or a template of one. The short error results of tool calls
/// ("the tool `x` is not yours; …") are not prompts: they start in lower case and say what happened.
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
fn prompts_are_distinguished_from_messages() {
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

/// Sources that may contain text like a prompt, with the reason.
const PROMPT_EXEMPTIONS: [(&str, &str); 3] = [
    (
        "crates/models/src/offline",
        "is itself a model: it answers the user and reads the instruction's headings",
    ),
    (
        "crates/engine/src/template.rs",
        "implements the template language, so it contains its braces",
    ),
    (
        "crates/testkit/src",
        "imitates models for tests and is not part of the product",
    ),
];

/// The folders with prompts, and the module that reads each. A module reads every file of its folder exactly once.
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
            let place = display_path(&path);
            if PROMPT_EXEMPTIONS
                .iter()
                .any(|(exempt, _)| place.starts_with(exempt))
            {
                continue;
            }
            let source = read(&path);
            // The tests at the end of a module may quote prompts.
            let code = source.split("#[cfg(test)]").next().unwrap_or(&source);
            let found = literals(code)
                .into_iter()
                .filter(|literal| is_prompt(&literal.text));
            violations
                .extend(found.map(|literal| format!("{place}:{}: {}", literal.line, literal.text)));
            let may_read = PROMPT_READERS.iter().any(|(_, reader)| *reader == place);
            if code.contains("prompts/") && !may_read {
                violations.push(format!("{place}: only {PROMPT_READERS:?} may read prompts"));
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
            let place = display_path(&path);
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
fn no_product_code_disables_a_check_of_the_egress_guard() {
    let others = crates()
        .into_iter()
        .filter(|folder| name(folder) != "net")
        .flat_map(|folder| files(&folder.join("src"), &["rs"]));
    let offenders = others.filter(|path| {
        let source = read(path);
        source.contains("lango_net::Check")
            || source.contains("Check::SingleLookup")
            || source.contains("lango_net") && source.contains(".without(")
    });
    assert_none(
        &offenders
            .map(|path| display_path(&path))
            .collect::<Vec<_>>(),
    );
}

#[test]
fn every_source_starts_with_a_module_comment() {
    let sources = crates()
        .into_iter()
        .flat_map(|folder| files(&folder.join("src"), &["rs"]));
    let without = sources.filter(|path| !read(path).starts_with("//! "));
    assert_none(
        &without
            .map(|path| format!("{}: does not start with `//! `", display_path(&path)))
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
        .filter(|path| path.extension().is_some_and(|extension| extension == "md"));
    let lengths = below
        .chain(beside)
        .map(|path| (read(&path).lines().count(), path));
    let long = lengths.filter(|(lines, _)| *lines > MAX_LINES);
    assert_none(
        &long
            .map(|(lines, path)| format!("{}: {lines} lines", display_path(&path)))
            .collect::<Vec<_>>(),
    );
}

#[test]
fn the_architecture_page_is_short() {
    let lines = read(&root().join("ARCHITECTURE.md")).lines().count();
    assert!(
        lines <= MAX_ARCHITECTURE_LINES,
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
                violations.push(format!(
                    "{}: tests belong in `tests/it`",
                    display_path(&path)
                ));
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
                "{}: has the test targets {targets:?}, expected {expected:?}",
                display_path(&folder)
            ));
        }
    }
    assert_none(&violations);
}
