//! Creating skills with a tool: invalid ones are refused, and created ones are read back unchanged.

use lango_core::{
    Caller, Effect, Inspection, PreviewLength, PreviewRequest, Risk, Tool, ToolError, Trust,
};
use lango_testkit::tool::caller;
use lango_tools::{SkillFolder, SkillOwner, Skills, skill_library_tools};
use proptest::prelude::*;
use serde_json::{Value, json};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::sync::Arc;
use tempfile::TempDir;

/// A user's folder of skills, which does not exist yet, and a project's.
struct Library {
    folder: TempDir,
    tools: Vec<Arc<dyn Tool>>,
}

impl Library {
    fn new() -> Self {
        Self::in_folder(tempfile::tempdir().unwrap())
    }

    /// Reloads the skills, like the next start of lango.
    fn restart(self) -> Self {
        Self::in_folder(self.folder)
    }

    fn in_folder(folder: TempDir) -> Self {
        let mut library = Self {
            folder,
            tools: Vec::new(),
        };
        library.tools = skill_library_tools(&library.find(), library.path(""));
        library
    }

    fn find(&self) -> Skills {
        let root = self.folder.path().canonicalize().unwrap();
        let folder = |name: &str, owner| SkillFolder {
            path: root.join(name),
            owner,
        };
        Skills::find(&[
            folder("mine", SkillOwner::User),
            folder("theirs", SkillOwner::Project),
        ])
    }

    fn path(&self, name: &str) -> PathBuf {
        let root = self.folder.path().canonicalize().unwrap();
        root.join("mine").join(name)
    }

    fn put(&self, path: &str, text: &str) {
        let path = self.folder.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    fn tool(&self, name: &str) -> &Arc<dyn Tool> {
        let found = self.tools.iter().find(|tool| tool.spec().name == name);
        found.unwrap()
    }

    fn call(&self, tool: &str, arguments: Value) -> Result<String, ToolError> {
        let (tool, caller) = (self.tool(tool), caller());
        let output = runtime().block_on(tool.run(&caller, Arc::new(arguments)));
        output.map(|output| output.text)
    }

    fn create(&self, arguments: Value) -> String {
        self.call("create_skill", arguments).unwrap()
    }

    /// Returns why a skill is not created. Checks that nothing is left behind and that the preview has the same error.
    fn refused(&self, arguments: Value) -> String {
        let before = self.entries();
        let preview = self.preview(arguments.clone());
        let message = self
            .call("create_skill", arguments)
            .expect_err("it should be refused")
            .message;
        assert_eq!(preview, format!("This call will fail: {message}\n"));
        assert_eq!(self.entries(), before);
        message
    }

    fn preview(&self, arguments: Value) -> String {
        let tool = self.tool("create_skill");
        let preview = runtime().block_on(tool.preview(
            Arc::new(arguments),
            PreviewRequest {
                length: PreviewLength::Short,
                inspection: Inspection::default(),
            },
        ));
        preview.unwrap()
    }

    fn entries(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.path("")).into_iter().flatten();
        let mut names: Vec<String> = entries
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap()
}

fn skill(name: &str) -> Value {
    json!({ "name": name, "description": "Does a thing.", "instructions": "# How\n\nDo it.\n" })
}

fn with(mut skill: Value, field: &str, value: Value) -> Value {
    skill[field] = value;
    skill
}

#[test]
fn a_skill_records_whether_its_author_was_untrusted() {
    for trust in [Trust::Trusted, Trust::Untrusted] {
        let library = Library::new();
        let arguments = json!({
            "name": "greet", "description": "Greets", "instructions": "Say hello.",
        });
        let caller = Caller { trust, ..caller() };
        let tool = library.tool("create_skill");
        let created = runtime().block_on(tool.run(&caller, Arc::new(arguments)));
        created.unwrap();
        assert_eq!(library.find().good[0].trust, trust);
    }
    let library = Library::new();
    library.put(
        "theirs/greet/SKILL.md",
        "---\nname: greet\ndescription: Greets\n---\nHello.\n",
    );
    assert_eq!(library.find().good[0].trust, Trust::Untrusted);
}

#[test]
fn the_tools_declare_their_effects_and_risks() {
    let library = Library::new();
    let of = |name: &str| {
        (
            library.tool(name).spec().effect,
            library.tool(name).spec().risk,
        )
    };
    assert_eq!(of("list_skills"), (Effect::Pure, Risk::Safe));
    assert_eq!(of("create_skill"), (Effect::NonIdempotent, Risk::Moderate));
    let schema = &library.tool("create_skill").spec().parameters;
    assert_eq!(
        schema["required"],
        json!(["name", "description", "instructions"])
    );
}

#[test]
fn a_skill_is_written_completely_and_found_at_the_next_start() {
    let library = Library::new();
    let script = json!([{ "name": "run.sh", "content": "#!/bin/sh\necho hi\n" }]);
    let reference = json!([{ "name": "more.md", "content": "More.\n" }]);
    let arguments = with(
        with(skill("greet"), "scripts", script),
        "references",
        reference,
    );
    let preview = library.preview(arguments.clone());
    assert_eq!(library.entries(), [""; 0]);
    let result = library.create(arguments);
    let place = library.path("greet");
    assert_eq!(
        result,
        format!(
            "created the skill {}\nSKILL.md (8 lines, 66 B)\nscripts/run.sh (2 lines, 18 B, can be run)\n\
             references/more.md (1 line, 6 B)\nIt is available after the next start of lango.\n",
            place.display()
        )
    );
    assert_eq!(
        preview,
        format!(
            "Creates the skill {}\nSKILL.md (8 lines, 66 B)\n@@ -0,0 +1,8 @@\n+---\n+name: \"greet\"\n\
             +description: \"Does a thing.\"\n+---\n+\n+# How\n+\n+Do it.\n\
             scripts/run.sh (2 lines, 18 B, can be run)\n@@ -0,0 +1,2 @@\n+#!/bin/sh\n+echo hi\n\
             references/more.md (1 line, 6 B)\n@@ -0,0 +1 @@\n+More.\n",
            place.display()
        )
    );
    assert_eq!(library.entries(), ["greet"]);
    let mode = |name: &str| {
        let metadata = std::fs::metadata(place.join(name)).unwrap();
        metadata.permissions().mode() & 0o777
    };
    assert_eq!(mode("scripts/run.sh"), 0o755);
    assert_eq!(mode("references/more.md") & 0o111, 0);
    let skills = library.find();
    assert_eq!(skills.broken, []);
    assert_eq!(skills.good[0].name, "greet");
    assert_eq!(skills.good[0].description, "Does a thing.");
}

#[test]
fn existing_files_are_never_overwritten() {
    let library = Library::new();
    library.create(skill("a"));
    let taken = library.refused(with(skill("a"), "instructions", json!("other")));
    assert!(taken.contains("a skill `a` already exists"), "{taken}");
    let text = std::fs::read_to_string(library.path("a/SKILL.md")).unwrap();
    assert!(text.contains("Do it."));
    // The same for entries that are not skills: an empty folder, a file, a dangling link.
    std::fs::create_dir(library.path("empty")).unwrap();
    std::fs::write(library.path("file"), "").unwrap();
    std::os::unix::fs::symlink("/nowhere", library.path("link")).unwrap();
    for name in ["empty", "file", "link"] {
        library.refused(skill(name));
    }
    // A user's skill would hide a project's skill with the same name.
    library.put(
        "theirs/pdf/SKILL.md",
        "---\nname: pdf\ndescription: x\n---\n",
    );
    let library = library.restart();
    library.refused(skill("pdf"));
}

#[test]
fn invalid_names_are_refused() {
    let library = Library::new();
    let long = "a".repeat(59);
    let with_folders = ["../a", "a/b", "/a", ".", "..", ".a"];
    let odd = [
        "", "A", "a b", "-a", "a-", "a--b", "ä", "a\n", " a", "a\0", "a_b",
    ];
    let injected = ["a\nlicense: x", &long];
    for name in with_folders.iter().chain(&odd).chain(&injected) {
        let message = library.refused(skill(name));
        assert!(
            message.starts_with("the skill was not created: "),
            "{message}"
        );
    }
    library.create(skill(&"a".repeat(58)));
    assert_eq!(library.find().good.len(), 1);
}

#[test]
fn file_names_that_lead_elsewhere_or_are_there_twice_are_refused() {
    let library = Library::new();
    for folder in ["scripts", "references"] {
        let long = format!("{}.sh", "x".repeat(98));
        for name in [
            "",
            ".",
            "..",
            "../x.sh",
            "a/x.sh",
            "/x.sh",
            "a\\x.sh",
            ".hidden.sh",
            "-x.sh",
            "x y.sh",
            "x\n.sh",
            "ü.sh",
            "x\0.sh",
            &long,
        ] {
            let files = json!([{ "name": name, "content": "x" }]);
            let message = library.refused(with(skill("a"), folder, files));
            assert!(message.contains("is not a valid file name"), "{message}");
        }
        let twice = json!([{ "name": "x.sh", "content": "1" }, { "name": "X.sh", "content": "2" }]);
        let message = library.refused(with(skill("a"), folder, twice));
        assert!(message.contains("is given twice"), "{message}");
    }
}

#[test]
fn empty_too_large_and_unrunnable_files_are_refused() {
    let library = Library::new();
    let refused = |field: &str, value: Value| library.refused(with(skill("a"), field, value));
    assert!(refused("description", json!(" \n")).contains("`description` is empty"));
    assert!(refused("description", json!("x".repeat(1025))).contains("1025 characters"));
    assert!(refused("description", json!("a\u{1b}[2J")).contains("control characters"));
    assert!(refused("instructions", json!(" \n")).contains("`instructions` are empty"));
    assert!(refused("instructions", json!("a\0b")).contains("NUL"));
    assert!(refused("instructions", json!("x".repeat(300_000))).contains("256 KiB"));
    let files = |count: usize, content: &str| -> Value {
        let file = |at| json!({ "name": format!("{at}.sh"), "content": content });
        (0..count).map(file).collect()
    };
    assert!(refused("scripts", files(33, "x")).contains("more than 32 files"));
    assert!(refused("references", files(1, &"x".repeat(300_000))).contains("256 KiB"));
    assert!(refused("references", files(5, &"x".repeat(250_000))).contains("1024 KiB together"));
    let unknown = json!([{ "name": "x.rb", "content": "puts 1" }]);
    assert!(refused("scripts", unknown).contains("does not know how to run"));
    assert!(refused("licence", json!("x")).contains("unknown field"));
}

#[test]
fn a_folder_that_is_not_writable_is_reported() {
    let library = Library::new();
    library.put("mine", "a file where the folder should be");
    let error = library.call("create_skill", skill("a")).unwrap_err();
    assert!(
        error
            .message
            .starts_with("the skill cannot be written into"),
        "{error}"
    );
}

#[test]
fn all_skills_are_listed_including_broken_and_new_ones() {
    let library = Library::new();
    assert_eq!(
        library.call("list_skills", json!({})).unwrap(),
        "There are no skills.\n"
    );
    library.put(
        "theirs/pdf/SKILL.md",
        "---\nname: pdf\ndescription: |\n  Reads.\n  \u{202e}Much.\n---\n",
    );
    library.put("mine/bad/SKILL.md", "no front matter");
    let long = format!("---\nname: old\ndescription: {}\n---\n", "x".repeat(1000));
    library.put("mine/old/SKILL.md", &long);
    let library = library.restart();
    library.create(skill("fresh"));
    library.put("mine/worse/SKILL.md", "");
    let list = library.call("list_skills", json!({})).unwrap();
    let mine = library.path("");
    assert_eq!(
        list,
        format!(
            "old (user): {}…\npdf (project): Reads. \\u{{202e}}Much.\n\
             fresh (user, available after the next start): Does a thing.\n\
             broken: {}bad: `SKILL.md`: it does not start with a `---` line; put the front matter there\n\
             broken: {}worse: `SKILL.md` is empty\n",
            "x".repeat(200),
            mine.display(),
            mine.display()
        )
    );
}

#[test]
fn a_long_list_of_broken_skills_is_truncated_with_a_note() {
    let library = Library::new();
    for number in 0..60 {
        library.put(&format!("mine/s{number}/SKILL.md"), "");
    }
    let list = library.call("list_skills", json!({})).unwrap();
    assert_eq!(list.lines().count(), 51);
    assert!(list.ends_with("[10 more broken skills]\n"), "{list}");
}

/// Texts with a special meaning in YAML, and arbitrary ones.
fn description() -> impl Strategy<Value = String> {
    let parts = prop_oneof![
        Just("---".to_owned()),
        Just("\n---\n".to_owned()),
        Just("\": '".to_owned()),
        Just("\\n\\x2d\\".to_owned()),
        Just("- {a: [b, &c *d !e]} # |> %@`".to_owned()),
        Just("\u{85}\u{2028}\u{feff}\u{ffff}\u{fffe}".to_owned()),
        Just("null\ttrue\n 1e3".to_owned()),
        Just("😀 grüße \u{200b}\u{202e}".to_owned()),
        "(?s).{0,20}",
        "[-\"'\\\\: \n]{0,20}",
    ];
    prop::collection::vec(parts, 1..8).prop_map(|parts| parts.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn a_created_skill_is_read_back_unchanged(
        name in "[a-z0-9]{1,8}(-[a-z0-9]{1,8}){0,3}",
        description in description(),
        instructions in "(?s)(---\n)?.{1,60}\n?(---\n.{0,20})?",
    ) {
        let library = Library::new();
        let arguments = json!({ "name": name, "description": description, "instructions": instructions });
        match library.call("create_skill", arguments) {
            Ok(_) => {
                let skills = library.find();
                prop_assert!(skills.broken.is_empty(), "{:?}", skills.broken);
                prop_assert_eq!(&skills.good[0].name, &name);
                prop_assert_eq!(&skills.good[0].description, description.trim());
                let text = std::fs::read_to_string(library.path(&name).join("SKILL.md")).unwrap();
                let end = if instructions.ends_with('\n') { "" } else { "\n" };
                let body = format!("\n---\n\n{instructions}{end}");
                prop_assert!(text.ends_with(&body));
                // The first two runs of three hyphens enclose the front matter, as the simplest parsers expect.
                let front = text.strip_suffix(&body).unwrap();
                prop_assert_eq!(front.matches("---").count(), 1);
                prop_assert_eq!(front.lines().count(), 3);
            }
            Err(error) => {
                let is_odd = |c: char| c.is_control() && !matches!(c, '\n' | '\t');
                let trimmed = description.trim();
                prop_assert!(
                    trimmed.is_empty()
                        || trimmed.contains(is_odd)
                        || instructions.trim().is_empty()
                        || instructions.contains('\0'),
                    "{}", error
                );
            }
        }
    }
}
