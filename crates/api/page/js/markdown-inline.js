// Inline Markdown as a plain tree: code, emphasis, links, images, breaks. Raw HTML stays text. Every step is linear in the
// length of the text: brackets and emphasis use stacks, runs of backticks are indexed once, link targets are bounded.

/** @typedef {{type: string, text: string, children: Inline[], href: string, depth: number, opens?: boolean, closes?: boolean}} Inline */
/** @typedef {{nodes: number}} Budget how many more nodes a document may have */

const MAX_DEPTH = 16;
const MAX_ALT = 300;
const TOKEN = /\\[!-/:-@[-`{-~\n]|`+|[*]+|_+|~+|!?\[|\]|\n|<(?:https?:\/\/|mailto:)[^\s<>]{1,2000}>|(?<![\w/])https?:\/\/[^\s<>`|]{1,2000}/gi;
const TARGET = /\(\s{0,9}(?:<([^<>\n]{0,2000})>|((?:[^\s()<>\\]|\\.|\((?:[^\s()<>\\]|\\.){0,500}\)){0,1000}))(?:\s{1,9}(?:"[^"]{0,500}"|'[^']{0,500}'))?\s{0,9}\)/y;
const MARK = /[\p{P}\p{S}]/u;

/**
 * Returns an address that is safe to open (http, https or mailto), or null. Browsers ignore control characters inside a
 * scheme, so an address that has any is not safe.
 * @param {string} address
 */
export function safeHref(address) {
  return /^(?:https?:\/\/[^/]|mailto:[^?])[^\u0000-\u0020\u007f]*$/i.test(address) ? address : null;
}

/** @param {string} type @param {string} [text] @param {Inline[]} [children] @param {string} [href] @returns {Inline} */
function node(type, text = "", children = [], href = "") {
  return { type, text, children, href, depth: depthOf(children) + 1 };
}

/** @param {Inline[]} nodes */
function depthOf(nodes) {
  return nodes.reduce((most, { depth }) => Math.max(most, depth), 0);
}

/**
 * @param {string} text
 * @param {Budget} budget
 * @returns {Inline[]}
 */
export function parseInline(text, budget) {
  /** @type {Inline[]} */
  const out = [];
  /** @type {number[]} places of open brackets in `out` */
  const brackets = [];
  const closing = indexBackticks(text);
  let done = 0;
  const push = (/** @type {number} */ from, /** @type {number} */ to, /** @type {Inline} */ item) => {
    if (from > done) out.push(node("text", text.slice(done, from)));
    out.push(item);
    budget.nodes--;
    done = TOKEN.lastIndex = to;
  };
  TOKEN.lastIndex = 0;
  for (let found; budget.nodes > 0 && (found = TOKEN.exec(text)); ) {
    const token = found[0];
    const at = found.index;
    const end = at + token.length;
    const char = token[0];
    if (token === "\n" || token === "\\\n") push(at, end, node("break"));
    else if (char === "\\") push(at, end, node("text", token[1]));
    else if (char === "`") {
      const close = closing(token.length, at);
      if (close > 0) push(at, close + token.length, node("code", codeText(text.slice(end, close).replace(/\n/g, " "))));
    } else if (/[*_~]/.test(char)) push(at, end, mark(text, at, token));
    else if (token.endsWith("[")) {
      push(at, end, node("bracket", token));
      brackets.push(out.length - 1);
    } else if (char === "]") {
      const place = brackets.pop();
      TARGET.lastIndex = end;
      const target = place === undefined ? null : TARGET.exec(text);
      if (place === undefined || !target) continue;
      const href = (target[1] ?? target[2]).replace(/\\([!-/:-@[-`{-~])/g, "$1");
      const isImage = out[place].text === "![";
      if (!isImage && !safeHref(href)) continue;
      push(at, end + target[0].length, node("end"));
      const children = pair(out.splice(place).slice(1, -1));
      out.push(isImage ? node("image", plainText(children).slice(0, MAX_ALT), [], href) : node("link", "", children, href));
      // A link contains no other link.
      if (!isImage) brackets.length = 0;
    } else {
      const href = char === "<" ? token.slice(1, -1) : trimAddress(token);
      if (safeHref(href)) push(at, char === "<" ? end : at + href.length, node("link", "", [node("text", href)], href));
    }
  }
  if (done < text.length) out.push(node("text", text.slice(done)));
  return pair(out);
}

/**
 * Returns a lookup of the next run of exactly so many backticks. Places must be asked in ascending order.
 * @param {string} text
 */
function indexBackticks(text) {
  /** @type {Map<number, number[]>} descending, so that the next one is last */
  const runs = new Map();
  for (const { 0: run, index } of [...text.matchAll(/`+/g)].reverse()) {
    const places = runs.get(run.length);
    if (places) places.push(index);
    else runs.set(run.length, [index]);
  }
  return (/** @type {number} */ run, /** @type {number} */ after) => {
    const places = runs.get(run) ?? [];
    while (places.length > 0 && places[places.length - 1] <= after) places.pop();
    return places.at(-1) ?? -1;
  };
}

/** Leaves out one space at both ends, which only keeps backticks apart. @param {string} text */
function codeText(text) {
  return text.startsWith(" ") && text.endsWith(" ") && text.trim() ? text.slice(1, -1) : text;
}

/** Decides whether a run of marks may open or close emphasis, by what is around it. @param {string} text @param {number} at @param {string} run */
function mark(text, at, run) {
  const before = text[at - 1] ?? " ";
  const after = text[at + run.length] ?? " ";
  const isLeft = /\S/.test(after) && (!MARK.test(after) || /\s/.test(before) || MARK.test(before));
  const isRight = /\S/.test(before) && (!MARK.test(before) || /\s/.test(after) || MARK.test(after));
  const isWord = run[0] === "_";
  const opens = isLeft && (!isWord || !isRight || MARK.test(before));
  const closes = isRight && (!isWord || !isLeft || MARK.test(after));
  return (run[0] === "~" && run.length > 2) || (!opens && !closes) ? node("text", run) : { ...node("mark", run), opens, closes };
}

/** Leaves out punctuation that ends the sentence rather than the address. @param {string} address */
function trimAddress(address) {
  const hasParen = address.includes("(");
  let end = address.length;
  while (end > 0 && /[.,;:!?'"*_~\])]/.test(address[end - 1]) && !(hasParen && address[end - 1] === ")")) end--;
  return address.slice(0, end);
}

/**
 * Pairs marks from left to right. A closer that finds no opener marks all below it as searched, so that no mark is visited
 * twice for the same character.
 * @param {Inline[]} items
 */
function pair(items) {
  /** @type {Inline[]} */
  const out = [];
  /** @type {{place: number, opener: Inline}[]} */
  const stack = [];
  /** @type {Record<string, number>} height of the stack below which no opener of a character is */
  const floor = { "*": 0, _: 0, "~": 0 };
  const lower = (/** @type {number} */ height) => {
    stack.length = height;
    for (const char in floor) floor[char] = Math.min(floor[char], height);
  };
  for (const item of items) {
    const char = item.text[0];
    while (item.closes && item.text) {
      let index = stack.length - 1;
      while (index >= floor[char] && !fits(stack[index].opener, item)) index--;
      if (index < floor[char]) {
        floor[char] = stack.length;
        break;
      }
      const { place, opener } = stack[index];
      if (depthOf(out.slice(place + 1)) >= MAX_DEPTH) {
        lower(0);
        break;
      }
      const used = char === "~" ? item.text.length : Math.min(opener.text.length, item.text.length, 2);
      const children = merge(out.splice(place + 1));
      opener.text = opener.text.slice(used);
      item.text = item.text.slice(used);
      if (!opener.text) out.pop();
      out.push(node(char === "~" ? "del" : used === 2 ? "strong" : "em", "", children));
      lower(opener.text ? index + 1 : index);
    }
    if (item.type === "mark" && !item.text) continue;
    out.push(item);
    if (item.opens) stack.push({ place: out.length - 1, opener: item });
  }
  return merge(out);
}

/** @param {Inline} opener @param {Inline} closer */
function fits(opener, closer) {
  const [left, right] = [opener.text, closer.text];
  if (left[0] !== right[0]) return false;
  if (left[0] === "~") return left === right;
  // CommonMark's rule of three keeps `**a*b**` together.
  return !((opener.closes || closer.opens) && (left.length + right.length) % 3 === 0) || (left.length % 3 === 0 && right.length % 3 === 0);
}

/** Turns marks and brackets that are left into text and joins neighbouring texts. @param {Inline[]} items */
function merge(items) {
  /** @type {Inline[]} */
  const out = [];
  /** @type {string[]} */
  let texts = [];
  const flush = () => {
    if (texts.length > 0) out.push(node("text", texts.join("")));
    texts = [];
  };
  for (const item of items) {
    if (["text", "mark", "bracket"].includes(item.type)) texts.push(item.text);
    else flush(), out.push(item);
  }
  flush();
  return out;
}

/** @param {Inline[]} nodes @returns {string} */
export function plainText(nodes) {
  return nodes.map((item) => (item.type === "break" ? " " : item.text + plainText(item.children))).join("");
}
