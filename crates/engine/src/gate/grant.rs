//! What a grant may cover. Its pattern was offered by lango and perhaps edited, so it covers less than a rule would: of
//! commands the exact one, or the listed options of a [harmless](super::harmless) one, and of calls that run a content,
//! such as a script, that content alone.

use super::harmless;
use super::pattern::is_literal;
use lango_core::{Subject, Text};

/// Stands between a pattern and the digest of the content that a grant is bound to.
const CONTENT: &str = " sha256:";

/// Why a grant with this pattern covers nothing; none if it does.
pub fn grant_problem(subject: Subject, pattern: &str) -> Option<&'static str> {
    match (subject, harmless::form(pattern)) {
        (Subject::Path | Subject::Arguments, _) => None,
        (Subject::Site, _) if is_site(pattern) => None,
        (Subject::Site, _) => Some(
            "a grant for a site is a host (`example.com`, `example.com:8443`), or `*.` and a host of two names or more",
        ),
        (Subject::Command, Some(command))
            if harmless::known_start(command).as_deref() == Some(command) =>
        {
            None
        }
        (Subject::Command, Some(_)) => Some(
            "lango has no list of harmless options for this command, so a grant covers the exact command only",
        ),
        (Subject::Command, None) if is_literal(pattern) => None,
        (Subject::Command, None) => Some(
            "a wildcard also covers options that run programs or write files, so a grant for commands has none",
        ),
    }
}

/// The same for a pattern that was offered and then edited: one for a content stays bound to it.
pub fn edited_grant_problem(subject: Subject, offered: &str, pattern: &str) -> Option<String> {
    match offered.rsplit_once(CONTENT) {
        Some((_, content)) if unbound(pattern, Some(&content.into())).is_none() => Some(format!(
            "the pattern must end with `{CONTENT}{content}`, so that changed files are asked for again"
        )),
        _ => grant_problem(subject, pattern).map(str::to_owned),
    }
}

/// Whether a pattern is one host, or all below a host that is no top-level domain.
fn is_site(pattern: &str) -> bool {
    let host = pattern.strip_prefix("*.");
    let is_deep_enough = host.is_none_or(|host| host.trim_end_matches('.').contains('.'));
    is_deep_enough && is_literal(host.unwrap_or(pattern)) && !pattern.is_empty()
}

/// Whether a pattern is bound to a content.
pub fn is_bound_to_content(pattern: &str) -> bool {
    pattern.contains(CONTENT)
}

/// What to write instead of a pattern that allows commands by a wildcard; none if it has no wildcard.
pub fn narrower_command(pattern: &str) -> Option<String> {
    if is_literal(pattern) || harmless::form(pattern).is_some() {
        return None;
    }
    Some(match harmless::known_start(pattern) {
        Some(command) => format!(
            "`match = \"{command} …\"`, which covers the options that lango knows to be harmless"
        ),
        None => "the exact command, one rule for each".to_owned(),
    })
}

/// The pattern of a grant that holds for this content.
pub(super) fn bound(pattern: String, content: Option<&Text>) -> String {
    match content {
        None => pattern,
        Some(content) => format!("{pattern}{CONTENT}{content}"),
    }
}

/// The pattern without the content that it is bound to; none if that is another content, or there is none.
pub(super) fn unbound<'p>(pattern: &'p str, content: Option<&Text>) -> Option<&'p str> {
    match (content, pattern.rsplit_once(CONTENT)) {
        (None, _) => Some(pattern),
        (Some(content), Some((pattern, granted))) if *granted == **content => Some(pattern),
        (Some(_), _) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::super::subject::SubjectText;
    use super::*;
    use serde_json::{Value, json};

    fn subject(subject: Subject, arguments: Value) -> SubjectText {
        let mut spec = lango_testkit::tool::spec("x");
        spec.subject = subject;
        SubjectText::of(&spec, &arguments, &lango_core::Inspection::default())
    }

    fn line(text: &str) -> SubjectText {
        subject(Subject::Command, json!({ "command": text }))
    }

    fn granted(text: &str, pattern: &str) -> bool {
        line(text).is_granted_by(Subject::Command, pattern, None)
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
        let words = |words: &[&str]| subject(Subject::Command, json!({ "argv": words }));
        let log = words(&["git", "log", "--grep", "a; b"]);
        assert!(log.is_granted_by(Subject::Command, "git log …", None));
        let writing = words(&["git", "log", "--output=x"]);
        assert!(!writing.is_granted_by(Subject::Command, "git log …", None));
        let elsewhere = json!({ "command": "git log", "cwd": "docs" });
        let elsewhere = subject(Subject::Command, elsewhere);
        assert!(!elsewhere.is_granted_by(Subject::Command, "git log …", None));
    }

    #[test]
    fn a_grant_for_a_content_does_not_cover_another_content() {
        let call = subject(Subject::Arguments, json!({ "script": "a.sh" }));
        let (one, other): (Text, Text) = ("1a".into(), "2b".into());
        let pattern = call.offered_pattern(Some(&one));
        assert_eq!(pattern, r#"{"script":"a.sh"} sha256:1a"#);
        let covers =
            |pattern: &str, content| call.is_granted_by(Subject::Arguments, pattern, content);
        assert!(covers(&pattern, Some(&one)) && !covers(&pattern, Some(&other)));
        assert!(!covers("*", Some(&one)) && !covers(r#"{"script":"a.sh"}"#, Some(&one)));
        assert!(!covers("* sha256:*", Some(&one)) && covers("* sha256:1a", Some(&one)));
    }

    #[test]
    fn a_rule_for_harmless_calls_allows_them_and_denies_all() {
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
