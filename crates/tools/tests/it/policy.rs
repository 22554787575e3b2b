//! What the policy opens, keeps and hides, for every file tool.

use crate::support::{Bench, SECRET};
use serde_json::json;

#[test]
fn folders_opened_for_reading_are_read_and_not_changed() {
    let bench = Bench::with_policy(|policy, folder| {
        policy.read = vec![folder.join("outside")];
    });
    let secret = bench.outside("secret.txt");
    assert_eq!(bench.text("fs_read", json!({"path": secret})), SECRET);
    bench.link("door", bench.outside(""));
    assert_eq!(
        bench.text("fs_read", json!({"path": "door/secret.txt"})),
        SECRET
    );
    let listing = bench.text("fs_list", json!({"path": bench.outside("")}));
    assert!(listing.contains("secret.txt  18 B"), "{listing}");
    for (tool, arguments) in [
        ("fs_write", json!({"path": secret, "content": "x"})),
        ("fs_write", json!({"path": "door/new", "content": "x"})),
        ("fs_edit", json!({"path": secret, "old": "t", "new": "x"})),
        ("fs_mkdir", json!({"path": "door/new"})),
        ("fs_delete", json!({"path": secret})),
    ] {
        let error = bench.error(tool, arguments);
        assert!(
            error.contains("is in a folder that may be read, not changed"),
            "{tool}: {error}"
        );
    }
}

#[test]
fn a_single_file_opened_for_reading_opens_nothing_beside_it() {
    let bench = Bench::with_policy(|policy, folder| {
        std::fs::write(folder.join("outside/open.txt"), "open").unwrap();
        policy.read = vec![folder.join("outside/open.txt"), folder.join("not/there")];
    });
    let open = bench.outside("open.txt");
    assert_eq!(bench.text("fs_read", json!({"path": open})), "open");
    for path in ["secret.txt", "", "nowhere", "open.txt/../secret.txt"] {
        let error = bench.error("fs_read", json!({"path": bench.outside(path)}));
        assert!(!error.contains(SECRET), "{error}");
        let listing = bench.call("fs_list", json!({"path": bench.outside(path)}));
        assert!(listing.is_err(), "{path}: {listing:?}");
    }
}

#[test]
fn folders_opened_for_writing_are_written_and_kept_names_are_kept_there_too() {
    let bench = Bench::with_policy(|policy, folder| {
        policy.write = vec![folder.join("outside")];
    });
    let path = bench.outside("sub/new.txt");
    bench.text("fs_write", json!({"path": path, "content": "x"}));
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "x");
    bench.text("fs_delete", json!({"path": bench.outside("sub")}));
    let error = bench.error(
        "fs_write",
        json!({"path": bench.outside(".env"), "content": "x"}),
    );
    assert!(error.contains("is kept as it is"), "{error}");
    let error = bench.error("fs_delete", json!({"path": bench.outside("")}));
    assert!(error.contains("a folder that the person opened"), "{error}");
}

#[test]
fn dots_lead_from_one_opened_folder_into_the_one_around_it() {
    let bench = Bench::with_policy(|policy, folder| policy.write = vec![folder.to_owned()]);
    let arguments = json!({"path": "../outside/secret.txt"});
    assert_eq!(bench.text("fs_read", arguments), SECRET);
    assert!(
        bench
            .error("fs_list", json!({"path": "../.."}))
            .contains("leads outside")
    );
}

#[test]
fn hidden_things_are_as_if_they_were_not_there() {
    let bench = Bench::with_policy(|policy, folder| {
        policy.hidden = vec![folder.join("workspace/db"), folder.join("workspace/a/key")];
    });
    bench.write("db/rows", SECRET);
    bench.write("a/key", SECRET);
    bench.write("a/b", "");
    bench.link("door", "db");
    assert_eq!(
        bench.text("fs_list", json!({})),
        "1 folder, 0 files, 1 link in .\na/\ndoor  link to db\n"
    );
    assert_eq!(
        bench.text("fs_list", json!({"path": "a"})),
        "0 folders, 1 file in a\nb  0 B\n"
    );
    for path in ["db", "db/rows", "a/key", "db/../a/b", "a/../db"] {
        for tool in ["fs_list", "fs_read", "fs_stat", "fs_delete"] {
            let error = bench.error(tool, json!({"path": path}));
            assert!(error.contains("does not exist"), "{tool} {path}: {error}");
        }
    }
    for path in ["door", "door/rows"] {
        let error = bench.error("fs_read", json!({"path": path}));
        assert!(error.contains("does not exist"), "{path}: {error}");
    }
    let error = bench.error("fs_write", json!({"path": "db/new", "content": ""}));
    assert_eq!(error, "`db/new` cannot be used; choose another path");
    let error = bench.error("fs_delete", json!({"path": "a"}));
    assert!(
        error.contains("it holds something that is not yours to see"),
        "{error}"
    );
    assert!(bench.has("a/key") && bench.has("db/rows") && !bench.has("db/new"));
}

#[test]
fn kept_things_are_read_and_stay_as_they_are() {
    let bench = Bench::with_policy(|policy, folder| {
        // A link that is kept keeps what it leads to as well.
        policy.kept = vec![folder.join("workspace/settings.toml")];
        std::fs::create_dir(folder.join("workspace/conf")).unwrap();
        std::fs::write(folder.join("workspace/conf/real.toml"), "kept").unwrap();
        let link = folder.join("workspace/settings.toml");
        std::os::unix::fs::symlink("conf/real.toml", link).unwrap();
    });
    bench.write(".git/hooks/sample", "kept");
    bench.write(".env", "kept");
    bench.link("x", ".git/hooks");
    bench.link("env", ".env");
    bench.write("plain", "kept");
    bench.link(".env.local", "plain");
    let kept = [
        ".git/hooks/sample",
        "x/sample",
        ".env",
        "env",
        "settings.toml",
        "conf/real.toml",
        ".env.local",
    ];
    for path in kept {
        assert_eq!(bench.text("fs_read", json!({"path": path})), "kept");
        for (tool, arguments) in [
            ("fs_write", json!({"path": path, "content": "x"})),
            ("fs_edit", json!({"path": path, "old": "kept", "new": "x"})),
        ] {
            let error = bench.error(tool, arguments);
            assert!(error.contains("is kept as it is"), "{tool} {path}: {error}");
        }
    }
    for path in [
        ".git",
        ".git/hooks",
        "x/sample",
        ".env",
        ".env.local",
        "settings.toml",
    ] {
        let error = bench.error("fs_delete", json!({"path": path}));
        assert!(error.contains("is kept as it is"), "{path}: {error}");
    }
    for path in [
        "x/pre-commit",
        "sub/.git/config",
        "sub/LANGO.toml",
        ".Env.x",
        ".lango/a",
    ] {
        let error = bench.error("fs_write", json!({"path": path, "content": "x"}));
        assert!(error.contains("is kept as it is"), "{path}: {error}");
    }
    assert!(
        bench
            .error("fs_delete", json!({"path": "conf"}))
            .contains("it holds `real.toml`")
    );
    assert!(!bench.has("sub") && bench.read(".git/hooks/sample") == "kept");
    // The links themselves are nobody's but the workspace's.
    bench.text("fs_delete", json!({"path": "x"}));
    assert!(bench.has(".git/hooks/sample"));
}
