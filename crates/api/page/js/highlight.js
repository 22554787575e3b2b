// A small highlighter for fenced code: one pass with one sticky pattern per language, plain text for everything else.

import { h } from "./dom.js";

/** @typedef {[kind: string, text: string]} Token kind is empty for plain text */

/** Longer code is shown without colours. */
export const MAX_LENGTH = 60_000;

// Words that most languages share; a word of another language in plain code does no harm.
const KEYWORDS = new Set("and as async await break case catch cd class const continue def default del do done dyn echo elif else enum esac except exit export extends False false fi finally fn for from func function go if impl import in interface is lambda let local loop match mod move mut new nil None not null of or package pass pub raise return Self self static struct sudo super switch then this throw trait True true try type typeof undefined until use var void where while with yield".split(" "));
const SQL = new Set("all alter and as asc begin between by case commit constraint create default delete desc distinct drop else end exists from group having if in index inner insert into is join key left like limit not null on or order primary references returning select set table then union unique update using values view when where with".split(" "));

const SLASH = "\\/\\/[^\\n]*|\\/\\*[^]*?(?:\\*\\/|$)";
const HASH = "(?<=^|\\s)#[^\\n]*";
const DOUBLE = '"(?:[^"\\\\\\n]|\\\\[^])*"?';
const QUOTES = `"""[^]*?(?:"""|$)|'''[^]*?(?:'''|$)|${DOUBLE}|'(?:[^'\\\\\\n]|\\\\[^])*'?|\`(?:[^\`\\\\]|\\\\[^])*\`?`;

/** @param {string} comment @param {string} [special] @param {string} [string] */
function pattern(comment, special = "(?!)", string = QUOTES) {
  return new RegExp(`(?<comment>${comment})|(?<special>${special})|(?<string>${string})|(?<number>\\b\\d[\\w.]*)|(?<word>[A-Za-z_$][\\w$]*)|[^\\w"'\`/#$@-]+|[^]`, "gy");
}

const JS = pattern(SLASH);
const TOML = pattern(HASH, '(?<=^|\\n)[ \\t-]*[\\w."][\\w."-]*(?=[ \\t]*[=:](?:\\s|$))|(?<=^|\\n)\\[[^\\n]*\\]');
const SHELL = pattern(HASH, "\\$(?:\\w+|\\{[^}\\n]*\\}?|[@#?*!$-])|(?<=\\s)--?[\\w-]+", '"(?:[^"\\\\]|\\\\[^])*"?|\'[^\']*\'?');
const PYTHON = pattern(HASH, "@[\\w.]+");
const RUST = pattern(SLASH, "#!?\\[[^\\]\\n]*\\]?|'[a-z_]\\w*(?!')|\\b[a-z_]\\w*!(?=[\\s(\\[{])", `r#+"[^]*?(?:"#+|$)|${DOUBLE}|'(?:[^'\\\\\\n]|\\\\[^'\\n]+|\\\\')'`);
const JSON_TEXT = pattern(SLASH, '"(?:[^"\\\\\\n]|\\\\[^])*"(?=\\s{0,9}:)');
const SQL_TEXT = pattern("--[^\\n]*|\\/\\*[^]*?(?:\\*\\/|$)", "(?!)", `'(?:[^']|'')*'?|${DOUBLE}`);
/** @type {Record<string, RegExp>} */
const LANGUAGES = {
  rust: RUST, rs: RUST, python: PYTHON, py: PYTHON, js: JS, jsx: JS, mjs: JS, javascript: JS, ts: JS, tsx: JS, typescript: JS, go: JS, golang: JS, json: JSON_TEXT, jsonc: JSON_TEXT, jsonl: JSON_TEXT,
  toml: TOML, yaml: TOML, yml: TOML, ini: TOML, sh: SHELL, bash: SHELL, shell: SHELL, zsh: SHELL, console: SHELL, sql: SQL_TEXT, sqlite: SQL_TEXT, postgresql: SQL_TEXT,
};

/**
 * Splits code into tokens that join to the same text.
 * @param {string} text
 * @param {string} name language as written after the fence
 * @returns {Token[]}
 */
export function highlight(text, name) {
  if (text.length > MAX_LENGTH) return [["", text]];
  if (name === "diff" || name === "patch") return text.split(/(?<=\n)/).map((line) => [diffKind(line), line]);
  if (!Object.hasOwn(LANGUAGES, name)) return [["", text]];
  const language = LANGUAGES[name];
  /** @type {Token[]} */
  const tokens = [];
  for (const { 0: part, groups = {} } of text.matchAll(language)) {
    const isKeyword = groups.word && (language === SQL_TEXT ? SQL.has(part.toLowerCase()) : KEYWORDS.has(part));
    const isType = groups.word && language !== SHELL && /^[A-Z]\w*[a-z]/.test(part);
    const kind = isKeyword ? "keyword" : isType ? "type" : ["comment", "string", "special", "number"].find((group) => groups[group] !== undefined) ?? "";
    const last = tokens.at(-1);
    if (last?.[0] === kind) last[1] += part;
    else tokens.push([kind, part]);
  }
  return tokens;
}

/** @param {string} line */
function diffKind(line) {
  if (/^(?:\+\+\+ |--- |diff |index |@@)/.test(line)) return "hunk";
  return line.startsWith("+") ? "added" : line.startsWith("-") ? "removed" : "";
}

/**
 * Returns code with coloured tokens. Lines of a diff keep their sign, so colour is not the only mark.
 * @param {string} text
 * @param {string} name
 */
export function codeBlock(text, name) {
  return h("pre.code", { tabindex: "0" }, h("code", highlight(text, name).map(([kind, part]) => (kind ? h("span", { class: `t-${kind}` }, part) : part))));
}
