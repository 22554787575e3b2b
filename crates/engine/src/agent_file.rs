//! An agent as a markdown file: its fields in the front matter, its instruction in the body.
//!
//! Parsing reports all problems of a file together, each with its line and a fix. Where files are stored and who owns
//! them is up to the caller.

mod fields;
mod template;

use crate::topology::{AgentSpec, check_name};
use fields::FieldParser;
use lango_core::{AgentName, Trust};

/// An agent as described by its file.
#[derive(Debug, Clone, PartialEq)]
pub struct AgentFile {
    pub spec: AgentSpec,
    /// The line of the `name` field, starting at 1; 1 if there is no such field.
    pub name_line: usize,
    /// The line of the `model` field, if there is one.
    pub model_line: Option<usize>,
}

/// A problem in a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileProblem {
    /// The line, starting at 1.
    pub line: usize,
    /// What is wrong, and how to fix it.
    pub detail: String,
}

impl AgentFile {
    /// The maximum size of a file in KiB.
    pub const MAX_KIB: usize = 64;

    /// Parses a file. `stem` is its name without `.md`.
    ///
    /// # Errors
    /// All problems of the file, from top to bottom.
    pub fn parse(stem: &str, bytes: &[u8]) -> Result<Self, Vec<FileProblem>> {
        let text = text_of(bytes).map_err(|problem| vec![problem])?;
        let problem = |error: lango_frontmatter::FrontMatterError| {
            vec![FileProblem {
                line: error.line.unwrap_or(1),
                detail: error.detail,
            }]
        };
        let (yaml, body) = lango_frontmatter::split(text).map_err(problem)?;
        let fields = lango_frontmatter::fields(yaml).map_err(problem)?;
        let mut parser = FieldParser::new(fields);
        let name_line = parser.line_of("name").unwrap_or(1);
        let model_line = parser.line_of("model");
        parser.check_name(stem, name_line);
        let spec = AgentSpec {
            name: AgentName::from(stem),
            role: parser.description(),
            always_include: parser.always_include(),
            instruction: body.trim().to_owned(),
            model: parser.model.take(),
            temperature: parser.settings.temperature,
            reasoning_effort: parser.settings.reasoning_effort,
            max_output_tokens: parser.settings.max_output_tokens,
            project_instructions: parser.project_instructions,
            prefixes: std::mem::take(&mut parser.prefixes),
            keywords: std::mem::take(&mut parser.keywords),
            accepts: std::mem::take(&mut parser.accepts),
            returns: std::mem::take(&mut parser.returns),
            cannot: std::mem::take(&mut parser.cannot),
            trust: Trust::Trusted,
        };
        // An agent works with tools or with text. Without tools and without an instruction it could only repeat its
        // task.
        if spec.instruction.is_empty() && !parser.has_prefixes {
            parser.report(
                text.lines().count(),
                "there are neither `prefixes` nor an instruction below the front matter; \
                 write there what the agent should do, or give it tools",
            );
        }
        match parser.into_problems() {
            problems if problems.is_empty() => Ok(Self {
                spec,
                name_line,
                model_line,
            }),
            problems => Err(problems),
        }
    }

    /// Returns the text of a file for this agent, or for a new agent that only has a name.
    pub fn template(name: &AgentName, spec: Option<&AgentSpec>) -> String {
        template::template(name, spec)
    }

    /// Checks whether an agent can have this name.
    ///
    /// # Errors
    /// The name is invalid; the text says which names are valid.
    pub fn check_name(name: &AgentName) -> Result<(), String> {
        check_name(name)
    }
}

fn text_of(bytes: &[u8]) -> Result<&str, FileProblem> {
    if bytes.len() > AgentFile::MAX_KIB * 1024 {
        let detail = format!(
            "the file is larger than {} KiB; it is part of every request of the agent, so make it shorter",
            AgentFile::MAX_KIB
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
