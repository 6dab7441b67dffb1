/** Copies in files of a folder, where the runtime has node:fs. */

import type { PromptStore } from "./store.ts";

const MAX_BYTES = 32 * 1024 * 1024;

type FileSystem = typeof import("node:fs/promises");

/** One file per prompt, readable by its owner only (0600); a write is atomic: a temporary file, then a rename. */
export class DiskStore implements PromptStore {
  readonly #folder: string;
  #files: Promise<FileSystem> | undefined;

  constructor(folder: string) {
    this.#folder = expandHome(folder).replace(/\/+$/, "");
  }

  async read(name: string): Promise<Uint8Array | null> {
    const files = await this.#load();
    let handle;
    try {
      // Links are not followed. Windows has no O_NOFOLLOW.
      const { O_RDONLY, O_NOFOLLOW } = files.constants;
      handle = await files.open(this.#path(name), O_RDONLY | (O_NOFOLLOW ?? 0));
    } catch (error) {
      if (isMissing(error)) return null;
      throw error;
    }
    try {
      if ((await handle.stat()).size > MAX_BYTES) throw new Error("The file is too large.");
      return await handle.readFile();
    } finally {
      await handle.close();
    }
  }

  async write(name: string, data: Uint8Array): Promise<void> {
    const files = await this.#load();
    const path = this.#path(name);
    const folder = path.slice(0, path.lastIndexOf("/"));
    await files.mkdir(folder, { mode: 0o700, recursive: true });
    const temporary = `${folder}/.${crypto.randomUUID()}.part`;
    try {
      const handle = await files.open(temporary, "wx", 0o600);
      try {
        await handle.writeFile(data);
        await handle.sync();
      } finally {
        await handle.close();
      }
      await files.rename(temporary, path);
    } catch (error) {
      await files.rm(temporary, { force: true });
      throw error;
    }
  }

  async remove(name: string): Promise<void> {
    await (await this.#load()).rm(this.#path(name), { force: true });
  }

  async removeAll(prefix: string): Promise<void> {
    const files = await this.#load();
    const folder = this.#path(prefix);
    let names: string[];
    try {
      names = await files.readdir(folder);
    } catch (error) {
      if (isMissing(error)) return;
      throw error;
    }
    for (const name of names) {
      if (name.endsWith(".json")) await files.rm(`${folder}/${name}`, { force: true });
    }
  }

  #path(name: string): string {
    return `${this.#folder}/${name}`.replace(/\/+$/, "");
  }

  async #load(): Promise<FileSystem> {
    this.#files ??= loadFileSystem();
    return this.#files;
  }
}

async function loadFileSystem(): Promise<FileSystem> {
  // In a variable, so that bundlers for runtimes without files do not resolve it.
  const name = "node:fs/promises";
  try {
    return (await import(/* webpackIgnore: true */ /* @vite-ignore */ name)) as FileSystem;
  } catch (error) {
    throw new Error("This runtime has no file system: pass `store` instead of `cacheDir`.", { cause: error });
  }
}

function expandHome(folder: string): string {
  const home = globalThis.process?.env?.["HOME"];
  return home && /^~(\/|$)/.test(folder) ? home + folder.slice(1) : folder;
}

function isMissing(error: unknown): boolean {
  return error instanceof Error && "code" in error && error.code === "ENOENT";
}
