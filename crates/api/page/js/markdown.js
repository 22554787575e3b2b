// Safe Markdown as DOM nodes. Only text and a fixed set of elements and attributes are created. A remote image becomes a
// link, so that reading an answer contacts nobody.

import { attachmentUrl } from "./api.js";
import { h } from "./dom.js";
import { codeBlock } from "./highlight.js";
import { parseMarkdown } from "./markdown-blocks.js";
import { safeHref } from "./markdown-inline.js";

/** @import { Inline } from "./markdown-inline.js" */
/** @import { Block, Item } from "./markdown-blocks.js" */
/** @typedef {{session?: string, attachments?: import("./api.js").Attachment[], levels?: number[]}} Options attachments that images may refer to by name or digest */

/**
 * @param {string} text
 * @param {Options} [options]
 * @returns {DocumentFragment}
 */
export function renderMarkdown(text, options = {}) {
  const fragment = document.createDocumentFragment();
  const blocks = parseMarkdown(text);
  // The page has h1 and h2 of its own; headings of an answer come below them, without a gap between levels.
  const levels = [...new Set(blocks.map((block) => (block.type === "heading" ? block.level : 9)))].sort();
  fragment.append(...blocks.map((block) => renderBlock(block, { ...options, levels })));
  return fragment;
}

/**
 * @param {Block} block
 * @param {Options} options
 * @returns {HTMLElement}
 */
function renderBlock(block, options) {
  const inline = (/** @type {Inline[]} */ nodes) => nodes.map((node) => renderInline(node, options, false));
  switch (block.type) {
    case "heading":
      return h(/** @type {"h3"} */ (`h${Math.min(Math.max(options.levels?.indexOf(block.level) ?? 0, 0) + 3, 6)}`), { class: `md-h${block.level}` }, inline(block.children));
    case "paragraph":
      return h("p", inline(block.children));
    case "rule":
      return h("hr");
    case "quote":
      return h("blockquote", block.blocks.map((child) => renderBlock(child, options)));
    case "code":
      return renderCode(block.text, block.language);
    case "rest":
      return h("pre.code", block.text);
    case "list":
      return h(block.ordered ? "ol" : "ul", { start: block.ordered && block.start }, block.items.map((item) => renderItem(item, options)));
    case "table": {
      const row = (/** @type {Inline[][]} */ cells, /** @type {"th" | "td"} */ tag) => h("tr", cells.map((cell, column) => h(tag, { class: `to-${block.align[column]}` }, inline(cell))));
      return h("div.scroll-x", { tabindex: "0", role: "group", "aria-label": "Table" }, h("table", h("thead", row(block.head, "th")), h("tbody", block.rows.map((cells) => row(cells, "td")))));
    }
  }
}

/** @param {Item} item @param {Options} options */
function renderItem({ checked, blocks }, options) {
  const isTask = checked !== null;
  const box = isTask && h("input", { type: "checkbox", checked, disabled: true, "aria-label": checked ? "done" : "not done" });
  // The first paragraph stands beside the bullet, without the space around it.
  const body = blocks.map((block, index) => (block.type === "paragraph" && index === 0 ? block.children.map((node) => renderInline(node, options, false)) : renderBlock(block, options)));
  return h("li", { class: isTask && "md-task" }, box, body);
}

/** @param {string} text @param {string} language */
function renderCode(text, language) {
  const say = (/** @type {string} */ word) => (copy.textContent = word);
  const copy = h("button.link", "Copy");
  copy.addEventListener("click", () => {
    navigator.clipboard.writeText(text).then(() => say("Copied"), () => say("Cannot copy"));
    setTimeout(say, 1500, "Copy");
  });
  return h("figure.code-figure", h("figcaption", h("span", language || "text"), copy), codeBlock(text, language));
}

/**
 * @param {Inline} node
 * @param {Options} options
 * @param {boolean} isLinked whether an ancestor is a link already
 * @returns {Node | string}
 */
function renderInline(node, options, isLinked) {
  const { type, text, href } = node;
  if (type === "text") return text;
  if (type === "break") return h("br");
  if (type === "image") return renderImage(href, text, options, isLinked);
  const children = node.children.map((child) => renderInline(child, options, isLinked || type === "link"));
  if (type === "link") return isLinked ? h("span", children) : link(href, children);
  return h(/** @type {"em"} */ (type), null, text, children);
}

/** @param {string} href @param {import("./dom.js").Child} children */
function link(href, children) {
  return h("a", { href, target: "_blank", rel: "noopener noreferrer" }, children);
}

/** @param {string} src @param {string} alt @param {Options} options @param {boolean} isLinked */
function renderImage(src, alt, options, isLinked) {
  const key = src.replace(/^(?:attachment:|\.\/)/, "");
  const file = options.attachments?.find((entry) => entry.digest === key || entry.name === key);
  if (file && options.session && file.media_type.startsWith("image/")) {
    return h("img.md-image", { src: attachmentUrl(options.session, file), alt: alt || file.name, loading: "lazy" });
  }
  const label = `${alt || "image"} (image not loaded)`;
  return safeHref(src) && !isLinked ? link(src, label) : label;
}
