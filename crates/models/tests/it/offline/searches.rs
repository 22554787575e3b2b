//! Phrases that search files, by name or by text, and the calls that they lead to.

pub(super) const SEARCHES: &[(&str, &[&str])] = &[
    ("find all markdown files", &["operator fs_search *.md"]),
    ("find *.rs", &["operator fs_search *.rs"]),
    ("Find all .toml files!", &["operator fs_search *.toml"]),
    ("where is notes.md?", &["operator fs_search notes.md"]),
    ("find the file main.rs", &["operator fs_search main.rs"]),
    ("find files named test", &["operator fs_search *test*"]),
    ("list all python files", &["operator fs_search *.py"]),
    ("search for TODO", &["operator fs_search TODO"]),
    (
        "search for \"fn main\" in src",
        &["operator fs_search src | fn main"],
    ),
    ("search src for TODO", &["operator fs_search src | TODO"]),
    ("search the files for milk", &["operator fs_search milk"]),
    ("grep bread", &["operator fs_search bread"]),
    ("which files contain milk?", &["operator fs_search milk"]),
    (
        "look for the word bread in notes.md",
        &["operator fs_search notes.md | bread"],
    ),
    ("find TODO", &["operator fs_search TODO"]),
    ("find all TODOs", &["operator fs_search TODO"]),
    ("list all TODO comments", &["operator fs_search TODO"]),
    ("show me all todos", &["operator fs_search TODO"]),
    ("list all todos in src", &["operator fs_search src | TODO"]),
    ("list todo", &["operator fs_list todo"]),
    ("find util.py", &["operator fs_search util.py"]),
    ("find TODO in src", &["operator fs_search src | TODO"]),
    ("where is main defined?", &["operator fs_search main"]),
];
