//! Answers to greetings, thanks and questions about lango itself, which need no agent and no tool.

mod messages;

use super::clause::words;
use super::request::Request;
use super::rules;
use super::suggestions::{Workers, three};
use super::verbatim::span;
use messages::{GREETINGS, MESSAGES, SETUP, STATEMENTS, lists};

/// What the user says, apart from tasks.
#[derive(Clone, Copy)]
enum Topic {
    Greeting,
    Statement,
    Thanks,
    Yes,
    No,
    NeverMind,
    Leave,
    Identity,
    Abilities,
    Agents,
    Mood,
    Date,
    Time,
    Cost,
    Privacy,
    Folder,
    Undo,
    Setup,
}

/// Returns the answer if the message is small talk.
pub(super) fn answer(request: &Request<'_>, workers: Workers<'_>) -> Option<String> {
    let lower = request.task.to_ascii_lowercase();
    let said = words(&lower).collect::<Vec<_>>().join(" ");
    let topic = topic(&said, request.task)?;
    Some(match topic {
        Topic::Greeting => format!("Hello! {}", introduction(request, workers)),
        Topic::Statement => statement(&said, request, workers),
        Topic::Thanks => "You are welcome.".to_owned(),
        Topic::Yes => "There is nothing to confirm: I asked no question. If a call needs your approval, lango asks \
                       for it."
            .to_owned(),
        Topic::No | Topic::NeverMind => "Okay. Nothing was done.".to_owned(),
        Topic::Leave => "Goodbye! To leave the chat, press ctrl-d or type /quit.".to_owned(),
        Topic::Identity => introduction(request, workers),
        Topic::Abilities => abilities(workers),
        Topic::Agents => agents(workers),
        Topic::Mood => format!(
            "Always the same: I am a set of rules, not an AI model. Try: {}",
            three("", workers)[0]
        ),
        Topic::Date => match request.date() {
            Some(date) => format!("Today is {date}."),
            None => "I do not know: this request does not tell the date.".to_owned(),
        },
        Topic::Time => time(request, workers),
        Topic::Cost => "Nothing: I am a set of rules on this machine, without an account. A real model costs what its \
                        provider charges."
            .to_owned(),
        Topic::Privacy => "I call no service: my answers are made on this machine. Only what you ask the tools for uses \
                           the network, such as opening a web page."
            .to_owned(),
        Topic::Folder => match request.folder() {
            Some(folder) => format!("The working folder is {}.", span(folder)),
            None => "I do not know: this request does not tell the working folder.".to_owned(),
        },
        Topic::Undo => "I cannot do that myself, but you can: `/undo` in the chat, or `lango undo`, restores what the last \
                        turn's file tools changed. What commands changed is not undone. Deleted files are also in \
                        the trash: `lango trash` lists them."
            .to_owned(),
        Topic::Setup => "I cannot do that from here. Leave the chat with Ctrl-D and run `lango setup` in the shell. Or set \
                         `ANTHROPIC_API_KEY`, `OPENAI_API_KEY` or `GEMINI_API_KEY` before you start lango, or start \
                         Ollama on this machine. Until then I answer: fixed rules, not an AI model."
            .to_owned(),
    })
}

fn topic(said: &str, message: &str) -> Option<Topic> {
    const MAX_WORDS: usize = 12;
    let count = said.split(' ').count();
    if count > MAX_WORDS || said.is_empty() {
        return None;
    }
    let (said, greets) = match strip_greeting(said) {
        Some(rest) => (rest, true),
        None => (said, false),
    };
    // "lango" at the end is an address or, as in "what is lango", what the message is about.
    let exact = [said, without_fillers(said)]
        .into_iter()
        .find_map(|said| MESSAGES.iter().find(|(messages, _)| lists(messages, said)));
    let said = without_fillers(said);
    if let Some((_, topic)) = exact {
        return Some(*topic);
    }
    if rules::is_task(message) {
        return None;
    }
    if SETUP.split('|').any(|phrase| said.contains(phrase)) {
        return Some(Topic::Setup);
    }
    let starts = |phrases: &str| {
        phrases.split('|').any(|phrase| {
            said.strip_prefix(phrase)
                .is_some_and(|rest| rest.starts_with(' '))
        })
    };
    if starts(STATEMENTS) || names_something(said) {
        return Some(Topic::Statement);
    }
    (greets && count <= 6).then_some(Topic::Greeting)
}

/// Whether a message says how something of the user is called: `my dog is called Rex`.
fn names_something(said: &str) -> bool {
    let names = [" is called ", " are called ", " is named ", "'s name is "];
    said.starts_with("my ") && names.iter().any(|name| said.contains(name))
}

fn strip_greeting(said: &str) -> Option<&str> {
    GREETINGS.split('|').find_map(|greeting| {
        let rest = said.strip_prefix(greeting)?;
        (rest.is_empty() || rest.starts_with(' ')).then(|| rest.trim_start())
    })
}

fn without_fillers(said: &str) -> &str {
    let mut said = said;
    loop {
        let shorter = ["please ", "so ", "and ", "well ", "ok ", "okay "]
            .iter()
            .find_map(|start| said.strip_prefix(start))
            .or_else(|| {
                [" please", " lango", " then", " exactly", " for now"]
                    .iter()
                    .find_map(|end| said.strip_suffix(end))
            });
        match shorter {
            Some(shorter) if !["thanks", "thank you"].contains(&shorter) => said = shorter,
            _ => return said,
        }
    }
}

fn statement(said: &str, request: &Request<'_>, workers: Workers<'_>) -> String {
    let text = request.task.trim_end_matches(['.', '!', ' ']);
    let start = text.len() - said_length(said, text);
    let phrase = format!("remember that {}", &text[start..]);
    if workers.have("memory_save") {
        format!(
            "I keep nothing unless you ask for it. To keep this, say: {}",
            span(&phrase)
        )
    } else {
        introduction(request, workers)
    }
}

/// Returns the length of the message without the greeting at its start.
fn said_length(said: &str, text: &str) -> usize {
    let Some(rest) = strip_greeting(said) else {
        return text.len();
    };
    let first = rest.split(' ').next().unwrap_or_default();
    let lower = text.to_ascii_lowercase();
    lower.find(first).map_or(text.len(), |at| text.len() - at)
}

fn time(request: &Request<'_>, workers: Workers<'_>) -> String {
    let hint = if workers.have("exec") {
        " To see the clock, say: run `date`"
    } else {
        ""
    };
    match request.date() {
        Some(date) => format!("I see the date but not the clock: today is {date}.{hint}"),
        None => format!("I do not know: this request does not tell the time.{hint}"),
    }
}

/// Says what this model is and, for an orchestrator, which agents it can delegate to.
fn introduction(request: &Request<'_>, workers: Workers<'_>) -> String {
    let mut text = "I am lango's built-in set of rules, not an AI model. I follow fixed patterns, so you can try lango \
                    without an API key or a network connection."
        .to_owned();
    if let Some(unread) = request.unread {
        text.push_str(&format!(" I cannot read {unread}."));
    }
    if let Workers::Team(table) = workers {
        text.push_str(" My team:\n");
        for entry in &table.entries {
            text.push_str(&format!("\n- {}: {}", entry.name, entry.role));
        }
    }
    let [first, second, third] = three("", workers);
    text.push_str(&format!(
        "\n\nTry one of these:\n\n- {first}\n- {second}\n- {third}\n\nFor anything else, connect a real model with `lango setup`."
    ));
    text
}

fn agents(workers: Workers<'_>) -> String {
    let Workers::Team(table) = workers else {
        return "There is only one agent here, and you are talking to it.".to_owned();
    };
    let lines = table
        .entries
        .iter()
        .map(|entry| format!("\n- {}: {}", entry.name, entry.role));
    match table.entries.len() {
        0 => "There are no other agents here.".to_owned(),
        count => format!(
            "I can delegate to {count} agents:\n{}",
            lines.collect::<String>()
        ),
    }
}

/// Phrases by topic, with the tool that the topic needs.
const ABILITIES: &[(&str, &str, &[&str])] = &[
    (
        "look at files",
        "fs_list",
        &[
            "what files are here?",
            "read notes.md",
            "how big is notes.md?",
            "find all *.md files",
            "search for TODO",
        ],
    ),
    (
        "change files, after you approved it",
        "fs_write",
        &[
            "write todo.md with the text buy milk",
            "change \"milk\" to \"bread\" in todo.md",
            "add a line \"call Ada\" to todo.md",
            "make a folder called drafts",
            "delete todo.md",
        ],
    ),
    (
        "run commands",
        "exec",
        &["run `ls -la`", "run git log --oneline -3"],
    ),
    (
        "remember",
        "memory_save",
        &[
            "remember that my editor is helix",
            "what is my editor?",
            "forget my editor",
        ],
    ),
    (
        "keep notes",
        "save_knowledge",
        &[
            "note that deploys: happen on Monday",
            "search my notes for deploys",
        ],
    ),
    (
        "connect facts",
        "graph_relate",
        &["relate Ada knows Babbage", "what is related to Ada?"],
    ),
    ("hash", "crypto_hash", &["hash the text hello"]),
    (
        "open web pages",
        "browser_navigate",
        &["open https://example.com/"],
    ),
    ("plan", rules::PLAN, &["plan a release"]),
];

fn abilities(workers: Workers<'_>) -> String {
    let mut text = "I am lango's built-in set of rules, not an AI model. These phrases and others like them work:\n".to_owned();
    for (topic, tool, phrases) in ABILITIES {
        if workers.have(tool) {
            text.push_str(&format!("\n- {topic}: {}", phrases.join(" · ")));
        }
    }
    if let Workers::Team(table) = workers
        && workers.have("fs_list")
        && table.entries.iter().any(|entry| entry.name == "planner")
    {
        text.push_str("\n- two agents at once: what files are here, and plan a release");
        text.push_str("\n- an agent that declines: ask the planner to list the files");
    }
    text.push_str("\n\nFor anything else, connect a real model with `lango setup`.");
    text
}
