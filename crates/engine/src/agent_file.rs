//! One agent as a markdown file: its fields in the front matter, its instruction in the body.
//!
//! Everything that is wrong with a file is found at once, each thing with its line and the way out. Where files lie and
//! whose they are is for others to know.

mod fields;
mod template;

use crate::topology::{AgentSpec, check_name};
use fields::Reading;
use lango_core::{AgentName, Trust};

/// An agent as its file describes it.
#[derive(Debug, Clone, PartialEq)]
pub struct AgentFile {
    /// The agent.
    pub spec: AgentSpec,
    /// The line that names it, counted from one; the first if only the file's name does.
    pub name_line: usize,
    /// The line that names its model, if it has one of its own.
    pub model_line: Option<usize>,
}

/// One thing that is wrong with a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileProblem {
    /// The line, counted from one.
    pub line: usize,
    /// What is wrong, and the way out.
    pub detail: String,
}

impl AgentFile {
    /// The most KiB that a file has.
    pub const LARGEST_KIB: usize = 64;

    /// Reads a file; `stem` is its name without `.md`.
    ///
    /// # Errors
    /// All that is wrong with it, from the top to the bottom.
    pub fn parse(stem: &str, bytes: &[u8]) -> Result<Self, Vec<FileProblem>> {
        let text = text_of(bytes).map_err(|problem| vec![problem])?;
        let fault = |fault: lango_frontmatter::Fault| {
            vec![FileProblem {
                line: fault.line.unwrap_or(1),
                detail: fault.detail,
            }]
        };
        let (yaml, body) = lango_frontmatter::split(text).map_err(fault)?;
        let fields = lango_frontmatter::fields(yaml).map_err(fault)?;
        let mut reading = Reading::of(fields);
        let name_line = reading.line_of("name").unwrap_or(1);
        let model_line = reading.line_of("model");
        reading.check_name(stem, name_line);
        let spec = AgentSpec {
            name: AgentName::from(stem),
            role: reading.description(),
            always_include: reading.always_include(),
            instruction: body.trim().to_owned(),
            model: reading.model.take(),
            temperature: reading.settings.temperature,
            reasoning_effort: reading.settings.reasoning_effort,
            max_output_tokens: reading.settings.max_output_tokens,
            project_instructions: reading.project_instructions,
            prefixes: std::mem::take(&mut reading.prefixes),
            keywords: std::mem::take(&mut reading.keywords),
            accepts: std::mem::take(&mut reading.accepts),
            returns: std::mem::take(&mut reading.returns),
            cannot: std::mem::take(&mut reading.cannot),
            trust: Trust::Trusted,
        };
        // The work of an agent is its tools or its words: one with neither could only repeat what it is told.
        if spec.instruction.is_empty() && !reading.names_tools {
            reading.refuse(
                text.lines().count(),
                "there are neither `prefixes` nor words below the front matter; \
                 write there what the agent is to do, or give it tools",
            );
        }
        match reading.into_problems() {
            problems if problems.is_empty() => Ok(Self {
                spec,
                name_line,
                model_line,
            }),
            problems => Err(problems),
        }
    }

    /// The text of a file that describes this agent, or one that is new and has only a name.
    pub fn template(name: &AgentName, spec: Option<&AgentSpec>) -> String {
        template::template(name, spec)
    }

    /// Whether an agent can have this name, and if not, why.
    ///
    /// # Errors
    /// It cannot; the text says what could.
    pub fn check_name(name: &AgentName) -> Result<(), String> {
        check_name(name)
    }
}

fn text_of(bytes: &[u8]) -> Result<&str, FileProblem> {
    if bytes.len() > AgentFile::LARGEST_KIB * 1024 {
        let detail = format!(
            "the file is larger than {} KiB; an agent reads its instruction with every request, so make it shorter",
            AgentFile::LARGEST_KIB
        );
        return Err(FileProblem { line: 1, detail });
    }
    std::str::from_utf8(bytes).map_err(|error| {
        let before = &bytes[..error.valid_up_to()];
        FileProblem {
            line: before.iter().filter(|byte| **byte == b'\n').count() + 1,
            detail: format!(
                "it is not UTF-8 text: byte {} of the file is wrong; save it as UTF-8",
                before.len() + 1
            ),
        }
    })
}
