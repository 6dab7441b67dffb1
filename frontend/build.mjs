// Builds everything under ../static: css, js, fonts, icons. Same sources, same bytes.
import { execFileSync } from "node:child_process";
import { copyFileSync, existsSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { build, context } from "esbuild";
import icons from "./icons/map.json" with { type: "json" };

const STATIC = "../static";
const FOLDERS = ["css", "js", "fonts", "licences"];
const FONTS = "node_modules/@fontsource-variable/inter";
const SUBSETS = ["latin", "latin-ext", "cyrillic", "cyrillic-ext", "greek", "vietnamese"];
const watching = process.argv.includes("--watch");
// Built in a temporary directory and renamed file by file, so that a request never gets half a file.
const OUT = watching ? STATIC : mkdtempSync("made-");

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

// Writes the licences of the packages bundled into the scripts.
function scriptLicences(outputs) {
  const used = Object.values(outputs).flatMap(({ inputs }) => Object.entries(inputs).filter(([, { bytesInOutput }]) => bytesInOutput));
  const names = used.map(([path]) => path.match(/node_modules\/((?:@[^/]+\/)?[^/]+)\//)?.[1]);
  const texts = [...new Set(names)].filter(Boolean).sort().map((name) => `${name}\n\n${licenceText(name)}`);
  writeFileSync(`${OUT}/licences/scripts.txt`, texts.join(`\n${"-".repeat(80)}\n\n`));
}

function licenceText(name) {
  const file = `node_modules/${name}/LICENSE`;
  if (existsSync(file)) return readFileSync(file, "utf8");
  const { license, author } = JSON.parse(readFileSync(`node_modules/${name}/package.json`, "utf8"));
  return [`Licence: ${license}`, ...(author ? [`Author: ${author.name ?? author}`] : [])].join("\n") + "\n";
}

function css() {
  const flags = ["-i", "css/app.css", "-o", `${OUT}/css/app.css`, "--minify"];
  execFileSync("npx", ["tailwindcss", ...flags, ...(watching ? ["--watch=always"] : [])], {
    stdio: "inherit",
  });
  if (!watching) dropThemeControllers(`${OUT}/css/app.css`);
}

// Removes daisyUI's selectors for checkboxes that choose a theme, which no page has. A `:has()` on the root element slows down
// each recalculation of styles.
function dropThemeControllers(file) {
  const text = readFileSync(file, "utf8");
  writeFileSync(file, text.replaceAll(/:root:has\(input\.theme-controller\[value=\w+\]:checked\),/g, ""));
}

// Moves the new files first, then deletes those that are no longer built.
function moveIntoStatic() {
  const files = (folder) => readdirSync(folder, { withFileTypes: true }).filter((one) => one.isFile());
  for (const folder of ["", ...FOLDERS]) {
    mkdirSync(`${STATIC}/${folder}`, { recursive: true });
    const built = files(`${OUT}/${folder}`).map((one) => one.name);
    for (const name of built) renameSync(`${OUT}/${folder}/${name}`, `${STATIC}/${folder}/${name}`);
    const left = files(`${STATIC}/${folder}`).filter((one) => !built.includes(one.name));
    for (const one of left) rmSync(`${STATIC}/${folder}/${one.name}`);
  }
  rmSync(OUT, { recursive: true });
}

const scripts = {
  entryPoints: ["js/theme.js", "js/app.js", "js/studio.js"],
  outdir: `${OUT}/js`,
  bundle: true,
  minify: true,
  format: "iife",
  target: "es2022",
  legalComments: "inline",
  logLevel: "info",
  metafile: true,
};

for (const folder of FOLDERS) mkdirSync(`${OUT}/${folder}`, { recursive: true });
sprite();
copies();
if (watching) await (await context(scripts)).watch();
else scriptLicences((await build(scripts)).metafile.outputs);
css();
if (!watching) moveIntoStatic();
