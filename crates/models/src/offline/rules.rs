//! The table of rules, one per row: which phrases select which tool, and how to extract its arguments.

use super::extract::{
    address, between, file, key_of, only_word_after, page_to_open, path, path_text_and_content,
    search_pattern, text_after, triple,
};
use super::words::{has_phrase, words};
use serde_json::{Value, json};

/// A tool and the phrases that select it.
pub(super) struct Rule {
    pub tool: &'static str,
    /// Any of these phrases selects the tool.
    phrases: &'static [&'static str],
    /// Extracts the arguments from the request; `None` if they are missing.
    arguments: fn(&str) -> Option<Value>,
}

/// The first row that matches and whose tool is offered wins.
const RULES: &[Rule] = &[
    Rule {
        tool: "secrets_list",
        phrases: &[
            "my secrets",
            "list secrets",
            "list the secrets",
            "what secrets",
            "which secrets",
        ],
        arguments: |_| Some(json!({})),
    },
    Rule {
        tool: "crypto_hash",
        phrases: &["hash"],
        arguments: |text| {
            let marks = ["hash the text", "hash the word", "hash of", "hash"];
            let text = between(text, '`').or_else(|| text_after(text, &marks))?;
            // This tool hashes text; files go to the operator, which runs `sha256sum`.
            path(&text)
                .is_none()
                .then(|| json!({ "text": text, "algorithm": "sha256" }))
        },
    },
    Rule {
        tool: "exec",
        phrases: &["hash"],
        arguments: |text| Some(json!({ "argv": ["sha256sum", "--", path(text)?] })),
    },
    Rule {
        tool: "memory_recall",
        phrases: &["you remember", "do you remember"],
        arguments: |text| {
            let query = text_after(text, &["remember about", "remember of", "remember"]);
            Some(json!({ "query": query.unwrap_or_else(|| text.trim().to_owned()) }))
        },
    },
    Rule {
        tool: "memory_save",
        phrases: &["remember"],
        arguments: |text| {
            Some(json!({ "text": text_after(text, &["remember that", "remember"])? }))
        },
    },
    Rule {
        tool: "memory_forget",
        phrases: &["forget"],
        arguments: |text| {
            let query = text_after(text, &["forget about", "forget that", "forget"])?;
            Some(json!({ "query": query }))
        },
    },
    Rule {
        tool: "memory_list_observations",
        phrases: &["observation", "observed"],
        arguments: |_| Some(json!({})),
    },
    Rule {
        tool: "memory_list_reflections",
        phrases: &["reflection"],
        arguments: |_| Some(json!({})),
    },
    Rule {
        tool: "memory_recall",
        phrases: &[
            "recall",
            "remembered",
            "what is my",
            "what's my",
            "last time",
            "earlier",
        ],
        arguments: |text| {
            let query = text_after(text, &["recall", "what is", "what's"]);
            Some(json!({ "query": query.unwrap_or_else(|| text.trim().to_owned()) }))
        },
    },
    Rule {
        tool: "list_skills",
        phrases: &["list skills", "which skills", "what skills"],
        arguments: |_| Some(json!({})),
    },
    Rule {
        tool: "save_knowledge",
        phrases: &["note that", "save the note", "save a note", "save that"],
        arguments: |text| {
            let marks = ["save the note", "save a note", "note that", "save that"];
            let content = text_after(text, &marks)?;
            Some(json!({ "key": key_of(&content), "content": content }))
        },
    },
    Rule {
        tool: "graph_relate",
        phrases: &["relate"],
        arguments: |text| {
            let (subject, predicate, object) = triple(&text_after(text, &["relate"])?)?;
            Some(json!({ "subject": subject, "predicate": predicate, "object": object }))
        },
    },
    Rule {
        tool: "graph_traverse",
        phrases: &["related to", "connected to", "graph of"],
        arguments: |text| {
            let start = text_after(text, &["related to", "connected to", "graph of"])?;
            Some(json!({ "start": start }))
        },
    },
    Rule {
        tool: "graph_query",
        phrases: &["facts about", "fact about"],
        arguments: |text| {
            let subject = text_after(text, &["facts about", "fact about"])?;
            Some(json!({ "subject": subject }))
        },
    },
    Rule {
        tool: "search_web",
        phrases: &["search the web", "search online", "web search"],
        arguments: |text| {
            let marks = ["web for", "online for", "web search for", "the web"];
            Some(json!({ "query": text_after(text, &marks)? }))
        },
    },
    Rule {
        tool: "browser_navigate",
        phrases: &["open"],
        arguments: |text| match page_to_open(text) {
            Some(path) => Some(json!({ "path": path })),
            None => Some(json!({ "url": address(text)? })),
        },
    },
    Rule {
        tool: "search_fetch",
        phrases: &["web address"],
        arguments: |text| Some(json!({ "url": address(text)? })),
    },
    Rule {
        tool: "search_knowledge",
        phrases: &["search the notes", "search my notes", "search notes"],
        arguments: |text| {
            Some(json!({ "query": text_after(text, &["notes for", "notes about"])? }))
        },
    },
    Rule {
        tool: "rag_retrieve",
        phrases: &["know about", "look up", "document", "library"],
        arguments: |text| {
            let marks = [
                "know about",
                "look up",
                "documents about",
                "documents for",
                "library for",
            ];
            Some(json!({ "query": text_after(text, &marks)? }))
        },
    },
    Rule {
        tool: "exec",
        phrases: &["run", "execute"],
        arguments: |text| Some(json!({ "command": between(text, '`')? })),
    },
    Rule {
        tool: "fs_write",
        phrases: &["create", "write"],
        arguments: |text| {
            let (before, content) = path_text_and_content(text)?;
            Some(json!({ "path": path(before)?, "content": content }))
        },
    },
    Rule {
        tool: "fs_mkdir",
        phrases: &[
            "create the folder",
            "create a folder",
            "make a folder",
            "make the folder",
        ],
        arguments: |text| Some(json!({ "path": path(text)? })),
    },
    Rule {
        tool: "fs_delete",
        phrases: &["delete", "remove"],
        arguments: |text| {
            let named = || only_word_after(text, &["delete", "remove"]).map(str::to_owned);
            Some(json!({ "path": path(text).or_else(named)? }))
        },
    },
    Rule {
        tool: "fs_search",
        phrases: &["search for", "search"],
        arguments: |text| Some(json!({ "pattern": search_pattern(text)?, "literal": true })),
    },
    Rule {
        tool: "fs_stat",
        phrases: &[
            "how big",
            "how large",
            "size",
            "when was",
            "modified",
            "changed",
            "kind of file",
        ],
        arguments: |text| Some(json!({ "path": path(text)? })),
    },
    Rule {
        tool: "fs_read",
        phrases: &[
            "read",
            "show",
            "print",
            "open",
            "content",
            "what does",
            "what is in",
            "what's in",
            "say",
        ],
        arguments: |text| Some(json!({ "path": file(text)? })),
    },
    Rule {
        tool: "fs_list",
        phrases: &[
            "list",
            "file",
            "folder",
            "directory",
            "what is in",
            "what's in",
            "what is here",
            "show",
        ],
        arguments: |text| Some(json!({ "path": path(text).unwrap_or_else(|| ".".to_owned()) })),
    },
];

/// Returns the first rule that matches the request and whose tool is offered, with its arguments.
pub(super) fn find(text: &str, offers: impl Fn(&str) -> bool) -> Option<(&'static Rule, Value)> {
    let request_words = words(text);
    let matches = |rule: &&Rule| {
        rule.phrases
            .iter()
            .any(|phrase| has_phrase(&request_words, phrase))
    };
    let offered = RULES.iter().filter(|rule| offers(rule.tool));
    let mut matching = offered.filter(matches);
    matching.find_map(|rule| Some((rule, (rule.arguments)(text)?)))
}

/// Returns the tool and the arguments of a request that names both, such as `use refund {"order": "A-17"}`. It reaches
/// tools that no rule covers.
pub(super) fn explicit_call(text: &str) -> Option<(&str, Value)> {
    let start = text.find('{')?;
    let end = text.rfind('}')?;
    let arguments: Value = serde_json::from_str(text.get(start..=end)?).ok()?;
    let mut words = text[..start].split_whitespace();
    let verb = words.next()?.to_ascii_lowercase();
    let tool = words.next()?.trim_matches('`');
    let is_name = |c: char| c.is_ascii_alphanumeric() || "_-.".contains(c);
    let names_tool = matches!(verb.as_str(), "use" | "call") && tool.chars().all(is_name);
    (names_tool && arguments.is_object()).then_some((tool, arguments))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matched(text: &str) -> Option<String> {
        find(text, |_| true).map(|(rule, arguments)| {
            let shown = ["path", "command", "pattern"]
                .iter()
                .find_map(|name| arguments[name].as_str());
            let content = arguments["content"].as_str().unwrap_or_default();
            format!("{} {}{content:?}", rule.tool, shown.unwrap()).replace("\"\"", "")
        })
    }

    #[test]
    fn requests_select_their_tool_and_arguments() {
        assert_eq!(
            matched("what files are here?").as_deref(),
            Some("fs_list .")
        );
        assert_eq!(
            matched("list the folder src").as_deref(),
            Some("fs_list src")
        );
        assert_eq!(
            matched("what is in crates/core/").as_deref(),
            Some("fs_list crates/core/")
        );
        assert_eq!(
            matched("please read README.md.").as_deref(),
            Some("fs_read README.md")
        );
        assert_eq!(
            matched("show me `odd name`").as_deref(),
            Some("fs_read odd name")
        );
        assert_eq!(
            matched("how big is Cargo.toml?").as_deref(),
            Some("fs_stat Cargo.toml")
        );
        assert_eq!(matched("read README").as_deref(), Some("fs_read README"));
        assert_eq!(matched("sing a song"), None);
        assert_eq!(
            matched("run `git log; git status`").as_deref(),
            Some("exec git log; git status")
        );
        assert_eq!(
            matched("create notes/a.md with the word hi").as_deref(),
            Some("fs_write notes/a.md\"hi\\n\"")
        );
        assert_eq!(
            matched("create todo.txt with the words \"milk and bread\"").as_deref(),
            Some("fs_write todo.txt\"milk and bread\\n\"")
        );
        assert_eq!(
            matched("delete notes/a.md").as_deref(),
            Some("fs_delete notes/a.md")
        );
        assert_eq!(
            matched("search for TODO").as_deref(),
            Some("fs_search TODO")
        );
        assert_eq!(
            matched("make a folder called `x y`").as_deref(),
            Some("fs_mkdir x y")
        );
        assert_eq!(matched("run away"), None);
        for (text, tool, field, value) in [
            (
                "open page.html and tell me the title",
                "browser_navigate",
                "path",
                "page.html",
            ),
            (
                "open https://example.com/",
                "browser_navigate",
                "url",
                "https://example.com/",
            ),
            ("read page.html", "fs_read", "path", "page.html"),
            (
                "remember that my editor is helix",
                "memory_save",
                "text",
                "my editor is helix",
            ),
            ("recall my editor", "memory_recall", "query", "my editor"),
            (
                "what do you remember about my dog?",
                "memory_recall",
                "query",
                "my dog",
            ),
            (
                "note that deploys: happen on Monday",
                "save_knowledge",
                "key",
                "deploys",
            ),
            (
                "relate Ada knows \"Charles Babbage\"",
                "graph_relate",
                "object",
                "Charles Babbage",
            ),
            ("what is related to Ada?", "graph_traverse", "start", "Ada"),
            (
                "what do you know about deploys?",
                "rag_retrieve",
                "query",
                "deploys",
            ),
            ("forget my editor", "memory_forget", "query", "my editor"),
            ("hash the text hello", "crypto_hash", "text", "hello"),
            ("hash `a b`", "crypto_hash", "text", "a b"),
            (
                "run `curl https://api.example/a.html`",
                "exec",
                "command",
                "curl https://api.example/a.html",
            ),
            ("execute `cat document`", "exec", "command", "cat document"),
            (
                "search the web for slipstreams",
                "search_web",
                "query",
                "slipstreams",
            ),
            (
                "please read https://example.com/a.html?b=c.",
                "search_fetch",
                "url",
                "https://example.com/a.html?b=c",
            ),
        ] {
            let (rule, arguments) = find(text, |_| true).unwrap();
            assert_eq!(
                (rule.tool, arguments[field].as_str()),
                (tool, Some(value)),
                "{text}"
            );
        }
    }

    #[test]
    fn secrets_are_listed_and_files_are_hashed_by_a_command() {
        for text in [
            "list my secrets",
            "what secrets do I have?",
            "Which secrets are there",
        ] {
            assert_eq!(
                find(text, |_| true).unwrap().0.tool,
                "secrets_list",
                "{text}"
            );
        }
        let (rule, arguments) = find("hash notes/a.md", |_| true).unwrap();
        assert_eq!(rule.tool, "exec");
        assert_eq!(
            arguments,
            json!({ "argv": ["sha256sum", "--", "notes/a.md"] })
        );
    }

    #[test]
    fn only_offered_tools_are_called() {
        assert!(
            find("read a.txt", |tool| tool == "fs_list")
                .is_none_or(|(rule, _)| rule.tool == "fs_list")
        );
        assert!(find("read a.txt", |_| false).is_none());
    }

    #[test]
    fn a_request_that_names_tool_and_arguments_calls_it() {
        let arguments = json!({ "order": "A-17" });
        for text in [
            r#"use refund {"order": "A-17"}"#,
            r#"Call refund with these arguments and report the result: {"order": "A-17"}"#,
            r#"use `refund` with {"order": "A-17"}"#,
        ] {
            assert_eq!(
                explicit_call(text),
                Some(("refund", arguments.clone())),
                "{text}"
            );
        }
        for text in [
            "use the shell",
            "use refund {broken",
            "read {\"a\": 1}",
            "use it {1}",
        ] {
            assert_eq!(explicit_call(text), None, "{text}");
        }
    }
}
