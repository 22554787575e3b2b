//! The fenced blocks of a Markdown page.

/// A fenced block with its info string, such as `sh no-run: needs a key`.
pub(super) struct Block {
    /// The line of the opening fence, counted from 1.
    pub line: usize,
    pub language: String,
    pub mark: Mark,
    /// The lines between the fences, each with its line end.
    pub text: String,
}

/// What the info string says after the language.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Mark {
    None,
    /// `no-run: REASON`
    NotRun(String),
    /// `no-check: REASON`
    NotChecked(String),
    /// `file: PATH`: the text is written to this file before the commands after it run.
    File(String),
}

impl Block {
    /// Returns the line of the closing fence.
    pub(super) fn last_line(&self) -> usize {
        self.line + self.text.lines().count() + 1
    }
}

/// Returns the blocks of a page in order.
pub(super) fn parse(page: &str) -> Vec<Block> {
    let mut blocks = Vec::new();
    let mut open: Option<Block> = None;
    for (number, line) in (1..).zip(page.lines()) {
        match (&mut open, line.strip_prefix("```")) {
            (None, Some(info)) => {
                let (language, rest) = info.split_once(' ').unwrap_or((info, ""));
                open = Some(Block {
                    line: number,
                    language: language.to_owned(),
                    mark: mark(rest.trim(), number),
                    text: String::new(),
                });
            }
            (Some(_), Some(_)) => blocks.extend(open.take()),
            (Some(block), None) => {
                block.text.push_str(line);
                block.text.push('\n');
            }
            (None, None) => {
                let is_indented = line.trim_start().starts_with("```");
                assert!(!is_indented, "line {number}: do not indent a block");
            }
        }
    }
    assert!(open.is_none(), "a block has no end");
    blocks
}

fn mark(text: &str, line: usize) -> Mark {
    let (name, value) = text.split_once(':').unwrap_or((text, ""));
    let value = value.trim().to_owned();
    match name {
        "" => Mark::None,
        "no-run" => Mark::NotRun(value),
        "no-check" => Mark::NotChecked(value),
        "file" => Mark::File(value),
        other => panic!("line {line}: unknown mark `{other}`"),
    }
}
