//! A new skill: checked, put into the format of Agent Skills, and written in one step.
//!
//! It is made under another name, which no search for skills sees, and then renamed, so that nobody ever finds half of it
//! and nothing that is there is changed.

use super::find::{LARGEST_SKILL_FILE, SKILL_FILE, check_place};
use super::front_matter::{LONGEST_DESCRIPTION, TRUST_FIELD, UNTRUSTED, check_length, check_name};
use super::script::{SCRIPTS, interpreter};
use crate::diff::{self, PREVIEW_LINES};
use crate::replace::random_number;
use crate::show;
use cap_std::ambient_authority;
use cap_std::fs::{Dir, OpenOptions, Permissions, PermissionsExt};
use lango_core::{Extent, ToolError, Trust};
use rustix::fs::{RenameFlags, renameat_with};
use rustix::io::Errno;
use schemars::JsonSchema;
use serde::Deserialize;
use std::collections::BTreeSet;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

const REFERENCES: &str = "references";

/// How many files a skill is made with besides its `SKILL.md`, how many bytes one has and how many all have.
const MOST_FILES: usize = 32;
const LARGEST_FILE: usize = 256 * 1024;
const LARGEST_SKILL: usize = LARGEST_SKILL_FILE as usize;

/// How long the name of a file is.
const LONGEST_FILE_NAME: usize = 100;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct CreateArguments {
    /// Its name: small letters, digits and single hyphens, such as `quarterly-report`.
    name: String,
    /// What it does and when to use it, in up to 1024 characters. This alone decides whether it is ever used.
    description: String,
    /// How it is done, step by step, as Markdown.
    instructions: String,
    /// Programs that the instructions speak of. Each begins with a line `#!/…` or ends with .sh, .py or .js.
    scripts: Option<Vec<FileArgument>>,
    /// Longer texts that the instructions speak of, to be read when needed.
    references: Option<Vec<FileArgument>>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct FileArgument {
    /// Its name, without folders.
    name: String,
    /// Its whole content.
    content: String,
}

/// A skill that can be written.
pub(super) struct Draft {
    pub(super) name: String,
    files: Vec<DraftFile>,
}

struct DraftFile {
    /// Relative to the skill's folder.
    path: PathBuf,
    content: String,
    is_script: bool,
}

impl Draft {
    /// Checks what is to be written; what is wrong with it is said in words for a model. The file
    /// records an untrusted author.
    pub(super) fn check(arguments: CreateArguments, author: Trust) -> Result<Self, ToolError> {
        let CreateArguments {
            name,
            description,
            instructions,
            scripts,
            references,
        } = arguments;
        check_name(&name)
            .and_then(|()| check_place(&name, &name))
            .map_err(|problem| refuse(&problem))?;
        let description = description.trim();
        check_description(description)?;
        if instructions.trim().is_empty() {
            return Err(refuse("its `instructions` are empty; say how it is done"));
        }
        let mut files = vec![DraftFile {
            path: SKILL_FILE.into(),
            content: skill_file(&name, description, &instructions, author),
            is_script: false,
        }];
        for (folder, list) in [(SCRIPTS, scripts), (REFERENCES, references)] {
            let mut names = BTreeSet::new();
            for FileArgument { name, content } in list.unwrap_or_default() {
                check_file_name(&name)?;
                if !names.insert(name.to_ascii_lowercase()) {
                    return Err(refuse(&format!("`{folder}/{name}` is there twice")));
                }
                let path = Path::new(folder).join(&name);
                let is_script = folder == SCRIPTS;
                if is_script {
                    interpreter(content.as_bytes(), &path).map_err(|problem| refuse(&problem))?;
                }
                files.push(DraftFile {
                    path,
                    content,
                    is_script,
                });
            }
        }
        check_sizes(&files)?;
        Ok(Self { name, files })
    }

    /// The files and what is in them, for the person who is asked.
    pub(super) fn preview(&self, folder: &Path, extent: Extent) -> String {
        let place = folder.join(&self.name);
        let mut text = format!("Creates the skill {}\n", show::name(place.as_os_str()));
        let lines = match extent {
            Extent::Short => (2 * PREVIEW_LINES / self.files.len()).clamp(20, PREVIEW_LINES),
            Extent::Whole => usize::MAX,
        };
        for file in &self.files {
            text.push_str(&file.headline());
            text.push_str(&diff::unified("", &file.content, lines));
        }
        text
    }

    /// Writes the skill into a folder of skills, which is made if it is not there.
    pub(super) fn write(&self, folder: &Path) -> Result<String, ToolError> {
        let failed = |error: io::Error| {
            let shown = show::name(folder.as_os_str());
            ToolError::new(format!(
                "the skill cannot be written into `{shown}`: {error}; tell the person"
            ))
        };
        std::fs::create_dir_all(folder).map_err(failed)?;
        let above = Dir::open_ambient_dir(folder, ambient_authority()).map_err(failed)?;
        let fresh = format!(".{:016x}.lango-new", random_number());
        let written = above
            .create_dir(&fresh)
            .and_then(|()| self.fill(&above.open_dir(&fresh)?))
            .and_then(|()| rename_to_nothing(&above, &fresh, &self.name));
        if let Err(error) = written {
            // The reason to report is why it was not written.
            let _ = above.remove_dir_all(&fresh);
            return Err(match error.kind() {
                io::ErrorKind::AlreadyExists => taken(&self.name),
                _ => failed(error),
            });
        }
        let files: String = self.files.iter().map(DraftFile::headline).collect();
        let place = folder.join(&self.name);
        Ok(format!(
            "created the skill {}\n{files}It is available from the next start of lango.\n",
            show::name(place.as_os_str())
        ))
    }

    fn fill(&self, folder: &Dir) -> io::Result<()> {
        let create = OpenOptions::new().write(true).create_new(true).clone();
        for file in &self.files {
            if let Some(above) = file.path.parent() {
                folder.create_dir_all(above)?;
            }
            let mut written = folder.open_with(&file.path, &create)?;
            written.write_all(file.content.as_bytes())?;
            if file.is_script {
                written.set_permissions(Permissions::from_mode(0o755))?;
            }
            written.sync_all()?;
        }
        Ok(())
    }
}

impl DraftFile {
    fn headline(&self) -> String {
        let lines = show::count(self.content.lines().count() as u64, "line");
        let size = show::size(self.content.len() as u64);
        let run = if self.is_script { ", can be run" } else { "" };
        format!("{} ({lines}, {size}{run})\n", self.path.display())
    }
}

/// What is said when there is something of this name.
pub(super) fn taken(name: &str) -> ToolError {
    refuse(&format!(
        "there is a skill `{name}` already, and it is never overwritten; choose another name"
    ))
}

fn refuse(problem: &str) -> ToolError {
    ToolError::new(format!("the skill was not created: {problem}"))
}

fn rename_to_nothing(folder: &Dir, from: &str, to: &str) -> io::Result<()> {
    match renameat_with(folder, from, folder, to, RenameFlags::NOREPLACE) {
        // A file system that knows no renaming without replacing.
        Err(Errno::INVAL | Errno::NOSYS) => match folder.symlink_metadata(to) {
            Ok(_) => Err(io::ErrorKind::AlreadyExists.into()),
            Err(_) => folder.rename(from, folder, to),
        },
        renamed => Ok(renamed?),
    }
}

fn check_description(description: &str) -> Result<(), ToolError> {
    if description.is_empty() {
        let problem = "its `description` is empty; say what it does and when to use it";
        return Err(refuse(problem));
    }
    let is_odd = |c: char| c.is_control() && !matches!(c, '\n' | '\t');
    if description.contains(is_odd) {
        return Err(refuse("its `description` has control characters"));
    }
    check_length("description", description, LONGEST_DESCRIPTION)
        .map_err(|problem| refuse(&problem))
}

fn check_file_name(name: &str) -> Result<(), ToolError> {
    let taken = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    let is_plain = name.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_')
        && name.len() <= LONGEST_FILE_NAME
        && name.chars().all(taken);
    if is_plain {
        return Ok(());
    }
    let shown = show::line(name, LONGEST_FILE_NAME);
    Err(refuse(&format!(
        "`{shown}` is no name for a file: give letters, digits, `.`, `_` and `-`, without folders"
    )))
}

fn check_sizes(files: &[DraftFile]) -> Result<(), ToolError> {
    if files.len() > MOST_FILES + 1 {
        return Err(refuse(&format!("it has more than {MOST_FILES} files")));
    }
    for file in files {
        let shown = file.path.display();
        if file.content.contains('\0') {
            return Err(refuse(&format!("`{shown}` has a NUL character in it")));
        }
        if file.content.len() > LARGEST_FILE {
            let most = LARGEST_FILE / 1024;
            let problem = format!("`{shown}` is larger than {most} KiB; make it shorter");
            return Err(refuse(&problem));
        }
    }
    let all: usize = files.iter().map(|file| file.content.len()).sum();
    match all <= LARGEST_SKILL {
        true => Ok(()),
        false => Err(refuse(&format!(
            "its files have more than {} KiB together; leave some out",
            LARGEST_SKILL / 1024
        ))),
    }
}

/// The `SKILL.md` of these parts.
fn skill_file(name: &str, description: &str, instructions: &str, author: Trust) -> String {
    let (name, description) = (quoted(name), quoted(description));
    let end = if instructions.ends_with('\n') {
        ""
    } else {
        "\n"
    };
    let label = match author {
        Trust::Trusted => String::new(),
        Trust::Untrusted => format!("metadata:\n  {TRUST_FIELD}: {UNTRUSTED}\n"),
    };
    format!("---\nname: {name}\ndescription: {description}\n{label}---\n\n{instructions}{end}")
}

/// A text as YAML in double quotes, on one line, so that every reader takes it for this text and nothing else.
fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    let mut hyphens = 0;
    for c in text.chars() {
        hyphens = if c == '-' { hyphens + 1 } else { 0 };
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            '\n' => quoted.push_str("\\n"),
            '\t' => quoted.push_str("\\t"),
            // Some readers take three hyphens for the end of the front matter wherever they are.
            '-' if hyphens % 3 == 0 => quoted.push_str("\\x2d"),
            // What some readers take for the end of a line, or do not take at all.
            '\u{85}' | '\u{2028}' | '\u{2029}' | '\u{feff}' | '\u{fffe}' | '\u{ffff}' => {
                quoted.push_str(&format!("\\u{:04x}", u32::from(c)));
            }
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}
