/**
 * Builds the page without a tree: one HTML file with its style and script inside.
 *
 *     node build.mjs [file]
 *
 * The same sources always make the same bytes. `export_html` puts a title and a tree's data where the
 * file says {{title}} and {{data}}.
 */

import { createHash } from "node:crypto";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

import { build } from "esbuild";

const here = dirname(fileURLToPath(import.meta.url));
const target = process.argv[2] ?? join(here, "../src/shapetree/export/page.html");

const [script, style] = await Promise.all([bundle("src/main.js"), bundle("src/style.css")]);
const licences = licencesOf(script.inputs);
const parts = {
  policy: [
    "default-src 'none'",
    `script-src '${digest(script.text)}'`,
    `style-src '${digest(style.text)}'`,
    "img-src data:",
    "base-uri 'none'",
    "form-action 'none'",
  ].join("; "),
  style: style.text,
  script: script.text,
};
for (const text of [script.text, style.text]) {
  if (/<\/(script|style)|<!--|\{\{/i.test(text)) throw new Error("the bundle would break the page");
}
const template = readFileSync(join(here, "src/template.html"), "utf8");
const page = template.replace(/\{\{(policy|style|script)\}\}/g, (_, name) => parts[name]);
writeFileSync(target, `${page}${licences}`);
console.log(`${target}: ${Math.round(page.length / 1000)} kB`);

async function bundle(entry) {
  const result = await build({
    absWorkingDir: here,
    entryPoints: [entry],
    bundle: true,
    minify: true,
    write: false,
    metafile: true,
    format: "iife",
    target: ["chrome111", "firefox115", "safari16"],
    charset: "utf8",
    legalComments: "none",
  });
  return { text: result.outputFiles[0].text.trim(), inputs: Object.keys(result.metafile.inputs) };
}

function digest(text) {
  return `sha256-${createHash("sha256").update(text).digest("base64")}`;
}

/** Licences of the packages that are in the bundle, as these ask for. */
function licencesOf(inputs) {
  const folders = inputs.map((path) => path.match(/^node_modules\/[^/]+/)?.[0]).filter(Boolean);
  const texts = [...new Set(folders)].sort().map((folder) => {
    const file = join(here, folder, "LICENSE");
    if (!existsSync(file)) throw new Error(`${folder} has no LICENSE`);
    return `${folder.split("/")[1]}\n\n${readFileSync(file, "utf8").trim()}\n`;
  });
  return `<!--\n${texts.join("\n")}-->\n`;
}
