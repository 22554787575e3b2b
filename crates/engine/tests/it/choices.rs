//! The random decisions of a turn: what its models say and call, and its limits and modes.

use lango_core::{Call, Limits, ModelReply, PermissionMode, Usage};
use lango_testkit::model::raw_call;

const NAMES: [&str; 13] = [
    "delegate",
    "delegate",
    "delegate",
    "fs_read",
    "fs_edit",
    "exec_shell",
    "search_web",
    "memory_store",
    "odd_thing",
    "payment_send",
    "no_such",
    "",
    "Delegate",
];
const AGENTS: [&str; 12] = [
    "operator",
    "librarian",
    "planner",
    "chronicler",
    "vault",
    "executor",
    "researcher",
    "memory-manager",
    "translator",
    "navi",
    "",
    "lango-orchestrator",
];
pub(crate) const TEXTS: [&str; 9] = [
    "done",
    "",
    " \n",
    "[REJECT] no",
    "  [reject]",
    "[REJECT",
    "see [REJECT] there",
    "an answer\nof two lines",
    "[]",
];
const IDS: [&str; 5] = ["", "a", "b", "call_1", "x"];

pub(crate) struct Choices<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Choices<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    pub(crate) fn next(&mut self, below: usize) -> usize {
        let byte = self.bytes.get(self.at).copied().unwrap_or(0);
        self.at += 1;
        usize::from(byte) % below
    }

    pub(crate) fn pick<'b>(&mut self, among: &[&'b str]) -> &'b str {
        among[self.next(among.len())]
    }

    fn arguments(&mut self) -> String {
        let finish = ["true", "false", "\"maybe\""][self.next(3)];
        match self.next(6) {
            0..=2 => format!(
                r#"{{"agent":"{}","task":"go on","finish":{finish}}}"#,
                self.pick(&AGENTS)
            ),
            3 => r#"{"path":"a"}"#.to_owned(),
            4 => r#"{"path":"a"#.to_owned(),
            _ => "7".to_owned(),
        }
    }

    pub(crate) fn reply(&mut self) -> ModelReply {
        let text = self.pick(&TEXTS).to_owned();
        let count = [0, 0, 1, 1, 2, 3, 6, 40][self.next(8)];
        let mut calls: Vec<Call> = Vec::new();
        for _ in 0..count {
            let (id, name) = (self.pick(&IDS), self.pick(&NAMES));
            calls.push(raw_call(id, name, &self.arguments()));
        }
        ModelReply {
            text,
            calls,
            usage: Usage {
                input_tokens: 7,
                output_tokens: 3,
                ..Usage::default()
            },
            ..ModelReply::default()
        }
    }

    /// Mostly `ask`, so that turns do not end too soon.
    pub(crate) fn mode(&mut self) -> PermissionMode {
        let mode = PermissionMode::ALL.get(self.next(8));
        mode.copied().unwrap_or_default()
    }

    pub(crate) fn limits(&mut self) -> Limits {
        let rounds = [3, 1, 2, 5][self.next(4)];
        let model_calls = [25, 0, 1, 2, 3, 4, 6, 9][self.next(8)];
        let tool_calls = [50, 0, 1, 3][self.next(4)];
        Limits {
            rounds,
            model_calls,
            tool_calls,
            tokens: [None, None, None, Some(0), Some(1500), Some(4000)][self.next(6)],
            cost_micros: [None, None, None, Some(0), Some(3000), Some(20_000)][self.next(6)],
            ..Limits::default()
        }
    }
}
