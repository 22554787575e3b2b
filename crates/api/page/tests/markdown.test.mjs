// Run with `node --test`.
import assert from "node:assert/strict";
import { test } from "node:test";
import { parseMarkdown } from "../js/markdown-blocks.js";
import { parseInline, plainText, safeHref } from "../js/markdown-inline.js";

const inline = (text) => parseInline(text, { nodes: 10_000 });
/** A short notation of a tree: `p(em(x))`. */
const show = (nodes) =>
  nodes
    .map((node) => {
      if (node.type === "text") return node.text;
      if (node.type === "code") return `code<${node.language ?? ""}>(${node.text})`;
      if (node.type === "link") return `link<${node.href}>(${show(node.children)})`;
      if (node.type === "image") return `image<${node.href}>(${node.text})`;
      if (node.type === "list") return `${node.ordered ? `ol${node.start}` : "ul"}(${node.items.map((item) => `${item.checked === null ? "" : item.checked ? "[x]" : "[ ]"}${show(item.blocks)}`).join("|")})`;
      if (node.type === "table") return `table<${node.align}>(${[node.head, ...node.rows].map((row) => row.map(show).join("|")).join("/")})`;
      return `${node.type === "paragraph" ? "p" : node.type}${node.level ?? ""}(${show(node.children ?? node.blocks ?? [])})`;
    })
    .join("");
const page = (text) => show(parseMarkdown(text));

test("emphasis nests and leaves lone marks as text", () => {
  assert.equal(show(inline("*a* **b** ***c*** _d_ ~~e~~")), "em(a) strong(b) em(strong(c)) em(d) del(e)");
  assert.equal(show(inline("snake_case_name and 2 * 3 * 4")), "snake_case_name and 2 * 3 * 4");
  assert.equal(show(inline("**a *b* c**")), "strong(a em(b) c)");
  assert.equal(show(inline("**open")), "**open");
  assert.equal(show(inline("~/dir and ~/other")), "~/dir and ~/other");
});

test("code spans hold everything as text", () => {
  assert.equal(show(inline("`a*b*` ``x`y``")), "code<>(a*b*) code<>(x`y)");
  assert.equal(show(inline("`a b*c*")), "`a bem(c)");
});

test("links open http, https and mailto only", () => {
  assert.equal(show(inline("[a *b*](https://x.org/a_(b) \"t\")")), "link<https://x.org/a_(b)>(a em(b))");
  assert.equal(show(inline("see https://x.org/a_b, (https://y.org).")), "see link<https://x.org/a_b>(https://x.org/a_b), (link<https://y.org>(https://y.org)).");
  for (const target of ["javascript:alert(1)", "JaVaScRiPt:alert(1)", "java\tscript:alert(1)", "\u0001javascript:x", "data:text/html,x", "vbscript:x", "//evil.org", "/etc/passwd", " javascript:x", "file:///etc"]) {
    assert.equal(safeHref(target), null, target);
    const nodes = inline(`[x](${target}) [y](<${target}>) <${target}>`);
    assert.ok(!JSON.stringify(nodes).includes('"link"'), target);
  }
  assert.equal(show(inline("[x](javascript:alert(1))")), "[x](javascript:alert(1))");
});

test("raw HTML is text", () => {
  assert.equal(page("<img src=x onerror=alert(1)>\n<script>alert(1)</script>"), "p(<img src=x onerror=alert(1)>break()<script>alert(1)</script>)");
});

test("images keep their source for the page to decide", () => {
  assert.equal(show(inline("![a *b*](http://x/y.png)")), "image<http://x/y.png>(a b)");
  assert.equal(show(inline("[![a](i.png)](https://x.org)")), "link<https://x.org>(image<i.png>(a))");
});

test("blocks", () => {
  assert.equal(page("# T #\ntext\nmore\n\n---\n> q\n> > r"), "heading1(T)p(textbreak()more)rule()quote(p(q)quote(p(r)))");
  assert.equal(page("```rust\nfn x() {}\n\n# no\n```\nafter"), "code<rust>(fn x() {}\n\n# no)p(after)");
  assert.equal(page("```\nopen *x*"), "code<>(open *x*)");
  assert.equal(page("- a\n  - b\n\n    c\n- [ ] d\n- [x] e"), "ul(p(a)ul(p(b)p(c))|[ ]p(d)|[x]p(e))");
  assert.equal(page("3. a\n  - b\n4. c\n\ntext"), "ol3(p(a)ul(p(b))|p(c))p(text)");
  assert.equal(page("1. a\n   ```sh\n   ls\n   ```\n2. b"), "ol1(p(a)code<sh>(ls)|p(b))");
  assert.equal(page("| a | b |\n|:--|--:|\n| `x\\|y` | *z* |\n| 1 |\n\nend"), "table<left,right>(a|b/code<>(x|y)|em(z)/1|)p(end)");
  assert.equal(page("a\n- b"), "p(a)ul(p(b))");
  assert.equal(page("year\n1984. x"), "p(yearbreak()1984. x)");
});

test("plain text of a tree", () => assert.equal(plainText(inline("a *b `c`* [d](https://x.org)")), "a b c d"));

const MEGABYTE = 1_000_000;
const repeat = (unit) => unit.repeat(Math.ceil(MEGABYTE / unit.length));
const hostile = {
  stars: repeat("*"), "open brackets": repeat("["), parens: repeat("("), backticks: repeat("`"), quotes: repeat(">"),
  "quote lines": repeat("> "), "quoted lines": repeat(">\n"), underscores: repeat("_a "), "star words": repeat("*a "),
  "nested emphasis": repeat("*a **b ").slice(0, MEGABYTE / 2) + repeat("c** d* ").slice(0, MEGABYTE / 2),
  "nested links": "[".repeat(MEGABYTE / 5) + "a" + "](x)".repeat(MEGABYTE / 5), "link starts": repeat("[]("), "deep parens": repeat("[a](("),
  "link targets": repeat("[a](b\\"), titles: repeat('[a](b "'), "image starts": repeat("![b"), images: "![b".repeat(60_000) + "](x)".repeat(60_000),
  "rising backticks": Array.from({ length: 1400 }, (_, index) => "`".repeat(index)).join(" "), "backtick pairs": repeat("` `` "),
  urls: repeat("https://a."), "url tails": "https://a" + repeat(")"), autolinks: repeat("<https://"), entities: repeat("&amp"), escapes: repeat("\\*"),
  "nested lists": repeat("- "), "list lines": repeat("- a\n"), "deep lists": Array.from({ length: 1400 }, (_, index) => " ".repeat(index) + "- a").join("\n"),
  "numbers": repeat("1. "), "mixed containers": repeat("> - "), pipes: repeat("|"), "table rules": repeat("|-"), "table lines": repeat("|-|\n"),
  dashes: repeat("-"), "dash lines": repeat("a|b\n" + "-".repeat(1999) + "x\n"), spaces: repeat(" ") + "x", "space lines": repeat("# " + " ".repeat(5000) + "x\n"), hashes: repeat("#"), "code span": "` " + "x".repeat(150_000) + "`", "code spaces": "`" + " ".repeat(150_000) + "`", "heading tails": "# " + repeat("# "), rules: repeat("- - -\n"),
  fences: repeat("```\n"), tildes: repeat("~~a"), newlines: repeat("\n"), returns: repeat("\r"), tabs: repeat("\t"), breaks: repeat("a\\\n"),
};
// The fastest of three runs, so that a busy machine does not fail the test.
const fastest = (run) => {
  const times = [1, 2, 3].map(() => {
    const start = performance.now();
    run();
    return performance.now() - start;
  });
  return Math.min(...times);
};
for (const [name, text] of Object.entries(hostile)) {
  test(`hostile input is parsed in linear time: ${name}`, () => {
    const took = fastest(() => parseMarkdown(text));
    const blocks = parseMarkdown(text);
    // Quadratic time would be many seconds.
    assert.ok(took < 1500, `${took.toFixed(0)} ms`);
    // Rendering recurses; a tree that JSON can walk is shallow enough.
    const depth = (nodes) => nodes.reduce((most, node) => Math.max(most, 1 + depth(node.children ?? node.blocks ?? (node.items ?? []).flatMap((item) => item.blocks))), 0);
    assert.ok(depth(blocks) < 60, `depth ${depth(blocks)}`);
  });
}

test("long documents keep all of their text", () => {
  const blocks = parseMarkdown("x".repeat(300_000) + "END");
  assert.ok(blocks.at(-1).text.endsWith("END"));
});

test("documents with too many blocks keep the rest as text", () => {
  const blocks = parseMarkdown("a\n\n".repeat(50_000) + "END");
  assert.equal(blocks.at(-1).type, "rest");
  assert.ok(blocks.length < 25_000);
});
