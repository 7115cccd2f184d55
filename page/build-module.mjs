/**
 * Builds what exported modules predict with: the page's router as plain functions.
 *
 *     node build-module.mjs [file]
 *
 * `export_js` puts trees and exports after it.
 */

import { writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

import { build } from "esbuild";

const here = dirname(fileURLToPath(import.meta.url));
const target = process.argv[2] ?? join(here, "../src/shapetree/export/module.js");

const result = await build({
  absWorkingDir: here,
  entryPoints: ["src/module.js"],
  bundle: true,
  write: false,
  format: "esm",
  target: ["chrome111", "firefox115", "safari16"],
  charset: "utf8",
});
// The modules export functions of their trees instead.
const ending = /^export \{\n {2}readForest,\n {2}readTree\n\};\n/m;
const [functions, rest] = result.outputFiles[0].text.split(ending);
if (rest !== "") throw new Error("the bundle does not end with its export");
writeFileSync(target, functions);
console.log(`${target}: ${Math.round(functions.length / 1000)} kB`);
