//! Finding skills, and the problems that are reported for broken ones.

use crate::support::create_special;
use lango_tools::{SkillFolder, SkillOwner, Skills};
use serde::Deserialize;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// A text, the results of the format's reference validator (skills-ref 0.1.1) and of lango, and why they differ if they
/// do.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ValidationCase {
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
fn lango_agrees_with_the_reference_validator_or_has_a_reason_not_to() {
    let cases: Vec<ValidationCase> =
        serde_json::from_str(include_str!("skill_validation.json")).unwrap();
    assert!(cases.len() > 50);
    for case in cases {
        let dir = SkillsFolder::new();
        dir.write(&case.folder, &case.text);
        let skills = dir.find();
        let name = &case.case;
        let differs = case.reference != case.lango;
        assert_eq!(
            differs,
            !case.note.is_empty(),
            "{name}: a difference has a note"
        );
        if case.lango == "good" {
            assert_eq!(skills.broken, [], "{name}");
            assert_eq!(skills.good[0].name, case.folder, "{name}");
            continue;
        }
        assert!(skills.good.is_empty(), "{name}: {:?}", skills.good);
        let [broken] = &skills.broken[..] else {
            panic!("{name}: {:?}", skills.broken)
        };
        assert_eq!(broken.path, dir.path(&case.folder), "{name}");
        assert!(
            broken.problem.contains(&case.problem),
            "{name}: {}",
            broken.problem
        );
    }
}

#[test]
fn the_description_comes_from_the_front_matter() {
    let dir = SkillsFolder::new();
    dir.write(
        "a",
        "---\nname: a\ndescription: |\n  Reads: files.\n  And more.\n---\n",
    );
    assert_eq!(dir.find().good[0].description, "Reads: files.\nAnd more.");
}

#[test]
fn invalid_skill_files_are_reported_and_nothing_hangs() {
    let dir = SkillsFolder::new();
    dir.write("good", &text("good"));
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
        std::fs::create_dir(dir.path(name)).unwrap();
    }
    std::fs::create_dir(dir.path("folder/SKILL.md")).unwrap();
    std::os::unix::fs::symlink("../good/SKILL.md", dir.path("link/SKILL.md")).unwrap();
    assert!(create_special("mkfifo", &[], &dir.path("fifo/SKILL.md")));
    std::fs::write(dir.path("binary/SKILL.md"), b"---\nname: \xff\xfe\n---\n").unwrap();
    let huge = text("huge") + &"x".repeat(1024 * 1024);
    std::fs::write(dir.path("huge/SKILL.md"), huge).unwrap();
    let long = format!("---\nname: long-front\n# {}\n---\n", "ä".repeat(33_000));
    std::fs::write(dir.path("long-front/SKILL.md"), long).unwrap();
    std::fs::write(dir.path("lower/skill.md"), text("lower")).unwrap();
    // These are not meant to be skills.
    std::fs::write(dir.path("README.md"), "about these skills").unwrap();
    std::fs::create_dir(dir.path(".git")).unwrap();

    let skills = dir.find();
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
            "long-front: `SKILL.md`: its front matter is not closed by a `---` line within 64 KiB",
            "lower: it has no `SKILL.md`",
        ]
    );
}

#[test]
fn an_unreadable_folder_is_reported_and_a_missing_one_is_fine() {
    let dir = SkillsFolder::new();
    std::fs::write(dir.path("file"), "").unwrap();
    let folders = [
        dir.folder("nowhere", SkillOwner::User),
        dir.folder("file", SkillOwner::User),
    ];
    let skills = Skills::find(&folders);
    assert_eq!(skills.broken.len(), 1);
    let problem = &skills.broken[0].problem;
    assert!(
        problem.starts_with("the skills folder cannot be read: "),
        "{problem}"
    );
}

#[test]
fn of_two_skills_with_the_same_name_the_users_wins_in_any_order() {
    let dir = SkillsFolder::new();
    for name in ["mine/pdf", "theirs/pdf", "theirs/other"] {
        dir.write(name, &text(name.split('/').next_back().unwrap()));
    }
    let mine = dir.folder("mine", SkillOwner::User);
    let theirs = dir.folder("theirs", SkillOwner::Project);
    for folders in [[mine.clone(), theirs.clone()], [theirs, mine]] {
        let skills = Skills::find(&folders);
        assert_eq!(names(&skills), ["other", "pdf"]);
        assert_eq!(skills.good[1].folder, dir.path("mine/pdf"));
        assert_eq!(skills.good[1].owner, SkillOwner::User);
        assert_eq!(skills.broken.len(), 1);
        assert_eq!(skills.broken[0].path, dir.path("theirs/pdf"));
        let problem = &skills.broken[0].problem;
        assert!(
            problem.starts_with("another skill has the same name"),
            "{problem}"
        );
    }
}

#[test]
fn the_user_may_link_to_skills_and_a_project_may_not() {
    let dir = SkillsFolder::new();
    dir.write("elsewhere/pdf", &text("pdf"));
    std::fs::create_dir(dir.path("linked")).unwrap();
    std::os::unix::fs::symlink("../elsewhere/pdf", dir.path("linked/pdf")).unwrap();
    std::os::unix::fs::symlink("nowhere", dir.path("linked/broken")).unwrap();
    std::os::unix::fs::symlink("elsewhere", dir.path("alias")).unwrap();

    let user = Skills::find(&[dir.folder("linked", SkillOwner::User)]);
    assert_eq!(names(&user), ["pdf"]);
    assert_eq!(user.good[0].folder, dir.path("elsewhere/pdf"));
    assert!(
        user.broken[0]
            .problem
            .starts_with("the link cannot be followed")
    );
    assert_eq!(
        names(&Skills::find(&[dir.folder("alias", SkillOwner::User)])),
        ["pdf"]
    );

    let project = Skills::find(&[dir.folder("linked", SkillOwner::Project)]);
    assert!(project.good.is_empty());
    let problem = &project.broken[1].problem;
    assert_eq!(
        problem,
        "it is a link; a project's skill must be a real folder"
    );
    let project = Skills::find(&[dir.folder("alias", SkillOwner::Project)]);
    assert!(project.good.is_empty());
    assert!(
        project.broken[0]
            .problem
            .contains("its path contains a link")
    );
}

#[test]
fn skills_beyond_the_limit_are_reported() {
    let dir = SkillsFolder::new();
    for number in 0..260 {
        let name = format!("s{number:03}");
        dir.write(&name, &text(&name));
    }
    let skills = dir.find();
    assert_eq!(skills.good.len(), 256);
    assert_eq!(skills.good[255].name, "s255");
    assert_eq!(skills.broken.len(), 4);
    assert!(skills.broken[0].problem.contains("already 256 skills"));
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
struct SkillsFolder {
    _folder: TempDir,
    root: PathBuf,
}

impl SkillsFolder {
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

    fn folder(&self, name: impl AsRef<Path>, owner: SkillOwner) -> SkillFolder {
        SkillFolder {
            path: self.root.join(name),
            owner,
        }
    }

    fn find(&self) -> Skills {
        Skills::find(&[SkillFolder {
            path: self.root.clone(),
            owner: SkillOwner::User,
        }])
    }
}
