// The shapes of the API and of the reduced log. Types only: this file is not served.

/** An event of the log. The fields after `type` depend on it. */
export type LogEvent = { seq: number; session: string; turn: string; frame: string; author: string; time: number; type: string } & Record<string, any>;
export type Attachment = { name: string; media_type: string; digest: string; size: number };
export type Usage = { input_tokens: number; cached_tokens: number; cache_write_tokens?: number; output_tokens: number; reasoning_tokens: number };

export interface Summary {
  id: string;
  user: string;
  title: string;
  created: number;
  updated: number;
  turns: number;
  /** The seq of the last event. */
  events: number;
  status: "running" | "waiting" | "failed" | "idle";
  origin: "person" | "pipe" | "program" | null;
}

/** What a person is asked. */
export interface Request {
  id: string;
  agent: string;
  call: string;
  tool: string;
  arguments: any;
  inspection?: any;
  digest: string;
  folder: string;
  effect: "pure" | "idempotent" | "effect";
  risk: "safe" | "moderate" | "dangerous";
  /** Absent: whether the call may run. */
  asks?: "fate" | "turn";
  reason: string;
  pattern?: string;
}
export type Pending = Request & { session: string; turn: string; user: string; asked: number };

export interface Me {
  user: string;
  token: string;
  scopes: string[];
  version: string;
  folder: string;
  model: string;
  is_demo: boolean;
  single_agent: boolean;
  has_memory: boolean;
  has_knowledge: boolean;
}

export interface AgentInfo {
  name: string;
  description: string;
  capabilities: string[];
  tools: string[];
  remote: boolean;
  reachable: boolean | null;
  source: string;
  model: string | null;
  settings?: any;
}
export interface Agents {
  mode: string;
  topology: string;
  root: { name: string; tools: string[]; settings?: any };
  agents: AgentInfo[];
  skipped: { name: string; reason: string }[];
  unmatched: string[];
  absent_tools: string | null;
}

export interface Log {
  session: string;
  /** A run of consecutive turns, in order; not necessarily all of the session. */
  turns: Turn[];
  byId: Map<string, Turn>;
  /** The greatest seq that was reduced. */
  last: number;
}

export type AnswerText = { author: string; text: string; attachments: Attachment[]; seq: number; model: string | null };
export type Answered = { answer: string; by: string; pattern?: string; reason?: string; text?: string; folder?: string; time: number; seq: number };

/** A request to a person, and the answer once there is one. */
export type Approval = Request & { session: string; turn: string; frame: string; asked: number; seq: number; step: Step; answered: Answered | null };

export interface Turn {
  id: string;
  /** The seq of its first and of its last event so far, and how many were reduced. */
  first: number;
  last: number;
  events: number;
  question: { text: string; attachments: Attachment[]; origin: { kind: string } | null; time: number };
  /** Limits, model, folder, … as the turn started; null in old logs. */
  settings: any;
  /** The root's first, then in the order of delegation. */
  frames: Frame[];
  byFrame: Map<string, Frame>;
  approvals: Approval[];
  corrections: Step[];
  /** The turns that the person undid after this one: this one itself, or earlier ones. */
  undone: string[];
  /** "running", "waiting", or the outcome: "answered", "limited", "failed", "cancelled", "interrupted". */
  state: string;
  answer: AnswerText | null;
  /** Texts that may be the answer, by seq. */
  answers: Map<number, AnswerText>;
  /** Calls as models wrote them. */
  calls: Map<string, { id: string; name: string; arguments: string }>;
  finished: LogEvent | null;
  draft: { agent: string; text: string } | null;
  /** What holds the turn up, such as a retry of the provider; not part of the log. */
  notice: string;
  usage: Usage;
  /** Null once a price was unknown. */
  cost_micros: number | null;
  model_calls: number;
  tool_calls: number;
  rounds: number;
  start: number;
  end: number | null;
}

/** One agent's run inside a turn. */
export interface Frame {
  /** The id of the call that opened it; "" for the root's. */
  id: string;
  agent: string;
  task: string;
  round: number;
  /** Whether its answer is the answer to the person. */
  finish: boolean;
  parent: string | null;
  isRoot: boolean;
  isRemote: boolean;
  start: number;
  end: number | null;
  /** The time of its last event; while it runs without an open step, its model works since then. */
  since: number;
  state: "running" | "waiting" | "done" | "rejected" | "failed" | "stopped";
  /** Why it was rejected or failed. */
  reason: string;
  steps: Step[];
  attachments: Attachment[];
  usage: Usage;
  cost_micros: number | null;
  /** The number on its edge, from 1; 0 for the root's. */
  order: number;
  /** The frame that got the task after this one was rejected. */
  reroute: string | null;
  faults: Set<string>;
}

export interface Step {
  kind: "model" | "tool" | "remote" | "wait" | "correction";
  frame: string;
  agent: string;
  start: number;
  end: number | null;
  seq: number;
  endSeq: number | null;
  /** Model, tool, agent or fault. */
  name: string;
  call: string | null;
  arguments: any;
  effect: string | null;
  status: "ok" | "error" | "denied" | "unknown" | null;
  output: string | null;
  attachments: Attachment[];
  /** The id of the approval. */
  request: string | null;
  usage: Usage | null;
  cost_micros: number | null;
  calls: any[];
  stop: any;
  text: string;
}
