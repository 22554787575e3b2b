//! What a grant may cover. Its pattern was offered by lango and perhaps edited by the user, so it covers less than a
//! rule with the same pattern would. A grant for a command covers only the exact command, or the listed options of a
//! [harmless](super::harmless) command. A grant for a call that runs content, such as a script, covers only that
//! content.

use super::harmless;
use super::pattern::is_literal;
use super::subject::SubjectText;
use crate::tree::Tree;
use lango_core::{ApprovalRequest, Grant, RuleSubject, Text};

/// Separates a pattern from the digest of the content that the grant is bound to.
const CONTENT_MARK: &str = " sha256:";

/// Returns the grant that allows a pending call. A grant applies only to the tool that it was given for, with one
/// exception: to open a URL, a grant for its site is enough, whichever tool it was given for.
pub(crate) fn grant_for<'a>(
    request: &ApprovalRequest,
    grants: &'a [Grant],
    tree: &Tree,
) -> Option<&'a Grant> {
    // A call without a pattern needs approval every time.
    request.pattern.as_ref()?;
    let spec = &tree
        .agent(request.agent.as_str())?
        .tool(request.tool.as_str())?
        .spec;
    let inspection = &request.inspection;
    let subject = SubjectText::of(spec.subject, &request.arguments, inspection);
    let site = inspection.site.as_ref();
    let opens_url = site.is_some_and(|site| site.url.is_some());
    let is_for_site = |grant: &Grant| {
        let owner = tree.agent(grant.agent.as_str());
        let tool = owner.and_then(|owner| owner.tool(grant.tool.as_str()));
        tool.is_some_and(|tool| tool.spec.subject == RuleSubject::Site)
    };
    grants.iter().find(|grant| {
        let is_for_tool = grant.agent == request.agent && grant.tool == spec.name;
        (is_for_tool || (opens_url && is_for_site(grant)))
            && subject.is_granted_by(spec.subject, &grant.pattern, inspection.content.as_ref())
    })
}

/// Returns why a grant with this pattern would be invalid; `None` if it is valid.
pub fn grant_problem(subject: RuleSubject, pattern: &str) -> Option<&'static str> {
    match (subject, harmless::marked_command(pattern)) {
        (RuleSubject::Path | RuleSubject::Arguments, _) => None,
        (RuleSubject::Site, _) if is_site(pattern) => None,
        (RuleSubject::Site, _) => Some(
            "a grant for a site is a host (`example.com`, `example.com:8443`), or `*.` and a host of two names or more",
        ),
        (RuleSubject::Command, Some(command))
            if harmless::listed_prefix(command).as_deref() == Some(command) =>
        {
            None
        }
        (RuleSubject::Command, Some(_)) => Some(
            "lango has no list of harmless options for this command, so a grant covers only the exact command",
        ),
        (RuleSubject::Command, None) if is_literal(pattern) => None,
        (RuleSubject::Command, None) => Some(
            "a wildcard would also cover options that run programs or write files, so a grant for commands cannot have one",
        ),
    }
}

/// Returns the pattern for a rule that allows only calls like this pending one: the path itself, where lango offers its
/// folder. Returns `None` if no rule can allow it.
pub fn exact_pattern(request: &ApprovalRequest) -> Option<Text> {
    let offered = request.pattern.as_ref()?;
    let inspection = &request.inspection;
    let path = SubjectText::of(RuleSubject::Path, &request.arguments, inspection);
    let content = inspection.content.as_ref();
    Some(if path.offered_pattern(content) == **offered {
        path.exact_pattern(content).into()
    } else {
        Text::clone(offered)
    })
}

/// Returns why a user cannot grant this pattern for a pending call. A pattern offered for certain content must stay bound
/// to it, and one that does not cover the call is probably misspelled.
pub fn edited_grant_problem(
    subject: RuleSubject,
    request: &ApprovalRequest,
    pattern: &str,
) -> Option<String> {
    let offered = request.pattern.as_deref().unwrap_or_default();
    if let Some((_, content)) = offered.rsplit_once(CONTENT_MARK)
        && unbound(pattern, Some(&content.into())).is_none()
    {
        return Some(format!(
            "the pattern must end with `{CONTENT_MARK}{content}`, so that changed files are asked for again"
        ));
    }
    if let Some(problem) = grant_problem(subject, pattern) {
        return Some(problem.to_owned());
    }
    let inspection = &request.inspection;
    let call = SubjectText::of(subject, &request.arguments, inspection);
    let covers =
        pattern == offered || call.is_granted_by(subject, pattern, inspection.content.as_ref());
    (!covers).then(|| "it does not cover this call".to_owned())
}

/// Whether the pattern is a host, or `*.` and a host that is not a top-level domain.
fn is_site(pattern: &str) -> bool {
    let host = pattern.strip_prefix("*.");
    let is_deep_enough = host.is_none_or(|host| host.trim_end_matches('.').contains('.'));
    is_deep_enough && is_literal(host.unwrap_or(pattern)) && !pattern.is_empty()
}

/// Returns the part of a pattern before the digest of the content that it is bound to; `None` if it is not bound.
pub fn content_bound_pattern(pattern: &str) -> Option<&str> {
    pattern
        .rsplit_once(CONTENT_MARK)
        .map(|(pattern, _)| pattern)
}

/// Suggests a replacement for a pattern that allows commands with a wildcard; `None` if it has no wildcard.
pub fn narrower_command(pattern: &str) -> Option<String> {
    if is_literal(pattern) || harmless::marked_command(pattern).is_some() {
        return None;
    }
    Some(match harmless::listed_prefix(pattern) {
        Some(command) => format!(
            "`match = \"{command} …\"`, which covers the options that lango knows to be harmless"
        ),
        None => "the exact command, one rule for each".to_owned(),
    })
}

/// Binds a pattern to the digest of the content that a call would run, if there is any.
pub(super) fn bound(pattern: String, content: Option<&Text>) -> String {
    match content {
        None => pattern,
        Some(content) => format!("{pattern}{CONTENT_MARK}{content}"),
    }
}

/// Returns the pattern without the digest of its content. Returns `None` if the call would run content to which the
/// pattern is not bound.
pub(super) fn unbound<'p>(pattern: &'p str, content: Option<&Text>) -> Option<&'p str> {
    match (content, pattern.rsplit_once(CONTENT_MARK)) {
        (None, _) => Some(pattern),
        (Some(content), Some((pattern, granted))) if *granted == **content => Some(pattern),
        (Some(_), _) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gate::subject::SubjectText;
    use serde_json::{Value, json};

    fn subject(subject: RuleSubject, arguments: Value) -> SubjectText {
        SubjectText::of(subject, &arguments, &lango_core::Inspection::default())
    }

    fn line(text: &str) -> SubjectText {
        subject(RuleSubject::Command, json!({ "command": text }))
    }

    fn granted(text: &str, pattern: &str) -> bool {
        line(text).is_granted_by(RuleSubject::Command, pattern, None)
    }

    #[test]
    fn a_grant_covers_the_listed_options_of_a_harmless_command_and_no_wildcard() {
        assert!(granted("git log --oneline", "git log …"));
        assert!(granted("git log --oneline", "git log ..."));
        for pattern in ["git log *", "git log …", "git *", "*"] {
            assert!(!granted("git log --output=Makefile", pattern), "{pattern}");
            assert!(!granted("git log --outp=Makefile", pattern), "{pattern}");
        }
        assert!(!granted("git log", "git log *") && !granted("ls -la", "ls *"));
        assert!(!granted("git log -3", "git …") && !granted("cargo check -q", "cargo check …"));
        assert!(!granted("X=1 git log", "git log …"));
        assert!(granted("git log --output=x", "git log --output=x"));
        assert!(granted("ls *.rs", r"ls \*.rs") && !granted("ls a.rs", r"ls \*.rs"));
        let words = |words: &[&str]| subject(RuleSubject::Command, json!({ "argv": words }));
        let log = words(&["git", "log", "--grep", "a; b"]);
        assert!(log.is_granted_by(RuleSubject::Command, "git log …", None));
        let writing = words(&["git", "log", "--output=x"]);
        assert!(!writing.is_granted_by(RuleSubject::Command, "git log …", None));
        let other_folder = json!({ "command": "git log", "cwd": "docs" });
        let other_folder = subject(RuleSubject::Command, other_folder);
        assert!(!other_folder.is_granted_by(RuleSubject::Command, "git log …", None));
    }

    #[test]
    fn a_grant_for_a_command_in_one_folder_covers_no_command_that_looks_like_it_in_another() {
        let calls = [
            json!({ "command": "./build.sh #", "cwd": "sub" }),
            json!({ "command": "./build.sh # (in sub)" }),
            json!({ "command": "./build.sh # (in sub)", "cwd": "." }),
            json!({ "command": "./build.sh # (in sub) (in .)" }),
            json!({ "command": "./build.sh # (in sub)", "cwd": "other" }),
            json!({ "command": "./build.sh #", "cwd": "sub) (in other" }),
        ];
        let calls = calls.map(|call| subject(RuleSubject::Command, call));
        for (index, call) in calls.iter().enumerate() {
            let pattern = call.offered_pattern(None);
            let covers =
                |other: &SubjectText| other.is_granted_by(RuleSubject::Command, &pattern, None);
            let covered: Vec<usize> = (0..calls.len()).filter(|at| covers(&calls[*at])).collect();
            // The second and the third are the same.
            let expected = if matches!(index, 1 | 2) {
                vec![1, 2]
            } else {
                vec![index]
            };
            assert_eq!(covered, expected, "{pattern}");
        }
    }

    /// Returns a pending call with the pattern that is offered for it.
    fn request(kind: RuleSubject, arguments: Value) -> ApprovalRequest {
        let pattern = subject(kind, arguments.clone()).offered_pattern(None);
        let request = json!({
            "id": "a_1", "agent": "operator", "call": "c_1", "tool": "x", "arguments": arguments, "digest": "",
            "effect": "effect", "risk": "dangerous", "reason": "", "pattern": pattern,
        });
        serde_json::from_value(request).unwrap()
    }

    #[test]
    fn an_edited_pattern_must_cover_the_call_it_was_edited_for() {
        let log = request(
            RuleSubject::Command,
            json!({ "command": "git log --oneline -3" }),
        );
        assert_eq!(log.pattern.as_deref(), Some("git log …"));
        let note = request(RuleSubject::Path, json!({ "path": "notes/a.md" }));
        assert_eq!(note.pattern.as_deref(), Some("notes/*"));
        for (kind, request, pattern, is_granted) in [
            (RuleSubject::Command, &log, "git log …", true),
            (RuleSubject::Command, &log, "git log ...", true),
            (RuleSubject::Command, &log, "git log --oneline -3", true),
            (RuleSubject::Command, &log, "git lgo …", false),
            (RuleSubject::Command, &log, "git log --oneline", false),
            (RuleSubject::Command, &log, "git *", false),
            (RuleSubject::Path, &note, "notes/*", true),
            (RuleSubject::Path, &note, "notes/a.md", true),
            (RuleSubject::Path, &note, "*.md", true),
            (RuleSubject::Path, &note, "nots/*", false),
            (RuleSubject::Path, &note, "src/*", false),
        ] {
            let problem = edited_grant_problem(kind, request, pattern);
            assert_eq!(problem.is_none(), is_granted, "{pattern}: {problem:?}");
        }
    }

    #[test]
    fn a_grant_for_a_content_does_not_cover_another_content() {
        let call = subject(RuleSubject::Arguments, json!({ "script": "a.sh" }));
        let (one, other): (Text, Text) = ("1a".into(), "2b".into());
        let pattern = call.offered_pattern(Some(&one));
        assert_eq!(pattern, r#"{"script":"a.sh"} sha256:1a"#);
        let covers =
            |pattern: &str, content| call.is_granted_by(RuleSubject::Arguments, pattern, content);
        assert!(covers(&pattern, Some(&one)) && !covers(&pattern, Some(&other)));
        assert!(!covers("*", Some(&one)) && !covers(r#"{"script":"a.sh"}"#, Some(&one)));
        assert!(!covers("* sha256:*", Some(&one)) && covers("* sha256:1a", Some(&one)));
    }

    #[test]
    fn a_rule_for_harmless_calls_allows_only_those_but_denies_all_calls() {
        assert!(line("git log -3").is_allowed_by("git log …"));
        assert!(!line("git log --output=x").is_allowed_by("git log …"));
        let writing = json!({ "command": "git log --output=x" });
        assert!(line("git log --output=x").is_narrowed_by("git log …", &writing, "/work"));
        assert!(narrower_command("git log *").is_some_and(|way| way.contains("git log …")));
        assert!(narrower_command("npm *").is_some_and(|way| way.contains("exact command")));
        assert_eq!(narrower_command("npm test"), None);
        assert_eq!(narrower_command("git log …"), None);
    }
}
