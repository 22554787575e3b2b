//! Checks and resolves each hostile URL in `hostile_urls.txt`.

use crate::support::{ScriptedResolver, rules};
use lango_net::{Egress, EgressLimits, Refusal, RefusalReason, Url};
use std::sync::Arc;

const LIST: &str = include_str!("hostile_urls.txt");

/// Returns the class of a URL, as the list names it.
async fn classify_url(text: &str, answers: Option<&str>) -> String {
    let Ok(url) = Url::parse(text) else {
        return "unparsable".to_owned();
    };
    let answers: Arc<ScriptedResolver> = ScriptedResolver::new(answers.as_slice());
    let egress = Egress::with_resolver(rules(&[], &[]), EgressLimits::default(), answers);
    let result = match egress.check(&url) {
        Ok(destination) => egress.resolve(&destination).await.map(drop),
        Err(refusal) => Err(refusal),
    };
    result.map_or_else(class_name, |()| "public".to_owned())
}

fn class_name(refusal: Refusal) -> String {
    match refusal.reason {
        RefusalReason::Scheme(_) => "scheme".to_owned(),
        RefusalReason::UserInfo => "userinfo".to_owned(),
        RefusalReason::BadHost => "bad-host".to_owned(),
        RefusalReason::Port(_) => "port".to_owned(),
        RefusalReason::LocalName => "local-name".to_owned(),
        RefusalReason::Address { class, .. } => class.to_string(),
        other => format!("{other:?}"),
    }
}

/// Replaces `\u{…}` escapes. Other backslashes stay unchanged.
fn unescape(text: &str) -> String {
    let mut parts = text.split("\\u{");
    let mut plain = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (code, rest) = part.split_once('}').unwrap();
        plain.push(char::from_u32(u32::from_str_radix(code, 16).unwrap()).unwrap());
        plain.push_str(rest);
    }
    plain
}

#[tokio::test]
async fn every_hostile_url_has_the_class_in_the_list() {
    let mut wrong = Vec::new();
    let mut count = 0;
    for line in LIST.lines().filter(|line| !line.starts_with('#')) {
        let mut columns = line.split('\t');
        let (expected, text) = (columns.next().unwrap(), columns.next().unwrap_or_default());
        let class = classify_url(&unescape(text), columns.next()).await;
        count += 1;
        if class != expected {
            wrong.push(format!("{text}: is {class}, not {expected}"));
        }
    }
    assert!(wrong.is_empty(), "\n{}\n", wrong.join("\n"));
    assert!(count > 600, "{count} lines");
}
