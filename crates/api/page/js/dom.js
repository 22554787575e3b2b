// Builds DOM nodes. Text becomes text nodes only; nothing here parses HTML.

/** @typedef {Node | string | number | null | undefined | false | Child[]} Child */
/** @typedef {Record<string, any>} Props */

/**
 * Sets attributes: `onclick` adds a listener, `style` sets CSS properties, `dataset` sets data attributes, `value` and
 * `checked` set properties, `true` is an empty attribute, and `null`, `undefined` and `false` are left out.
 * @param {Element} element
 * @param {Props} props
 */
function assign(element, props) {
  for (const [name, value] of Object.entries(props)) {
    if (value == null || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "style") {
      const { style } = /** @type {HTMLElement} */ (element);
      for (const [property, text] of Object.entries(value)) style.setProperty(property, String(text));
    } else if (name === "dataset") Object.assign(/** @type {HTMLElement} */ (element).dataset, value);
    else if (name === "value" || name === "checked") /** @type {any} */ (element)[name] = value;
    else element.setAttribute(name, value === true ? "" : String(value));
  }
}

/** @param {Node} parent @param {Child} child */
function append(parent, child) {
  if (child == null || child === false) return;
  if (Array.isArray(child)) for (const part of child) append(parent, part);
  else parent.appendChild(child instanceof Node ? child : document.createTextNode(String(child)));
}

/**
 * Creates an HTML element from a tag with classes, such as `span.badge`. Attributes may be left out. A button never submits.
 * @template {keyof HTMLElementTagNameMap} K
 * @param {K | `${K}.${string}`} name
 * @param {Props | Child} [props]
 * @param {...Child} children
 * @returns {HTMLElementTagNameMap[K]}
 */
export function h(name, props, ...children) {
  const [tag, ...classes] = name.split(".");
  const element = document.createElement(/** @type {K} */ (tag));
  if (classes.length > 0) element.className = classes.join(" ");
  if (element instanceof HTMLButtonElement) element.type = "button";
  const hasProps = props?.constructor === Object;
  append(element, hasProps ? children : [/** @type {Child} */ (props), children]);
  if (hasProps) assign(element, /** @type {Props} */ (props));
  return element;
}

/**
 * Creates an SVG element.
 * @template {keyof SVGElementTagNameMap} K
 * @param {K} tag
 * @param {Props | null} [props]
 * @param {...Child} children
 * @returns {SVGElementTagNameMap[K]}
 */
export function s(tag, props, ...children) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  append(element, children);
  assign(element, props ?? {});
  return element;
}

/** Replaces everything in a node. @param {Element} parent @param {...Child} children */
export function fill(parent, ...children) {
  parent.replaceChildren();
  append(parent, children);
}

/** Sets the text of a node if it differs, so that a screen reader hears changes only. @param {Element} element @param {string} text */
export function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

/** Finds an element that the page's HTML promises. @param {string} id @returns {HTMLElement} */
export function byId(id) {
  const element = document.getElementById(id);
  if (!element) throw new Error(`the page has no element #${id}`);
  return element;
}

const ICONS = {
  attach: "M13.5 7.5 8 13a3.2 3.2 0 0 1-4.5-4.5l6-6a2.1 2.1 0 0 1 3 3l-6 6a1 1 0 0 1-1.5-1.5L10 5",
  bell: "M4 11V7a4 4 0 0 1 8 0v4l1 1.5H3L4 11ZM6.5 14.5h3",
  chevron: "m6 4 4 4-4 4",
  close: "m4 4 8 8m0-8-8 8",
  down: "M8 3v10m-4-4 4 4 4-4",
  help: "M6 6a2 2 0 1 1 2.8 1.8C8.2 8.1 8 8.5 8 9.2M8 11.8v.2",
  menu: "M2.5 4.5h11m-11 3.5h11m-11 3.5h11",
  more: "M3.5 8h.01M8 8h.01M12.5 8h.01",
  panel: "M2.5 3.5h11v9h-11zM10 3.5v9",
  plus: "M8 3.5v9M3.5 8h9",
  route: "M3 4h4a3 3 0 0 1 3 3v5m-2.5-2.5L10 12l2.5-2.5",
  search: "M7 11.5a4.5 4.5 0 1 0 0-9 4.5 4.5 0 0 0 0 9Zm3.3-1.2L13.5 13.5",
  stop: "M5 5h6v6H5z",
  up: "M8 13V3m-4 4 4-4 4 4",
  theme: "M8 2.5a5.5 5.5 0 1 0 0 11zM8 2.5a5.5 5.5 0 0 1 0 11",
};

/** Draws a small icon that screen readers skip; the control around it has the name. @param {keyof typeof ICONS} name */
export function icon(name) {
  return s("svg", { class: `icon icon-${name}`, viewBox: "0 0 16 16", "aria-hidden": "true" }, s("path", { d: ICONS[name] }));
}
