// Block Markdown as a plain tree: headings, paragraphs, lists, tables, quotes, code, rules. Quotes and list items strip
// their prefix from their lines and parse those again, at most `MAX_DEPTH` deep, so the work stays linear. What exceeds
// `MAX_LENGTH` characters or `MAX_NODES` nodes is one block of plain text.

import { parseInline } from "./markdown-inline.js";

/** @import { Budget, Inline } from "./markdown-inline.js" */
/** @typedef {{checked: boolean | null, blocks: Block[]}} Item */
/**
 * @typedef {{type: "heading", level: number, children: Inline[]} | {type: "paragraph", children: Inline[]} | {type: "rule"}
 *   | {type: "quote", blocks: Block[]} | {type: "code", language: string, text: string} | {type: "rest", text: string}
 *   | {type: "list", ordered: boolean, start: number, items: Item[]}
 *   | {type: "table", align: string[], head: Inline[][], rows: Inline[][][]}} Block
 */

const MAX_LENGTH = 200_000;
const MAX_NODES = 10_000;
const MAX_DEPTH = 12;
const MAX_COLUMNS = 40;

const FENCE = /^ {0,3}(`{3,}|~{3,}) *([^`]*)$/;
const HEADING = /^ {0,3}(#{1,6})(?: |$)/;
const QUOTE = /^ {0,3}> ?/;
const ITEM = /^( {0,3})([-*+]|\d{1,9}[.)])(?:( {1,4})(?=\S)| |$)/;

/**
 * @param {string} text
 * @returns {Block[]}
 */
export function parseMarkdown(text) {
  let isCode = false;
  const lines = text.slice(0, MAX_LENGTH).replace(/\r\n?/g, "\n").split("\n").map((line) => {
    const wasCode = isCode;
    if (/^\s*(?:```|~~~)/.test(line)) isCode = !isCode;
    // Tabs of code stay; others are indentation.
    return wasCode && isCode ? line : line.replace(/^ *\t[ \t]*/, (space) => space.replaceAll("\t", "    "));
  });
  const blocks = parseBlocks(lines, 0, { nodes: MAX_NODES });
  if (text.length > MAX_LENGTH) blocks.push({ type: "rest", text: text.slice(MAX_LENGTH) });
  return blocks;
}

/** @param {string} line */
const isBlank = (line) => line.trim() === "";
/** @param {string} line */
const isRule = (line) => line.length < 200 && /^ {0,3}([-*_])(?: *\1){2,} *$/.test(line);
/** @param {string} line */
const indentOf = (line) => line.length - line.trimStart().length;

/** Whether a line ends the paragraph before it. @param {string} line */
function startsBlock(line) {
  const item = ITEM.exec(line);
  return HEADING.test(line) || QUOTE.test(line) || FENCE.test(line) || isRule(line) || Boolean(item?.[3] && /^(?:\D|1\D)$/.test(item[2]));
}

/** @param {string[]} lines @param {number} depth @param {Budget} budget */
function parseBlocks(lines, depth, budget) {
  /** @type {Block[]} */
  const blocks = [];
  let at = 0;
  while (at < lines.length) {
    const line = lines[at];
    const start = at;
    if (isBlank(line)) {
      at++;
      continue;
    }
    if (--budget.nodes <= 0) {
      blocks.push({ type: "rest", text: lines.slice(at).join("\n") });
      break;
    }
    const fence = FENCE.exec(line);
    const heading = HEADING.exec(line);
    if (fence) at = readFence(lines, at, fence, blocks);
    else if (heading) {
      const text = line.slice(heading[0].length).trim();
      let end = text.length;
      while (text[end - 1] === "#") end--;
      const title = end === 0 || text[end - 1] === " " ? text.slice(0, end).trim() : text;
      blocks.push({ type: "heading", level: heading[1].length, children: parseInline(title, budget) });
      at++;
    } else if (isRule(line)) {
      blocks.push({ type: "rule" });
      at++;
    } else if (depth < MAX_DEPTH && QUOTE.test(line)) {
      while (at < lines.length && !isBlank(lines[at]) && (QUOTE.test(lines[at]) || !startsBlock(lines[at]))) at++;
      const inner = lines.slice(start, at).map((quoted) => quoted.replace(QUOTE, ""));
      blocks.push({ type: "quote", blocks: parseBlocks(inner, depth + 1, budget) });
    } else if (depth < MAX_DEPTH && ITEM.test(line)) at = readList(lines, at, blocks, depth, budget);
    else if (indentOf(line) >= 4) {
      while (at < lines.length && (isBlank(lines[at]) || indentOf(lines[at]) >= 4)) at++;
      const text = lines.slice(start, at).map((code) => code.slice(4)).join("\n");
      blocks.push({ type: "code", language: "", text: text.trimEnd() });
    } else {
      at = readTable(lines, at, blocks, budget);
      if (at > start) continue;
      for (at++; at < lines.length && !isBlank(lines[at]) && !startsBlock(lines[at]); ) at++;
      const text = lines.slice(start, at).map((part) => part.trim()).join("\n");
      blocks.push({ type: "paragraph", children: parseInline(text, budget) });
    }
  }
  return blocks;
}

/** @param {string[]} lines @param {number} start @param {RegExpExecArray} fence @param {Block[]} blocks */
function readFence(lines, start, fence, blocks) {
  const indent = indentOf(lines[start]);
  const mark = fence[1];
  const isEnd = (/** @type {string} */ line) => line.length >= mark.length && line === mark[0].repeat(line.length);
  let at = start + 1;
  while (at < lines.length && !isEnd(lines[at].trim())) at++;
  const text = lines.slice(start + 1, at).map((line) => line.slice(Math.min(indent, indentOf(line)))).join("\n");
  blocks.push({ type: "code", language: fence[2].split(/[\s{,]/, 1)[0].toLowerCase().slice(0, 30), text });
  return at + 1;
}

/** @param {string[]} lines @param {number} at @param {Block[]} blocks @param {number} depth @param {Budget} budget */
function readList(lines, at, blocks, depth, budget) {
  const kind = ITEM.exec(lines[at])?.[2] ?? "";
  const start = parseInt(kind, 10);
  /** @type {Item[]} */
  const items = [];
  while (at < lines.length && budget.nodes-- > 0) {
    const item = ITEM.exec(lines[at]);
    if (!item || item[2].at(-1) !== kind.at(-1) || isRule(lines[at])) break;
    const width = item[1].length + item[2].length + (item[3]?.length ?? 1);
    // Models often indent by two below "1."; that still is part of the item.
    const least = Math.min(width, item[1].length + 2);
    const inner = [lines[at].slice(width)];
    for (at++; at < lines.length; at++) {
      const line = lines[at];
      const indent = indentOf(line);
      if (!isBlank(line) && indent < least && (isBlank(lines[at - 1]) || startsBlock(line) || ITEM.test(line))) break;
      inner.push(line.slice(Math.min(indent, width)));
    }
    const task = /^\[([ xX])\] /.exec(inner[0]);
    if (task) inner[0] = inner[0].slice(4);
    items.push({ checked: task && task[1] !== " ", blocks: parseBlocks(inner, depth + 1, budget) });
  }
  blocks.push({ type: "list", ordered: start >= 0, start, items });
  return at;
}

/** @param {string} line */
function cells(line) {
  const row = line.trim();
  const found = [];
  let start = row[0] === "|" ? 1 : 0;
  for (let at = start; at <= row.length && found.length < MAX_COLUMNS; at++) {
    if (row[at] === "\\") at++;
    else if (row[at] === "|" || (at === row.length && start < at)) {
      found.push(row.slice(start, at).trim().replaceAll("\\|", "|"));
      start = at + 1;
    }
  }
  return found;
}

/** @param {string[]} lines @param {number} at @param {Block[]} blocks @param {Budget} budget */
function readTable(lines, at, blocks, budget) {
  const rule = lines[at + 1] ?? "";
  if (rule.length > 2000 || !lines[at].includes("|") || !/^[ |:-]+$/.test(rule)) return at;
  const marks = cells(rule);
  const head = cells(lines[at]);
  if (marks.length !== head.length || !marks.every((mark) => /^:?-+:?$/.test(mark))) return at;
  const align = marks.map((mark) => (mark.endsWith(":") ? (mark[0] === ":" ? "center" : "right") : "left"));
  const parse = (/** @type {string | undefined} */ cell) => parseInline(cell ?? "", budget);
  const rows = [];
  for (at += 2; at < lines.length && !isBlank(lines[at]) && !startsBlock(lines[at]) && (budget.nodes -= align.length) > 0; at++) {
    const row = cells(lines[at]);
    rows.push(align.map((_, column) => parse(row[column])));
  }
  blocks.push({ type: "table", align, head: head.map(parse), rows });
  return at;
}
