//! A minimal template language for prompts: `{{name}}` inserts a value, `{{#name}}…{{/name}}` includes its body if the
//! value is not empty, `{{^name}}…{{/name}}` if it is. Values are inserted verbatim and not parsed as templates.

/// Fills a template. A name without a value stays in the text, so that it shows up in the prompt snapshots.
pub(crate) fn fill(template: &str, values: &[(&str, &str)]) -> String {
    let mut filled = String::with_capacity(template.len() * 2);
    fill_into(&mut filled, template, values);
    filled
}

fn fill_into(filled: &mut String, mut rest: &str, values: &[(&str, &str)]) {
    while let Some((before, tag, after)) = next_tag(rest) {
        filled.push_str(before);
        rest = after;
        if let Some(name) = tag.strip_prefix(['#', '^']) {
            let (body, after) = section(after, name);
            let is_empty = value_of(name, values).is_none_or(str::is_empty);
            if is_empty == tag.starts_with('^') {
                fill_into(filled, body, values);
            }
            rest = after;
        } else if let Some(value) = value_of(tag, values) {
            filled.push_str(value);
        } else {
            filled.push_str("{{");
            filled.push_str(tag);
            filled.push_str("}}");
        }
    }
    filled.push_str(rest);
}

fn next_tag(text: &str) -> Option<(&str, &str, &str)> {
    let (before, rest) = text.split_once("{{")?;
    let (tag, after) = rest.split_once("}}")?;
    Some((before, tag, after))
}

fn section<'a>(text: &'a str, name: &str) -> (&'a str, &'a str) {
    text.split_once(&format!("{{{{/{name}}}}}"))
        .unwrap_or((text, ""))
}

fn value_of<'a>(name: &str, values: &[(&str, &'a str)]) -> Option<&'a str> {
    values
        .iter()
        .find(|(key, _)| *key == name)
        .map(|(_, value)| *value)
}

#[cfg(test)]
mod tests {
    use super::fill;

    #[test]
    fn values_are_inserted_verbatim() {
        assert_eq!(
            fill("a {{x}} b", &[("x", "{{y}}"), ("y", "no")]),
            "a {{y}} b"
        );
    }

    #[test]
    fn sections_depend_on_whether_their_value_is_empty() {
        let template = "{{#x}}has {{x}}{{/x}}{{^x}}none{{/x}}!";
        assert_eq!(fill(template, &[("x", "1")]), "has 1!");
        assert_eq!(fill(template, &[("x", "")]), "none!");
    }

    #[test]
    fn a_name_without_a_value_stays_visible() {
        assert_eq!(fill("{{unknown}} {{", &[]), "{{unknown}} {{");
    }
}
