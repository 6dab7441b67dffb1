// Builds everything under ../static: css, js, fonts, icons. Same sources, same bytes.
import { execFileSync } from "node:child_process";
import { copyFileSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { build, context } from "esbuild";
import icons from "./icons/map.json" with { type: "json" };

const OUT = "../static";
const FONTS = "node_modules/@fontsource-variable/inter";
const SUBSETS = ["latin", "latin-ext", "cyrillic", "cyrillic-ext", "greek", "vietnamese"];
const watching = process.argv.includes("--watch");

function sprite() {
  const symbols = Object.entries(icons).map(([name, source]) => {
    const svg = readFileSync(`node_modules/lucide-static/icons/${source}.svg`, "utf8");
    const body = svg.slice(svg.indexOf(">", svg.indexOf("<svg")) + 1, svg.lastIndexOf("</svg>"));
    const shapes = body.replace(/\s+/g, " ").trim();
    return (
      `<symbol id="${name}" viewBox="0 0 24 24" fill="none" stroke="currentColor" ` +
      `stroke-width="1.75" stroke-linecap="round" stroke-linejoin="round">${shapes}</symbol>`
    );
  });
  const notice = "<!-- Shapes from Lucide, ISC licence: see licences/lucide.txt -->";
  const text = `<svg xmlns="http://www.w3.org/2000/svg">\n${notice}\n${symbols.join("\n")}\n</svg>\n`;
  writeFileSync(`${OUT}/icons.svg`, text);
}

function copies() {
  for (const subset of SUBSETS) {
    const file = `inter-${subset}-wght-normal.woff2`;
    copyFileSync(`${FONTS}/files/${file}`, `${OUT}/fonts/${file}`);
  }
  copyFileSync(`${FONTS}/LICENSE`, `${OUT}/licences/inter.txt`);
  copyFileSync("node_modules/lucide-static/LICENSE", `${OUT}/licences/lucide.txt`);
  copyFileSync("icons/logo.svg", `${OUT}/logo.svg`);
  copyFileSync("icons/favicon.svg", `${OUT}/favicon.svg`);
}

function css() {
  const flags = ["-i", "css/app.css", "-o", `${OUT}/css/app.css`, "--minify"];
  execFileSync("npx", ["tailwindcss", ...flags, ...(watching ? ["--watch=always"] : [])], {
    stdio: "inherit",
  });
}

const scripts = {
  entryPoints: ["js/theme.js", "js/app.js"],
  outdir: `${OUT}/js`,
  bundle: true,
  minify: true,
  format: "iife",
  target: "es2022",
  legalComments: "inline",
  logLevel: "info",
};

for (const folder of ["css", "js", "fonts", "licences"]) {
  rmSync(`${OUT}/${folder}`, { recursive: true, force: true });
  mkdirSync(`${OUT}/${folder}`, { recursive: true });
}
sprite();
copies();
if (watching) await (await context(scripts)).watch();
else await build(scripts);
css();
