//! A skill as a tool. Without arguments it returns the instructions, with a file it reads that file, and with a script
//! it runs that script in the sandbox. All files are read at the time of the call.

use super::content::digest;
use super::files::SkillFiles;
use super::find::{SKILL_FILE, open_skill_file};
use super::script::{ScriptCall, approved_script, display_text, script};
use super::{SkillCard, Skills, TOOL_PREFIX};
use crate::exec::{Commands, preview};
use lango_core::{
    BoxFuture, Caller, Effect, Escalation, Inspection, PreviewRequest, Risk, RuleSubject, Tool,
    ToolError, ToolOutput, ToolSpec, parse_arguments, schema_of,
};
use lango_frontmatter::split;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use std::io::{Read, Seek};
use std::num::NonZeroU64;
use std::path::Path;
use std::sync::Arc;

impl Skills {
    /// Creates a tool `skill_NAME` for each usable skill. The skill's scripts run through `commands`.
    pub fn tools(&self, commands: &Commands) -> Vec<Arc<dyn Tool>> {
        let tool = |card: &SkillCard| SkillTool::of(card, commands);
        self.good.iter().map(tool).collect()
    }
}

impl SkillCard {
    /// Builds the specification, which is part of each model request.
    fn spec(&self) -> ToolSpec {
        let description = format!(
            "{}\n[A skill. Call it without arguments first, to get the instructions.]",
            self.description
        );
        ToolSpec {
            name: format!("{TOOL_PREFIX}{}", self.name).as_str().into(),
            description: description.into(),
            parameters: schema_of::<SkillArguments>().into(),
            effect: Effect::NonIdempotent,
            risk: Risk::Safe,
            escalation: Some(Escalation {
                argument: "script",
                risk: Risk::Dangerous,
            }),
            subject: RuleSubject::Arguments,
            trust: self.trust,
        }
    }

    /// Returns the number of bytes that the skill adds to each model request.
    pub(super) fn request_bytes(&self) -> usize {
        let spec = self.spec();
        spec.name.as_str().len() + spec.description.len() + spec.parameters.text().len()
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct SkillArguments {
    /// A script in `scripts/` to run.
    script: Option<String>,
    /// The arguments of the script.
    arguments: Option<Vec<String>>,
    /// A file of the skill to read.
    file: Option<String>,
    /// The line of the file to start with.
    first_line: Option<NonZeroU64>,
}

/// A parsed call.
enum SkillCall {
    Instructions,
    Page { path: String, first_line: u64 },
    Script(ScriptCall),
}

struct SkillTool {
    spec: ToolSpec,
    card: Arc<SkillCard>,
    commands: Commands,
}

impl SkillTool {
    fn of(card: &SkillCard, commands: &Commands) -> Arc<dyn Tool> {
        let spec = card.spec();
        Arc::new(Self {
            spec,
            card: Arc::new(card.clone()),
            commands: commands.clone(),
        })
    }

    /// Runs blocking code for the skill's files on the pool of blocking threads.
    async fn with_files<R: Send + 'static>(
        &self,
        work: impl FnOnce(&SkillCard, &Commands) -> Result<R, ToolError> + Send + 'static,
    ) -> Result<R, ToolError> {
        let (card, commands) = (Arc::clone(&self.card), self.commands.clone());
        let work = tokio::task::spawn_blocking(move || work(&card, &commands));
        work.await.unwrap_or_else(|failure| {
            let message = format!(
                "`{}` crashed: {failure}; continue without it",
                self.spec.name
            );
            Err(ToolError::new(message))
        })
    }

    fn parse_call(&self, arguments: &Value) -> Result<SkillCall, ToolError> {
        let arguments: SkillArguments = parse_arguments(&self.spec, arguments)?;
        let first_line = arguments.first_line.map_or(1, NonZeroU64::get);
        match (arguments.script, arguments.file, arguments.arguments) {
            (Some(_), Some(_), _) => Err(ToolError::new(
                "pass a `script` to run or a `file` to read, not both",
            )),
            (Some(path), None, words) => Ok(SkillCall::Script(ScriptCall {
                path,
                arguments: words.unwrap_or_default(),
            })),
            (None, _, Some(words)) if !words.is_empty() => Err(ToolError::new(
                "`arguments` are for a script; name it in `script`",
            )),
            (None, Some(path), _) => Ok(SkillCall::Page { path, first_line }),
            (None, None, _) => Ok(SkillCall::Instructions),
        }
    }

    async fn preview_of(
        &self,
        arguments: &Value,
        request: &PreviewRequest,
    ) -> Result<Option<String>, ToolError> {
        let SkillCall::Script(call) = self.parse_call(arguments)? else {
            return Ok(None);
        };
        let inspected = request.inspection.content.clone();
        let (command, content) = self
            .with_files(move |card, commands| {
                let command = script(card, commands, call.clone())?.request;
                // The files that were inspected, whatever has changed since.
                let (script, _copy) = approved_script(card, commands, call, inspected.as_ref())?;
                Ok((command, script.content))
            })
            .await?;
        let command = preview(&command);
        let text = display_text(&content, request.length);
        Ok(Some(format!(
            "{command}runs a copy of the skill in its current state; the script:\n{text}"
        )))
    }
}

impl Tool for SkillTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn run<'a>(
        &'a self,
        caller: &'a Caller,
        arguments: Arc<Value>,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        Box::pin(async move {
            let text = match self.parse_call(&arguments)? {
                SkillCall::Instructions => self.with_files(|card, _| instructions(card)).await?,
                SkillCall::Page { path, first_line } => {
                    let read = move |card: &SkillCard, _: &Commands| {
                        SkillFiles::open(card)?.read_page(&path, first_line)
                    };
                    self.with_files(read).await?
                }
                SkillCall::Script(call) => {
                    let approved = caller.inspection.content.clone();
                    let (script, copy) = self
                        .with_files(move |card, commands| {
                            approved_script(card, commands, call, approved.as_ref())
                        })
                        .await?;
                    let text = self.commands.run(caller, script.request).await;
                    drop(copy);
                    text?
                }
            };
            Ok(text.into())
        })
    }

    fn inspect<'a>(
        &'a self,
        _caller: &'a Caller,
        arguments: Arc<Value>,
    ) -> BoxFuture<'a, Inspection> {
        Box::pin(async move {
            let content = match self.parse_call(&arguments) {
                Ok(SkillCall::Script(_)) => self
                    .with_files(|card, _| digest(&SkillFiles::open(card)?))
                    .await
                    .ok(),
                _ => None,
            };
            Inspection {
                content,
                ..Inspection::default()
            }
        })
    }

    fn preview<'a>(
        &'a self,
        arguments: Arc<Value>,
        request: PreviewRequest,
    ) -> BoxFuture<'a, Option<String>> {
        Box::pin(async move {
            let preview = self.preview_of(&arguments, &request).await;
            preview.unwrap_or_else(|error| Some(format!("This call will fail: {error}\n")))
        })
    }
}

/// Returns the current body of `SKILL.md` and the list of the other files.
fn instructions(card: &SkillCard) -> Result<String, ToolError> {
    let files = SkillFiles::open(card)?;
    let changed = |problem: String| {
        ToolError::new(format!(
            "the skill `{}` can no longer be read: {problem}; continue without it, and tell the user",
            card.name
        ))
    };
    let (mut file, _) = open_skill_file(files.folder()).map_err(changed)?;
    let mut text = String::new();
    let read = file.read_to_string(&mut text).and_then(|_| file.rewind());
    read.map_err(|error| changed(format!("`{SKILL_FILE}`: {error}")))?;
    let (_, body) =
        split(&text).map_err(|problem| changed(format!("`{SKILL_FILE}`: {problem}")))?;
    let before = &text[..text.len() - body.len()];
    let first_line = 1 + before.bytes().filter(|byte| *byte == b'\n').count() as u64;
    let mut shown = if body.trim().is_empty() {
        format!("[{SKILL_FILE} has no instructions besides its description]\n")
    } else {
        files.page(Path::new(SKILL_FILE), file, first_line)?
    };
    let list = files.list();
    if !list.is_empty() {
        let tool = format!("{TOOL_PREFIX}{}", card.name);
        shown.push_str(&format!(
            "\n[files of this skill; read one with {tool} {{\"file\":…}}, run one in scripts/ with {tool} {{\"script\":…}}]\n{list}"
        ));
    }
    Ok(shown)
}
