//! Which folders are skills, and what is said of those that are not.

use crate::support::prepared;
use lango_tools::{SkillFolder, Skills, Whose};
use serde::Deserialize;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// A text and what the format's reference validator (skills-ref 0.1.1) and lango say of it; where they differ, why.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Verdict {
    case: String,
    folder: String,
    text: String,
    reference: String,
    lango: String,
    #[serde(default)]
    problem: String,
    #[serde(default)]
    note: String,
}

#[test]
fn each_text_has_the_verdict_of_the_reference_or_a_reason_not_to() {
    let verdicts: Vec<Verdict> = serde_json::from_str(include_str!("skill_verdicts.json")).unwrap();
    assert!(verdicts.len() > 50);
    for verdict in verdicts {
        let shelf = Shelf::new();
        shelf.write(&verdict.folder, &verdict.text);
        let skills = shelf.find();
        let case = &verdict.case;
        let differs = verdict.reference != verdict.lango;
        assert_eq!(
            differs,
            !verdict.note.is_empty(),
            "{case}: a difference has a note"
        );
        if verdict.lango == "good" {
            assert_eq!(skills.broken, [], "{case}");
            assert_eq!(skills.good[0].name, verdict.folder, "{case}");
            continue;
        }
        assert!(skills.good.is_empty(), "{case}: {:?}", skills.good);
        let [broken] = &skills.broken[..] else {
            panic!("{case}: {:?}", skills.broken)
        };
        assert_eq!(broken.path, shelf.path(&verdict.folder), "{case}");
        assert!(
            broken.problem.contains(&verdict.problem),
            "{case}: {}",
            broken.problem
        );
    }
}

#[test]
fn a_description_is_what_the_front_matter_says() {
    let shelf = Shelf::new();
    shelf.write(
        "a",
        "---\nname: a\ndescription: |\n  Reads: files.\n  And more.\n---\n",
    );
    assert_eq!(shelf.find().good[0].description, "Reads: files.\nAnd more.");
}

#[test]
fn what_is_no_skill_file_is_told_and_nothing_hangs() {
    let shelf = Shelf::new();
    shelf.write("good", &text("good"));
    for name in [
        "empty-folder",
        "folder",
        "link",
        "fifo",
        "binary",
        "huge",
        "long-front",
        "lower",
    ] {
        std::fs::create_dir(shelf.path(name)).unwrap();
    }
    std::fs::create_dir(shelf.path("folder/SKILL.md")).unwrap();
    std::os::unix::fs::symlink("../good/SKILL.md", shelf.path("link/SKILL.md")).unwrap();
    assert!(prepared("mkfifo", &[], &shelf.path("fifo/SKILL.md")));
    std::fs::write(shelf.path("binary/SKILL.md"), b"---\nname: \xff\xfe\n---\n").unwrap();
    let huge = text("huge") + &"x".repeat(1024 * 1024);
    std::fs::write(shelf.path("huge/SKILL.md"), huge).unwrap();
    let long = format!("---\nname: long-front\n# {}\n---\n", "ä".repeat(33_000));
    std::fs::write(shelf.path("long-front/SKILL.md"), long).unwrap();
    std::fs::write(shelf.path("lower/skill.md"), text("lower")).unwrap();
    // Neither of these is meant as a skill.
    std::fs::write(shelf.path("README.md"), "about these skills").unwrap();
    std::fs::create_dir(shelf.path(".git")).unwrap();

    let skills = shelf.find();
    assert_eq!(names(&skills), ["good"]);
    let problems: Vec<_> = skills
        .broken
        .iter()
        .map(|broken| {
            let name = broken.path.file_name().unwrap().to_str().unwrap();
            format!("{name}: {}", broken.problem)
        })
        .collect();
    assert_eq!(
        problems,
        [
            "binary: `SKILL.md` is not UTF-8 text",
            "empty-folder: it has no `SKILL.md`",
            "fifo: `SKILL.md` is a named pipe, not a file",
            "folder: `SKILL.md` is a folder, not a file",
            "huge: `SKILL.md` is larger than 1 MiB; move parts of it to `references/`",
            "link: `SKILL.md` is a link, not a file",
            "long-front: `SKILL.md`: its front matter is not closed by a line `---` within 64 KiB",
            "lower: it has no `SKILL.md`",
        ]
    );
}

#[test]
fn a_folder_that_may_not_be_read_or_is_none_is_told_and_a_missing_one_is_fine() {
    let shelf = Shelf::new();
    std::fs::write(shelf.path("file"), "").unwrap();
    let folders = [
        shelf.folder("nowhere", Whose::User),
        shelf.folder("file", Whose::User),
    ];
    let skills = Skills::find(&folders);
    assert_eq!(skills.broken.len(), 1);
    let problem = &skills.broken[0].problem;
    assert!(
        problem.starts_with("the folder of skills cannot be read: "),
        "{problem}"
    );
}

#[test]
fn of_two_skills_with_one_name_the_users_is_taken_whatever_the_order() {
    let shelf = Shelf::new();
    for name in ["mine/pdf", "theirs/pdf", "theirs/other"] {
        shelf.write(name, &text(name.split('/').next_back().unwrap()));
    }
    let mine = shelf.folder("mine", Whose::User);
    let theirs = shelf.folder("theirs", Whose::Project);
    for folders in [[mine.clone(), theirs.clone()], [theirs, mine]] {
        let skills = Skills::find(&folders);
        assert_eq!(names(&skills), ["other", "pdf"]);
        assert_eq!(skills.good[1].folder, shelf.path("mine/pdf"));
        assert_eq!(skills.good[1].whose, Whose::User);
        assert_eq!(skills.broken.len(), 1);
        assert_eq!(skills.broken[0].path, shelf.path("theirs/pdf"));
        let problem = &skills.broken[0].problem;
        assert!(
            problem.starts_with("there is another skill of this name"),
            "{problem}"
        );
    }
}

#[test]
fn the_user_may_link_to_skills_and_a_project_may_not() {
    let shelf = Shelf::new();
    shelf.write("elsewhere/pdf", &text("pdf"));
    std::fs::create_dir(shelf.path("linked")).unwrap();
    std::os::unix::fs::symlink("../elsewhere/pdf", shelf.path("linked/pdf")).unwrap();
    std::os::unix::fs::symlink("nowhere", shelf.path("linked/broken")).unwrap();
    std::os::unix::fs::symlink("elsewhere", shelf.path("alias")).unwrap();

    let user = Skills::find(&[shelf.folder("linked", Whose::User)]);
    assert_eq!(names(&user), ["pdf"]);
    assert_eq!(user.good[0].folder, shelf.path("elsewhere/pdf"));
    assert!(
        user.broken[0]
            .problem
            .starts_with("the link cannot be followed")
    );
    assert_eq!(
        names(&Skills::find(&[shelf.folder("alias", Whose::User)])),
        ["pdf"]
    );

    let project = Skills::find(&[shelf.folder("linked", Whose::Project)]);
    assert!(project.good.is_empty());
    let problem = &project.broken[1].problem;
    assert_eq!(
        problem,
        "it is a link; a project's skill must be a folder of its own"
    );
    let project = Skills::find(&[shelf.folder("alias", Whose::Project)]);
    assert!(project.good.is_empty());
    assert!(project.broken[0].problem.contains("a link leads to it"));
}

#[test]
fn more_skills_than_are_taken_are_told() {
    let shelf = Shelf::new();
    for number in 0..260 {
        let name = format!("s{number:03}");
        shelf.write(&name, &text(&name));
    }
    let skills = shelf.find();
    assert_eq!(skills.good.len(), 256);
    assert_eq!(skills.good[255].name, "s255");
    assert_eq!(skills.broken.len(), 4);
    assert!(skills.broken[0].problem.contains("256 skills already"));
}

fn text(name: &str) -> String {
    format!("---\nname: {name}\ndescription: Does a thing.\n---\n# How\n")
}

fn names(skills: &Skills) -> Vec<&str> {
    skills
        .good
        .iter()
        .map(|skill| skill.name.as_str())
        .collect()
}

/// A folder of skills.
struct Shelf {
    _folder: TempDir,
    root: PathBuf,
}

impl Shelf {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        Self {
            _folder: folder,
            root,
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }

    fn write(&self, name: &str, text: &str) {
        std::fs::create_dir_all(self.path(name)).unwrap();
        std::fs::write(self.path(name).join("SKILL.md"), text).unwrap();
    }

    fn folder(&self, name: impl AsRef<Path>, whose: Whose) -> SkillFolder {
        SkillFolder {
            path: self.root.join(name),
            whose,
        }
    }

    fn find(&self) -> Skills {
        Skills::find(&[SkillFolder {
            path: self.root.clone(),
            whose: Whose::User,
        }])
    }
}
