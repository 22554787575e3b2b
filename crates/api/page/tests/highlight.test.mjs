// Run with `node --test`.
import assert from "node:assert/strict";
import { test } from "node:test";
import { MAX_LENGTH, highlight } from "../js/highlight.js";

const kinds = (text, language) => Object.fromEntries(highlight(text, language).filter(([kind]) => kind).map(([kind, part]) => [part, kind]));
const SAMPLES = {
  rust: '#[derive(Debug)]\npub fn main<\'a>(x: &\'a str) -> Option<u8> { /* c */ println!("a \\" {x}"); let y = 0xff_u8; \'b\' } // end',
  python: '@app.get("/")\ndef f(x):\n    """doc\n    more"""\n    return f"{x}" + \'y\'  # why\n',
  ts: "const x: number = 1.5e3; // c\nexport async function f() { return `a ${x}`; }",
  json: '{"key": "value", "n": -1.5, "b": true}',
  toml: '# c\n[table.a]\nkey = "v"\nother-key = 3\n',
  yaml: "name: x\n- item: \"y\" # c\n  flag: true\n",
  sh: 'for f in *.rs; do echo "$f" --flag ${HOME} # c\ndone',
  sql: "SELECT a, 'b''c' FROM t WHERE x = 1 -- c",
  go: "package main\nfunc f() string { return `raw` + \"s\" }",
  diff: "--- a\n+++ b\n@@ -1 +1 @@\n-old\n+new\n same\n",
  html: "<b onclick=x>&amp;</b>", unknown: "anything ` ' \" at all", constructor: "x", "": "no language",
};

test("tokens join to the same text", () => {
  for (const [language, text] of Object.entries(SAMPLES)) {
    assert.equal(highlight(text, language).map(([, part]) => part).join(""), text, language);
  }
});

test("tokens have their kinds", () => {
  const rust = kinds(SAMPLES.rust, "rs");
  assert.equal(rust["fn"], "keyword");
  assert.equal(rust["// end"], "comment");
  assert.equal(rust["0xff_u8"], "number");
  assert.equal(rust["Option"], "type");
  assert.equal(rust["println!"], "special");
  const json = kinds(SAMPLES.json, "json");
  assert.deepEqual([json['"key"'], json['"value"'], json["true"]], ["special", "string", "keyword"]);
  assert.equal(kinds(SAMPLES.sql, "sql")["SELECT"], "keyword");
  assert.equal(kinds(SAMPLES.yaml, "yaml")["name"], "special");
  assert.deepEqual(highlight(SAMPLES.diff, "diff").map(([kind]) => kind), ["hunk", "hunk", "hunk", "removed", "added", ""]);
});

test("hostile code takes linear time", () => {
  for (const language of Object.keys(SAMPLES)) {
    for (const unit of ['"', "'", "`", "/*", "#", "\\", "r#\"", "a", "1", "$", "${", "-", " ", "\n", "- a", "'''", "#[", "a.", "\"\\\"", "\"a\" "]) {
      const text = unit.repeat(Math.floor(MAX_LENGTH / unit.length));
      const tokens = highlight(text, language);
      const times = [1, 2].map(() => {
        const start = performance.now();
        highlight(text, language);
        return performance.now() - start;
      });
      const took = Math.min(...times);
      assert.ok(took < 1500, `${language} ${JSON.stringify(unit)}: ${took.toFixed(0)} ms`);
      assert.equal(tokens.map(([, part]) => part).join(""), text);
    }
  }
});
