//! The list of hostile URLs in `hostile_urls.txt`, each through `check` and `resolve`.

use crate::support::{Answers, rules};
use lango_net::{Egress, EgressLimits, Reason, Refusal, Url};
use std::sync::Arc;

const LIST: &str = include_str!("hostile_urls.txt");

/// The word for how a URL was judged.
async fn judge(text: &str, answers: Option<&str>) -> String {
    let Ok(url) = Url::parse(text) else {
        return "unparsable".to_owned();
    };
    let answers: Arc<Answers> = Answers::new(answers.as_slice());
    let egress = Egress::with_resolver(rules(&[], &[]), EgressLimits::default(), answers);
    let judged = match egress.check(&url) {
        Ok(destination) => egress.resolve(&destination).await.map(drop),
        Err(refusal) => Err(refusal),
    };
    judged.map_or_else(word, |()| "public".to_owned())
}

fn word(refusal: Refusal) -> String {
    match refusal.reason {
        Reason::Scheme(_) => "scheme".to_owned(),
        Reason::UserInfo => "userinfo".to_owned(),
        Reason::BadHost => "bad-host".to_owned(),
        Reason::Port(_) => "port".to_owned(),
        Reason::LocalName => "local-name".to_owned(),
        Reason::Address { class, .. } => class.to_string(),
        other => format!("{other:?}"),
    }
}

/// Replaces `\u{…}`; other backslashes are themselves.
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
async fn every_hostile_url_is_judged_as_the_list_says() {
    let mut wrong = Vec::new();
    let mut count = 0;
    for line in LIST.lines().filter(|line| !line.starts_with('#')) {
        let mut columns = line.split('\t');
        let (expected, text) = (columns.next().unwrap(), columns.next().unwrap_or_default());
        let judged = judge(&unescape(text), columns.next()).await;
        count += 1;
        if judged != expected {
            wrong.push(format!("{text}: is {judged}, not {expected}"));
        }
    }
    assert!(wrong.is_empty(), "\n{}\n", wrong.join("\n"));
    assert!(count > 600, "{count} lines");
}
