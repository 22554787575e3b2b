//! Writes the table of settings in `docs/configuration.md` from the output of `lango config show`.

use crate::lango::Lango;

/// The path of the page.
pub(super) const PAGE: &str = "docs/configuration.md";

/// The line after which the page is generated.
const START: &str = "<!-- generated from `lango config show` -->\n";

/// Settings that make the keys with an `<id>` appear. Their values are not defaults.
const EXAMPLES: [&str; 5] = [
    "providers.ID.kind=openai",
    "providers.ID.baseUrl=http://127.0.0.1:1/v1",
    "search.providers.ID.kind=searxng",
    "search.providers.ID.url=http://127.0.0.1:1",
    "mcp.servers.ID.command=[\"server\"]",
];

/// Returns what `lango config show` prints with its defaults.
pub(super) fn shown() -> String {
    let lango = Lango::new();
    let mut arguments = vec!["config", "show"];
    for example in EXAMPLES {
        arguments.extend(["-c", example]);
    }
    let mut command = lango.command_with_defaults(&arguments);
    command.env_remove("LANGO_HOME").env("HOME", "/home/you");
    let ran = crate::lango::finish(&mut command, b"").ok();
    ran.stdout.replace("/home/you", "~")
}

/// Returns the page with a table for each section of the settings.
pub(super) fn updated(page: &str, shown: &str) -> String {
    let (introduction, _) = page.split_once(START).unwrap();
    let mut text = format!("{introduction}{START}");
    let mut section = "";
    let lines: Vec<&str> = shown.lines().collect();
    for pair in lines.chunks(2) {
        let help = pair[0].strip_prefix("# ").unwrap();
        let (key, default) = match pair[1].strip_suffix(" is not set") {
            Some(key) => (key.trim_start_matches("# "), String::new()),
            None => {
                let (key, value) = pair[1].split_once(" = ").unwrap();
                (key, format!("`{value}`"))
            }
        };
        let is_example = EXAMPLES
            .iter()
            .any(|example| example.split('=').next() == Some(key));
        let default = if is_example { String::new() } else { default };
        let first = key.split('.').next().unwrap();
        if first != section {
            section = first;
            text.push_str(&format!(
                "\n## {section}\n\n| key | default | meaning |\n|---|---|---|\n"
            ));
        }
        let key = key.replace(".ID.", ".<id>.");
        text.push_str(&format!("| `{key}` | {default} | {help} |\n"));
    }
    text
}
