//! What the policy opens, protects and hides, for every file tool.

use crate::support::{FileFixture, SECRET};
use serde_json::json;

#[test]
fn folders_opened_for_reading_can_be_read_but_not_changed() {
    let fixture = FileFixture::with_policy(|policy, folder| {
        policy.read = vec![folder.join("outside")];
    });
    let secret = fixture.outside("secret.txt");
    assert_eq!(fixture.text("fs_read", json!({"path": secret})), SECRET);
    fixture.link("door", fixture.outside(""));
    assert_eq!(
        fixture.text("fs_read", json!({"path": "door/secret.txt"})),
        SECRET
    );
    let listing = fixture.text("fs_list", json!({"path": fixture.outside("")}));
    assert!(listing.contains("secret.txt  18 B"), "{listing}");
    for (tool, arguments) in [
        ("fs_write", json!({"path": secret, "content": "x"})),
        ("fs_write", json!({"path": "door/new", "content": "x"})),
        ("fs_edit", json!({"path": secret, "old": "t", "new": "x"})),
        ("fs_mkdir", json!({"path": "door/new"})),
        ("fs_delete", json!({"path": secret})),
    ] {
        let error = fixture.error(tool, arguments);
        assert!(
            error.contains("is in a read-only folder"),
            "{tool}: {error}"
        );
    }
}

#[test]
fn opening_a_single_file_does_not_open_its_siblings() {
    let fixture = FileFixture::with_policy(|policy, folder| {
        std::fs::write(folder.join("outside/open.txt"), "open").unwrap();
        policy.read = vec![folder.join("outside/open.txt"), folder.join("not/there")];
    });
    let open = fixture.outside("open.txt");
    assert_eq!(fixture.text("fs_read", json!({"path": open})), "open");
    for path in ["secret.txt", "", "nowhere", "open.txt/../secret.txt"] {
        let error = fixture.error("fs_read", json!({"path": fixture.outside(path)}));
        assert!(!error.contains(SECRET), "{error}");
        let listing = fixture.call("fs_list", json!({"path": fixture.outside(path)}));
        assert!(listing.is_err(), "{path}: {listing:?}");
    }
}

#[test]
fn folders_opened_for_writing_are_writable_except_for_protected_names() {
    let fixture = FileFixture::with_policy(|policy, folder| {
        policy.write = vec![folder.join("outside")];
    });
    let path = fixture.outside("sub/new.txt");
    fixture.text("fs_write", json!({"path": path, "content": "x"}));
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "x");
    fixture.text("fs_delete", json!({"path": fixture.outside("sub")}));
    let error = fixture.error(
        "fs_write",
        json!({"path": fixture.outside(".env"), "content": "x"}),
    );
    assert!(error.contains("is protected"), "{error}");
    let error = fixture.error("fs_delete", json!({"path": fixture.outside("")}));
    assert!(error.contains("a folder that the user opened"), "{error}");
}

#[test]
fn dots_can_lead_from_an_opened_folder_into_an_opened_parent() {
    let fixture = FileFixture::with_policy(|policy, folder| policy.write = vec![folder.to_owned()]);
    let arguments = json!({"path": "../outside/secret.txt"});
    assert_eq!(fixture.text("fs_read", arguments), SECRET);
    assert!(
        fixture
            .error("fs_list", json!({"path": "../.."}))
            .contains("is outside the workspace")
    );
}

#[test]
fn hidden_paths_seem_not_to_exist() {
    let fixture = FileFixture::with_policy(|policy, folder| {
        policy.hidden = vec![folder.join("workspace/db"), folder.join("workspace/a/key")];
    });
    fixture.write("db/rows", SECRET);
    fixture.write("a/key", SECRET);
    fixture.write("a/b", "");
    fixture.link("door", "db");
    assert_eq!(
        fixture.text("fs_list", json!({})),
        "1 folder, 0 files, 1 link in .\na/\ndoor  link to db\n"
    );
    assert_eq!(
        fixture.text("fs_list", json!({"path": "a"})),
        "0 folders, 1 file in a\nb  0 B\n"
    );
    for path in ["db", "db/rows", "a/key", "db/../a/b", "a/../db"] {
        for tool in ["fs_list", "fs_read", "fs_stat", "fs_delete"] {
            let error = fixture.error(tool, json!({"path": path}));
            assert!(error.contains("does not exist"), "{tool} {path}: {error}");
        }
    }
    for path in ["door", "door/rows"] {
        let error = fixture.error("fs_read", json!({"path": path}));
        assert!(error.contains("does not exist"), "{path}: {error}");
    }
    let error = fixture.error("fs_write", json!({"path": "db/new", "content": ""}));
    assert_eq!(error, "`db/new` cannot be used; choose another path");
    let error = fixture.error("fs_delete", json!({"path": "a"}));
    assert!(
        error.contains("it contains an entry that you have no access to"),
        "{error}"
    );
    assert!(fixture.has("a/key") && fixture.has("db/rows") && !fixture.has("db/new"));
}

#[test]
fn protected_files_can_be_read_but_not_changed() {
    let fixture = FileFixture::with_policy(|policy, folder| {
        // If a link is read-only, so is its target.
        policy.read_only = vec![folder.join("workspace/settings.toml")];
        std::fs::create_dir(folder.join("workspace/conf")).unwrap();
        std::fs::write(folder.join("workspace/conf/real.toml"), "kept").unwrap();
        let link = folder.join("workspace/settings.toml");
        std::os::unix::fs::symlink("conf/real.toml", link).unwrap();
    });
    fixture.write(".git/hooks/sample", "kept");
    fixture.write(".env", "kept");
    fixture.link("x", ".git/hooks");
    fixture.link("env", ".env");
    fixture.write("plain", "kept");
    fixture.link(".env.local", "plain");
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
        assert_eq!(fixture.text("fs_read", json!({"path": path})), "kept");
        for (tool, arguments) in [
            ("fs_write", json!({"path": path, "content": "x"})),
            ("fs_edit", json!({"path": path, "old": "kept", "new": "x"})),
        ] {
            let error = fixture.error(tool, arguments);
            assert!(error.contains("is protected"), "{tool} {path}: {error}");
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
        let error = fixture.error("fs_delete", json!({"path": path}));
        assert!(error.contains("is protected"), "{path}: {error}");
    }
    for path in [
        "x/pre-commit",
        "sub/.git/config",
        "sub/LANGO.toml",
        ".Env.x",
        ".lango/a",
    ] {
        let error = fixture.error("fs_write", json!({"path": path, "content": "x"}));
        assert!(error.contains("is protected"), "{path}: {error}");
    }
    assert!(
        fixture
            .error("fs_delete", json!({"path": "conf"}))
            .contains("it contains `real.toml`")
    );
    assert!(!fixture.has("sub") && fixture.read(".git/hooks/sample") == "kept");
    // The link itself is not protected.
    fixture.text("fs_delete", json!({"path": "x"}));
    assert!(fixture.has(".git/hooks/sample"));
}
