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
    (
        "is there a TODO in src?",
        &["operator fs_search src | TODO"],
    ),
    ("where can I find TODO", &["operator fs_search TODO"]),
    (
        "find all files with the name foo",
        &["operator fs_search *foo*"],
    ),
    ("find invoice", &["operator fs_search invoice"]),
    ("find me the word milk", &["operator fs_search milk"]),
    ("which files use tokio?", &["operator fs_search tokio"]),
    (
        "does notes.md mention milk?",
        &["operator fs_search notes.md | milk"],
    ),
    (
        "is the word milk in notes.md?",
        &["operator fs_search notes.md | milk"],
    ),
    (
        "where is the config file?",
        &["operator fs_search *config*"],
    ),
    ("list all files recursively", &["operator fs_search *"]),
    ("find util.py", &["operator fs_search util.py"]),
    ("find TODO in src", &["operator fs_search src | TODO"]),
    ("where is main defined?", &["operator fs_search main"]),
    (
        "where is TODO in this project?",
        &["operator fs_search TODO"],
    ),
    ("where is TODO", &["operator fs_search TODO"]),
    (
        "Where is invoice in the repo?",
        &["operator fs_search invoice"],
    ),
    (
        "where is milk in src/shop.py?",
        &["operator fs_search src/shop.py | milk"],
    ),
    ("where do we use tokio?", &["operator fs_search tokio"]),
    ("where is the function foo", &["operator fs_search foo"]),
    (
        "where is the class Foo defined in src?",
        &["operator fs_search src | Foo"],
    ),
    ("where is `parse_args`?", &["operator fs_search parse_args"]),
    ("where is parse_args", &["operator fs_search parse_args"]),
    ("where is `notes`?", &["operator fs_search *notes*"]),
    ("show me where parse is used", &["operator fs_search parse"]),
    (
        "find everything that mentions invoice",
        &["operator fs_search invoice"],
    ),
    (
        "find all files that mention invoice",
        &["operator fs_search invoice"],
    ),
    (
        "find all files that contain \"call Ada\" in src",
        &["operator fs_search src | call Ada"],
    ),
    (
        "which files mention invoice?",
        &["operator fs_search invoice"],
    ),
    (
        "show me all lines with invoice",
        &["operator fs_search invoice"],
    ),
    (
        "is there a file that contains milk?",
        &["operator fs_search milk"],
    ),
    (
        "find all uses of tokio in src",
        &["operator fs_search src | tokio"],
    ),
];
