//! Creates a new skill: checks it, converts it to the Agent Skills format and writes it in one step.
//!
//! The skill is written under a temporary name, which the search for skills ignores, and then renamed. So an incomplete
//! skill is never visible, and nothing existing is changed.

use super::find::{MAX_SKILL_FILE_BYTES, SKILL_FILE, check_tool_name};
use super::front_matter::{MAX_DESCRIPTION, TRUST_FIELD, UNTRUSTED, check_length, check_name};
use super::script::{SCRIPTS, interpreter};
use crate::diff::{self, PREVIEW_LINES};
use crate::replace::{rename_without_replacing, temporary_name};
use crate::show;
use cap_std::ambient_authority;
use cap_std::fs::{Dir, OpenOptions, Permissions, PermissionsExt};
use lango_core::{PreviewLength, ToolError, Trust};
use schemars::JsonSchema;
use serde::Deserialize;
use std::collections::BTreeSet;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

const REFERENCES: &str = "references";

/// Limits of a new skill: number of files besides `SKILL.md`, size of one file, and size of all files together.
const MAX_FILES: usize = 32;
const MAX_FILE_BYTES: usize = 256 * 1024;
const MAX_SKILL_BYTES: usize = MAX_SKILL_FILE_BYTES as usize;

/// Maximum length of a file name.
const MAX_FILE_NAME: usize = 100;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct CreateArguments {
    /// The name: lower-case letters, digits and single hyphens, such as `quarterly-report`.
    name: String,
    /// What the skill does and when to use it, in up to 1024 characters. Agents decide by this alone whether to use it.
    description: String,
    /// Step-by-step instructions as Markdown.
    instructions: String,
    /// Programs that the instructions refer to. Each starts with a line `#!/…` or its name ends with .sh, .py or .js.
    scripts: Option<Vec<FileArgument>>,
    /// Longer texts that the instructions refer to, to be read when needed.
    references: Option<Vec<FileArgument>>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct FileArgument {
    /// The file name, without folders.
    name: String,
    /// The whole content.
    content: String,
}

/// A checked skill that can be written.
pub(super) struct NewSkill {
    pub(super) name: String,
    files: Vec<NewSkillFile>,
}

struct NewSkillFile {
    /// Relative to the skill's folder.
    path: PathBuf,
    content: String,
    is_script: bool,
}

impl NewSkill {
    /// Checks the arguments. Errors are written for the model. If the author is untrusted, `SKILL.md` records that.
    pub(super) fn check(arguments: CreateArguments, author: Trust) -> Result<Self, ToolError> {
        let CreateArguments {
            name,
            description,
            instructions,
            scripts,
            references,
        } = arguments;
        check_name(&name)
            .and_then(|()| check_tool_name(&name, &name))
            .map_err(|problem| refuse(&problem))?;
        let description = description.trim();
        check_description(description)?;
        if instructions.trim().is_empty() {
            return Err(refuse("its `instructions` are empty; describe the steps"));
        }
        let mut files = vec![NewSkillFile {
            path: SKILL_FILE.into(),
            content: skill_file(&name, description, &instructions, author),
            is_script: false,
        }];
        for (folder, list) in [(SCRIPTS, scripts), (REFERENCES, references)] {
            let mut names = BTreeSet::new();
            for FileArgument { name, content } in list.unwrap_or_default() {
                check_file_name(&name)?;
                if !names.insert(name.to_ascii_lowercase()) {
                    return Err(refuse(&format!("`{folder}/{name}` is given twice")));
                }
                let path = Path::new(folder).join(&name);
                let is_script = folder == SCRIPTS;
                if is_script {
                    interpreter(content.as_bytes(), &path).map_err(|problem| refuse(&problem))?;
                }
                files.push(NewSkillFile {
                    path,
                    content,
                    is_script,
                });
            }
        }
        check_sizes(&files)?;
        Ok(Self { name, files })
    }

    /// Formats the files and their contents, for the user who approves the call.
    pub(super) fn preview(&self, folder: &Path, length: PreviewLength) -> String {
        let path = folder.join(&self.name);
        let mut text = format!("Creates the skill {}\n", show::name(path.as_os_str()));
        let lines = match length {
            PreviewLength::Short => (2 * PREVIEW_LINES / self.files.len()).clamp(20, PREVIEW_LINES),
            PreviewLength::Full => usize::MAX,
        };
        for file in &self.files {
            text.push_str(&file.headline());
            text.push_str(&diff::preview("", &file.content, lines));
        }
        text
    }

    /// Writes the skill into a folder of skills, which is created if it does not exist.
    pub(super) fn write(&self, folder: &Path) -> Result<String, ToolError> {
        let failed = |error: io::Error| {
            let shown = show::name(folder.as_os_str());
            ToolError::new(format!(
                "the skill cannot be written into `{shown}`: {error}; tell the user"
            ))
        };
        std::fs::create_dir_all(folder).map_err(failed)?;
        let parent = Dir::open_ambient_dir(folder, ambient_authority()).map_err(failed)?;
        let temporary = temporary_name();
        let written = parent
            .create_dir(&temporary)
            .and_then(|()| self.fill(&parent.open_dir(&temporary)?))
            .and_then(|()| rename_if_free(&parent, &temporary, &self.name));
        if let Err(error) = written {
            // The write error is the one to report.
            let _ = parent.remove_dir_all(&temporary);
            return Err(match error.kind() {
                io::ErrorKind::AlreadyExists => name_taken(&self.name),
                _ => failed(error),
            });
        }
        let files: String = self.files.iter().map(NewSkillFile::headline).collect();
        let path = folder.join(&self.name);
        Ok(format!(
            "created the skill {}\n{files}It is available after the next start of lango.\n",
            show::name(path.as_os_str())
        ))
    }

    fn fill(&self, folder: &Dir) -> io::Result<()> {
        let create = OpenOptions::new().write(true).create_new(true).clone();
        for file in &self.files {
            if let Some(parent) = file.path.parent() {
                folder.create_dir_all(parent)?;
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

impl NewSkillFile {
    fn headline(&self) -> String {
        let lines = show::count(self.content.lines().count() as u64, "line");
        let size = show::size(self.content.len() as u64);
        let run = if self.is_script { ", can be run" } else { "" };
        format!("{} ({lines}, {size}{run})\n", self.path.display())
    }
}

/// The error for a name that is in use.
pub(super) fn name_taken(name: &str) -> ToolError {
    refuse(&format!(
        "a skill `{name}` already exists and is not overwritten; choose another name"
    ))
}

fn refuse(problem: &str) -> ToolError {
    ToolError::new(format!("the skill was not created: {problem}"))
}

/// Renames the skill's folder, unless the name is taken. Some file systems cannot do both in one step.
fn rename_if_free(folder: &Dir, from: &str, to: &str) -> io::Result<()> {
    if rename_without_replacing(folder, from.as_ref(), to.as_ref())? {
        return Ok(());
    }
    match folder.symlink_metadata(to) {
        Ok(_) => Err(io::ErrorKind::AlreadyExists.into()),
        Err(_) => folder.rename(from, folder, to),
    }
}

fn check_description(description: &str) -> Result<(), ToolError> {
    if description.is_empty() {
        let problem = "its `description` is empty; say what it does and when to use it";
        return Err(refuse(problem));
    }
    let is_forbidden = |c: char| c.is_control() && !matches!(c, '\n' | '\t');
    if description.contains(is_forbidden) {
        return Err(refuse("its `description` has control characters"));
    }
    check_length("description", description, MAX_DESCRIPTION).map_err(|problem| refuse(&problem))
}

fn check_file_name(name: &str) -> Result<(), ToolError> {
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    let is_valid = name.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_')
        && name.len() <= MAX_FILE_NAME
        && name.chars().all(is_allowed);
    if is_valid {
        return Ok(());
    }
    let shown = show::line(name, MAX_FILE_NAME);
    Err(refuse(&format!(
        "`{shown}` is not a valid file name: use letters, digits, `.`, `_` and `-`, without folders"
    )))
}

fn check_sizes(files: &[NewSkillFile]) -> Result<(), ToolError> {
    if files.len() > MAX_FILES + 1 {
        return Err(refuse(&format!("it has more than {MAX_FILES} files")));
    }
    for file in files {
        let shown = file.path.display();
        if file.content.contains('\0') {
            return Err(refuse(&format!("`{shown}` contains a NUL character")));
        }
        if file.content.len() > MAX_FILE_BYTES {
            let limit = MAX_FILE_BYTES / 1024;
            let problem = format!("`{shown}` is larger than {limit} KiB; make it shorter");
            return Err(refuse(&problem));
        }
    }
    let all: usize = files.iter().map(|file| file.content.len()).sum();
    if all > MAX_SKILL_BYTES {
        return Err(refuse(&format!(
            "its files are larger than {} KiB together; leave some out",
            MAX_SKILL_BYTES / 1024
        )));
    }
    Ok(())
}

/// Assembles the text of a `SKILL.md`.
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

/// Formats a text as a double-quoted YAML string on one line, so that every YAML parser reads exactly this text.
fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    let mut hyphens = 0;
    for c in text.chars() {
        hyphens = if c == '-' { hyphens + 1 } else { 0 };
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            '\n' => quoted.push_str("\\n"),
            '\t' => quoted.push_str("\\t"),
            // Some parsers treat three hyphens anywhere as the end of the front matter.
            '-' if hyphens % 3 == 0 => quoted.push_str("\\x2d"),
            // Some parsers treat these as line ends, or reject them.
            '\u{85}' | '\u{2028}' | '\u{2029}' | '\u{feff}' | '\u{fffe}' | '\u{ffff}' => {
                quoted.push_str(&format!("\\u{:04x}", u32::from(c)));
            }
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}
