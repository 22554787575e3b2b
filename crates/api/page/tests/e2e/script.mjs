// What the scripted model says, by agent and task. The first three questions are those of the recording.

/** @typedef {import("./model-server.mjs").Reply} Reply */
/** @typedef {import("./model-server.mjs").Asked} Asked */

export const RELEASE = "Prepare release 2.4: what changed, the checksum of the changelog, and write NOTES.md. Is the build machine tidy?";
export const PAGE = "What does page.html say?";
export const FAILS = "Translate the notes into French";

/** A page that would run a script and load images if it were shown as HTML. */
export const PAGE_HTML = `<h1>Build 2.4</h1>
<script>document.title = "changed by a script"</script>
<img src="https://images.example.com/tool.png" onerror="document.title = 'changed by an image'">
`;

export const CHANGELOG = `# Changelog

## 2.4
- Sessions open in half the time.
- Approvals can be answered on the page.
- The export no longer loses attachments.

## 2.3
- Remote agents.
`;

export const NOTES = `# Release 2.4

- Sessions open in half the time.
- Approvals can be answered on the page.
- The export no longer loses attachments.
`;

const ANSWER = `## Release 2.4 is ready

\`NOTES.md\` is written. What changed:

| Area | Change | Measured |
|:--|:--|--:|
| Sessions | open in half the time | 410 → 190 ms |
| Approvals | can be answered on the page | – |
| Export | no longer loses attachments | 0 lost |

![Time to open a session, by release](chart.png)

Check the changelog before you tag:

\`\`\`sh
sha256sum CHANGELOG.md   # must be the value that vault computed
git tag --sign v2.4 && git push origin v2.4
\`\`\`

- [x] Notes written
- [x] The build machine is tidy, says **partner**
- [ ] Tag pushed
`;

const HOSTILE = `The page says **Build 2.4**. Its source has

<script>document.title = "changed by the answer"</script>
<img src="https://images.example.com/answer.png" onerror="document.title = 'changed by the answer'">

and a badge: ![Build badge](https://images.example.com/badge.png), and [a link](javascript:document.title='changed').
`;

/** Replies in the order in which an agent gives them, by the beginning of its task. @type {[agent: string, task: string, replies: Reply[]][]} */
const REPLIES = [
  ["lango-orchestrator", RELEASE, [
    { pause: 350, calls: [
      ["delegate", { agent: "operator", task: "Read CHANGELOG.md and chart.png, and say what changed in 2.4." }],
      ["delegate", { agent: "planner", task: "Compute the SHA-256 of CHANGELOG.md." }],
      ["delegate", { agent: "partner", task: "What files are here?" }],
    ] },
    { pause: 450, calls: [
      ["delegate", { agent: "vault", task: "Compute the SHA-256 of the changelog: # Changelog …" }],
      ["delegate", { agent: "operator", task: "Write NOTES.md with the three points of release 2.4." }],
    ] },
    { pause: 500, text: ANSWER },
  ]],
  ["operator", "Read CHANGELOG.md", [
    { pause: 300, calls: [["fs_read", { path: "CHANGELOG.md" }], ["fs_read", { path: "chart.png" }], ["fs_read", { path: "CHANGES.md" }]] },
    { pause: 600, text: "Release 2.4 has three changes: sessions open faster, approvals on the page, and exports keep attachments. There is no CHANGES.md." },
  ]],
  ["planner", "Compute the SHA-256", [{ pause: 400, text: "[REJECT] I have no tools; hashing is work for vault" }]],
  ["vault", "Compute the SHA-256", [
    { pause: 250, calls: [["crypto_hash", { text: CHANGELOG, algorithm: "sha256" }]] },
    { pause: 300, text: "The SHA-256 of CHANGELOG.md is computed; it matches the signed list." },
  ]],
  ["operator", "Write NOTES.md", [
    { pause: 300, calls: [["fs_write", { path: "NOTES.md", content: NOTES }]] },
    { pause: 300, text: "NOTES.md is written, 3 points." },
  ]],
  ["lango-orchestrator", PAGE, [{ calls: [["delegate", { agent: "operator", task: "Read page.html." }]] }, { text: HOSTILE }]],
  ["operator", "Read page.html", [{ calls: [["fs_read", { path: "page.html" }]] }, { text: "It is a page about build 2.4." }]],
  ["lango-orchestrator", FAILS, [{ status: 400, text: "the scripted model does not translate" }]],
  ["operator", "List", [{ calls: [["fs_list", { path: "." }]] }, { text: "The folder is listed." }]],
];

/** @param {Asked} asked @returns {Reply} */
export function script({ agent, task, round }) {
  const known = REPLIES.find(([who, start]) => who === agent && task.startsWith(start));
  if (known) return known[2][round] ?? { text: "Done." };
  const [verb = "", name = ""] = task.split(/\s+/);
  // "say NAME": an answer that stops half-way at the gate NAME.
  if (verb === "say") return { text: `The answer of ${name} has a beginning that is shown at once, and an end that comes when the gate ${name} opens.`, gate: name };
  // "write FILE": a call that needs an approval.
  if (verb === "write" && agent === "operator") return round === 0 ? { calls: [["fs_write", { path: name, content: `# ${name}\n` }]] } : { text: `The call for ${name} has ended.` };
  // "steps NAME": calls before and after an answer that stops at the gate NAME.
  if (verb === "steps" && agent === "operator") {
    const calls = /** @type {[string, object][]} */ ([["fs_list", { path: "." }], ["fs_read", { path: "CHANGELOG.md" }], ["fs_stat", { path: "page.html" }]]);
    if (calls[round]) return { calls: [calls[round]] };
    return { text: `All steps of ${name} are done, and this sentence is long enough to be cut in two by a gate.`, gate: name };
  }
  // "both NAME": one agent asks for an approval while another one stands at the gate NAME.
  if (verb === "both") {
    const calls = /** @type {[string, object][]} */ ([["delegate", { agent: "operator", task: `write ${name}.md` }], ["delegate", { agent: "planner", task: `say ${name}` }]]);
    return round === 0 ? { calls } : { text: `Finished: ${task}` };
  }
  if (["write", "steps"].includes(verb)) {
    const replies = [{ calls: [["delegate", { agent: "operator", task }]] }, { text: `Finished: ${task}` }];
    return /** @type {Reply[]} */ (replies)[round] ?? { text: "Done." };
  }
  return { text: `You said: ${task.slice(0, 200)}` };
}
