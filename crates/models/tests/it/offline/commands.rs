//! Phrases that run a command, and the calls that they lead to.

/// What follows `run` is the command, as it was typed, unless it is plain English or another request.
pub(super) const COMMANDS: &[(&str, &[&str])] = &[
    ("run ls -la", &["operator exec ls -la"]),
    (
        "run git log --oneline -3",
        &["operator exec git log --oneline -3"],
    ),
    ("execute `make test`", &["operator exec make test"]),
    (
        "run `git log; git status`",
        &["operator exec git log; git status"],
    ),
    (
        "Run the command `echo hi`, please.",
        &["operator exec echo hi"],
    ),
    ("run cargo test", &["operator exec cargo test"]),
    ("grep -rn TODO .", &["operator exec grep -rn TODO ."]),
    ("git status", &["operator exec git status"]),
    (
        "run `curl https://api.example/a.html`",
        &["operator exec curl https://api.example/a.html"],
    ),
    ("run \"ls | wc -l\"", &["operator exec ls | wc -l"]),
    (
        "run mv notes.md todo.md",
        &["operator exec mv notes.md todo.md"],
    ),
    ("please run go test ./...", &["operator exec go test ./..."]),
    ("run ls.", &["operator exec ls"]),
    (
        "run git add . && git commit",
        &["operator exec git add . && git commit"],
    ),
    ("run cat vault.txt. ", &["operator exec cat vault.txt"]),
    ("can you run sh slow.sh?", &["operator exec sh slow.sh"]),
    ("run echo hello; date", &["operator exec echo hello; date"]),
    ("run mkdir x; ls", &["operator exec mkdir x; ls"]),
    ("run sleep 3 & ls", &["operator exec sleep 3 & ls"]),
    ("run sleep 3", &["operator exec sleep 3"]),
    ("run false", &["operator exec false"]),
    ("run time ls", &["operator exec time ls"]),
    ("run command -v ls", &["operator exec command -v ls"]),
    ("run ls src please", &["operator exec ls src"]),
    ("run ls and show me the output", &["operator exec ls"]),
    (
        "run echo milk and bread",
        &["operator exec echo milk and bread"],
    ),
    (
        "run curl https://api.example/a.html",
        &["operator exec curl https://api.example/a.html"],
    ),
    (
        "run vault and librarian",
        &["operator exec vault and librarian"],
    ),
    (
        "run date, and ls src",
        &["operator exec date", "operator fs_list src"],
    ),
    (
        "run `a` and list src",
        &["operator exec a", "operator fs_list src"],
    ),
    (
        "run for i in 1 2 3; do echo step $i; sleep 1; done; exit 3",
        &["operator exec for i in 1 2 3; do echo step $i; sleep 1; done; exit 3"],
    ),
    (
        "please run while true; do date, and sleep 1; done, and then list src",
        &[
            "operator exec while true; do date, and sleep 1; done",
            "operator fs_list src",
        ],
    ),
    (
        "list src, and run if true; then ls; fi",
        &["operator fs_list src", "operator exec if true; then ls; fi"],
    ),
    (
        "hash notes/a.md",
        &["operator exec [\"sha256sum\",\"--\",\"notes/a.md\"]"],
    ),
];
